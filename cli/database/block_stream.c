#include "block_stream.h"

#include <stdlib.h>
#include <string.h>

#include "analysis.h"
#include "block_origins.h"
#include "grow.h"
#include "heaps.h"
#include "model_feed.h"
#include "process_memory.h"
#include "report_query.h"
#include "site.h"
#include "sorted.h"

/* Mapped memory of one device, ascending by address, without overlaps. */
struct piece {
    uint64_t addr, bytes, birth_event, birth_t_ns;
    uint32_t stream, stack;
    uint16_t pool;
    bool is_expandable;
};

struct device_stream {
    struct mt_block_stream *stream;
    struct mt_database_writer *writer;
    const struct mt_heap_view *view;
    uint16_t device;
    struct mt_block_origins origins;
    uint64_t *origin_ids; /* by origin of this device: its row */
    uint32_t origin_id_count;
    size_t origin_id_capacity;
    struct piece *pieces;
    size_t piece_count, piece_capacity;
};

void mt_block_stream_use(struct mt_block_stream *stream, uint32_t stack)
{
    if (stack == MT_NO_ID)
        return;
    if (stack >= stream->stack_capacity)
        mt_grow_zeroed_to(&stream->used_stacks, &stream->stack_capacity, (size_t)stack + 1,
                          sizeof *stream->used_stacks);
    stream->used_stacks[stack] = true;
}

/* The row of a block's origin, which is written at the end. */
static uint64_t origin_of(struct device_stream *device, const struct mt_block_life *life)
{
    uint32_t origin = mt_block_origins_find(&device->origins, life);

    if (origin == device->origin_id_count) {
        mt_grow_to(&device->origin_ids, &device->origin_id_capacity, (size_t)origin + 1,
                   sizeof *device->origin_ids);
        device->origin_ids[device->origin_id_count++] = device->stream->origin_count++;
        mt_block_stream_use(device->stream, life->stack);
        mt_block_stream_use(device->stream, life->tied);
    }
    return device->origin_ids[origin];
}

static void on_gone(void *context, const struct mt_block_life *life, struct mt_block_end end,
                    struct mt_block_end completed)
{
    struct device_stream *device = context;
    struct mt_database_writer *writer = device->writer;
    bool is_freed = end.event != UINT64_MAX, is_gone = completed.event != UINT64_MAX;

    mt_row_null(writer); /* numbered by SQLite */
    mt_row_u64(writer, device->device);
    mt_row_u64(writer, mt_heap_view_address(device->view, life->heap, life->addr));
    mt_row_u64(writer, life->block_bytes);
    mt_row_u64(writer, life->requested_bytes);
    mt_row_u64(writer, life->birth_event);
    mt_row_u64(writer, life->birth_t_ns);
    mt_row_u64_or_null(writer, is_freed, end.event);
    mt_row_u64_or_null(writer, is_freed, end.t_ns);
    mt_row_u64_or_null(writer, is_gone, completed.event);
    mt_row_u64_or_null(writer, is_gone, completed.t_ns);
    mt_row_u64(writer, origin_of(device, life));
    mt_row_phase(writer, life->phase);
    mt_row_end(writer, MT_TABLE_BLOCKS);
}

/* Segments. */

static void write_segment(struct device_stream *device, const struct piece *piece, uint64_t addr,
                          uint64_t bytes, const struct mt_event *end)
{
    struct mt_database_writer *writer = device->writer;

    mt_row_null(writer);
    mt_row_u64(writer, device->device);
    mt_row_u64(writer, addr);
    mt_row_u64(writer, bytes);
    mt_row_u64(writer, piece->is_expandable);
    mt_row_u64(writer, piece->birth_event);
    mt_row_u64(writer, piece->birth_t_ns);
    mt_row_u64_or_null(writer, end, end ? end->seq : 0);
    mt_row_u64_or_null(writer, end, end ? end->t_ns : 0);
    mt_row_u64(writer, piece->stream);
    mt_row_u64(writer, piece->pool);
    mt_row_id(writer, piece->stack);
    mt_row_end(writer, MT_TABLE_SEGMENTS);
    mt_block_stream_use(device->stream, piece->stack);
}

/* Index of the first piece that ends behind `addr`. */
static size_t find_piece(const struct device_stream *device, uint64_t addr)
{
    size_t low = 0;

    MT_BISECT(low, device->piece_count, middle,
              device->pieces[middle].addr + device->pieces[middle].bytes <= addr);
    return low;
}

