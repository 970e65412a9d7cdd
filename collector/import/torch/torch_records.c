#include "torch_records.h"

#include <stdlib.h>
#include <string.h>

#include "event.h"
#include "grow.h"
#include "torch_names.h"
#include "util.h"

#define APART __attribute__((noinline)) /* entries, which are most calls, save fewer registers */
enum { NO_FIELD = 0xff };
enum { ENTRIES, RANGES, SEGMENTS, BLOCKS, ANNOTATIONS, HISTORIES };

/* PyTorch 2.0: the last use of a block. */
struct mt_torch_history {
    uint64_t addr, real_size_bytes;
    uint32_t stack;
};

static enum mt_status too_many(struct mt_error *error, enum mt_status status, const char *what)
{
    if (status == MT_ERR_MEMORY)
        return mt_fail_memory(error);
    return mt_fail(error, status, MT_NO_OFFSET, "too many %s", what);
}

/* Adds one zeroed entry to an array of records. Returns NULL if there is no memory. */
#define ADD(records, which, array, counter)                                                        \
    add_entry(&(records)->array, &(records)->capacity[which], &(records)->counter,                 \
              sizeof *(records)->array)

static inline void *add_entry(void *array, size_t *capacity, size_t *count, size_t entry_bytes)
{
    unsigned char *entries;

    if (*count == *capacity && mt_grow(array, capacity, *count + 1, entry_bytes) != MT_OK)
        return NULL;
    memcpy(&entries, array, sizeof entries);
    unsigned char *entry = entries + *count * entry_bytes;
    memset(entry, 0, entry_bytes);
    ++*count;
    return entry;
}

static inline uint32_t stack_of(const struct mt_pickle_value *value)
{
    return mt_torch_is(value, MT_TORCH_STACK) ? (uint32_t)value->bits : MT_NO_ID;
}

static uint16_t device_of(const struct mt_pickle_value *value)
{
    return (uint16_t)mt_min_u64(mt_torch_number(*value), UINT16_MAX);
}

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
        [MT_WORD_ANNOTATE] = MT_TORCH_ANNOTATE,
        [MT_WORD_USER_DEFINED] = MT_TORCH_USER_DEFINED,
    };

    return kinds[mt_torch_word_of(value)]; /* others: MT_TORCH_UNKNOWN */
}

/* The fields of an entry, as indices of its items. A field that is missing or duplicate has the
 * index of the last one of its kind, or NO_FIELD. */
static void plan_entry(struct mt_torch_records *r, const struct mt_pickle_value *items,
                       size_t count)
{
    struct mt_torch_entry_plan *plan = &r->entry_plan;

    memset(plan, 0xff, sizeof *plan);
    for (size_t i = 0; i + 1 < count && i < NO_FIELD; i += 2) {
        uint8_t at = (uint8_t)(i + 1);
        switch (mt_torch_word_of(&items[i])) {
        case MT_WORD_ACTION: plan->action = at; break;
        case MT_WORD_ADDR:
        case MT_WORD_DEVICE_FREE: plan->addr = at; break;
        case MT_WORD_SIZE: plan->size = at; break;
        case MT_WORD_TIME_US: plan->time_us = at; break;
        case MT_WORD_FRAMES: plan->frames = at; break;
        case MT_WORD_STREAM: plan->stream = at; break;
        case MT_WORD_POOL_ID:
        case MT_WORD_SEGMENT_POOL_ID: plan->pool = at; break;
        case MT_WORD_CATEGORY: plan->category = at; break;
        case MT_WORD_USER_METADATA: plan->tag = at; break;
        case MT_WORD_INTERNAL_METADATA: plan->internal = at; break;
        default: mt_torch_note_unused(r, MT_TORCH_OF_ENTRY, &items[i]); break;
        }
    }
}

static inline uint64_t field_number(const struct mt_pickle_value *items, uint8_t field)
{
    return field == NO_FIELD ? 0 : mt_torch_number(items[field]);
}

