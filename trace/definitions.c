/* The definitions of a block: symbols as entries, and entries as symbols
 * (docs/internals/trace-format.md, "Definitions"). */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "codec.h"
#include "grow.h"
#include "source.h"

/* Definitions of a block -> symbols, and ids of the file -> ids of symbols. The bytes are not
 * trusted: ids, counts and texts are bounded by what a valid file of that size can hold. */

enum { FREE_ENTRIES = 65536, ENTRIES_PER_BYTE = 4 };
enum { MAX_TABLE_ENTRIES = 1 << 30 };

void mt_ids_init(struct mt_ids *ids, uint64_t input_bytes)
{
    uint64_t share = input_bytes < MAX_TABLE_ENTRIES ? input_bytes : MAX_TABLE_ENTRIES;
    uint64_t limit = FREE_ENTRIES + share * ENTRIES_PER_BYTE;

    memset(ids, 0, sizeof *ids);
    ids->limit = limit < MAX_TABLE_ENTRIES ? (uint32_t)limit : MAX_TABLE_ENTRIES;
    ids->text_limit = mt_text_limit(input_bytes);
    for (int table = 0; table < MT_TABLE_COUNT; table++)
        ids->lost[table] = MT_NO_ID;
}

void mt_ids_release(struct mt_ids *ids)
{
    for (int table = 0; table < MT_TABLE_COUNT; table++)
        free(ids->map[table].ids);
    memset(ids, 0, sizeof *ids);
}

static enum mt_status make_lost(struct mt_symbols *symbols, enum mt_table table, uint32_t *id)
{
    uint32_t text, frame;
    enum mt_status status = mt_symbols_string(symbols, "?", 1, &text);

    if (status != MT_OK)
        return status;
    switch (table) {
    case MT_TABLE_STRINGS: *id = text; return MT_OK;
    case MT_TABLE_FRAMES: return mt_symbols_frame(symbols, text, text, 0, id);
    case MT_TABLE_STACKS:
        status = mt_symbols_frame(symbols, text, text, 0, &frame);
        return status == MT_OK ? mt_symbols_stack(symbols, MT_NO_ID, frame, id) : status;
    case MT_TABLE_STREAMS: return mt_symbols_stream(symbols, UINT64_MAX, id);
    case MT_TABLE_POOLS: return mt_symbols_pool(symbols, UINT64_MAX, UINT64_MAX, id);
    case MT_TABLE_HEAPS: return mt_symbols_heap(symbols, text, id);
    case MT_TABLE_THREADS: return mt_symbols_thread(symbols, text, 0, id);
    case MT_TABLE_DEVICES:
    case MT_TABLE_ENDS: break;
    }
    return MT_ERR_FORMAT;
}

enum mt_status mt_ids_resolve(struct mt_ids *ids, struct mt_symbols *symbols, enum mt_table table,
                              uint64_t id, uint32_t *resolved, bool *lost)
{
    const struct mt_id_map *map = &ids->map[table];

    if (id < map->count && map->ids[id] != MT_NO_ID) {
        *resolved = map->ids[id];
        return MT_OK;
    }
    *lost = true;
    if (ids->lost[table] == MT_NO_ID) {
        enum mt_status status = mt_source_change_symbols(ids->source);
        status = status ? status : make_lost(symbols, table, &ids->lost[table]);
        if (status != MT_OK)
            return status;
    }
    MT_ASSERT(ids->lost[table] != MT_NO_ID);
    *resolved = ids->lost[table];
    return MT_OK;
}

/* Like mt_ids_resolve for ids written as 0 = missing, otherwise id + 1. Definitions that refer to
 * lost ones are not counted: the events that use them are valid and only show a "?" inside. */
static enum mt_status resolve_optional(struct mt_ids *ids, struct mt_symbols *symbols,
                                       enum mt_table table, uint64_t value, uint32_t *resolved)
{
    bool lost = false;

    *resolved = MT_NO_ID;
    return value ? mt_ids_resolve(ids, symbols, table, value - 1, resolved, &lost) : MT_OK;
}

static enum mt_status grow_map(struct mt_id_map *map, uint32_t count)
{
    enum mt_status status = mt_grow(&map->ids, &map->capacity, count, sizeof *map->ids);

    while (status == MT_OK && map->count < count)
        map->ids[map->count++] = MT_NO_ID;
    return status;
}

static enum mt_status define_string(struct mt_ids *ids, struct mt_symbols *symbols,
                                    struct mt_cursor *in, uint32_t *id)
{
    uint64_t length = mt_cursor_bounded(in, MT_STRING_MAX_BYTES);
    const uint8_t *text = mt_cursor_take(in, length);

