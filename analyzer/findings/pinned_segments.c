/* The reason for a large reserved peak: free memory lies between live blocks, where larger requests
 * cannot use it and the driver cannot take it back. The finding looks at lines of the program whose
 * blocks are in segments with much more free memory than their own size. A replay in which the
 * requests of the line come from a memory pool of their own (foresight.h) proves that the line is
 * the cause; only the saving of that replay is claimed. */
#include "finding.h"
#include "process_memory.h"
#include "read_again.h"

#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "grow.h"
#include "site.h"
#include "report_query.h"
#include "units.h"
#include "util.h"

enum {
    AROUND_TIMES = 2, /* ratio of free bytes around a line's blocks to their own */
    MAX_REPLAYS = 4,
    MAX_EVENTS = 2000000 /* in all replays; one is always made */
};

struct line {
    uint32_t frame; /* the site: a place that a user can change */
    uint32_t stack; /* one that it is of */
    uint64_t blocks, bytes;
    uint64_t around_bytes; /* free in the segments that its blocks lie in */
    uint32_t segments;     /* those */
    uint32_t last_segment; /* counted so far; they come in order */
};

struct lines {
    struct mt_map ids; /* frame -> line */
    struct line *items;
    uint32_t count;
    size_t capacity;
};

struct look {
    struct mt_finding_search *search;
    struct mt_analysis *analysis;
    const struct mt_symbols *symbols;
    struct mt_arena *arena;
    struct mt_site_table sites;
    const struct mt_pins *pins;
    struct lines lines;
    struct mt_replay_summary *trial;
};

static void ask(struct mt_finding_search *search)
{
    const struct mt_peak *peak = &search->device->reserved_peak;

    search->held->pins.event = peak->event;
    search->held->pins.wanted = mt_finding_replayable(search) &&
                                search->analysis->source->header.has_segments &&
                                peak->bytes > peak->then.active &&
                                mt_finding_matters(peak->bytes - peak->then.active, peak->bytes);
}

static bool matters(const struct look *look, uint64_t bytes)
{
    return mt_finding_matters(bytes, look->search->device->reserved_peak.bytes);
}

static void add_block(struct look *look, uint32_t frame, const struct mt_pin_block *block)
{
    struct lines *lines = &look->lines;
    uint32_t id = mt_map_get(&lines->ids, frame);
    struct line *line;

    if (id == MT_MAP_NONE) {
        mt_grow_to(&lines->items, &lines->capacity, (size_t)lines->count + 1, sizeof *lines->items);
        mt_map_put(&lines->ids, frame, lines->count);
        id = lines->count++;
        lines->items[id] =
            (struct line){.frame = frame, .stack = block->stack, .last_segment = UINT32_MAX};
    }
    line = &lines->items[id];
    line->blocks++;
    line->bytes += block->bytes;
    if (line->last_segment != block->segment) {
        line->last_segment = block->segment;
        line->around_bytes += look->pins->segments[block->segment].free_bytes;
        line->segments++;
    }
}

static void count_lines(struct look *look)
{
    const struct mt_pins *pins = look->pins;
    uint32_t i, frame;

    mt_site_table_update(&look->sites, look->symbols);
    for (i = 0; i < pins->block_count; i++) {
        frame = mt_site_table_site(&look->sites, pins->blocks[i].stack);
        if (frame != MT_NO_ID)
            add_block(look, frame, &pins->blocks[i]);
    }
}

/* Free bytes around the blocks beyond their own size; 0 = not a candidate. */
static uint64_t suspicion(const struct line *line)
{
    return line->around_bytes / AROUND_TIMES >= line->bytes ? line->around_bytes - line->bytes : 0;
}

static int by_suspicion(const void *a, const void *b)
{
    const struct line *x = a, *y = b;

    if (suspicion(x) != suspicion(y))
        return suspicion(x) > suspicion(y) ? -1 : 1;
    return (x->frame > y->frame) - (x->frame < y->frame);
}

/* Selects the frame, regardless of the folder of its file; NULL if a selector cannot express it: a
 * comma ends a condition. */
static const char *selector_of(const struct look *look, uint32_t frame)
{
    static const char special[] = ".[]()*+?^$|\\{}";
    const struct mt_frame *facts = &look->symbols->frames[frame];
    const char *file = mt_code_base_name(mt_symbols_text(look->symbols, facts->file));
    bool is_place = *file && facts->line;
    const char *text = is_place ? mt_arena_printf(look->arena, "%s:%u", file, facts->line)
                                : mt_symbols_text(look->symbols, facts->function);
    struct mt_buf out = {0};
    const char *kept;

    mt_buf_add_text(&out, is_place ? "site=~(^|/)" : "site=~^");
    for (; *text && *text != ','; text++) {
        if (strchr(special, *text))
            mt_buf_add_char(&out, '\\');
        mt_buf_add_char(&out, *text);
    }
    mt_buf_add_char(&out, '$');
    kept = *text ? NULL : mt_arena_text(look->arena, out.data, out.length);
    mt_buf_release(&out);
    return kept;
}

/* The reserved peak with the requests of the line in a pool of their own;
 * UINT64_MAX if that is not comparable. */