/* If there are more words than places, the last ones are omitted. No program has that many. */
static enum mt_status find_category(struct mt_torch_records *r, struct mt_pickle *pickle,
                                    const struct mt_pickle_value *value,
                                    struct mt_torch_entry *entry)
{
    uint32_t id, i = 1;

    if (value->kind != MT_PICKLE_TEXT || mt_torch_word_of(value) == MT_WORD_UNKNOWN)
        return MT_OK;
    enum mt_status status = mt_torch_string(r, pickle, value, &id);
    if (status != MT_OK)
        return status;
    while (i <= r->category_count && r->categories[i] != id)
        i++;
    if (i == MT_TORCH_CATEGORIES)
        return MT_OK;
    r->categories[i] = id;
    if (i > r->category_count)
        r->category_count = i;
    entry->category = i & (MT_TORCH_CATEGORIES - 1);
    return MT_OK;
}

static enum mt_status fill_entry(struct mt_torch_records *r, struct mt_pickle *pickle,
                                 const struct mt_torch_entry_plan *plan,
                                 const struct mt_pickle_value *items, struct mt_torch_entry *entry)
{
    enum mt_status status = MT_OK;
    bool has_pool = false;
    uint32_t stream = 0;

    entry->addr = plan->addr == NO_FIELD ? 0 : mt_torch_address(&items[plan->addr]);
    entry->size_bytes = field_number(items, plan->size);
    entry->time_us =
        mt_min_u64(field_number(items, plan->time_us), MT_TORCH_MAX_TIME_US) & MT_TORCH_MAX_TIME_US;
    entry->stack = plan->frames == NO_FIELD ? MT_NO_ID : stack_of(&items[plan->frames]);
    entry->kind = (plan->action == NO_FIELD ? 0u : kind_of_action(&items[plan->action])) & 0x7fu;
    if (plan->stream != NO_FIELD)
        status = mt_torch_stream(r, &items[plan->stream], &stream);
    if (stream > UINT16_MAX)
        return MT_ERR_UNSUPPORTED;
    entry->stream = (uint16_t)stream;
    if (plan->pool != NO_FIELD && status == MT_OK)
        status = mt_torch_pool(r, pickle, &items[plan->pool], &entry->pool, &has_pool);
    if (plan->category != NO_FIELD && status == MT_OK)
        status = find_category(r, pickle, &items[plan->category], entry);
    if (plan->tag != NO_FIELD && status == MT_OK &&
        (entry->kind == MT_EVENT_ALLOC || entry->kind == MT_TORCH_ANNOTATE))
        status = mt_torch_read_tag(r, pickle, &items[plan->tag], r->entry_count - 1);
    entry->flags = has_pool ? MT_TORCH_HAS_POOL : 0;
    if (plan->internal != NO_FIELD && entry->kind == MT_EVENT_ALLOC &&
        mt_torch_word_of(&items[plan->internal]) == MT_WORD_MALLOC_WITH_ADDRESS)
        entry->flags |= MT_TORCH_AT_ADDRESS;
    return status;
}

static inline enum mt_status make_entry(struct mt_torch_records *r, struct mt_pickle *pickle,
                                        const struct mt_pickle_value *items, size_t count,
                                        struct mt_pickle_value *value)
{
    struct mt_torch_entry *entry = ADD(r, ENTRIES, entries, entry_count);

    if (!entry)
        return MT_ERR_MEMORY;
    if (!value->bits || value->bits != r->entry_plan.shape) {
        plan_entry(r, items, count);
        r->entry_plan.shape = value->bits;
    }
    mt_torch_set(value, MT_TORCH_ENTRY, r->entry_count - 1);
    return fill_entry(r, pickle, &r->entry_plan, items, entry);
}

static enum mt_status make_history(struct mt_torch_records *r, const struct mt_pickle_value *items,
                                   size_t count, struct mt_pickle_value *value)
{
    struct mt_torch_history *history = ADD(r, HISTORIES, histories, history_count);

    if (!history)
        return MT_ERR_MEMORY;
    history->stack = MT_NO_ID;
    for (size_t i = 0; i + 1 < count; i += 2) {
        switch (mt_torch_word_of(&items[i])) {
        case MT_WORD_ADDR: history->addr = mt_torch_address(&items[i + 1]); break;
        case MT_WORD_REAL_SIZE: history->real_size_bytes = mt_torch_number(items[i + 1]); break;
        case MT_WORD_FRAMES: history->stack = stack_of(&items[i + 1]); break;
        default: break;
        }
    }
    mt_torch_set(value, MT_TORCH_HISTORY, r->history_count - 1);
    return MT_OK;
}

