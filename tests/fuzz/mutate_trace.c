/* Mutations of traces below the compression: frames are decompressed, the header,
 * definitions, columns or events of a block are changed, and all is written again
 * with the right checksums and, mostly, the right index. Bytes that are changed
 * blindly seldom get past zstd. One mutation in eight is libFuzzer's own. */
#include "mutate_file.h"

#include <zstd.h>

#include "codec.h"
#include "container.h"
#include "util.h"

enum { MAX_FRAMES = 16, MAX_RAW = 1 << 16 };

struct part {
    bool is_block; /* else a skippable frame as it is: the header */
    uint8_t *bytes;
    size_t size, compressed;
};

struct trace {
    struct part parts[MAX_FRAMES];
    size_t count;
};

static bool add_part(struct trace *trace, bool is_block, const void *bytes, size_t size)
{
    struct part *part = &trace->parts[trace->count];

    if (trace->count == MAX_FRAMES)
        return false;
    *part = (struct part){is_block, malloc(size ? size : 1), size, 0};
    if (!part->bytes)
        return false;
    memcpy(part->bytes, bytes, size);
    trace->count++;
    return true;
}

static bool add_block(struct trace *trace, const uint8_t *frame, size_t size)
{
    static uint8_t raw[MAX_RAW];
    size_t length = ZSTD_decompress(raw, sizeof raw, frame, size);

    return !ZSTD_isError(length) && add_part(trace, true, raw, length);
}

/* Index and seek table are left out: they are made again. */
static bool add_skippable(struct trace *trace, const uint8_t *frame, size_t size)
{
    const uint8_t *payload = frame + MT_SKIPPABLE_HEADER_BYTES;

    return !mt_payload_is_header(payload, size - MT_SKIPPABLE_HEADER_BYTES) ||
           add_part(trace, false, payload, size - MT_SKIPPABLE_HEADER_BYTES);
}

static void release(struct trace *trace)
{
    for (size_t i = 0; i < trace->count; i++)
        free(trace->parts[i].bytes);
}

/* As far as the frames are whole; false if there is nothing that can be mutated. */
static bool take_apart(const uint8_t *data, size_t size, struct trace *trace)
{
    size_t blocks = 0;

    trace->count = 0;
    while (size) {
        size_t length = ZSTD_findFrameCompressedSize(data, size);
        bool is_block = size >= 4 && mt_get_u32(data) == MT_ZSTD_MAGIC;
        if (ZSTD_isError(length) ||
            !(is_block ? add_block(trace, data, length) : add_skippable(trace, data, length)))
            break;
        blocks += is_block;
        data += length;
        size -= length;
    }
    return blocks > 0;
}

static void write_header(struct part *part, struct mt_buf *out)
{
    uint8_t head[MT_SKIPPABLE_HEADER_BYTES];

    if (part->size >= 4)
        mt_put_u32(part->bytes + part->size - 4, mt_crc32(part->bytes, part->size - 4));
    mt_put_u32(head, MT_OWN_FRAME_MAGIC);
    mt_put_u32(head + 4, (uint32_t)part->size);
    mt_buf_add(out, head, sizeof head);
    mt_buf_add(out, part->bytes, part->size);
    part->compressed = sizeof head + part->size;
}

static void write_block(struct part *part, struct mt_buf *out)
{
    static ZSTD_CCtx *zstd;
    size_t bound = ZSTD_compressBound(part->size), length;
    char *room = mt_buf_reserve(out, bound);

    if (!zstd)
        zstd = ZSTD_createCCtx();
    if (!zstd || !room)
        return;
    (void)ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1);
    (void)ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, 1);
    length = ZSTD_compress2(zstd, room, bound, part->bytes, part->size);
    if (ZSTD_isError(length))
        return;
    out->length += length;
    part->compressed = length;
}

static struct mt_index_entry entry_of(const struct part *part, uint64_t offset)
{
    struct mt_index_entry entry = {0};

    entry.info.offset = offset;
    entry.info.compressed_bytes = part->compressed;
    entry.info.raw_bytes = part->size;
    if (part->size >= MT_BLOCK_HEADER_BYTES) {
        entry.info.first_seq = mt_get_u64(part->bytes + 8);
        entry.info.first_t_ns = mt_get_u64(part->bytes + 16);
        entry.info.event_count = mt_get_u32(part->bytes + 24);
        entry.definition_bytes = mt_get_u32(part->bytes + 28);
    }
    return entry;
}