    if (in->bad)
        return MT_ERR_FORMAT;
    if (*id != MT_NO_ID)
        return MT_OK;
    ids->text_bytes += length;
    if (ids->text_bytes > ids->text_limit)
        return MT_ERR_FORMAT;
    return mt_symbols_string(symbols, (const char *)text, (size_t)length, id);
}

static enum mt_status define_frame(struct mt_ids *ids, struct mt_symbols *symbols,
                                   struct mt_cursor *in, uint32_t *id)
{
    uint64_t function = mt_cursor_varint(in), file = mt_cursor_varint(in);
    uint64_t line = mt_cursor_bounded(in, UINT32_MAX);
    uint32_t function_id, file_id;

    if (in->bad)
        return MT_ERR_FORMAT;
    if (*id != MT_NO_ID)
        return MT_OK;
    enum mt_status status =
        resolve_optional(ids, symbols, MT_TABLE_STRINGS, function, &function_id);
    if (status == MT_OK)
        status = resolve_optional(ids, symbols, MT_TABLE_STRINGS, file, &file_id);
    if (status == MT_OK)
        status = mt_symbols_frame(symbols, function_id, file_id, (uint32_t)line, id);
    return status;
}

static enum mt_status define_stack(struct mt_ids *ids, struct mt_symbols *symbols,
                                   struct mt_cursor *in, uint32_t file_id, uint32_t *id)
{
    uint64_t up = mt_cursor_bounded(in, file_id), frame = mt_cursor_varint(in);
    uint32_t parent = MT_NO_ID, frame_id;
    enum mt_status status = MT_OK;
    bool lost = false;

    if (in->bad)
        return MT_ERR_FORMAT;
    if (*id != MT_NO_ID)
        return MT_OK;
    if (up)
        status = mt_ids_resolve(ids, symbols, MT_TABLE_STACKS, file_id - up, &parent, &lost);
    if (status == MT_OK)
        status = mt_ids_resolve(ids, symbols, MT_TABLE_FRAMES, frame, &frame_id, &lost);
    MT_ASSERT(status != MT_OK || frame_id < symbols->frame_count);
    if (status == MT_OK)
        status = mt_symbols_stack(symbols, parent, frame_id, id);
    return status;
}

static enum mt_status define_stream(struct mt_symbols *symbols, struct mt_cursor *in, uint32_t *id)
{
    uint64_t handle = mt_cursor_varint(in);

    if (in->bad)
        return MT_ERR_FORMAT;
    return *id != MT_NO_ID ? MT_OK : mt_symbols_stream(symbols, handle, id);
}

static enum mt_status define_pool(struct mt_symbols *symbols, struct mt_cursor *in, uint32_t *id)
{
    uint64_t a = mt_cursor_varint(in), b = mt_cursor_varint(in);

    if (in->bad)
        return MT_ERR_FORMAT;
    return *id != MT_NO_ID ? MT_OK : mt_symbols_pool(symbols, a, b, id);
}

static enum mt_status define_heap(struct mt_ids *ids, struct mt_symbols *symbols,
                                  struct mt_cursor *in, uint32_t *id)
{
    uint64_t name = mt_cursor_varint(in);
    uint32_t name_id;

    if (in->bad)
        return MT_ERR_FORMAT;
    if (*id != MT_NO_ID)
        return MT_OK;
    enum mt_status status = resolve_optional(ids, symbols, MT_TABLE_STRINGS, name, &name_id);
    return status == MT_OK ? mt_symbols_heap(symbols, name_id, id) : status;
}

/* Thread 0 exists in every symbol table: the file only describes it. */
static enum mt_status define_thread(struct mt_ids *ids, struct mt_symbols *symbols,
                                    struct mt_cursor *in, uint32_t file_id, uint32_t *id)
{
    uint64_t name = mt_cursor_varint(in), os_id = mt_cursor_varint(in);
    uint32_t name_id;

    if (in->bad)
        return MT_ERR_FORMAT;
    if (*id != MT_NO_ID)
        return MT_OK;
    enum mt_status status = resolve_optional(ids, symbols, MT_TABLE_STRINGS, name, &name_id);
    if (status != MT_OK)
        return status;
    if (file_id)
        return mt_symbols_thread(symbols, name_id, os_id, id);
    symbols->threads[0] = (struct mt_thread_info){name_id, os_id};
    *id = 0;
    return MT_OK;
}

