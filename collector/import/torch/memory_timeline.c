/* A row is [t_ns, action, bytes, category]: bytes are negative if they leave the category. Rows do
 * not name their block, so one that leaves is the last one of its size and category that came. All
 * such blocks are equal, so the sums of each category are those of the file at every row. */
#include <stdlib.h>
#include <string.h>

#include "feed.h"
#include "grow.h"
#include "importers.h"
#include "json_reader.h"
#include "made_trace.h"
#include "map.h"
#include "util.h"

/* Action of torch/profiler/_memory_profiler.py. */
enum { PREEXISTING = 1, CREATE, INCREMENT_VERSION, DESTROY };
enum { T_NS, ACTION, BYTES, CATEGORY, NUMBERS };
enum { ALIGNMENT = 512 };

static const int64_t MAX_SIZE = (int64_t)1 << 60, MAX_TIME_NS = (int64_t)1 << 61;
static const uint64_t FIRST_ADDRESS = 1 << 20, LAST_ADDRESS = (uint64_t)1 << 62;

/* The keys of _CATEGORY_TO_COLORS there, whose order gives the numbers; the last one is None. */
static const char *const categories[] = {
    "PARAMETER",  "OPTIMIZER_STATE", "INPUT",           "TEMPORARY",
    "ACTIVATION", "GRADIENT",        "AUTOGRAD_DETAIL", "other"};

/* A block that is alive. Those of one size and category are a list. */
struct block {
    uint64_t addr, key;
    uint32_t next; /* MT_MAP_NONE = the last one */
};

struct timeline {
    struct mt_made_trace made;
    struct mt_json_reader json;
    struct block *blocks;
    size_t block_count, block_capacity;
    struct mt_map alive; /* key -> index of the first block */
    uint32_t unused;     /* first block of the list of those that may be used again */
    uint32_t pending;    /* taken by a row whose other half may follow, or MT_MAP_NONE */
    uint64_t pending_t_ns, addr, offset;
    uint32_t names[MT_ARRAY_LEN(categories)], heap;
    bool has_started; /* the blocks that were alive before are events */
};

static bool is_known(const int64_t numbers[NUMBERS])
{
    return numbers[ACTION] >= PREEXISTING && numbers[ACTION] <= DESTROY && numbers[CATEGORY] >= 0 &&
           numbers[CATEGORY] < (int64_t)MT_ARRAY_LEN(categories);
}

/* Small numbers, perhaps of a later PyTorch, with a time that is one. A timeline with sums begins
 * with a list of times. */
static bool may_be_known(const int64_t numbers[NUMBERS])
{
    enum { MOST = 255, SECOND_NS = 1000000000 };

    return is_known(numbers) ||
           ((numbers[T_NS] < 0 || numbers[T_NS] >= SECOND_NS) && numbers[ACTION] >= 0 &&
            numbers[ACTION] <= MOST && numbers[CATEGORY] >= 0 && numbers[CATEGORY] <= MOST);
}

bool mt_memory_timeline_probe(const void *bytes, size_t length)
{
    static const char marks[] = "[[,,,]";
    char start[128], *at = start;
    int64_t numbers[NUMBERS] = {0};

    memcpy(start, bytes, length = mt_min_u64(length, sizeof start - 1));
    start[length] = '\0';
    for (size_t i = 0; i < strlen(marks); i++) {
        char *end = at;

        if (i >= 2)
            numbers[i - 2] = strtoll(at, &end, 10);
        if (i >= 2 && end == at)
            return false;
        at = end + strspn(end, " \t\r\n");
        if (*at++ != marks[i])
            return false;
    }
    return may_be_known(numbers);
}

static uint64_t bytes_of(uint64_t key)
{
    return key / MT_ARRAY_LEN(categories);
}

static uint64_t key_of(const int64_t numbers[NUMBERS])
{
    return mt_magnitude(numbers[BYTES]) * MT_ARRAY_LEN(categories) + (uint64_t)numbers[CATEGORY];
}

static enum mt_status add_event(struct timeline *timeline, const struct block *block,
                                enum mt_event_kind kind, uint64_t t_ns, struct mt_error *error)
{
    const bool is_alloc = kind == MT_EVENT_ALLOC;
    struct mt_event event = {
        .t_ns = t_ns,
        .addr = block->addr,
        .size_bytes = bytes_of(block->key),
        .aux_bytes = is_alloc ? bytes_of(block->key) : 0,
        .stack = MT_NO_ID,
        .name = is_alloc ? timeline->names[block->key % MT_ARRAY_LEN(categories)] : MT_NO_ID,
        .heap = (uint16_t)timeline->heap,
        .kind = (uint8_t)kind,
        .flags = timeline->has_started ? 0 : MT_EVENT_INITIAL};

    return mt_made_trace_add(&timeline->made, &event, error);
}

/* Makes the blocks that were alive before events of the first time of the file. */
static enum mt_status start(struct timeline *timeline, uint64_t t_ns, struct mt_error *error)
{
    enum mt_status status = MT_OK;