/* mt_index_write asserts the order of frames. Where mutated blocks have another one, the index says
 * what their order should be; false if there is a hole between the frames, which no index can tell.
 */
static bool put_in_order(struct mt_index_entry *entry, const struct mt_index_entry *last)
{
    struct mt_zstd_frame_info *info = &entry->info;

    info->event_count = mt_min_u64(info->event_count, MT_BLOCK_MAX_EVENTS);
    if (last && info->first_seq < last->info.first_seq + last->info.event_count)
        info->first_seq = last->info.first_seq + last->info.event_count;
    if (last && info->first_t_ns < last->info.first_t_ns)
        info->first_t_ns = last->info.first_t_ns;
    return info->first_seq <= MT_MAX_SEQ && info->compressed_bytes &&
           info->raw_bytes <= MT_BLOCK_MAX_BYTES &&
           (!last || info->offset == last->info.offset + last->info.compressed_bytes);
}

static void put_together(struct trace *trace, bool with_index, struct mt_buf *out)
{
    struct mt_index_entry entries[MAX_FRAMES];
    size_t count = 0, header_bytes = 0, at;
    bool in_order = true;

    for (size_t i = 0; i < trace->count; i++) {
        struct part *part = &trace->parts[i];
        at = out->length;
        if (part->is_block)
            write_block(part, out);
        else
            write_header(part, out);
        if (part->is_block) {
            entries[count] = entry_of(part, at);
            in_order &= put_in_order(&entries[count], count ? &entries[count - 1] : NULL);
            count++;
        } else {
            header_bytes += part->compressed;
        }
    }
    if (with_index && in_order)
        mt_index_write(entries, count, header_bytes, out);
}

/* A stretch of the part, with libFuzzer's help; the lengths in a block's header follow. */
static void change_bytes(struct part *part, struct mutate_dice *dice)
{
    size_t from = 0, end = part->size, size, room;
    bool in_definitions = false;
    uint32_t definitions = 0;

    if (part->is_block && part->size > MT_BLOCK_HEADER_BYTES && mutate_below(dice, 8)) {
        definitions = mt_get_u32(part->bytes + 28);
        from = MT_BLOCK_HEADER_BYTES;
        in_definitions = definitions && definitions <= end - from && mutate_below(dice, 2);
        if (in_definitions)
            end = from + definitions;
        else if (definitions < end - from)
            from += definitions;
    }
    size = end - from;
    room = size + 64;
    uint8_t *grown = malloc(part->size + 64);
    memcpy(grown, part->bytes, end);
    size = LLVMFuzzerMutate(grown + from, size, room);
    memcpy(grown + from + size, part->bytes + end, part->size - end);
    part->size = from + size + (part->size - end);
    free(part->bytes);
    part->bytes = grown;
    if (in_definitions)
        mt_put_u32(part->bytes + 28, (uint32_t)size);
}

struct events {
    struct mt_symbols symbols;
    struct mt_ids ids;
    struct mt_decoder *decoder;
    struct mt_decoded decoded;
    struct mt_event_block block;
};

static bool decode(struct events *events, const struct trace *trace, const struct part *wanted)
{
    const char *reason;

    memset(events, 0, sizeof *events);
    mt_ids_init(&events->ids, MAX_RAW);
    events->decoder = mt_decoder_new();
    if (!events->decoder || mt_symbols_init(&events->symbols) != MT_OK)
        return false;
    for (const struct part *part = trace->parts; part <= wanted; part++) {
        if (!part->is_block)
            continue;
        if (mt_event_block_parse(part->bytes, part->size, &events->block, &reason) != MT_OK ||
            mt_ids_define(&events->ids, &events->symbols, events->block.definitions, &reason) !=
                MT_OK)
            return false;
    }
    return mt_event_block_decode(events->decoder, &events->block, &events->ids, &events->symbols,
                                 &events->decoded, &reason) == MT_OK &&
           events->decoded.count > 0;
}

/* A value of one event, a telling one or that of another event. */
static void change_event(struct mt_event *event, const struct mt_event *other,
                         struct mutate_dice *dice)
{
    bool borrow = mutate_below(dice, 4);

