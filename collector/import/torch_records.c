#include "torch_records.h"

#include <stdlib.h>
#include <string.h>

#include "event.h"
#include "util.h"

enum { NO_FIELD = 0xff };
enum { ENTRIES, RANGES, SEGMENTS, BLOCKS, ANNOTATIONS, HISTORIES };

/* PyTorch 2.0: what a block was last used for. */
struct mt_torch_history {
    uint64_t addr, real_size_bytes;
    uint32_t stack;
};

const char *const mt_torch_words[MT_WORD_COUNT] = {
    [MT_WORD_ACTION] = "action",
    [MT_WORD_ADDR] = "addr",
    [MT_WORD_SIZE] = "size",
    [MT_WORD_STREAM] = "stream",
    [MT_WORD_TIME_US] = "time_us",
    [MT_WORD_FRAMES] = "frames",
    [MT_WORD_DEVICE_FREE] = "device_free",
    [MT_WORD_POOL_ID] = "pool_id",
    [MT_WORD_SEGMENT_POOL_ID] = "segment_pool_id",
    [MT_WORD_DEVICE] = "device",
    [MT_WORD_ADDRESS] = "address",
    [MT_WORD_TOTAL_SIZE] = "total_size",
    [MT_WORD_REQUESTED_SIZE] = "requested_size",
    [MT_WORD_REAL_SIZE] = "real_size",
    [MT_WORD_IS_EXPANDABLE] = "is_expandable",
    [MT_WORD_BLOCKS] = "blocks",
    [MT_WORD_STATE] = "state",
    [MT_WORD_HISTORY] = "history",
    [MT_WORD_FILENAME] = "filename",
    [MT_WORD_NAME] = "name",
    [MT_WORD_LINE] = "line",
    [MT_WORD_STAGE] = "stage",
    [MT_WORD_SEGMENTS] = "segments",
    [MT_WORD_DEVICE_TRACES] = "device_traces",
    [MT_WORD_ALLOCATOR_SETTINGS] = "allocator_settings",
    [MT_WORD_EXTERNAL_ANNOTATIONS] = "external_annotations",
    [MT_WORD_ALLOC] = "alloc",
    [MT_WORD_FREE_REQUESTED] = "free_requested",
    [MT_WORD_FREE_COMPLETED] = "free_completed",
    [MT_WORD_SEGMENT_ALLOC] = "segment_alloc",
    [MT_WORD_SEGMENT_FREE] = "segment_free",
    [MT_WORD_SEGMENT_MAP] = "segment_map",
    [MT_WORD_SEGMENT_UNMAP] = "segment_unmap",
    [MT_WORD_OOM] = "oom",
    [MT_WORD_SNAPSHOT] = "snapshot",
    [MT_WORD_ANNOTATE] = "annotate",
    [MT_WORD_USER_DEFINED] = "user_defined",
    [MT_WORD_ACTIVE_ALLOCATED] = "active_allocated",
    [MT_WORD_ACTIVE_PENDING_FREE] = "active_pending_free",
    [MT_WORD_ACTIVE_AWAITING_FREE] = "active_awaiting_free",
    [MT_WORD_START] = "START",
    [MT_WORD_END] = "END",
};

static enum mt_status no_memory(struct mt_error *error)
{
    return mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "out of memory");
}

static enum mt_status too_many(struct mt_error *error, enum mt_status status, const char *what)
{
    if (status == MT_ERR_MEMORY)
        return no_memory(error);
    return mt_fail(error, status, MT_NO_OFFSET, "too many %s", what);
}

void *mt_torch_grow(void *array, size_t *capacity, size_t count, size_t entry_bytes)
{
    size_t wanted = *capacity ? *capacity * 2 : 64;
    void *grown;

    if (count < *capacity)
        return array;
    if (wanted > SIZE_MAX / 4 / entry_bytes)
        return NULL;
    grown = realloc(array, wanted * entry_bytes);
    if (grown)
        *capacity = wanted;
    return grown;
}

