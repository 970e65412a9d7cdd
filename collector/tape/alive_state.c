/* Things with an identity are in a hash table by it. Ranges of expandable segments are mapped and
 * unmapped in parts, so they are in an array sorted by address. */
#include "alive_state.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "heaps.h"
#include "map.h"
#include "sorted.h"
#include "util.h"

/* In the order in which they are written. */
enum rank { SEGMENT, BLOCK, OTHER, LOST };

struct entry {
    struct mt_event event; /* kind 0: unused */
    uint32_t below;  /* an older open range of the same name and thread; the next unused entry */
    bool is_freeing; /* a block whose free was requested and has not completed */
};

/* What the program has from the driver on one device. */
struct device_use {
    uint64_t bytes;
    bool is_above;
};

struct mt_alive_state {
    struct mt_symbols *symbols;
    struct mt_map ids; /* identity -> index of its latest entry */
    struct entry *entries;
    size_t used, capacity;
    uint32_t unused;         /* the first of a list, or MT_MAP_NONE */
    struct mt_event *mapped; /* ranges of expandable segments: SEGMENT_MAP, sorted */
    size_t mapped_count, mapped_capacity;
    uint32_t open_ranges;
    /* By thread: open ranges without a place. Those of a thread end before its others. */
    uint64_t *lost_ranges;
    size_t lost_capacity;
    uint64_t limit_bytes; /* 0: uses are not counted */
    uint64_t exceeded;
    struct device_use *uses; /* by device */
    size_t use_capacity;
    uint64_t next; /* place of the next event: entries keep it as their number */
};

struct mt_alive_state *mt_alive_state_new(struct mt_symbols *symbols)
{
    struct mt_alive_state *self = calloc(1, sizeof *self);

    if (!self)
        return NULL;
    self->symbols = symbols;
    self->unused = MT_MAP_NONE;
    return self;
}

void mt_alive_state_free(struct mt_alive_state *self)
{
    if (!self)
        return;
    mt_map_release(&self->ids);
    free(self->entries);
    free(self->mapped);
    free(self->lost_ranges);
    free(self->uses);
    free(self);
}

/* Kinds of events that begin and end one thing have the same word. */
static uint64_t identity(const struct mt_event *event, uint64_t word, uint64_t value)
{
    return value ^
           mt_hash_u64(word << 40 | (uint64_t)event->heap << 20 | (uint64_t)event->device << 1 | 1);
}

static uint64_t identity_of_address(const struct mt_event *event, uint64_t word)
{
    return identity(event, word, event->addr);
}

/* A range has a thread and a name. The heap and the device of both ends may differ. */
static uint64_t identity_of_range(const struct mt_event *event)
{
    return mt_hash_u64((uint64_t)event->thread << 32 | event->name) ^
           mt_hash_u64((uint64_t)MT_EVENT_PHASE_PUSH << 40);
}

static enum mt_status take_entry(struct mt_alive_state *self, uint32_t *index)
{
    if (self->unused != MT_MAP_NONE) {
        *index = self->unused;
        self->unused = self->entries[*index].below;
        return MT_OK;
    }
    if (self->used >= MT_MAP_NONE - 1 ||
        (self->used == self->capacity &&
         mt_grow(&self->entries, &self->capacity, self->used + 1, sizeof *self->entries)))
        return MT_ERR_MEMORY;
    *index = (uint32_t)self->used++;
    return MT_OK;
}

static void give_back(struct mt_alive_state *self, uint32_t index)
{
    self->entries[index].event.kind = 0;
    self->entries[index].below = self->unused;
    self->unused = index;
}

/* Keeps the event as the thing with this identity. An older one is replaced, because its end was
 * lost, or hidden if `stacks`. */
static enum mt_status keep(struct mt_alive_state *self, uint64_t id, const struct mt_event *event,
                           bool stacks)
{
    uint32_t index = mt_map_find(&self->ids, id), below = MT_MAP_NONE;
    enum mt_status status = MT_OK;

    if (index == MT_MAP_NONE || stacks) {
        below = index;
        status = take_entry(self, &index);
        if (status == MT_OK)
            status = mt_map_set(&self->ids, id, index);
    }
    if (status != MT_OK)
        return status;
    self->entries[index] = (struct entry){.event = *event, .below = below};
    self->entries[index].event.seq = self->next;
    return MT_OK;
}

/* Returns false if there is no such thing. */
static enum mt_status drop(struct mt_alive_state *self, uint64_t id, bool *found)
{
    uint32_t index = mt_map_take(&self->ids, id);