    switch (mutate_below(dice, 9)) {
    case 0: event->kind = (uint8_t)mutate_below(dice, MT_EVENT_KIND_COUNT); break;
    case 1: event->addr = borrow ? other->addr : mutate_number(dice); break;
    case 2: event->size_bytes = borrow ? other->size_bytes : mutate_number(dice); break;
    case 3: event->aux_bytes = borrow ? other->aux_bytes : mutate_number(dice); break;
    case 4: event->stack = other->stack; break;
    case 5: event->name = other->name; break;
    case 6: event->stream = other->stream; break;
    case 7:
        event->heap = other->heap;
        event->pool = other->pool;
        break;
    default: event->flags ^= (uint8_t)(1u << mutate_below(dice, 3));
    }
}

static void change_events(struct mt_event *events, size_t count, struct mutate_dice *dice)
{
    size_t one = mutate_below(dice, (unsigned)count), other = mutate_below(dice, (unsigned)count);
    uint64_t seq = events[0].seq, t_ns = events[0].t_ns;
    struct mt_event copy = events[one];

    if (mutate_below(dice, 3)) {
        change_event(&events[one], &events[other], dice);
    } else { /* one takes the place of the other, or both change places */
        events[one] = events[other];
        if (mutate_below(dice, 2))
            events[other] = copy;
    }
    for (size_t i = 0; i < count; i++) { /* order is what the encoder wants */
        events[i].seq = seq + i;
        t_ns = events[i].t_ns > t_ns ? events[i].t_ns : t_ns;
        events[i].t_ns = t_ns;
    }
}

/* Decodes the block, changes events, encodes it again with its definitions. */
static void change_block(const struct trace *trace, struct part *part, struct mutate_dice *dice)
{
    struct mt_encoder *encoder = mt_encoder_new(MT_ENCODER_MAX_EVENTS);
    struct mt_buf definitions = {0}, out = {0};
    struct events events;
    const char *reason;

    if (decode(&events, trace, part) && events.decoded.count <= 4096 && encoder) {
        for (unsigned times = 1 + mutate_below(dice, 4); times; times--)
            change_events(events.decoded.events, events.decoded.count, dice);
        mt_buf_add(&definitions, events.block.definitions.at,
                   (size_t)(events.block.definitions.end - events.block.definitions.at));
        if (mt_event_block_encode(encoder, &events.symbols, events.decoded.events,
                                  events.decoded.count, &definitions, &out, &reason) == MT_OK) {
            free(part->bytes);
            part->bytes = malloc(out.length);
            FUZZ_CHECK(part->bytes);
            memcpy(part->bytes, out.data, out.length);
            part->size = out.length;
        }
    }
    mt_encoder_free(encoder);
    mt_decoder_free(events.decoder);
    mt_ids_release(&events.ids);
    mt_symbols_release(&events.symbols);
    mt_buf_release(&definitions);
    mt_buf_release(&out);
}

/* A frame goes, comes twice, or changes places with another one. */
static void change_frames(struct trace *trace, struct mutate_dice *dice)
{
    size_t one = mutate_below(dice, (unsigned)trace->count);
    size_t other = mutate_below(dice, (unsigned)trace->count);
    struct part copy = trace->parts[one];

    switch (mutate_below(dice, 3)) {
    case 0:
        if (trace->count < 2)
            return;
        free(copy.bytes);
        memmove(&trace->parts[one], &trace->parts[one + 1], (trace->count - one - 1) * sizeof copy);
        trace->count--;
        return;
    case 1: (void)add_part(trace, copy.is_block, copy.bytes, copy.size); return;
    default: trace->parts[one] = trace->parts[other]; trace->parts[other] = copy;
    }
}

static void change(struct trace *trace, struct mutate_dice *dice)
{
    struct part *part = &trace->parts[mutate_below(dice, (unsigned)trace->count)];
    unsigned choice = mutate_below(dice, 8);

    if (choice == 0)
        change_frames(trace, dice);
    else if (choice < 4 && part->is_block)
        change_block(trace, part, dice);
    else
        change_bytes(part, dice);
}

size_t mutate_trace(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    struct mutate_dice dice = {seed};
    struct mt_buf out = {0};
    struct trace trace;

    trace.count = 0;
    if (mutate_below(&dice, 8) && take_apart(data, size, &trace)) {
        change(&trace, &dice);
        put_together(&trace, mutate_below(&dice, 4) > 0, &out);
    }
    release(&trace);
    if (out.length && !out.failed && out.length <= max_size) {
        memcpy(data, out.data, out.length);
        size = out.length;
    } else {
        size = LLVMFuzzerMutate(data, size, max_size);
    }
    mt_buf_release(&out);
    return size;
}