/* Adds one zeroed entry to an array of records; NULL if there is no memory. */
#define ADD(records, which, array, counter)                                                        \
    add_entry(&(records)->array, &(records)->capacity[which], &(records)->counter,                 \
              sizeof *(records)->array)

static inline void *add_entry(void *array, size_t *capacity, size_t *count, size_t entry_bytes)
{
    unsigned char *entries, *entry;

    memcpy(&entries, array, sizeof entries);
    if (*count == *capacity) {
        entries = mt_torch_grow(entries, capacity, *count, entry_bytes);
        if (!entries)
            return NULL;
        memcpy(array, &entries, sizeof entries);
    }
    entry = entries + *count * entry_bytes;
    memset(entry, 0, entry_bytes);
    ++*count;
    return entry;
}

const struct mt_pickle_value *mt_torch_find(const struct mt_pickle_value *items, size_t count,
                                            enum mt_torch_word word)
{
    const struct mt_pickle_value *found = NULL;
    size_t i;

    for (i = 0; i + 1 < count; i += 2) {
        if (items[i].kind == MT_PICKLE_TEXT && items[i].bits == (uint64_t)word)
            found = &items[i + 1];
    }
    return found;
}

static bool is_host(const struct mt_pickle_value *value, enum mt_torch_host host)
{
    return value->kind == MT_PICKLE_HOST && value->host == host;
}

static enum mt_torch_word word_of(const struct mt_pickle_value *value)
{
    return value->kind == MT_PICKLE_TEXT && value->bits < MT_WORD_COUNT
               ? (enum mt_torch_word)value->bits
               : MT_WORD_COUNT;
}

static void set_host(struct mt_pickle_value *value, enum mt_torch_host host, uint64_t bits)
{
    *value = (struct mt_pickle_value){bits, MT_PICKLE_HOST, (uint8_t)host};
}

static uint16_t device_of(const struct mt_pickle_value *value)
{
    return (uint16_t)mt_min_u64(mt_torch_number(*value), UINT16_MAX);
}

/* ---- strings, frames, stacks, streams, pools ---- */

/* String id of a pickled text; other values are the empty string. */
static enum mt_status string_of(struct mt_torch_records *r, struct mt_pickle *pickle,
                                const struct mt_pickle_value *value, uint32_t *id)
{
    const char *text;
    size_t length;
    enum mt_status status;

    if (value->kind != MT_PICKLE_TEXT) {
        *id = 0;
        return MT_OK;
    }
    if (value->bits >= r->string_id_count) {
        size_t count = mt_max_u64(value->bits + 1, r->string_id_count * 2);
        uint32_t *ids = realloc(r->string_ids, count * sizeof *ids);
        if (!ids)
            return MT_ERR_MEMORY;
        memset(ids + r->string_id_count, 0, (count - r->string_id_count) * sizeof *ids);
        r->string_ids = ids;
        r->string_id_count = count;
    }
    if (!r->string_ids[value->bits]) {
        text = mt_pickle_text(pickle, *value, &length);
        status = mt_symbols_string(r->symbols, text, length, id);
        if (status != MT_OK)
            return status;
        r->string_ids[value->bits] = *id + 1;
    }
    *id = r->string_ids[value->bits] - 1;
    return MT_OK;
}

static enum mt_status make_frame(struct mt_torch_records *r, struct mt_pickle *pickle,
                                 const struct mt_pickle_value *items, size_t count,
                                 struct mt_pickle_value *value)
{
    uint32_t file = 0, function = 0, line = 0, id;
    enum mt_status status = MT_OK;
    size_t i;

    for (i = 0; i + 1 < count && status == MT_OK; i += 2) {
        switch (word_of(&items[i])) {
        case MT_WORD_FILENAME: status = string_of(r, pickle, &items[i + 1], &file); break;
        case MT_WORD_NAME: status = string_of(r, pickle, &items[i + 1], &function); break;
        case MT_WORD_LINE:
            line = (uint32_t)mt_min_u64(mt_torch_number(items[i + 1]), UINT32_MAX - 1);
            break;
        default: break;
        }
    }
    if (status == MT_OK)
        status = mt_symbols_frame(r->symbols, function, file, line, &id);
    if (status == MT_OK)
        set_host(value, MT_TORCH_FRAME, id);
    return status;
}

