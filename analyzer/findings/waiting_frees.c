/* Blocks that the program freed, but that PyTorch keeps until a stream has passed an event: those
 * that another stream uses (record_stream). They are active, but not allocated, so no table of
 * holders has them. */
#include <inttypes.h>
#include <stdlib.h>

#include "finding.h"
#include "grow.h"
#include "site.h"
#include "units.h"

struct waiting_block {
    uint64_t addr, bytes;
    uint32_t stack, stream;
    bool waits; /* its free was requested */
};

struct waiting_line {
    uint32_t frame, stack, stream; /* of its first block */
    uint64_t blocks, bytes;
};

struct reading {
    struct mt_finding_search *search;
    uint64_t until_event;
    struct mt_alloc_log *log;     /* sizes of blocks */
    struct mt_map slots;          /* address -> block */
    struct waiting_block *blocks; /* that have not ended */
    size_t count, capacity;
};

static void end_block(struct reading *reading, uint64_t addr)
{
    uint32_t slot = mt_map_take(&reading->slots, addr);

    if (slot == MT_MAP_NONE || slot == --reading->count)
        return;
    reading->blocks[slot] = reading->blocks[reading->count];
    mt_map_put(&reading->slots, reading->blocks[slot].addr, slot);
}

static void on_alloc(struct reading *reading, const struct mt_event *event)
{
    struct waiting_block block = {event->addr, 0, event->stack, event->stream, false};
    uint8_t role;

    if (!mt_alloc_log_next(reading->log, &block.bytes, &role) ||
        event->device != reading->search->device->device)
        return;
    if (mt_alloc_log_ends_old(event, block.bytes))
        end_block(reading, event->addr);
    if (!block.bytes)
        return;
    mt_grow_to(&reading->blocks, &reading->capacity, reading->count + 1, sizeof *reading->blocks);
    reading->blocks[reading->count] = block;
    mt_map_put(&reading->slots, event->addr, (uint32_t)reading->count++);
}

static void on_free(struct reading *reading, const struct mt_event *event)
{
    if (event->device != reading->search->device->device)
        return;
    if (event->kind == MT_EVENT_FREE_COMPLETED) {
        end_block(reading, event->addr);
        return;
    }
    uint32_t slot = mt_map_get(&reading->slots, event->addr);
    if (slot != MT_MAP_NONE)
        reading->blocks[slot].waits = true;
}

static enum mt_status on_event(void *context, struct mt_event *event)
{
    struct reading *reading = context;

    if (event->seq > reading->until_event)
        return MT_END;
    if (event->kind == MT_EVENT_ALLOC)
        on_alloc(reading, event);
    else if (event->kind == MT_EVENT_FREE_REQUESTED || event->kind == MT_EVENT_FREE_COMPLETED)
        on_free(reading, event);
    return MT_OK;
}

/* Returns the line with the most waiting bytes; without a stack, autograd freed them. */
static struct waiting_line largest(const struct reading *reading)
{
    const struct mt_site_table *sites = &reading->search->analysis->attribution.sites;
    struct waiting_line *lines = NULL, most = {.stack = MT_NO_ID};
    struct mt_map ids = {0};
    size_t capacity = 0;
    uint32_t count = 0;

    for (size_t i = 0; i < reading->count; i++) {
        const struct waiting_block *block = &reading->blocks[i];

        if (!block->waits)
            continue;
        uint32_t frame = mt_site_table_site(sites, block->stack);
        uint32_t id = mt_map_get(&ids, frame);
        if (id == MT_MAP_NONE) {
            mt_grow_to(&lines, &capacity, (size_t)count + 1, sizeof *lines);
            mt_map_put(&ids, frame, count);
            id = count++;
            lines[id] = (struct waiting_line){frame, block->stack, block->stream, 0, 0};
        }
        lines[id].blocks++;
        lines[id].bytes += block->bytes;
        if (lines[id].bytes > most.bytes)
            most = lines[id];
    }
    free(lines);
    mt_map_release(&ids);
    return most;
}

/* "default stream", "stream 0x7f..." */
static const char *stream_of(struct mt_arena *arena, const struct mt_symbols *symbols,
                             uint32_t stream)
{
    const uint64_t handle = stream < symbols->stream_count ? symbols->streams[stream].handle : 0;

    return handle ? mt_arena_printf(arena, "stream 0x%" PRIx64, handle) : "default stream";
}

static void say(struct mt_finding_search *search, const struct waiting_line *line)
{
    const struct mt_peak *peak = &search->device->active_peak;
    const struct mt_symbols *symbols = &search->analysis->source->symbols;
    struct mt_arena *arena = &search->analysis->report->arena;
    char n[4][MT_UNITS_TEXT];
    const char *evidence[1];
    struct mt_finding finding = {
        .id = "waiting-for-stream",
        .severity = "warning",
        .bytes = peak->then.active - peak->then.allocated,
        .saving = MT_SAVING_AT_MOST,
        .saves_bytes = peak->then.active - peak->then.allocated,
        .evidence = evidence,
        .evidence_count = 1,
        .advice = "let the stream that frees them wait for the one that uses them "
                  "(torch.cuda.current_stream().wait_stream(side)) before the last reference goes, "
                  "or keep a reference until then, instead of record_stream()"};

    finding.title = mt_arena_printf(
        arena,
        "%s of %s active was freed and waits for a stream; largest: %s in %s (%s) "
        "from %s",
        mt_format_bytes(n[0], finding.bytes), mt_format_bytes(n[1], peak->then.active),
        mt_format_bytes(n[2], line->bytes), mt_format_counted(n[3], line->blocks, "block"),
        stream_of(arena, symbols, line->stream), mt_site_label(arena, symbols, line->stack, false));
    evidence[0] = "the recording does not name the stream that they wait for";
    mt_finding_publish(search, &finding);
}

static enum mt_status find(struct mt_finding_search *search)
{
    struct mt_analysis *analysis = search->analysis;
    const struct mt_peak *peak = &search->device->active_peak;
    const struct mt_trace_header *header = &analysis->source->header;
    struct reading reading = {
        .search = search, .until_event = peak->event, .log = &analysis->survey.log};

    if (analysis->report->what_if || !header->has_free_requested || !header->has_free_completed ||
        analysis->report->integrity.events_dropped || peak->then.active <= peak->then.allocated ||
        !mt_finding_matters(peak->then.active - peak->then.allocated, peak->then.active))
        return MT_OK;
    mt_alloc_log_rewind(reading.log);
    enum mt_status status = mt_read_again_events(analysis, &reading, on_event);
    if (status == MT_OK) {
        struct waiting_line line = largest(&reading);
        if (line.stack != MT_NO_ID)
            say(search, &line);
    }
    mt_map_release(&reading.slots);
    free(reading.blocks);
    return status;
}

const struct mt_finding_ops mt_finding_waiting_frees = {.find = find};