static void insert_piece(struct device_stream *device, size_t at, const struct piece *piece)
{
    mt_grow_to(&device->pieces, &device->piece_capacity, device->piece_count + 1,
               sizeof *device->pieces);
    memmove(&device->pieces[at + 1], &device->pieces[at],
            (device->piece_count - at) * sizeof *device->pieces);
    device->pieces[at] = *piece;
    device->piece_count++;
}

/* Ends what is mapped in [begin, end). */
static void unmap(struct device_stream *device, uint64_t begin, uint64_t end,
                  const struct mt_event *event)
{
    size_t at = find_piece(device, begin);

    while (at < device->piece_count && device->pieces[at].addr < end) {
        struct piece whole = device->pieces[at], rest = whole;
        uint64_t until = whole.addr + whole.bytes;
        uint64_t from = whole.addr > begin ? whole.addr : begin, to = until < end ? until : end;

        write_segment(device, &whole, from, to - from, event);
        memmove(&device->pieces[at], &device->pieces[at + 1],
                (--device->piece_count - at) * sizeof *device->pieces);
        rest.bytes = from - whole.addr;
        if (rest.bytes)
            insert_piece(device, at++, &rest);
        rest.addr = to;
        rest.bytes = until - to;
        if (rest.bytes)
            insert_piece(device, at++, &rest);
    }
}

static void on_segment(struct device_stream *device, const struct mt_event *event)
{
    const struct piece piece = {.addr = event->addr,
                                .bytes = event->size_bytes,
                                .birth_event = event->seq,
                                .birth_t_ns = event->t_ns,
                                .stream = event->stream,
                                .stack = event->stack,
                                .pool = event->pool,
                                .is_expandable = event->kind == MT_EVENT_SEGMENT_MAP};
    uint64_t end = event->addr + event->size_bytes;

    if (end <= event->addr) /* nothing, or a damaged size */
        return;
    unmap(device, event->addr, end, event);
    if (event->kind == MT_EVENT_SEGMENT_ALLOC || event->kind == MT_EVENT_SEGMENT_MAP)
        insert_piece(device, find_piece(device, event->addr), &piece);
}

static uint64_t own_address(const struct device_stream *device, const struct mt_event *event)
{
    return mt_event_kind_has_heap(event->kind)
               ? mt_heap_view_address(device->view, event->heap, event->addr)
               : event->addr;
}

static void on_state(void *context, const struct mt_model_state *state)
{
    struct device_stream *device = context;
    struct mt_database_writer *writer = device->writer;
    const struct mt_event *event = state->event;

    if (mt_event_is_segment(event))
        on_segment(device, event);
    if (!device->stream->with_events)
        return;
    mt_row_u64(writer, event->seq);
    mt_row_u64(writer, device->device);
    mt_row_u64(writer, event->t_ns);
    mt_row_text(writer, mt_event_kind_name(event->kind));
    mt_row_u64(writer, own_address(device, event));
    mt_row_u64(writer, event->size_bytes);
    mt_row_u64(writer, event->stream);
    mt_row_u64(writer, event->pool);
    mt_row_id(writer, event->stack);
    mt_row_phase(writer, state->phase);
    mt_row_bytes(writer, state->now);
    mt_row_end(writer, MT_TABLE_EVENTS);
    mt_block_stream_use(device->stream, event->stack);
}

static void release(void *context)
{
    struct device_stream *device = context;

    if (!device)
        return;
    mt_block_origins_release(&device->origins);
    free(device->origin_ids);
    free(device->pieces);
    free(device);
}

static enum mt_status begin(struct mt_analysis *analysis, uint32_t slot, struct mt_model_feed *feed)
{
    struct device_stream *made = mt_memory_zeroed(1, sizeof *made);

    made->stream = analysis->options->listener_context;
    made->writer = made->stream->writer;
    made->view = &analysis->source->view;
    made->device = analysis->survey.devices[slot].device;
    mt_block_origins_begin(&made->origins, analysis);
    *feed = (struct mt_model_feed){
        .builder = made, .on_gone = on_gone, .on_state = on_state, .release = release};
    return MT_OK;
}

/* As the sums of the report's roles_known (mt_role_origins_of), but names what is unknown. */
static const char *source_of(const struct mt_block_origin *origin, bool is_one_instant)
{
    if (origin->role_recorded)
        return "recorded";
    if (origin->role == MT_ROLE_OTHER)
        return "unknown";
    return is_one_instant || origin->tie == MT_TIE_BEFORE ? "guess" : "inferred";
}