/* Is `stack` exactly these frames, the first one innermost? */
static bool is_stack_of(const struct mt_symbols *symbols, uint32_t stack,
                        const struct mt_pickle_value *frames, size_t count)
{
    size_t i;

    if (symbols->stacks[stack].depth != count)
        return false;
    for (i = 0; i < count; i++, stack = symbols->stacks[stack].parent) {
        if (symbols->stacks[stack].frame != frames[i].bits)
            return false;
    }
    return true;
}

static enum mt_status intern_stack(struct mt_torch_records *r, const struct mt_pickle_value *frames,
                                   size_t count, uint32_t *stack)
{
    enum mt_status status = MT_OK;

    *stack = MT_NO_ID;
    while (count-- && status == MT_OK)
        status = mt_symbols_stack(r->symbols, *stack, (uint32_t)frames[count].bits, stack);
    return status;
}

/* PyTorch lists frames innermost first; the tree of stacks grows from the
 * outermost. Equal lists come again and again: one look-up for the whole. */
static enum mt_status make_stack(struct mt_torch_records *r, const struct mt_pickle_value *frames,
                                 size_t count, struct mt_pickle_value *value)
{
    uint64_t hash = count;
    enum mt_status status = MT_OK;
    uint32_t stack;
    size_t i;

    for (i = 0; i < count; i++)
        hash = mt_hash_u64(hash * UINT64_C(0xD6E8FEB86659FD93) + frames[i].bits);
    stack = mt_map_get(&r->stacks, hash);
    if (stack == MT_MAP_NONE || !is_stack_of(r->symbols, stack, frames, count)) {
        status = intern_stack(r, frames, count, &stack);
        if (status == MT_OK)
            status = mt_map_set(&r->stacks, hash, stack);
    }
    if (status == MT_OK)
        set_host(value, MT_TORCH_STACK, stack);
    return status;
}

static uint32_t stack_of(const struct mt_pickle_value *value)
{
    return is_host(value, MT_TORCH_STACK) ? (uint32_t)value->bits : MT_NO_ID;
}

static enum mt_status stream_of(struct mt_torch_records *r, const struct mt_pickle_value *value,
                                uint32_t *stream)
{
    uint64_t handle = value->kind == MT_PICKLE_INT ? value->bits : mt_torch_number(*value);

    if (handle != r->last_stream_handle) {
        enum mt_status status = mt_symbols_stream(r->symbols, handle, &r->last_stream);
        if (status != MT_OK)
            return status;
        r->last_stream_handle = handle;
    }
    *stream = r->last_stream;
    return MT_OK;
}

static bool pair_of(struct mt_pickle *pickle, const struct mt_pickle_value *value, uint64_t pair[2])
{
    const struct mt_pickle_value *items;
    size_t count;

    if (is_host(value, MT_TORCH_PAIR)) {
        pair[0] = value->bits >> 24;
        pair[1] = value->bits & 0xffffff;
        return true;
    }
    items = mt_pickle_items(pickle, *value, &count);
    if (value->kind == MT_PICKLE_DICT || count != 2)
        return false;
    pair[0] = mt_torch_number(items[0]);
    pair[1] = mt_torch_number(items[1]);
    return true;
}

/* Leaves *pool alone if the value is no pool id (None). */
static enum mt_status pool_of(struct mt_torch_records *r, struct mt_pickle *pickle,
                              const struct mt_pickle_value *value, uint16_t *pool, bool *known)
{
    uint64_t pair[2];

    if (!pair_of(pickle, value, pair))
        return MT_OK;
    if (pair[0] != r->last_pool[0] || pair[1] != r->last_pool[1]) {
        enum mt_status status = mt_symbols_pool(r->symbols, pair[0], pair[1], &r->last_pool_id);
        if (status != MT_OK)
            return status;
        memcpy(r->last_pool, pair, sizeof pair);
    }
    *pool = (uint16_t)r->last_pool_id;
    *known = true;
    return MT_OK;
}