    for (size_t i = 0; i < timeline->block_count && !timeline->has_started && !status; i++)
        status = add_event(timeline, &timeline->blocks[i], MT_EVENT_ALLOC, t_ns, error);
    timeline->made.header.starts_in_middle |= !timeline->has_started && timeline->block_count;
    timeline->has_started = true;
    return status;
}

static enum mt_status push(struct timeline *timeline, uint32_t i, uint64_t key)
{
    struct block *block = &timeline->blocks[i];

    block->key = key;
    block->next = mt_map_get(&timeline->alive, key);
    return mt_map_set(&timeline->alive, key, i);
}

/* Returns the index of a block that was alive, or MT_MAP_NONE. */
static enum mt_status take(struct timeline *timeline, uint64_t key, uint32_t *i)
{
    *i = mt_map_take(&timeline->alive, key);
    if (*i == MT_MAP_NONE || timeline->blocks[*i].next == MT_MAP_NONE)
        return MT_OK;
    return mt_map_set(&timeline->alive, key, timeline->blocks[*i].next);
}

/* Frees the block whose other half did not follow. */
static enum mt_status settle(struct timeline *timeline, struct mt_error *error)
{
    const uint32_t i = timeline->pending;

    if (i == MT_MAP_NONE)
        return MT_OK;
    timeline->pending = MT_MAP_NONE;
    timeline->blocks[i].next = timeline->unused;
    timeline->unused = i;
    return add_event(timeline, &timeline->blocks[i], MT_EVENT_FREE_REQUESTED,
                     timeline->pending_t_ns, error);
}

static enum mt_status new_block(struct timeline *timeline, uint64_t bytes, uint32_t *i)
{
    *i = timeline->unused;
    if (*i != MT_MAP_NONE) {
        timeline->unused = timeline->blocks[*i].next;
    } else if (timeline->block_count >= MT_MAP_NONE ||
               mt_grow(&timeline->blocks, &timeline->block_capacity, timeline->block_count + 1,
                       sizeof *timeline->blocks)) {
        return MT_ERR_MEMORY;
    } else {
        *i = (uint32_t)timeline->block_count++;
    }
    timeline->blocks[*i].addr = timeline->addr;
    timeline->addr += mt_round_up(bytes, ALIGNMENT);
    return MT_OK;
}

/* The second half of a row INCREMENT_VERSION: the block is now of this category. */
static enum mt_status change(struct timeline *timeline, uint64_t key, uint64_t t_ns,
                             struct mt_error *error)
{
    const uint32_t i = timeline->pending;
    const bool is_other = timeline->blocks[i].key != key;
    enum mt_status status = MT_OK;

    timeline->pending = MT_MAP_NONE;
    if (is_other)
        status = add_event(timeline, &timeline->blocks[i], MT_EVENT_FREE_REQUESTED, t_ns, error);
    if (status == MT_OK && push(timeline, i, key))
        status = mt_fail_memory(error);
    if (status == MT_OK && is_other)
        status = add_event(timeline, &timeline->blocks[i], MT_EVENT_ALLOC, t_ns, error);
    return status;
}

/* The block is an event unless more of those that were alive before may follow. */
static enum mt_status arrive(struct timeline *timeline, const int64_t numbers[NUMBERS],
                             struct mt_error *error)
{
    const uint64_t key = key_of(numbers);
    uint32_t i;

    if (new_block(timeline, bytes_of(key), &i) || push(timeline, i, key))
        return mt_fail_memory(error);
    return timeline->has_started ? add_event(timeline, &timeline->blocks[i], MT_EVENT_ALLOC,
                                             (uint64_t)numbers[T_NS], error)
                                 : MT_OK;
}

static enum mt_status leave(struct timeline *timeline, const int64_t numbers[NUMBERS],
                            struct mt_error *error)
{
    if (take(timeline, key_of(numbers), &timeline->pending))
        return mt_fail_memory(error);
    timeline->pending_t_ns = (uint64_t)numbers[T_NS];
    if (timeline->pending == MT_MAP_NONE)
        mt_made_trace_skip(&timeline->made, timeline->offset,
                           "no block of this size and category is alive");
    return numbers[ACTION] == DESTROY ? settle(timeline, error) : MT_OK;
}

static const char *why_impossible(const struct timeline *timeline, const int64_t numbers[NUMBERS])
{
    const int64_t bytes = numbers[BYTES];

    if (!is_known(numbers))
        return "a row has an unknown action or category";
    if (bytes < -MAX_SIZE || bytes > MAX_SIZE || timeline->addr > LAST_ADDRESS)
        return "a row has an impossible size";
    if (numbers[T_NS] > MAX_TIME_NS)
        return "a row has an impossible time";
    if ((numbers[ACTION] == DESTROY && bytes > 0) ||
        (numbers[ACTION] < INCREMENT_VERSION && bytes < 0))
        return "a row has a size of the wrong sign";
    return NULL;
}

static enum mt_status take_row(struct timeline *timeline, int64_t numbers[NUMBERS],
                               struct mt_error *error)
{
    const char *why = why_impossible(timeline, numbers);
    const bool is_second =
        timeline->pending != MT_MAP_NONE && numbers[ACTION] == INCREMENT_VERSION &&
        numbers[BYTES] > 0 && !why &&
        bytes_of(timeline->blocks[timeline->pending].key) == (uint64_t)numbers[BYTES];
    enum mt_status status = is_second ? MT_OK : settle(timeline, error);