static void write_origin(struct device_stream *device, const struct mt_block_origin *origin,
                         uint64_t id, bool is_one_instant)
{
    struct mt_database_writer *writer = device->writer;
    const struct mt_symbols *symbols = device->origins.attribution.symbols;

    mt_row_u64(writer, id);
    mt_row_text(writer, mt_role_name((enum mt_role)origin->role));
    mt_row_text(writer, source_of(origin, is_one_instant));
    mt_row_text(writer, origin->site);
    mt_row_text(writer, origin->operation);
    mt_row_text(writer, *origin->phase ? origin->phase : NULL);
    mt_row_text(writer, origin->tag == MT_NO_ID ? NULL : mt_symbols_text(symbols, origin->tag));
    mt_row_id(writer, origin->stack);
    mt_row_id(writer, origin->tied);
    mt_row_text(writer, mt_tie_name((enum mt_tie)origin->tie));
    mt_row_u64(writer, origin->stream);
    mt_row_u64(writer, origin->pool);
    mt_row_text(writer, mt_heap_name(symbols, origin->heap));
    mt_row_u64(writer, origin->is_initial);
    mt_row_end(writer, MT_TABLE_ORIGINS);
}

static enum mt_status finish(struct mt_analysis *analysis, void *context,
                             struct mt_device_report *out)
{
    struct device_stream *device = context;
    bool is_one_instant = mt_is_one_instant(analysis->report, out);

    for (uint32_t i = 0; i < device->origins.count; i++)
        write_origin(device, &device->origins.list[i], device->origin_ids[i], is_one_instant);
    for (size_t i = 0; i < device->piece_count; i++)
        write_segment(device, &device->pieces[i], device->pieces[i].addr, device->pieces[i].bytes,
                      NULL);
    return MT_OK;
}

static const struct mt_model_ops listener = {.begin = begin, .finish = finish};

void mt_block_stream_attach(struct mt_block_stream *stream, struct mt_analyze_options *options)
{
    options->listener = &listener;
    options->listener_context = stream;
}

/* Tables of symbols. */

static void write_stacks(struct mt_block_stream *stream, const struct mt_symbols *symbols)
{
    struct mt_database_writer *writer = stream->writer;
    bool *used_frames = mt_memory_zeroed((size_t)symbols->frame_count + 1, sizeof *used_frames);
    struct mt_arena words = {0};

    for (size_t i = stream->stack_capacity; i-- > 0;)
        if (stream->used_stacks[i] && i < symbols->stack_count) /* parents have smaller numbers */
            mt_block_stream_use(stream, symbols->stacks[i].parent);
    for (uint32_t i = 0; i < symbols->stack_count && i < stream->stack_capacity; i++) {
        const struct mt_stack *stack = &symbols->stacks[i];

        if (!stream->used_stacks[i])
            continue;
        mt_row_u64(writer, i);
        mt_row_id(writer, stack->parent);
        mt_row_u64(writer, stack->frame);
        mt_row_u64(writer, stack->depth);
        mt_row_text(writer, mt_site_label(&words, symbols, i, false));
        mt_row_end(writer, MT_TABLE_STACKS);
        used_frames[stack->frame] = true;
        mt_arena_release(&words);
    }
    for (uint32_t i = 0; i < symbols->frame_count; i++) {
        if (!used_frames[i])
            continue;
        mt_row_u64(writer, i);
        mt_row_text(writer, mt_symbols_text(symbols, symbols->frames[i].function));
        mt_row_text(writer, mt_symbols_text(symbols, symbols->frames[i].file));
        mt_row_u64_or_null(writer, symbols->frames[i].line, symbols->frames[i].line);
        mt_row_end(writer, MT_TABLE_FRAMES);
    }
    free(used_frames);
}

static const char *kind_of_pool(const uint64_t id[2])
{
    if (!id[0] && !id[1])
        return "default";
    return id[0] ? "graph" : "private";
}

void mt_block_stream_finish(struct mt_block_stream *stream, const struct mt_report *report)
{
    const struct mt_symbols *symbols = report->symbols;
    struct mt_database_writer *writer = stream->writer;

    write_stacks(stream, symbols);
    for (uint32_t i = 0; i < symbols->stream_count; i++) {
        mt_row_u64(writer, i);
        mt_row_u64(writer, symbols->streams[i].handle);
        mt_row_end(writer, MT_TABLE_STREAMS);
    }
    for (uint32_t i = 0; i < symbols->pool_count; i++) {
        mt_row_u64(writer, i);
        mt_row_u64(writer, symbols->pools[i].id[0]);
        mt_row_u64(writer, symbols->pools[i].id[1]);
        mt_row_text(writer, kind_of_pool(symbols->pools[i].id));
        mt_row_end(writer, MT_TABLE_POOLS);
    }
}

void mt_block_stream_release(struct mt_block_stream *stream)
{
    free(stream->used_stacks);
}