/* ---- entries of device traces ---- */

static uint8_t kind_of_action(const struct mt_pickle_value *value)
{
    static const uint8_t kinds[MT_WORD_COUNT + 1] = {
        [MT_WORD_ALLOC] = MT_EVENT_ALLOC,
        [MT_WORD_FREE_REQUESTED] = MT_EVENT_FREE_REQUESTED,
        [MT_WORD_FREE_COMPLETED] = MT_EVENT_FREE_COMPLETED,
        [MT_WORD_SEGMENT_ALLOC] = MT_EVENT_SEGMENT_ALLOC,
        [MT_WORD_SEGMENT_FREE] = MT_EVENT_SEGMENT_FREE,
        [MT_WORD_SEGMENT_MAP] = MT_EVENT_SEGMENT_MAP,
        [MT_WORD_SEGMENT_UNMAP] = MT_EVENT_SEGMENT_UNMAP,
        [MT_WORD_OOM] = MT_EVENT_OOM,
        [MT_WORD_SNAPSHOT] = MT_TORCH_IGNORED,
        [MT_WORD_ANNOTATE] = MT_TORCH_IGNORED,
        [MT_WORD_USER_DEFINED] = MT_TORCH_USER_DEFINED,
    };

    return kinds[word_of(value)]; /* others: MT_TORCH_UNKNOWN */
}

/* Where the fields of an entry are, as indices of its items. A field that the
 * entry does not have, or has twice, is where the last one of its kind is, or
 * NO_FIELD. */
static void plan_entry(struct mt_torch_entry_plan *plan, const struct mt_pickle_value *items,
                       size_t count)
{
    size_t i;

    memset(plan, 0xff, sizeof *plan);
    for (i = 0; i + 1 < count && i < NO_FIELD; i += 2) {
        uint8_t at = (uint8_t)(i + 1);
        switch (word_of(&items[i])) {
        case MT_WORD_ACTION: plan->action = at; break;
        case MT_WORD_ADDR:
        case MT_WORD_DEVICE_FREE: plan->addr = at; break;
        case MT_WORD_SIZE: plan->size = at; break;
        case MT_WORD_TIME_US: plan->time_us = at; break;
        case MT_WORD_FRAMES: plan->frames = at; break;
        case MT_WORD_STREAM: plan->stream = at; break;
        case MT_WORD_POOL_ID:
        case MT_WORD_SEGMENT_POOL_ID: plan->pool = at; break;
        default: break;
        }
    }
}

static inline uint64_t field_number(const struct mt_pickle_value *items, uint8_t field)
{
    return field == NO_FIELD ? 0 : mt_torch_number(items[field]);
}

static enum mt_status fill_entry(struct mt_torch_records *r, struct mt_pickle *pickle,
                                 const struct mt_torch_entry_plan *plan,
                                 const struct mt_pickle_value *items, struct mt_torch_entry *entry)
{
    enum mt_status status = MT_OK;
    bool has_pool = false;

    entry->addr = field_number(items, plan->addr);
    entry->size_bytes = field_number(items, plan->size);
    entry->time_us = field_number(items, plan->time_us);
    entry->stack = plan->frames == NO_FIELD ? MT_NO_ID : stack_of(&items[plan->frames]);
    entry->kind = plan->action == NO_FIELD ? 0 : kind_of_action(&items[plan->action]);
    if (plan->stream != NO_FIELD)
        status = stream_of(r, &items[plan->stream], &entry->stream);
    if (plan->pool != NO_FIELD && status == MT_OK)
        status = pool_of(r, pickle, &items[plan->pool], &entry->pool, &has_pool);
    entry->flags = has_pool ? MT_TORCH_HAS_POOL : 0;
    return status;
}

static enum mt_status make_entry(struct mt_torch_records *r, struct mt_pickle *pickle,
                                 const struct mt_pickle_value *items, size_t count,
                                 struct mt_pickle_value *value)
{
    struct mt_torch_entry *entry = ADD(r, ENTRIES, entries, entry_count);
    uint64_t shape = mt_pickle_shape(pickle);