    *found = index != MT_MAP_NONE;
    if (!*found)
        return MT_OK;
    uint32_t below = self->entries[index].below;
    give_back(self, index);
    return below == MT_MAP_NONE ? MT_OK : mt_map_set(&self->ids, id, below);
}

static uint64_t end_of(const struct mt_event *range)
{
    uint64_t end;

    return mt_add_ok(range->addr, range->size_bytes, &end) ? end : UINT64_MAX;
}

static bool is_same_space(const struct mt_event *range, const struct mt_event *event)
{
    return range->heap == event->heap && range->device == event->device;
}

static enum mt_status insert_mapped(struct mt_alive_state *self, size_t place,
                                    const struct mt_event *range)
{
    if (self->mapped_count == self->mapped_capacity &&
        mt_grow(&self->mapped, &self->mapped_capacity, self->mapped_count + 1,
                sizeof *self->mapped))
        return MT_ERR_MEMORY;
    memmove(self->mapped + place + 1, self->mapped + place,
            (self->mapped_count - place) * sizeof *self->mapped);
    self->mapped[place] = *range;
    self->mapped_count++;
    return MT_OK;
}

/* Whether a range comes before an address in the order of spaces and addresses. */
static bool is_before(const struct mt_event *range, const struct mt_event *event)
{
    if (range->heap != event->heap)
        return range->heap < event->heap;
    if (range->device != event->device)
        return range->device < event->device;
    return range->addr < event->addr;
}

/* The first range that begins at the event's address or later. */
static size_t place_of(const struct mt_alive_state *self, const struct mt_event *event)
{
    size_t low = 0;

    MT_BISECT(low, self->mapped_count, middle, is_before(&self->mapped[middle], event));
    return low;
}

/* Ranges of a space do not overlap, so at most one begins before the event's and reaches into it.
 */
static enum mt_status unmap(struct mt_alive_state *self, const struct mt_event *event)
{
    const uint64_t begin = event->addr, end = end_of(event);
    size_t i = place_of(self, event);

    for (i -= i > 0; i < self->mapped_count; i++) {
        struct mt_event *range = &self->mapped[i], rest = *range;
        const uint64_t last = end_of(range);

        if (is_same_space(range, event) ? range->addr >= end : !is_before(range, event))
            break;
        if (!is_same_space(range, event) || last <= begin)
            continue;
        rest.addr = end;
        rest.size_bytes = last > end ? last - end : 0;
        if (range->addr < begin) {
            range->size_bytes = begin - range->addr;
            if (rest.size_bytes)
                return insert_mapped(self, i + 1, &rest);
        } else if (rest.size_bytes) {
            *range = rest;
        } else {
            memmove(range, range + 1, (--self->mapped_count - i) * sizeof *range);
            i--;
        }
    }
    return MT_OK;
}

/* What is mapped twice was unmapped in between. */
static enum mt_status map(struct mt_alive_state *self, const struct mt_event *event)
{
    struct mt_event range = *event;
    enum mt_status status = unmap(self, event);

    range.seq = self->next;
    return status == MT_OK ? insert_mapped(self, place_of(self, event), &range) : status;
}

static enum mt_status lose_range(struct mt_alive_state *self, uint16_t thread)
{
    const size_t old = self->lost_capacity;

    if (thread >= old) {
        if (mt_grow(&self->lost_ranges, &self->lost_capacity, (size_t)thread + 1,
                    sizeof *self->lost_ranges))
            return MT_ERR_MEMORY;
        memset(self->lost_ranges + old, 0, (self->lost_capacity - old) * sizeof *self->lost_ranges);
    }
    self->lost_ranges[thread]++;
    return MT_OK;
}

static enum mt_status open_range(struct mt_alive_state *self, const struct mt_event *event)
{
    if (self->open_ranges == MT_ALIVE_MAX_RANGES)
        return lose_range(self, event->thread);
    enum mt_status status = keep(self, identity_of_range(event), event, true);
    self->open_ranges += status == MT_OK;
    return status;
}

static enum mt_status close_range(struct mt_alive_state *self, const struct mt_event *event)
{
    bool found;

    if (event->thread < self->lost_capacity && self->lost_ranges[event->thread]) {
        self->lost_ranges[event->thread]--;
        return MT_OK;
    }
    enum mt_status status = drop(self, identity_of_range(event), &found);

    self->open_ranges -= found;
    return status;
}

