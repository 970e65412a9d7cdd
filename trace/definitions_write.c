/* Symbols -> definitions of a block. Every table is written as entries with an explicit first id
 * and consecutive ids. A lost frame therefore loses definitions but never shifts later ones. */
#include "codec.h"

#include <string.h>

#include "check.h"

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
    uint32_t i;

    for (i = 0; i < symbols->device_count; i++)
        hash = mt_hash_u64(hash ^ mt_hash_u64(symbols->devices[i].name ^
                                              symbols->devices[i].total_memory_bytes << 20));
    return hash;
}

bool mt_definitions_write(const struct mt_symbols *symbols, struct mt_definitions_written *written,
                          size_t limit, struct mt_buf *out)
{
    uint64_t devices_hash = hash_devices(symbols);
    size_t start = out->length;
    int table;

    if (devices_hash != written->devices_hash)
        written->count[MT_TABLE_DEVICES] = 0;
    written->devices_hash = devices_hash;
    for (table = MT_TABLE_STRINGS; table < MT_TABLE_COUNT; table++) {
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