    if (!entry)
        return MT_ERR_MEMORY;
    if (!shape || shape != r->entry_plan.shape) {
        plan_entry(&r->entry_plan, items, count);
        r->entry_plan.shape = shape;
    }
    set_host(value, MT_TORCH_ENTRY, r->entry_count - 1);
    return fill_entry(r, pickle, &r->entry_plan, items, entry);
}

/* ---- segments and blocks ---- */

static enum mt_status make_history(struct mt_torch_records *r, const struct mt_pickle_value *items,
                                   size_t count, struct mt_pickle_value *value)
{
    struct mt_torch_history *history = ADD(r, HISTORIES, histories, history_count);
    size_t i;

    if (!history)
        return MT_ERR_MEMORY;
    history->stack = MT_NO_ID;
    for (i = 0; i + 1 < count; i += 2) {
        switch (word_of(&items[i])) {
        case MT_WORD_ADDR: history->addr = mt_torch_number(items[i + 1]); break;
        case MT_WORD_REAL_SIZE: history->real_size_bytes = mt_torch_number(items[i + 1]); break;
        case MT_WORD_FRAMES: history->stack = stack_of(&items[i + 1]); break;
        default: break;
        }
    }
    set_host(value, MT_TORCH_HISTORY, r->history_count - 1);
    return MT_OK;
}

/* PyTorch 2.0: the newest use comes first. */
static void apply_history(struct mt_torch_records *r, struct mt_pickle *pickle,
                          const struct mt_pickle_value *list, struct mt_torch_block *block)
{
    size_t count;
    const struct mt_pickle_value *items = mt_pickle_items(pickle, *list, &count);
    const struct mt_torch_history *history;

    if (list->kind != MT_PICKLE_LIST || !count || !is_host(&items[0], MT_TORCH_HISTORY))
        return;
    history = &r->histories[items[0].bits];
    if (!block->requested_bytes)
        block->requested_bytes = history->real_size_bytes;
    if (block->stack == MT_NO_ID)
        block->stack = history->stack;
}

static uint8_t state_of(const struct mt_pickle_value *value)
{
    switch (word_of(value)) {
    case MT_WORD_ACTIVE_ALLOCATED: return MT_TORCH_ALLOCATED;
    case MT_WORD_ACTIVE_PENDING_FREE:
    case MT_WORD_ACTIVE_AWAITING_FREE: return MT_TORCH_PENDING;
    default: return MT_TORCH_INACTIVE;
    }
}

static enum mt_status make_block(struct mt_torch_records *r, struct mt_pickle *pickle,
                                 const struct mt_pickle_value *items, size_t count,
                                 struct mt_pickle_value *value)
{
    struct mt_torch_block *block = ADD(r, BLOCKS, blocks, block_count);
    const struct mt_pickle_value *history = NULL;
    size_t i;

    if (!block)
        return MT_ERR_MEMORY;
    block->stack = MT_NO_ID;
    for (i = 0; i + 1 < count; i += 2) {
        const struct mt_pickle_value *field = &items[i + 1];
        switch (word_of(&items[i])) {
        case MT_WORD_ADDRESS: block->addr = mt_torch_number(*field); break;
        case MT_WORD_SIZE: block->size_bytes = mt_torch_number(*field); break;
        case MT_WORD_REQUESTED_SIZE: block->requested_bytes = mt_torch_number(*field); break;
        case MT_WORD_STATE: block->state = state_of(field); break;
        case MT_WORD_FRAMES: block->stack = stack_of(field); break;
        case MT_WORD_HISTORY: history = field; break;
        default: break;
        }
    }
    if (history)
        apply_history(r, pickle, history, block);
    set_host(value, MT_TORCH_BLOCK, r->block_count - 1);
    return MT_OK;
}

/* Blocks of PyTorch before 2.1 have no address: they follow each other. */
static void place_blocks(struct mt_torch_records *r, const struct mt_torch_segment *segment)
{
    uint64_t at = segment->addr;
    size_t i;

    for (i = 0; i < segment->block_count; i++) {
        struct mt_torch_block *block = &r->blocks[segment->first_block + i];
        if (!block->addr)
            block->addr = at;
        at = block->addr + block->size_bytes;
    }
}