static enum mt_status count_use(struct mt_alive_state *self, const struct mt_event *block,
                                bool begins)
{
    const size_t old = self->use_capacity;

    if (!mt_heap_class_at(self->symbols, block->heap).is_device_memory)
        return MT_OK;
    if (block->device >= old) {
        if (mt_grow(&self->uses, &self->use_capacity, (size_t)block->device + 1,
                    sizeof *self->uses))
            return MT_ERR_MEMORY;
        memset(self->uses + old, 0, (self->use_capacity - old) * sizeof *self->uses);
    }
    struct device_use *use = &self->uses[block->device];
    bool was_above = use->is_above;
    if (!begins)
        use->bytes -= mt_min_u64(use->bytes, block->size_bytes);
    else if (!mt_add_ok(use->bytes, block->size_bytes, &use->bytes))
        use->bytes = UINT64_MAX;
    use->is_above = use->bytes > self->limit_bytes;
    self->exceeded += use->is_above && !was_above;
    return MT_OK;
}

static enum mt_status end_block(struct mt_alive_state *self, const struct mt_event *event)
{
    const uint64_t id = identity_of_address(event, MT_EVENT_ALLOC);
    uint32_t index = self->limit_bytes ? mt_map_get(&self->ids, id) : MT_MAP_NONE;
    enum mt_status status = MT_OK;
    bool found;

    if (index != MT_MAP_NONE)
        status = count_use(self, &self->entries[index].event, false);
    return status == MT_OK ? drop(self, id, &found) : status;
}

static enum mt_status begin_block(struct mt_alive_state *self, const struct mt_event *event)
{
    enum mt_status status = MT_OK;

    if (self->limit_bytes)
        status = end_block(self, event); /* the end of an older one was lost */
    if (status == MT_OK && self->limit_bytes)
        status = count_use(self, event, true);
    return status == MT_OK ? keep(self, identity_of_address(event, MT_EVENT_ALLOC), event, false)
                           : status;
}

static void request_free(struct mt_alive_state *self, const struct mt_event *event)
{
    uint32_t index = mt_map_get(&self->ids, identity_of_address(event, MT_EVENT_ALLOC));

    if (index != MT_MAP_NONE)
        self->entries[index].is_freeing = true;
}

/* Adds up the events that were lost for one reason. */
static enum mt_status count_lost(struct mt_alive_state *self, const struct mt_event *event)
{
    const uint64_t id = identity(&(struct mt_event){0}, MT_EVENT_DROPPED, event->name);
    uint32_t index = mt_map_get(&self->ids, id);

    if (index == MT_MAP_NONE)
        return keep(self, id, event, false);
    uint64_t *sum = &self->entries[index].event.size_bytes;
    if (!mt_add_ok(*sum, event->size_bytes, sum))
        *sum = UINT64_MAX;
    return MT_OK;
}

enum mt_status mt_alive_state_add(struct mt_alive_state *self, const struct mt_event *event)
{
    bool found;

    self->next++;
    switch (event->kind) {
    case MT_EVENT_ALLOC: return begin_block(self, event);
    case MT_EVENT_FREE_REQUESTED: request_free(self, event); return MT_OK;
    case MT_EVENT_FREE_COMPLETED: return end_block(self, event);
    case MT_EVENT_SEGMENT_ALLOC:
        return keep(self, identity_of_address(event, event->kind), event, false);
    case MT_EVENT_SEGMENT_FREE:
        return drop(self, identity_of_address(event, MT_EVENT_SEGMENT_ALLOC), &found);
    case MT_EVENT_SEGMENT_MAP: return map(self, event);
    case MT_EVENT_SEGMENT_UNMAP: return unmap(self, event);
    case MT_EVENT_PHASE_PUSH: return open_range(self, event);
    case MT_EVENT_PHASE_POP: return close_range(self, event);
    case MT_EVENT_CONTEXT:
        return keep(self, identity(event, event->kind, event->name), event, false);
    case MT_EVENT_COMMUNICATOR:
        return keep(self, identity_of_address(event, event->kind) ^ event->aux_bytes, event, false);
    case MT_EVENT_BUFFER_REGISTERED:
        return keep(self, identity_of_address(event, event->kind) ^ mt_hash_u64(event->aux_bytes),
                    event, false);
    case MT_EVENT_BUFFER_DEREGISTERED:
        return drop(self,
                    identity_of_address(event, MT_EVENT_BUFFER_REGISTERED) ^
                        mt_hash_u64(event->aux_bytes),
                    &found);
    case MT_EVENT_DROPPED: return count_lost(self, event);
    default: return MT_OK;
    }
}

void mt_alive_state_watch(struct mt_alive_state *self, uint64_t limit_bytes)
{
    self->limit_bytes = limit_bytes;
}