static enum mt_status replay_pool(struct look *look, const char *policy, uint64_t *peak_bytes)
{
    const struct mt_device_report *device = look->search->device;
    const struct mt_replay_options options = {.policy = policy,
                                              .limit_bytes = mt_least_limit_bytes(&device->replay)};
    enum mt_status status = mt_read_again_replay(look->analysis, &options, look->trial);
    uint32_t i;

    *peak_bytes = UINT64_MAX;
    if (status == MT_ERR_USAGE)
        return MT_OK; /* no request matches: the blocks were there when the trace began */
    for (i = 0; status == MT_OK && i < look->trial->device_count; i++) {
        const struct mt_replay_result *result = &look->trial->devices[i];
        if (result->device == device->device && !result->failed_requests)
            *peak_bytes = result->counters.reserved.peak;
    }
    return status;
}

static void say(struct look *look, const struct line *line, const char *policy, uint64_t peak_bytes)
{
    const uint64_t before = look->search->device->reserved_peak.bytes;
    char n[4][MT_UNITS_TEXT];
    const char *label = mt_site_label(look->arena, look->symbols, line->stack, false);
    const char **evidence = mt_arena_array(look->arena, 3, sizeof *evidence);
    struct mt_finding *finding = mt_finding_add(look->search);

    if (!finding)
        return;
    finding->id = "pinned-segments";
    finding->severity = "warning";
    finding->bytes = before - peak_bytes;
    finding->title =
        mt_arena_printf(look->arena, "%s stays reserved because of %s block%s (%s) from %s",
                        mt_format_bytes(n[0], finding->bytes), mt_format_count(n[1], line->blocks),
                        line->blocks == 1 ? "" : "s", mt_format_bytes(n[2], line->bytes), label);
    evidence[0] = mt_arena_printf(
        look->arena, "%s reserved at the peak, %s of it free between live blocks",
        mt_format_bytes(n[0], before), mt_format_bytes(n[1], look->pins->stranded_bytes));
    evidence[1] = mt_arena_printf(
        look->arena, "%s of that in the %s segment%s around %s",
        mt_format_bytes(n[0], line->around_bytes), mt_format_count(n[1], line->segments),
        line->segments == 1 ? "" : "s", line->blocks == 1 ? "it" : "them");
    evidence[2] = mt_arena_printf(
        look->arena, "replay with a memory pool for that line: %s reserved at the peak",
        mt_format_bytes(n[0], peak_bytes));
    finding->evidence = evidence;
    finding->evidence_count = 3;
    finding->advice =
        "allocate them in their own torch.cuda.MemPool (torch.cuda.use_mem_pool around that line), "
        "allocate them all before the large blocks, or keep them on the host";
    finding->proved_by = mt_finding_command(look->search, policy,
                                            mt_least_limit_bytes(&look->search->device->replay));
}

static enum mt_status prove(struct look *look, const struct line *line)
{
    const uint64_t before = look->search->device->reserved_peak.bytes;
    const char *selector = selector_of(look, line->frame), *policy;
    uint64_t after;
    enum mt_status status;

    if (!selector)
        return MT_OK;
    policy = mt_arena_printf(look->arena, "pytorch --pool %s", selector);
    status = replay_pool(look, policy, &after);
    if (status != MT_OK || after >= before || !matters(look, before - after))
        return status;
    say(look, line, policy, after);
    return MT_OK;
}

/* Fewer in long traces, to keep analyze fast. */
static uint32_t most_replays(const struct look *look)
{
    uint64_t events = mt_max_u64(look->search->device->events, 1);

    return (uint32_t)mt_max_u64(mt_min_u64(MAX_EVENTS / events, MAX_REPLAYS), 1);
}

static enum mt_status prove_lines(struct look *look)
{
    struct lines *lines = &look->lines;
    enum mt_status status = MT_OK;
    uint32_t i, replays = 0;

    if (lines->count)
        qsort(lines->items, lines->count, sizeof *lines->items, by_suspicion);
    for (i = 0; status == MT_OK && i < lines->count && replays < most_replays(look); i++) {
        const struct line *line = &lines->items[i];
        if (!matters(look, suspicion(line)))
            break;
        replays++;
        status = prove(look, line);
    }
    return status;
}

static enum mt_status look_closely(struct look *look)
{
    enum mt_status status = MT_OK;

    if (matters(look, look->pins->stranded_bytes))
        count_lines(look);
    if (look->lines.count) {
        look->trial = mt_memory_new(sizeof *look->trial);
        status = prove_lines(look);
    }
    free(look->trial);
    free(look->lines.items);
    mt_map_release(&look->lines.ids);
    mt_site_table_release(&look->sites);
    return status;
}

static enum mt_status find(struct mt_finding_search *search)
{
    struct look look = {.search = search,
                        .analysis = search->analysis,
                        .symbols = &search->analysis->source->symbols,
                        .arena = &search->analysis->report->arena,
                        .pins = &search->held->pins};

    return look.pins->wanted ? look_closely(&look) : MT_OK;
}

const struct mt_finding_ops mt_finding_pinned_segments = {.ask = ask, .find = find};