static enum mt_status make_segment(struct mt_torch_records *r, struct mt_pickle *pickle,
                                   const struct mt_pickle_value *items, size_t count,
                                   struct mt_pickle_value *value)
{
    struct mt_torch_segment *segment = ADD(r, SEGMENTS, segments, segment_count);
    struct mt_torch_range blocks = {0, 0, false};
    enum mt_status status = MT_OK;
    bool known;
    size_t i;

    if (!segment)
        return MT_ERR_MEMORY;
    segment->stack = MT_NO_ID;
    for (i = 0; i + 1 < count && status == MT_OK; i += 2) {
        const struct mt_pickle_value *field = &items[i + 1];
        switch (word_of(&items[i])) {
        case MT_WORD_DEVICE: segment->device = device_of(field); break;
        case MT_WORD_ADDRESS: segment->addr = mt_torch_number(*field); break;
        case MT_WORD_TOTAL_SIZE: segment->size_bytes = mt_torch_number(*field); break;
        case MT_WORD_IS_EXPANDABLE: segment->expandable = mt_torch_number(*field) != 0; break;
        case MT_WORD_FRAMES: segment->stack = stack_of(field); break;
        case MT_WORD_STREAM: status = stream_of(r, field, &segment->stream); break;
        case MT_WORD_SEGMENT_POOL_ID:
            status = pool_of(r, pickle, field, &segment->pool, &known);
            break;
        case MT_WORD_BLOCKS: blocks = mt_torch_take(r, field, MT_TORCH_BLOCKS); break;
        default: break;
        }
    }
    segment->first_block = blocks.first;
    segment->block_count = blocks.count;
    place_blocks(r, segment);
    set_host(value, MT_TORCH_SEGMENT, r->segment_count - 1);
    return status;
}

static enum mt_status make_annotation(struct mt_torch_records *r, struct mt_pickle *pickle,
                                      const struct mt_pickle_value *items, size_t count,
                                      struct mt_pickle_value *value)
{
    struct mt_torch_annotation *annotation = ADD(r, ANNOTATIONS, annotations, annotation_count);
    enum mt_status status = MT_OK;
    size_t i;

    if (!annotation)
        return MT_ERR_MEMORY;
    for (i = 0; i + 1 < count && status == MT_OK; i += 2) {
        const struct mt_pickle_value *field = &items[i + 1];
        switch (word_of(&items[i])) {
        case MT_WORD_NAME: status = string_of(r, pickle, field, &annotation->name); break;
        case MT_WORD_STAGE: annotation->end = word_of(field) == MT_WORD_END; break;
        case MT_WORD_DEVICE: annotation->device = device_of(field); break;
        case MT_WORD_TIME_US: annotation->time_us = mt_torch_number(*field); break;
        default: break;
        }
    }
    set_host(value, MT_TORCH_ANNOTATION, r->annotation_count - 1);
    return status;
}

/* ---- the hook ---- */

static enum mt_status make_record(struct mt_torch_records *r, struct mt_pickle *pickle,
                                  const struct mt_pickle_value *items, size_t count,
                                  struct mt_pickle_value *value)
{
    size_t i;

    for (i = 0; i + 1 < count; i += 2) {
        switch (word_of(&items[i])) {
        case MT_WORD_ACTION: return make_entry(r, pickle, items, count, value);
        case MT_WORD_FILENAME: return make_frame(r, pickle, items, count, value);
        case MT_WORD_STATE: return make_block(r, pickle, items, count, value);
        case MT_WORD_BLOCKS: return make_segment(r, pickle, items, count, value);
        case MT_WORD_STAGE: return make_annotation(r, pickle, items, count, value);
        case MT_WORD_REAL_SIZE: return make_history(r, items, count, value);
        default: break;
        }
    }
    return MT_OK;
}

static bool all_are(const struct mt_pickle_value *items, size_t count, enum mt_torch_host host)
{
    size_t i;

    for (i = 0; i < count; i++) {
        if (!is_host(&items[i], host))
            return false;
    }
    return count > 0;
}