static enum mt_status define_end(struct mt_ids *ids, struct mt_symbols *symbols,
                                 struct mt_cursor *in, uint32_t *id)
{
    uint64_t device = mt_cursor_bounded(in, MT_MAX_DEVICES - 1), heap = mt_cursor_varint(in);
    struct mt_segment_end end = {.device = (uint16_t)device};
    uint32_t heap_id;
    bool lost = false;

    end.addr = mt_cursor_varint(in);
    end.size_bytes = mt_cursor_varint(in);
    end.allocated_bytes = mt_cursor_varint(in) - 1;
    end.active_bytes = mt_cursor_varint(in) - 1;
    end.requested_bytes = mt_cursor_varint(in) - 1;
    if (in->bad)
        return MT_ERR_FORMAT;
    if (*id != MT_NO_ID)
        return MT_OK;
    enum mt_status status = mt_ids_resolve(ids, symbols, MT_TABLE_HEAPS, heap, &heap_id, &lost);
    if (status != MT_OK)
        return status;
    end.heap = (uint16_t)heap_id;
    return mt_symbols_end(symbols, &end, id);
}

static enum mt_status define_device(struct mt_ids *ids, struct mt_symbols *symbols,
                                    struct mt_cursor *in, uint32_t file_id)
{
    uint64_t name = mt_cursor_varint(in), total = mt_cursor_varint(in);
    uint32_t name_id;

    if (in->bad || file_id >= MT_MAX_DEVICES)
        return MT_ERR_FORMAT;
    enum mt_status status = resolve_optional(ids, symbols, MT_TABLE_STRINGS, name, &name_id);
    return status == MT_OK ? mt_symbols_device(symbols, file_id, name_id, total) : status;
}

static enum mt_status define_entry(struct mt_ids *ids, struct mt_symbols *symbols,
                                   enum mt_table table, struct mt_cursor *in, uint32_t file_id)
{
    struct mt_id_map *map = &ids->map[table];
    uint32_t *id = &map->ids[file_id];

    MT_ASSERT(file_id < map->count);
    switch (table) {
    case MT_TABLE_STRINGS: return define_string(ids, symbols, in, id);
    case MT_TABLE_FRAMES: return define_frame(ids, symbols, in, id);
    case MT_TABLE_STACKS: return define_stack(ids, symbols, in, file_id, id);
    case MT_TABLE_STREAMS: return define_stream(symbols, in, id);
    case MT_TABLE_POOLS: return define_pool(symbols, in, id);
    case MT_TABLE_DEVICES: return define_device(ids, symbols, in, file_id);
    case MT_TABLE_HEAPS: return define_heap(ids, symbols, in, id);
    case MT_TABLE_THREADS: return define_thread(ids, symbols, in, file_id, id);
    case MT_TABLE_ENDS: return define_end(ids, symbols, in, id);
    }
    return MT_ERR_FORMAT;
}

/* Tables whose ids are 16 bits wide in struct mt_event. */
static uint32_t table_limit(const struct mt_ids *ids, enum mt_table table)
{
    switch (table) {
    case MT_TABLE_DEVICES: return MT_MAX_DEVICES;
    case MT_TABLE_POOLS: /* looked up linearly, so their number is bounded */
    case MT_TABLE_HEAPS: return MT_MAX_POOLS;
    case MT_TABLE_THREADS: return MT_MAX_THREADS;
    default: return ids->limit;
    }
}

static enum mt_status define_table(struct mt_ids *ids, struct mt_symbols *symbols,
                                   enum mt_table table, struct mt_cursor in, uint64_t base,
                                   uint64_t count, const char **reason)
{
    if (base > table_limit(ids, table) || count > table_limit(ids, table) - base) {
        *reason = "more definitions than a trace of this size can hold";
        return MT_ERR_FORMAT;
    }
    enum mt_status status = grow_map(&ids->map[table], (uint32_t)(base + count));
    for (uint64_t i = 0; i < count && status == MT_OK; i++)
        status = define_entry(ids, symbols, table, &in, (uint32_t)(base + i));
    if (status == MT_OK && mt_cursor_left(&in))
        status = MT_ERR_FORMAT;
    if (status != MT_OK)
        *reason = status == MT_ERR_MEMORY ? mt_status_text(status) : "definitions are malformed";
    return status;
}

enum mt_status mt_ids_define(struct mt_ids *ids, struct mt_symbols *symbols,
                             struct mt_cursor definitions, const char **reason)
{
    struct mt_cursor *in = &definitions;
    enum mt_status status = mt_cursor_left(in) ? mt_source_change_symbols(ids->source) : MT_OK;

