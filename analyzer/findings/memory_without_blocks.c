/* Findings about memory that no block of the program uses: between live blocks, in the cache,
 * outside of the framework. */
#include <stdlib.h>
#include <string.h>

#include "analysis.h"
#include "buf.h"
#include "finding.h"
#include "grow.h"
#include "process_memory.h"
#include "report_query.h"
#include "site.h"
#include "units.h"
#include "util.h"

/* The reason for a large reserved peak: free memory lies between live blocks, where larger requests
 * cannot use it and the driver cannot take it back. The finding looks at lines of the program whose
 * blocks are in segments with much more free memory than their own size. A replay in which the
 * requests of the line come from a memory pool of their own (foresight.h) proves that the line is
 * the cause; only the saving of that replay is claimed. */

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

    if (id == MT_MAP_NONE) {
        mt_grow_to(&lines->items, &lines->capacity, (size_t)lines->count + 1, sizeof *lines->items);
        mt_map_put(&lines->ids, frame, lines->count);
        id = lines->count++;
        lines->items[id] =
            (struct line){.frame = frame, .stack = block->stack, .last_segment = UINT32_MAX};
    }
    struct line *line = &lines->items[id];
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

    mt_site_table_update(&look->sites, look->symbols);
    for (uint32_t i = 0; i < pins->block_count; i++) {
        uint32_t frame = mt_site_table_site(&look->sites, pins->blocks[i].stack);
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

    mt_buf_add_text(&out, is_place ? "site=~(^|/)" : "site=~^");
    for (; *text && *text != ','; text++) {
        if (strchr(special, *text))
            mt_buf_add_char(&out, '\\');
        mt_buf_add_char(&out, *text);
    }
    mt_buf_add_char(&out, '$');
    const char *kept = *text ? NULL : mt_arena_text(look->arena, out.data, out.length);
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

    *peak_bytes = UINT64_MAX;
    if (status == MT_ERR_USAGE)
        return MT_OK; /* no request matches: the blocks were there when the trace began */
    for (uint32_t i = 0; status == MT_OK && i < look->trial->device_count; i++) {
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
    finding->saving = MT_SAVING_EXACT;
    finding->saves_bytes = finding->bytes;
    finding->title = mt_arena_printf(look->arena, "%s stays reserved because of %s (%s) from %s",
                                     mt_format_bytes(n[0], finding->bytes),
                                     mt_format_counted(n[1], line->blocks, "block"),
                                     mt_format_bytes(n[2], line->bytes), label);
    evidence[0] = mt_arena_printf(
        look->arena, "%s reserved at the peak, %s of it free between live blocks",
        mt_format_bytes(n[0], before), mt_format_bytes(n[1], look->pins->stranded_bytes));
    evidence[1] = mt_arena_printf(
        look->arena, "%s of that in the %s around %s", mt_format_bytes(n[0], line->around_bytes),
        mt_format_counted(n[1], line->segments, "segment"), line->blocks == 1 ? "it" : "them");
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
    const char *selector = selector_of(look, line->frame);
    uint64_t after;

    if (!selector)
        return MT_OK;
    const char *policy = mt_arena_printf(look->arena, "pytorch --pool %s", selector);
    enum mt_status status = replay_pool(look, policy, &after);
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
    uint32_t replays = 0;

    if (lines->count)
        qsort(lines->items, lines->count, sizeof *lines->items, by_suspicion);
    for (uint32_t i = 0; status == MT_OK && i < lines->count && replays < most_replays(look); i++) {
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

static enum mt_status find_pinned_segments(struct mt_finding_search *search)
{
    struct look look = {.search = search,
                        .analysis = search->analysis,
                        .symbols = &search->analysis->source->symbols,
                        .arena = &search->analysis->report->arena,
                        .pins = &search->held->pins};

    return look.pins->wanted ? look_closely(&look) : MT_OK;
}

const struct mt_finding_ops mt_finding_pinned_segments = {.ask = ask, .find = find_pinned_segments};

/* Cached memory that no block uses. A snapshot without a history: it is unknown what the program
 * needed earlier, but known that the memory is idle at that instant. A history that begins in the
 * middle: a replay that releases the cache at the start shows what the recorded part needs. Only
 * whole steps are such a part: the rest of a step that was cut may need the cache. */

enum { MIN_WHOLE_STEPS = 2 };

static enum mt_status find_cached_now(struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;
    struct mt_arena *arena = &search->analysis->report->arena;
    const struct mt_bytes *then = &device->end;
    const char *evidence[1];
    char n[2][MT_UNITS_TEXT];
    struct mt_finding finding = {
        .id = "cached-memory",
        .severity = "info",
        .bytes = then->reserved > then->active ? then->reserved - then->active : 0,
        .saving = MT_SAVING_AT_MOST,
        .evidence = evidence,
        .evidence_count = 1,
        .advice = "torch.cuda.empty_cache() releases segments that hold no block; expandable "
                  "segments also release the space between blocks; to see what used the memory "
                  "before, record a history (torch.cuda.memory._record_memory_history)"};

    if (!search->analysis->report->has_segments ||
        !mt_finding_matters(finding.bytes, then->reserved))
        return MT_OK;
    finding.saves_bytes = finding.bytes;
    finding.title = mt_arena_printf(
        arena, "%s of %s reserved was in no block when the snapshot was taken",
        mt_format_bytes(n[0], finding.bytes), mt_format_bytes(n[1], then->reserved));
    evidence[0] =
        mt_arena_printf(arena, "%s was allocated", mt_format_bytes(n[0], then->allocated));
    mt_finding_publish(search, &finding);
    return MT_OK;
}

static void publish_cached_before(struct mt_finding_search *search, uint64_t limit_bytes,
                                  uint64_t peak_bytes)
{
    const struct mt_device_report *device = search->device;
    const uint64_t before = device->reserved_peak.bytes;
    struct mt_arena *arena = &search->analysis->report->arena;
    const char *evidence[2];
    char n[2][MT_UNITS_TEXT];
    struct mt_finding finding = {
        .id = "cached-memory",
        .severity = "warning",
        .bytes = before - peak_bytes,
        .saving = MT_SAVING_EXACT,
        .saves_bytes = before - peak_bytes,
        .evidence = evidence,
        .evidence_count = 2,
        .advice = "call torch.cuda.empty_cache() before this part of the program"};

    finding.title = mt_arena_printf(
        arena, "%s of %s reserved is cached from before the recording, which does not need it",
        mt_format_bytes(n[0], finding.bytes), mt_format_bytes(n[1], before));
    evidence[0] =
        mt_arena_printf(arena, "%s was in no block when the recording began",
                        mt_format_bytes(n[0], device->start.reserved - device->start.active));
    evidence[1] = mt_arena_printf(arena, "replay without these segments: %s reserved at the peak",
                                  mt_format_bytes(n[0], peak_bytes));
    finding.proved_by = mt_arena_printf(arena, "memtrace replay %s -p pytorch --limit %llu",
                                        mt_finding_path(search), (unsigned long long)limit_bytes);
    mt_finding_publish(search, &finding);
}

/* The last step may be cut: it has no end, or fewer events than the one before. */
static uint32_t whole_steps(const struct mt_report *report, const struct mt_device_report *device)
{
    const uint32_t count = device->step_count - mt_first_step(report, device);
    const struct mt_step_use *last = device->steps + device->step_count - 1, *before = last - 1;

    if (count < MIN_WHOLE_STEPS)
        return count;
    bool is_cut =
        report->phases[last->phase].cut ||
        last->end_event - last->begin_event < (before->end_event - before->begin_event) / 2;
    return count - is_cut;
}

/* The largest limit under which the replay releases the cache at the start. */
static enum mt_status find_cached_before(struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;
    const uint64_t most = device->reserved_peak.bytes, limit_bytes = device->start.reserved - 1;
    struct mt_replay_summary *trial;

    if (!mt_finding_replayable(search) || device->start.reserved <= device->start.active ||
        whole_steps(search->analysis->report, device) < MIN_WHOLE_STEPS ||
        !mt_finding_matters(device->start.reserved - device->start.active, most))
        return MT_OK;
    trial = mt_memory_new(sizeof *trial);
    enum mt_status status =
        mt_finding_replay(search, search->analysis->report->policy, limit_bytes, most, trial);
    for (uint32_t i = 0; status == MT_OK && i < trial->device_count; i++) {
        const struct mt_replay_result *result = &trial->devices[i];
        const uint64_t peak = result->counters.reserved.peak;

        if (result->device == device->device && !result->failed_requests && !result->given_up &&
            peak < most && mt_finding_matters(most - peak, most))
            publish_cached_before(search, limit_bytes, peak);
    }
    free(trial);
    return status;
}

static enum mt_status find_cached_memory(struct mt_finding_search *search)
{
    return mt_is_one_instant(search->analysis->report, search->device) ? find_cached_now(search)
                                                                       : find_cached_before(search);
}

const struct mt_finding_ops mt_finding_cached_memory = {.find = find_cached_memory};

/* Requests that the device refused until the cache was flushed: PyTorch releases its whole cache
 * and tries again. Each flush waits for the device. A flush before a request that failed anyway is
 * not counted, because that request has another problem. Other settings are replayed under the
 * limit of the run, or under its smallest possible value. */

struct attempt {
    const struct mt_setting *setting; /* NULL: none has fewer flushes */
    uint64_t flushes;
};

/* Keeps the setting if it serves the run with at most half of the flushes of the best so far. */
static void judge(const struct mt_finding_search *search, const struct mt_setting *setting,
                  const struct mt_replay_summary *summary, struct attempt *best)
{
    for (uint32_t i = 0; i < summary->device_count; i++) {
        const struct mt_replay_result *result = &summary->devices[i];
        const uint64_t flushes = result->counters.retries;

        if (result->device != search->device->device || result->failed_requests ||
            flushes > best->flushes / 2)
            continue;
        *best = (struct attempt){setting, flushes};
    }
}

static enum mt_status try_settings(struct mt_finding_search *search, struct attempt *best)
{
    const struct mt_replay_result *replay = &search->device->replay;
    struct mt_replay_summary *summary;
    enum mt_status status = MT_OK;

    /* A run that ended out of memory has its own finding (better_settings.c). */
    if (!mt_finding_replayable(search) || !mt_limit_is_known(replay) ||
        mt_fatal_oom(search->device))
        return MT_OK;
    summary = mt_memory_zeroed(1, sizeof *summary);
    for (int i = 0; i < MT_SETTING_COUNT && status == MT_OK; i++) {
        if (mt_setting_is_own(search->analysis->report, &mt_settings[i]))
            continue;
        status = mt_finding_replay(search, mt_settings[i].policy, mt_least_limit_bytes(replay),
                                   UINT64_MAX, summary);
        if (status == MT_OK)
            judge(search, &mt_settings[i], summary, best);
    }
    free(summary);
    return status;
}

static void advise(const struct mt_finding_search *search, const struct attempt *best,
                   struct mt_finding *finding)
{
    finding->advice =
        "raise the memory limit, reduce the batch size, or use activation checkpointing";
    if (!best->setting)
        return;
    finding->advice = best->setting->advice;
    finding->proved_by = mt_finding_command(search, best->setting->policy,
                                            mt_least_limit_bytes(&search->device->replay));
}

static const char *title_of(const struct mt_finding_search *search, uint64_t flushes,
                            const struct attempt *best)
{
    struct mt_arena *arena = &search->analysis->report->arena;
    const char *instead = "";
    char n[2][MT_UNITS_TEXT];

    if (best->setting && !best->flushes)
        instead = mt_arena_printf(arena, "; with %s none does", best->setting->what);
    else if (best->setting)
        instead = mt_arena_printf(arena, "; with %s: %s", best->setting->what,
                                  mt_format_count(n[1], best->flushes));
    return instead
               ? mt_arena_printf(arena, "%s needed a cache flush, which synchronizes the device%s",
                                 mt_format_counted(n[0], flushes, "request"), instead)
               : NULL;
}

static enum mt_status find_cache_flushes(struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;
    struct mt_arena *arena = &search->analysis->report->arena;
    const uint64_t flushes = device->retries - mt_min_u64(device->ooms, device->retries);
    struct attempt best = {.flushes = flushes};
    const char *evidence[2];
    char n[2][MT_UNITS_TEXT];
    struct mt_finding finding = {
        .id = "cache-flushes", .severity = "warning", .evidence = evidence, .evidence_count = 1};

    /* After an OOM that ended the run, its own finding says what to do. */
    if (!flushes || search->analysis->report->what_if || mt_fatal_oom(device))
        return MT_OK;
    enum mt_status status = try_settings(search, &best);
    if (status != MT_OK)
        return status;
    advise(search, &best, &finding);
    finding.title = title_of(search, flushes, &best);
    evidence[0] = mt_arena_printf(arena, "%s reserved at the peak, %s of it allocated",
                                  mt_format_bytes(n[0], device->reserved_peak.bytes),
                                  mt_format_bytes(n[1], device->reserved_peak.then.allocated));
    if (mt_limit_is_known(&device->replay)) {
        evidence[1] = mt_replay_limit_text(arena, &device->replay);
        finding.evidence_count = 2;
    }
    mt_finding_publish(search, &finding);
    return MT_OK;
}

const struct mt_finding_ops mt_finding_cache_flushes = {.find = find_cache_flushes};

/* Device memory of the process outside of the framework: libraries (NCCL, cuBLAS), other
 * allocators, other code. Known only for recorded traces. */

enum { NAMED_OWNERS = 3 };

static const char *owner_evidence(struct mt_arena *arena, const struct mt_driver_report *driver,
                                  const struct mt_owner_use *owner)
{
    char bytes[MT_UNITS_TEXT];
    const char *name = mt_owner_text(arena, driver, owner);

    return name ? mt_arena_printf(arena, "%s by %s, called from %s",
                                  mt_format_bytes(bytes, owner->bytes), name, owner->site)
                : NULL;
}

/* "; the largest part is 388 MiB of NCCL, communicator 1 of 2"; "" if no library is known. Text
 * output shows only the title of an informational finding. */
static const char *largest_library(struct mt_arena *arena, const struct mt_driver_report *driver)
{
    char bytes[MT_UNITS_TEXT];

    if (!driver->owner_count || !driver->owners[0].library)
        return "";
    const char *name = mt_owner_text(arena, driver, &driver->owners[0]);
    return name ? mt_arena_printf(arena, "; the largest part is %s by %s",
                                  mt_format_bytes(bytes, driver->owners[0].bytes), name)
                : NULL;
}

static enum mt_status find_outside_memory(struct mt_finding_search *search)
{
    const struct mt_driver_report *driver =
        mt_driver_of(search->analysis->report, search->device->device);
    struct mt_arena *arena = &search->analysis->report->arena;
    uint32_t i;
    const char *evidence[NAMED_OWNERS];
    char n[2][MT_UNITS_TEXT];
    struct mt_finding finding = {
        .id = "outside-memory",
        .severity = "info",
        .evidence = evidence,
        .advice = "leave room for it: no limit or counter of the framework includes it"};

    if (!driver || !driver->has_then || driver->then.bytes < driver->then.framework_bytes)
        return MT_OK;
    uint64_t bytes = driver->then.bytes - driver->then.framework_bytes;
    if (!mt_finding_matters(bytes, driver->then.bytes))
        return MT_OK;
    for (i = 0; i < driver->owner_count && i < NAMED_OWNERS; i++)
        evidence[i] = owner_evidence(arena, driver, &driver->owners[i]);
    finding.evidence_count = i;
    finding.bytes = bytes;
    const char *largest = largest_library(arena, driver);
    finding.title = mt_arena_printf(
        arena,
        "%s is outside the framework at its peak, of %s that the process took from the driver%s",
        mt_format_bytes(n[0], bytes), mt_format_bytes(n[1], driver->then.bytes),
        largest ? largest : "");
    mt_finding_publish(search, &finding);
    return MT_OK;
}

const struct mt_finding_ops mt_finding_outside_memory = {.find = find_outside_memory};