static enum mt_status copy_records(struct mt_torch_records *r, enum mt_torch_host host,
                                   const struct mt_pickle_value *items, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++) {
        if (host == MT_TORCH_ENTRIES) {
            struct mt_torch_entry *copy = ADD(r, ENTRIES, entries, entry_count);
            if (!copy)
                return MT_ERR_MEMORY;
            *copy = r->entries[items[i].bits];
        } else {
            struct mt_torch_block *copy = ADD(r, BLOCKS, blocks, block_count);
            if (!copy)
                return MT_ERR_MEMORY;
            *copy = r->blocks[items[i].bits];
        }
    }
    return MT_OK;
}

/* The records of a list lie in a row already, as they were made one after the
 * other; a list that shares or reorders them gets copies. */
static enum mt_status make_range(struct mt_torch_records *r, enum mt_torch_host host,
                                 const struct mt_pickle_value *items, size_t count,
                                 struct mt_pickle_value *value)
{
    struct mt_torch_range *range = ADD(r, RANGES, ranges, range_count);
    enum mt_status status = MT_OK;
    size_t i = 0;

    if (!range)
        return MT_ERR_MEMORY;
    range->first = items[0].bits;
    range->count = count;
    while (i < count && items[i].bits == items[0].bits + i)
        i++;
    if (i < count) {
        range->first = host == MT_TORCH_ENTRIES ? r->entry_count : r->block_count;
        status = copy_records(r, host, items, count);
    }
    set_host(value, host, r->range_count - 1);
    return status;
}

struct mt_torch_range mt_torch_take(struct mt_torch_records *records,
                                    const struct mt_pickle_value *value, enum mt_torch_host host)
{
    struct mt_torch_range range = {0, 0, true};

    if (is_host(value, host) && !records->ranges[value->bits].taken) {
        range = records->ranges[value->bits];
        records->ranges[value->bits].taken = true;
    }
    return range;
}

static enum mt_status make_sequence(struct mt_torch_records *r, const struct mt_pickle_value *items,
                                    size_t count, struct mt_pickle_value *value)
{
    if (all_are(items, count, MT_TORCH_FRAME))
        return make_stack(r, items, count, value);
    if (all_are(items, count, MT_TORCH_ENTRY))
        return make_range(r, MT_TORCH_ENTRIES, items, count, value);
    if (all_are(items, count, MT_TORCH_BLOCK))
        return make_range(r, MT_TORCH_BLOCKS, items, count, value);
    if (!count && value->kind == MT_PICKLE_LIST)
        set_host(value, MT_TORCH_EMPTY, 0);
    if (count == 2 && value->kind == MT_PICKLE_TUPLE && items[0].kind == MT_PICKLE_INT &&
        items[1].kind == MT_PICKLE_INT && (items[0].bits | items[1].bits) < 1 << 24)
        set_host(value, MT_TORCH_PAIR, items[0].bits << 24 | items[1].bits);
    return MT_OK;
}

enum mt_status mt_torch_hook(void *context, struct mt_pickle *pickle,
                             const struct mt_pickle_value *items, size_t count,
                             struct mt_pickle_value *value, struct mt_error *error)
{
    struct mt_torch_records *r = context;
    uint64_t shape = mt_pickle_shape(pickle);
    enum mt_status status;

    if (shape && shape == r->entry_plan.shape) /* speed only */
        status = make_entry(r, pickle, items, count, value);
    else
        status = value->kind == MT_PICKLE_DICT ? make_record(r, pickle, items, count, value)
                                               : make_sequence(r, items, count, value);

    return status == MT_OK ? MT_OK : too_many(error, status, "streams, pools or names");
}

void mt_torch_records_release(struct mt_torch_records *records)
{
    free(records->entries);
    free(records->ranges);
    free(records->segments);
    free(records->blocks);
    free(records->annotations);
    free(records->histories);
    free(records->string_ids);
    mt_map_release(&records->stacks);
    memset(records, 0, sizeof *records);
}