    while (status == MT_OK && mt_cursor_left(in)) {
        uint64_t table = mt_cursor_varint(in), base = mt_cursor_varint(in);
        uint64_t count = mt_cursor_varint(in), length = mt_cursor_varint(in);
        const uint8_t *bytes = mt_cursor_take(in, length);
        if (in->bad) {
            *reason = "definitions are cut short";
            return MT_ERR_FORMAT;
        }
        if (table < MT_TABLE_STRINGS || table >= MT_TABLE_COUNT)
            continue; /* of a later version */
        status =
            define_table(ids, symbols, (enum mt_table)table,
                         (struct mt_cursor){bytes, bytes + length, false}, base, count, reason);
    }
    return status;
}

/* Symbols -> definitions of a block. Every table is written as entries with an explicit first id
 * and consecutive ids. A lost frame therefore loses definitions but never shifts later ones. */

enum { MAX_ENTRY_BYTES = 7 * MT_VARINT_MAX_BYTES };

static void add_varint(struct mt_buf *out, uint64_t value)
{
    uint8_t *at = (uint8_t *)mt_buf_reserve(out, MT_VARINT_MAX_BYTES);

    if (at)
        out->length = (size_t)((char *)mt_put_varint(at, value) - out->data);
}

/* Ids that may be missing: 0 = missing, else id + 1. */
static void add_optional(struct mt_buf *out, uint32_t id)
{
    add_varint(out, id == MT_NO_ID ? 0 : (uint64_t)id + 1);
}

/* Length of a string to write: all of it, or cut before the character that crosses the limit. */
static uint32_t written_length(const char *text, uint32_t length, uint64_t limit)
{
    if (length <= limit)
        return length;
    length = (uint32_t)limit;
    while (length && ((uint8_t)text[length] & 0xC0) == 0x80)
        length--;
    return length;
}

/* The reader refuses files whose text is out of proportion to their size, and loses the events with
 * it. The writer therefore cuts such text. Only text that compresses unlike any recorded text
 * reaches this limit. */
static void add_string(const struct mt_symbols *symbols, struct mt_definitions_written *written,
                       uint32_t id, struct mt_buf *out)
{
    const char *text = symbols->strings.texts[id];
    uint64_t most = mt_text_limit(written->file_bytes);
    uint64_t left = most > written->text_bytes ? most - written->text_bytes : 0;
    uint32_t length = written_length(text, symbols->strings.lengths[id],
                                     left < MT_STRING_MAX_BYTES ? left : MT_STRING_MAX_BYTES);

    written->text_bytes += length;
    MT_ASSERT(length <= MT_STRING_MAX_BYTES);
    add_varint(out, length);
    mt_buf_add(out, text, length);
}

static void add_frame(const struct mt_symbols *symbols, uint32_t id, struct mt_buf *out)
{
    const struct mt_frame *frame = &symbols->frames[id];

    MT_ASSERT(frame->function == MT_NO_ID || frame->function < symbols->strings.count);
    MT_ASSERT(frame->file == MT_NO_ID || frame->file < symbols->strings.count);
    add_optional(out, frame->function);
    add_optional(out, frame->file);
    add_varint(out, frame->line);
}

/* The parent as a distance: 0 = root, else own id - parent. */
static void add_stack(const struct mt_symbols *symbols, uint32_t id, struct mt_buf *out)
{
    const struct mt_stack *stack = &symbols->stacks[id];

    MT_ASSERT(stack->parent == MT_NO_ID || stack->parent < id);
    MT_ASSERT(stack->frame < symbols->frame_count);
    add_varint(out, stack->parent == MT_NO_ID ? 0 : id - stack->parent);
    add_varint(out, stack->frame);
}

static void add_stream(const struct mt_symbols *symbols, uint32_t id, struct mt_buf *out)
{
    add_varint(out, symbols->streams[id].handle);
}

static void add_pool(const struct mt_symbols *symbols, uint32_t id, struct mt_buf *out)
{
    add_varint(out, symbols->pools[id].id[0]);
    add_varint(out, symbols->pools[id].id[1]);
}

static void add_device(const struct mt_symbols *symbols, uint32_t id, struct mt_buf *out)
{
    add_optional(out, symbols->devices[id].name);
    add_varint(out, symbols->devices[id].total_memory_bytes);
}

static void add_heap(const struct mt_symbols *symbols, uint32_t id, struct mt_buf *out)
{
    add_optional(out, symbols->heaps[id].name);
}