/* PyTorch 2.0: the newest use comes first. */
static void apply_history(struct mt_torch_records *r, struct mt_pickle *pickle,
                          const struct mt_pickle_value *list, struct mt_torch_block *block)
{
    size_t count;
    const struct mt_pickle_value *items = mt_pickle_items(pickle, *list, &count);

    if (list->kind != MT_PICKLE_LIST || !count || !mt_torch_is(&items[0], MT_TORCH_HISTORY))
        return;
    const struct mt_torch_history *history = &r->histories[items[0].bits];
    if (block->requested_bytes == MT_NOT_COUNTED)
        block->requested_bytes = history->real_size_bytes;
    if (block->stack == MT_NO_ID)
        block->stack = history->stack;
}

static uint8_t state_of(const struct mt_pickle_value *value)
{
    switch (mt_torch_word_of(value)) {
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

    if (!block)
        return MT_ERR_MEMORY;
    block->stack = MT_NO_ID;
    block->requested_bytes = MT_NOT_COUNTED;
    for (size_t i = 0; i + 1 < count; i += 2) {
        const struct mt_pickle_value *field = &items[i + 1];
        switch (mt_torch_word_of(&items[i])) {
        case MT_WORD_ADDRESS: block->addr = mt_torch_address(field); break;
        case MT_WORD_SIZE: block->size_bytes = mt_torch_number(*field); break;
        case MT_WORD_REQUESTED_SIZE: block->requested_bytes = mt_torch_number(*field); break;
        case MT_WORD_STATE: block->state = state_of(field); break;
        case MT_WORD_FRAMES: block->stack = stack_of(field); break;
        case MT_WORD_HISTORY: history = field; break;
        default: mt_torch_note_unused(r, MT_TORCH_OF_BLOCK, &items[i]); break;
        }
    }
    if (history)
        apply_history(r, pickle, history, block);
    mt_torch_set(value, MT_TORCH_BLOCK, r->block_count - 1);
    return MT_OK;
}

/* Blocks of PyTorch before 2.1 have no address: they are adjacent. */
static void place_blocks(struct mt_torch_records *r, const struct mt_torch_segment *segment)
{
    uint64_t at = segment->addr;

    for (size_t i = 0; i < segment->block_count; i++) {
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
    struct mt_torch_range blocks = {.taken = false};
    enum mt_status status = MT_OK;
    bool known;

    if (!segment)
        return MT_ERR_MEMORY;
    segment->stack = MT_NO_ID;
    segment->allocated_bytes = segment->active_bytes = segment->requested_bytes = MT_NOT_COUNTED;
    for (size_t i = 0; i + 1 < count && status == MT_OK; i += 2) {
        const struct mt_pickle_value *field = &items[i + 1];
        switch (mt_torch_word_of(&items[i])) {
        case MT_WORD_DEVICE: segment->device = device_of(field); break;
        case MT_WORD_ADDRESS: segment->addr = mt_torch_address(field); break;
        case MT_WORD_TOTAL_SIZE: segment->size_bytes = mt_torch_number(*field); break;
        case MT_WORD_ALLOCATED_SIZE: segment->allocated_bytes = mt_torch_number(*field); break;
        case MT_WORD_ACTIVE_SIZE: segment->active_bytes = mt_torch_number(*field); break;
        case MT_WORD_REQUESTED_SIZE: segment->requested_bytes = mt_torch_number(*field); break;
        case MT_WORD_IS_EXPANDABLE: segment->expandable = mt_torch_number(*field) != 0; break;
        case MT_WORD_FRAMES: segment->stack = stack_of(field); break;
        case MT_WORD_STREAM: status = mt_torch_stream(r, field, &segment->stream); break;
        case MT_WORD_SEGMENT_POOL_ID:
            status = mt_torch_pool(r, pickle, field, &segment->pool, &known);
            break;
        case MT_WORD_BLOCKS: status = mt_torch_take(r, field, MT_TORCH_BLOCKS, &blocks); break;
        default: mt_torch_note_unused(r, MT_TORCH_OF_SEGMENT, &items[i]); break;
        }
    }
    segment->first_block = blocks.first;
    segment->block_count = blocks.count;
    place_blocks(r, segment);
    mt_torch_set(value, MT_TORCH_SEGMENT, r->segment_count - 1);
    return status;
}

static enum mt_status make_annotation(struct mt_torch_records *r, struct mt_pickle *pickle,
                                      const struct mt_pickle_value *items, size_t count,
                                      struct mt_pickle_value *value)
{
    struct mt_torch_annotation *annotation = ADD(r, ANNOTATIONS, annotations, annotation_count);
    enum mt_status status = MT_OK;

    if (!annotation)
        return MT_ERR_MEMORY;
    for (size_t i = 0; i + 1 < count && status == MT_OK; i += 2) {
        const struct mt_pickle_value *field = &items[i + 1];
        switch (mt_torch_word_of(&items[i])) {
        case MT_WORD_NAME: status = mt_torch_string(r, pickle, field, &annotation->name); break;
        case MT_WORD_STAGE: annotation->end = mt_torch_word_of(field) == MT_WORD_END; break;
        case MT_WORD_DEVICE: annotation->device = device_of(field); break;
        case MT_WORD_TIME_US: annotation->time_us = mt_torch_number(*field); break;
        default: mt_torch_note_unused(r, MT_TORCH_OF_ANNOTATION, &items[i]); break;
        }
    }
    mt_torch_set(value, MT_TORCH_ANNOTATION, r->annotation_count - 1);
    return status;
}

static APART enum mt_status make_record(struct mt_torch_records *r, struct mt_pickle *pickle,
                                        const struct mt_pickle_value *items, size_t count,
                                        struct mt_pickle_value *value)
{
    for (size_t i = 0; i + 1 < count; i += 2) {
        switch (mt_torch_word_of(&items[i])) {
        case MT_WORD_ACTION: return make_entry(r, pickle, items, count, value);
        case MT_WORD_FILENAME: return mt_torch_frame(r, pickle, items, count, value);
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
    for (size_t i = 0; i < count; i++)
        if (!mt_torch_is(&items[i], host))
            return false;
    return count > 0;
}

static enum mt_status copy_records(struct mt_torch_records *r, enum mt_torch_host host,
                                   const struct mt_pickle_value *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (host == MT_TORCH_ENTRIES) {
            struct mt_torch_entry *copy = ADD(r, ENTRIES, entries, entry_count);
            if (!copy)
                return MT_ERR_MEMORY;
            *copy = r->entries[items[i].bits];
            if (mt_torch_copy_tag(r, items[i].bits))
                return MT_ERR_MEMORY;
        } else {
            struct mt_torch_block *copy = ADD(r, BLOCKS, blocks, block_count);
            if (!copy)
                return MT_ERR_MEMORY;
            *copy = r->blocks[items[i].bits];
        }
    }
    return MT_OK;
}

/* The records of a list are usually adjacent, because they were made one after the other. A list
 * that shares or reorders records gets copies. */
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
    mt_torch_set(value, host, r->range_count - 1);
    return status;
}

/* Copies entries of several pieces into one. */
static enum mt_status join_pieces(struct mt_torch_records *r, struct mt_torch_range *range)
{
    size_t first = r->entry_count, piece = range->next;
    struct mt_torch_range from = *range;

    for (;;) {
        for (size_t i = 0; i < from.count; i++) {
            struct mt_torch_entry *copy = ADD(r, ENTRIES, entries, entry_count);
            if (!copy)
                return MT_ERR_MEMORY;
            *copy = r->entries[from.first + i];
            if (mt_torch_copy_tag(r, from.first + i))
                return MT_ERR_MEMORY;
        }
        if (!piece)
            break;
        from = r->ranges[piece];
        piece = from.next;
    }
    range->first = first;
    range->count = r->entry_count - first;
    return MT_OK;
}

enum mt_status mt_torch_take(struct mt_torch_records *records, const struct mt_pickle_value *value,
                             enum mt_torch_host host, struct mt_torch_range *range)
{
    *range = (struct mt_torch_range){.taken = true};
    if (!mt_torch_is(value, host) || records->ranges[value->bits].taken)
        return MT_OK;
    *range = records->ranges[value->bits];
    records->ranges[value->bits].taken = true;
    return range->next ? join_pieces(records, range) : MT_OK;
}

static APART enum mt_status make_sequence(struct mt_torch_records *r,
                                          const struct mt_pickle_value *items, size_t count,
                                          struct mt_pickle_value *value)
{
    if (all_are(items, count, MT_TORCH_FRAME))
        return mt_torch_stack(r, items, count, value);
    if (all_are(items, count, MT_TORCH_ENTRY))
        return make_range(r, MT_TORCH_ENTRIES, items, count, value);
    if (all_are(items, count, MT_TORCH_BLOCK))
        return make_range(r, MT_TORCH_BLOCKS, items, count, value);
    if (!count && value->kind == MT_PICKLE_LIST)
        mt_torch_set(value, MT_TORCH_EMPTY, 0);
    if (count == 2 && value->kind == MT_PICKLE_TUPLE && items[0].kind == MT_PICKLE_INT &&
        items[1].kind == MT_PICKLE_INT && (items[0].bits | items[1].bits) < 1 << 24)
        mt_torch_set(value, MT_TORCH_PAIR, items[0].bits << 24 | items[1].bits);
    return MT_OK;
}

enum mt_status mt_torch_hook(void *context, struct mt_pickle *pickle,
                             const struct mt_pickle_value *items, size_t count,
                             struct mt_pickle_value *value, struct mt_error *error)
{
    struct mt_torch_records *r = context;
    enum mt_status status;

    if (value->bits && value->bits == r->entry_plan.shape) /* speed only */
        status = make_entry(r, pickle, items, count, value);
    else
        status = value->kind == MT_PICKLE_DICT ? make_record(r, pickle, items, count, value)
                                               : make_sequence(r, items, count, value);

    return status == MT_OK ? MT_OK : too_many(error, status, "streams, pools or names");
}

static enum mt_status append_entries(struct mt_torch_records *r, size_t list,
                                     const struct mt_pickle_value *items, size_t count)
{
    size_t last = r->ranges[list].last ? r->ranges[list].last : list, i = 0;
    struct mt_torch_range *piece = &r->ranges[last];
    struct mt_pickle_value added;

    while (i < count && items[i].bits == piece->first + piece->count + i)
        i++;
    if (i == count) { /* made one after the other, the usual case */
        piece->count += count;
        return MT_OK;
    }
    enum mt_status status = make_range(r, MT_TORCH_ENTRIES, items, count, &added);
    if (status == MT_OK)
        r->ranges[last].next = r->ranges[list].last = added.bits;
    return status;
}

enum mt_status mt_torch_append(void *context, struct mt_pickle *pickle,
                               const struct mt_pickle_value *items, size_t count,
                               struct mt_pickle_value *list, bool *taken, struct mt_error *error)
{
    struct mt_torch_records *r = context;
    enum mt_status status = MT_OK;

    (void)pickle;
    *taken = all_are(items, count, MT_TORCH_ENTRY) &&
             (list->kind == MT_PICKLE_LIST || mt_torch_is(list, MT_TORCH_ENTRIES));
    if (!*taken)
        return MT_OK;
    if (list->kind == MT_PICKLE_LIST)
        status = make_range(r, MT_TORCH_ENTRIES, items, count, list);
    else
        status = append_entries(r, list->bits, items, count);
    return status == MT_OK ? MT_OK : mt_fail_memory(error);
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
    free(records->tags);
    mt_map_release(&records->stacks);
    mt_map_release(&records->pools);
    mt_map_release(&records->origins);
    memset(records, 0, sizeof *records);
}