uint64_t mt_alive_state_exceeded(const struct mt_alive_state *self)
{
    return self->exceeded;
}

static enum rank rank_of(const struct mt_event *event)
{
    if (mt_event_is_segment(event))
        return SEGMENT;
    if (event->kind == MT_EVENT_ALLOC)
        return BLOCK;
    return event->kind == MT_EVENT_DROPPED ? LOST : OTHER;
}

struct place {
    const struct mt_event *event;
    uint64_t seq;
    uint8_t rank;
    bool is_freeing;
};

MT_DEFINE_ORDER(by_rank_and_number, struct place,
                MT_ASCENDING(rank) || MT_ASCENDING(seq) || MT_ASCENDING(event->addr))

/* A block may lie in several ranges that were mapped one after the other, so ranges that touch
 * become one, with the stack of the first. Returns their number. */
static size_t join_mapped(const struct mt_alive_state *self, struct mt_event *joined)
{
    size_t count = 0;

    for (size_t i = 0; i < self->mapped_count; i++) {
        const struct mt_event *range = &self->mapped[i];
        struct mt_event *last = count ? &joined[count - 1] : NULL;
        if (last && is_same_space(last, range) && end_of(last) == range->addr &&
            last->stream == range->stream && last->pool == range->pool) {
            last->size_bytes += range->size_bytes;
            last->seq = mt_min_u64(last->seq, range->seq);
        } else {
            joined[count++] = *range;
        }
    }
    return count;
}

static size_t list(const struct mt_alive_state *self, struct mt_event *joined, struct place *places)
{
    size_t count = 0;

    for (size_t i = join_mapped(self, joined); i-- > 0;)
        places[count++] = (struct place){&joined[i], joined[i].seq, SEGMENT, false};
    for (size_t i = 0; i < self->used; i++) {
        const struct entry *entry = &self->entries[i];
        if (entry->event.kind)
            places[count++] = (struct place){&entry->event, entry->event.seq,
                                             (uint8_t)rank_of(&entry->event), entry->is_freeing};
    }
    if (count)
        qsort(places, count, sizeof *places, by_rank_and_number);
    return count;
}

static enum mt_status write_place(const struct place *place, struct mt_writer *writer,
                                  uint64_t t_ns, uint64_t *next_seq, struct mt_error *error)
{
    struct mt_event event = *place->event;

    event.t_ns = t_ns;
    event.seq = (*next_seq)++;
    event.flags |= MT_EVENT_INITIAL;
    enum mt_status status = mt_writer_add(writer, &event, error);
    if (status != MT_OK || !place->is_freeing)
        return status;
    event.seq = (*next_seq)++;
    event.kind = MT_EVENT_FREE_REQUESTED;
    event.aux_bytes = 0;
    event.stack = event.name = MT_NO_ID;
    return mt_writer_add(writer, &event, error);
}

static enum mt_status write_lost_ranges(const struct mt_alive_state *self, struct mt_writer *writer,
                                        uint64_t t_ns, uint64_t *next_seq, struct mt_error *error)
{
    static const char why[] = "too many ranges were open";
    struct mt_event event = {.seq = *next_seq,
                             .t_ns = t_ns,
                             .stack = MT_NO_ID,
                             .kind = MT_EVENT_DROPPED,
                             .flags = MT_EVENT_INITIAL};

    for (size_t thread = 0; thread < self->lost_capacity; thread++)
        event.size_bytes += self->lost_ranges[thread];
    if (!event.size_bytes)
        return MT_OK;
    if (mt_symbols_string(self->symbols, why, sizeof why - 1, &event.name) != MT_OK)
        return mt_fail_memory(error);
    ++*next_seq;
    return mt_writer_add(writer, &event, error);
}

enum mt_status mt_alive_state_write(const struct mt_alive_state *self, struct mt_writer *writer,
                                    uint64_t t_ns, uint64_t *next_seq, struct mt_error *error)
{
    size_t bound = self->used + self->mapped_count + 1;
    struct mt_event *joined = malloc((self->mapped_count + 1) * sizeof *joined);
    struct place *places = malloc(bound * sizeof *places);
    enum mt_status status = MT_OK;

    if (!joined || !places) {
        free(joined);
        free(places);
        return mt_fail_memory(error);
    }
    size_t count = list(self, joined, places);
    for (size_t i = 0; i < count && status == MT_OK; i++)
        status = write_place(&places[i], writer, t_ns, next_seq, error);
    free(joined);
    free(places);
    return status == MT_OK ? write_lost_ranges(self, writer, t_ns, next_seq, error) : status;
}