    if (why)
        mt_made_trace_skip(&timeline->made, timeline->offset, why);
    if (why || !numbers[BYTES] || status != MT_OK)
        return status;
    bool is_early = numbers[ACTION] == PREEXISTING && numbers[T_NS] < 0 && !timeline->has_started;
    numbers[T_NS] = numbers[T_NS] > 0 ? numbers[T_NS] : 0;
    if (!is_early)
        status = start(timeline, (uint64_t)numbers[T_NS], error);
    if (status != MT_OK)
        return status;
    if (is_second)
        return change(timeline, key_of(numbers), (uint64_t)numbers[T_NS], error);
    return numbers[BYTES] > 0 ? arrive(timeline, numbers, error) : leave(timeline, numbers, error);
}

/* Reads the element of the list whose beginning is the last token. */
static enum mt_status read_row(struct timeline *timeline, struct mt_error *error)
{
    struct mt_json_reader *json = &timeline->json;
    const bool is_open = json->token == MT_JSON_ARRAY || json->token == MT_JSON_OBJECT;
    bool is_row = json->token == MT_JSON_ARRAY;
    int64_t numbers[NUMBERS];
    size_t count = 0;
    enum mt_status status = MT_OK;

    timeline->offset = json->offset;
    while (is_open && (status = mt_json_reader_next(json, error)) == MT_OK && json->depth > 1) {
        is_row &= json->token == MT_JSON_INTEGER && count < NUMBERS;
        if (is_row)
            numbers[count++] = json->integer;
    }
    if (status != MT_OK)
        return status;
    if (is_row && count == NUMBERS)
        return take_row(timeline, numbers, error);
    mt_made_trace_skip(&timeline->made, timeline->offset, "a row is not four integers");
    return MT_OK;
}

static enum mt_status read_all(struct timeline *timeline, struct mt_error *error)
{
    struct mt_json_reader *json = &timeline->json;
    enum mt_status status = mt_json_reader_next(json, error);

    if (status == MT_OK && json->token != MT_JSON_ARRAY)
        return mt_fail(error, MT_ERR_FORMAT, json->offset, "not a memory timeline");
    while (status == MT_OK && (status = mt_json_reader_next(json, error)) == MT_OK && json->depth)
        status = read_row(timeline, error);
    if (status == MT_OK)
        status = mt_json_reader_next(json, error);
    return status == MT_END ? MT_OK : status;
}

static enum mt_status read_file(struct timeline *timeline, struct mt_feed *feed,
                                struct mt_error *error)
{
    enum mt_status status = read_all(timeline, error);

    if (status == MT_ERR_FORMAT && timeline->block_count) {
        mt_made_trace_cut(&timeline->made, feed, &timeline->json, error);
        status = MT_OK;
    }
    if (status == MT_OK)
        status = settle(timeline, error);
    if (status == MT_OK)
        status = start(timeline, 0, error);
    return status == MT_OK && !timeline->block_count
               ? mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "the memory timeline has no blocks")
               : status;
}

static enum mt_status prepare(struct timeline *timeline)
{
    struct mt_symbols *symbols = &timeline->made.symbols;
    struct mt_trace_header *header = &timeline->made.header;
    uint32_t name;

    header->framework = "PyTorch";
    header->has_free_requested = true;
    header->not_recorded = "addresses: those of the blocks are made up\n"
                           "which of several equal blocks is freed: the last one is assumed\n"
                           "changes of category: each is a free and an allocation\n"
                           "the device, stacks, segments, streams, requested sizes\n";
    for (size_t i = 0; i < MT_ARRAY_LEN(categories); i++)
        if (mt_symbols_string(symbols, categories[i], strlen(categories[i]), &timeline->names[i]))
            return MT_ERR_MEMORY;
    return mt_symbols_string(symbols, "pytorch", strlen("pytorch"), &name)
               ? MT_ERR_MEMORY
               : mt_symbols_heap(symbols, name, &timeline->heap);
}

enum mt_status mt_memory_timeline_open(struct mt_feed *feed, struct mt_source **source,
                                       struct mt_error *error)
{
    struct timeline timeline = {
        .unused = MT_MAP_NONE, .pending = MT_MAP_NONE, .addr = FIRST_ADDRESS};
    enum mt_status status = mt_made_trace_start(&timeline.made, error);

    if (status == MT_OK && prepare(&timeline) != MT_OK)
        status = mt_fail_memory(error);
    if (status == MT_OK)
        status = mt_json_reader_init(&timeline.json, feed, error);
    if (status == MT_OK)
        status = read_file(&timeline, feed, error);
    if (status == MT_OK)
        status = mt_made_trace_finish(&timeline.made, MT_SOURCES_TIMELINE, source, error);
    mt_json_reader_release(&timeline.json);
    mt_made_trace_release(&timeline.made);
    mt_map_release(&timeline.alive);
    free(timeline.blocks);
    return status;
}