static void add_thread(const struct mt_symbols *symbols, uint32_t id, struct mt_buf *out)
{
    add_optional(out, symbols->threads[id].name);
    add_varint(out, symbols->threads[id].os_id);
}

/* Levels that may be missing: 0 = missing, else the level + 1. */
static void add_end(const struct mt_symbols *symbols, uint32_t id, struct mt_buf *out)
{
    const struct mt_segment_end *end = &symbols->ends[id];

    MT_ASSERT(end->heap < symbols->heap_count);
    add_varint(out, end->device);
    add_varint(out, end->heap);
    add_varint(out, end->addr);
    add_varint(out, end->size_bytes);
    add_varint(out, end->allocated_bytes + 1);
    add_varint(out, end->active_bytes + 1);
    add_varint(out, end->requested_bytes + 1);
}

static uint32_t table_count(const struct mt_symbols *symbols, enum mt_table table)
{
    switch (table) {
    case MT_TABLE_STRINGS: return symbols->strings.count;
    case MT_TABLE_FRAMES: return symbols->frame_count;
    case MT_TABLE_STACKS: return symbols->stack_count;
    case MT_TABLE_STREAMS: return symbols->stream_count;
    case MT_TABLE_POOLS: return symbols->pool_count;
    case MT_TABLE_DEVICES: return symbols->device_count;
    case MT_TABLE_HEAPS: return symbols->heap_count;
    case MT_TABLE_THREADS: return symbols->thread_count;
    case MT_TABLE_ENDS: return symbols->end_count;
    }
    return 0;
}

/* Writes entries of one table, beginning with the first unwritten one: at most `limit` bytes but at
 * least one entry. */
static void write_table(const struct mt_symbols *symbols, enum mt_table table,
                        struct mt_definitions_written *written, size_t limit, struct mt_buf *out)
{
    static void (*const add[MT_TABLE_COUNT])(const struct mt_symbols *, uint32_t,
                                             struct mt_buf *) = {
        [MT_TABLE_STRINGS] = NULL,     [MT_TABLE_FRAMES] = add_frame,
        [MT_TABLE_STACKS] = add_stack, [MT_TABLE_STREAMS] = add_stream,
        [MT_TABLE_POOLS] = add_pool,   [MT_TABLE_DEVICES] = add_device,
        [MT_TABLE_HEAPS] = add_heap,   [MT_TABLE_THREADS] = add_thread,
        [MT_TABLE_ENDS] = add_end,
    };
    uint32_t count = table_count(symbols, table), base = written->count[table], id;
    struct mt_buf entries = {0};

    for (id = base; id < count; id++) {
        if (table == MT_TABLE_STRINGS)
            add_string(symbols, written, id, &entries);
        else
            add[table](symbols, id, &entries);
        if (entries.length + MAX_ENTRY_BYTES > limit) {
            id++;
            break;
        }
    }
    MT_ASSERT(id > base && id <= count);
    add_varint(out, (uint64_t)table);
    add_varint(out, base);
    add_varint(out, id - base);
    add_varint(out, entries.length);
    mt_buf_add(out, entries.data, entries.length);
    out->failed |= entries.failed;
    mt_buf_release(&entries);
    written->count[table] = id;
}

static uint64_t hash_devices(const struct mt_symbols *symbols)
{
    uint64_t hash = symbols->device_count;

    for (uint32_t i = 0; i < symbols->device_count; i++)
        hash = mt_hash_u64(hash ^ mt_hash_u64(symbols->devices[i].name ^
                                              symbols->devices[i].total_memory_bytes << 20));
    return hash;
}

bool mt_definitions_write(const struct mt_symbols *symbols, struct mt_definitions_written *written,
                          size_t limit, struct mt_buf *out)
{
    uint64_t devices_hash = hash_devices(symbols);
    size_t start = out->length;

    if (devices_hash != written->devices_hash)
        written->count[MT_TABLE_DEVICES] = 0;
    written->devices_hash = devices_hash;
    for (int table = MT_TABLE_STRINGS; table < MT_TABLE_COUNT; table++) {
        uint32_t *count = &written->count[table];
        size_t used = out->length - start;
        MT_ASSERT(*count <= table_count(symbols, (enum mt_table)table));
        if (*count == table_count(symbols, (enum mt_table)table))
            continue;
        if (used >= limit)
            return false;
        write_table(symbols, (enum mt_table)table, written, limit - used, out);
        if (*count < table_count(symbols, (enum mt_table)table))
            return false;
    }
    return true;
}
