/* Builds the report from the results of the passes: plain data in one arena. */
#include <stdlib.h>
#include <string.h>

#include "analysis.h"
#include "frame_judge.h"
#include "header.h"
#include "map.h"
#include "model_feed.h"
#include "module_table.h"
#include "recorded_roles.h"
#include "report.h"
#include "report_parts.h"
#include "report_query.h"
#include "sorted.h"
#include "status.h"
#include "util.h"

/* The rows of pools in the report of a device. */

static bool has_private(const struct mt_pool_ledger *ledger)
{
    for (uint32_t pool = 1; pool < ledger->row_count; pool++)
        if (ledger->rows[pool].is_used)
            return true;
    return false;
}

/* If the trace lacks the free of a block, the block leaves the replay when another one takes its
 * place, and no event names its pool: the rows of such a trace are too large. */
static bool is_whole(const struct mt_pool_ledger *ledger, const struct mt_device_report *device)
{
    uint64_t allocated_bytes = 0;

    for (uint32_t pool = 0; pool < ledger->row_count; pool++)
        allocated_bytes = mt_add_most_u64(allocated_bytes, ledger->rows[pool].allocated.now);
    return allocated_bytes == device->end.allocated;
}

static struct mt_pool_use pool_use_of(struct mt_analysis *analysis,
                                      const struct mt_pool_ledger *ledger, uint32_t pool)
{
    const struct mt_symbols *symbols = &analysis->source->symbols;
    const struct mt_pool_row *row = &ledger->rows[pool];
    struct mt_pool_use use = {.is_inferred = pool >= symbols->pool_count,
                              .reserved_bytes = row->reserved.now,
                              .allocated_bytes = row->allocated.now,
                              .reserved_peak_bytes = row->reserved.peak,
                              .allocated_peak_bytes = row->allocated.peak,
                              .segments = row->segments,
                              .allocations = row->allocations,
                              .first_event = row->first_event,
                              .first_t_ns = row->first_t_ns,
                              .first_stack = row->first_stack};

    for (int i = 0; i < 2 && !use.is_inferred; i++)
        use.id[i] = symbols->pools[pool].id[i];
    if (row->first_stack != MT_NO_ID)
        use.site = mt_site_text(&analysis->report->arena, symbols,
                                mt_site_table_at(&analysis->attribution.sites, row->first_stack));
    return use;
}

MT_DEFINE_ORDER(by_first_block, struct mt_pool_use, MT_ASCENDING(first_event))

/* Fills out->pools for the device with index `slot` in the survey. analysis->attribution must be
 * ready. Adds no rows if the run had no private pool, if its segments are unknown, in a what-if
 * replay, or if a damaged trace lost the free of a block. */
static void fill_pools(struct mt_analysis *analysis, struct mt_device_report *out, uint32_t slot)
{
    const struct mt_pool_ledger *ledger = &analysis->survey.devices[slot].pools;
    const struct mt_report *report = analysis->report;

    if (report->is_driver_level || !report->has_segments || report->what_if ||
        !has_private(ledger) || !is_whole(ledger, out))
        return;
    out->pools = mt_arena_array(&analysis->report->arena, ledger->row_count, sizeof *out->pools);
    for (uint32_t pool = 0; pool < ledger->row_count; pool++)
        if (ledger->rows[pool].is_used)
            out->pools[out->pool_count++] = pool_use_of(analysis, ledger, pool);
    if (out->pool_count > 1) {
        uint32_t first = ledger->rows[0].is_used;

        qsort(out->pools + first, out->pool_count - first, sizeof *out->pools, by_first_block);
    }
}

/* Sums of blocks by the tags that the program gave them. */

MT_DEFINE_ORDER(by_bytes, struct mt_tag_use, MT_DESCENDING(bytes) || MT_BY_TEXT(tag))

static uint32_t count_tagged(const struct mt_instant *peak)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < peak->holding_count; i++)
        count += peak->holdings[i].tag != MT_NO_ID;
    return count;
}

static void tag_use_of(struct mt_map *slots, const struct mt_symbols *symbols, uint32_t tag,
                       struct mt_device_report *out, uint32_t *slot)
{
    struct mt_tag_use use = {.tag = mt_symbols_text(symbols, tag), .role = MT_ROLE_OTHER};

    *slot = mt_map_get(slots, tag);
    if (*slot != MT_MAP_NONE)
        return;
    use.names_role = mt_recorded_role(symbols, tag, &use.role);
    *slot = out->peak_tag_count++;
    out->peak_tags[*slot] = use;
    mt_map_put(slots, tag, *slot);
}

/* Sums the holdings of `peak` by tag into out->peak_tags; adds nothing if no block has a tag. */
static void fill_tags(struct mt_arena *arena, const struct mt_symbols *symbols,
                      const struct mt_instant *peak, struct mt_device_report *out)
{
    uint32_t tagged = count_tagged(peak), slot;
    struct mt_map slots = {0};

    if (!tagged)
        return;
    out->peak_tags = mt_arena_array(arena, tagged, sizeof *out->peak_tags);
    for (uint32_t i = 0; i < peak->holding_count; i++) {
        const struct mt_holding *holding = &peak->holdings[i];

        if (holding->tag == MT_NO_ID)
            continue;
        tag_use_of(&slots, symbols, holding->tag, out, &slot);
        out->peak_tags[slot].bytes += holding->bytes;
        out->peak_tags[slot].requested_bytes += holding->requested_bytes;
        out->peak_tags[slot].blocks += holding->blocks;
    }
    qsort(out->peak_tags, out->peak_tag_count, sizeof *out->peak_tags, by_bytes);
    mt_map_release(&slots);
}

#define MAX_CONTRIBUTIONS 8
#define MAX_HOLDERS       12

static const struct mt_snapshot *find_snapshot(const struct mt_analysis *analysis, uint64_t event,
                                               uint16_t device)
{
    struct mt_snapshot key = {.event = event, .device = device};

    if (event == MT_INSTANT_NOTHING)
        return NULL;
    return bsearch(&key, analysis->holders.snapshots, analysis->holders.snapshot_count, sizeof key,
                   mt_snapshot_order);
}

/* Index of a step's loop, by its name; MT_NO_LOOP if it has none. */
static uint32_t loop_index(const struct mt_report *report, const struct mt_phase *phase)
{
    for (uint32_t i = 0; phase->loop && i < report->loop_count; i++)
        if (!strcmp(report->loops[i].name, phase->loop))
            return i;
    return MT_NO_LOOP;
}

static void fill_loops(struct mt_report *report)
{
    size_t capacity = 0;

    for (uint32_t i = 0; i < report->phase_count; i++) {
        const struct mt_phase *phase = &report->phases[i];
        uint32_t loop = phase->is_step ? loop_index(report, phase) : MT_NO_LOOP;

        if (!phase->is_step || !phase->loop)
            continue;
        if (loop == MT_NO_LOOP) {
            struct mt_loop_use *more;

            loop = report->loop_count++;
            if (loop == capacity) {
                capacity = 2 * capacity + 4;
                more = mt_arena_array(&report->arena, capacity, sizeof *more);
                if (loop)
                    memcpy(more, report->loops, loop * sizeof *more);
                report->loops = more;
            }
            report->loops[loop] = (struct mt_loop_use){.name = phase->loop};
        }
        report->loops[loop].steps++;
    }
}

static void fill_phases(struct mt_analysis *analysis)
{
    const struct mt_phases *phases = &analysis->survey.phases;
    struct mt_report *report = analysis->report;

    report->phases =
        mt_arena_array(&report->arena, (size_t)phases->count + 1, sizeof *report->phases);
    report->main_phase =
        mt_arena_array(&report->arena, (size_t)phases->count + 1, sizeof *report->main_phase);
    if (phases->count)
        memcpy(report->phases, phases->phases, phases->count * sizeof *report->phases);
    report->phase_count = phases->count;
    report->phases_not_recorded = phases->not_recorded;
    for (uint32_t i = 0; i < phases->count; i++)
        report->step_count += phases->phases[i].is_step;
    fill_loops(report);
}

static struct mt_peak peak_of(struct mt_analysis *analysis, struct mt_survey_device *device,
                              int which)
{
    const struct mt_high *high = mt_peak_windows_since(&device->high[which], 0);
    struct mt_peak peak = {.bytes = high->value,
                           .t_ns = high->t_ns,
                           .event = high->event,
                           .step = MT_NO_STEP,
                           .phase = high->phase,
                           .then = high->then};

    if (high->phase != MT_NO_PHASE)
        peak.step = analysis->survey.phases.phases[high->phase].step;
    return peak;
}

static uint64_t length_of(const struct mt_report *report, const struct mt_step_use *step)
{
    return mt_report_has_times(report) ? step->end_t_ns - step->begin_t_ns
                                       : step->end_event - step->begin_event;
}

/* The loop that takes most time. The longest step of each does not count: it may compile, or load
 * libraries. */
static uint32_t longest_loop(const struct mt_report *report, const struct mt_device_report *out)
{
    struct length {
        uint64_t sum, most;
    } *lengths = mt_memory_zeroed((size_t)report->loop_count + 1, sizeof *lengths);
    uint32_t best = 0;

    for (uint32_t i = 0; i < out->step_count; i++) {
        uint64_t length = length_of(report, &out->steps[i]);

        if (out->steps[i].loop == MT_NO_LOOP)
            continue;
        struct length *of = &lengths[out->steps[i].loop];
        of->sum += mt_min_u64(length, of->most);
        of->most = mt_max_u64(length, of->most);
    }
    for (uint32_t i = 1; i < report->loop_count; i++)
        best = lengths[i].sum > lengths[best].sum ? i : best;
    free(lengths);
    return best;
}

/* What steps have in common is judged within one loop. */
static void choose_loop(const struct mt_report *report, struct mt_arena *arena,
                        struct mt_device_report *out)
{
    if (report->loop_count < 2)
        return;
    uint32_t best = longest_loop(report, out);
    out->loop_steps = mt_arena_array(arena, (size_t)out->step_count + 1, sizeof *out->loop_steps);
    for (uint32_t i = 0; i < out->step_count; i++)
        if (out->steps[i].loop == best)
            out->loop_steps[out->loop_step_count++] = out->steps[i];
}

/* From now on, the survey also uses the report's copy of the uses. */
static void fill_uses(struct mt_analysis *analysis, struct mt_device_report *out,
                      struct mt_survey_device *device)
{
    struct mt_arena *arena = &analysis->report->arena;
    uint32_t count = analysis->report->phase_count;

    out->phase_uses = mt_arena_array(arena, (size_t)count + 1, sizeof *out->phase_uses);
    out->steps =
        mt_arena_array(arena, (size_t)analysis->report->step_count + 1, sizeof *out->steps);
    if (count)
        memcpy(out->phase_uses, device->uses, count * sizeof *out->phase_uses);
    free(device->uses);
    device->uses = out->phase_uses;
    device->use_capacity = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct mt_phase *phase = &analysis->report->phases[i];
        const struct mt_phase_use *use = &out->phase_uses[i];

        if (phase->is_step)
            out->steps[out->step_count++] =
                (struct mt_step_use){.step = phase->step,
                                     .loop = loop_index(analysis->report, phase),
                                     .phase = (int32_t)i,
                                     .begin_t_ns = phase->begin_t_ns,
                                     .end_t_ns = phase->end_t_ns,
                                     .begin_event = phase->begin_event,
                                     .end_event = phase->end_event,
                                     .enter = use->enter,
                                     .exit = use->exit,
                                     .peak = use->peak,
                                     .peak_allocated_t_ns = use->peak_allocated_t_ns,
                                     .peak_allocated_event = use->peak_allocated_event};
    }
    choose_loop(analysis->report, arena, out);
}

static void fill_instant(struct mt_analysis *analysis, struct mt_instant *instant, uint16_t device)
{
    const struct mt_snapshot *snapshot = find_snapshot(analysis, instant->event, device);

    if (!snapshot)
        return;
    instant->holdings = snapshot->holdings;
    instant->holding_count = snapshot->holding_count;
    if (instant->kind != MT_INSTANT_PEAK_ALLOCATED && instant->kind != MT_INSTANT_PEAK_RESERVED &&
        instant->kind != MT_INSTANT_OOM)
        return;
    mt_attribute_change(&analysis->attribution, NULL, snapshot, MAX_HOLDERS, &instant->holders,
                        &instant->holder_count);
}

static void fill_instants(struct mt_analysis *analysis, struct mt_device_report *out,
                          const struct mt_instants *chosen)
{
    out->instants = mt_arena_array(&analysis->report->arena, (size_t)chosen->instant_count + 1,
                                   sizeof *out->instants);
    out->instant_count = chosen->instant_count;
    for (uint32_t i = 0; i < chosen->instant_count; i++) {
        out->instants[i] = chosen->instants[i];
        fill_instant(analysis, &out->instants[i], out->device);
    }
    const struct mt_instant *peak = &out->instants[0];
    for (uint32_t i = 0; i < peak->holding_count; i++) {
        out->peak_role_bytes[peak->holdings[i].role] += peak->holdings[i].bytes;
        if (peak->holdings[i].role_recorded)
            out->peak_recorded_role_bytes[peak->holdings[i].role] += peak->holdings[i].bytes;
        if (peak->holdings[i].tie == MT_TIE_BEFORE && !peak->holdings[i].role_recorded &&
            peak->holdings[i].role != MT_ROLE_OTHER)
            out->peak_start_role_bytes += peak->holdings[i].bytes;
        if (peak->holdings[i].stack != MT_NO_ID && peak->holdings[i].tie == MT_TIE_NONE)
            continue;
        out->frameless_peak_bytes += peak->holdings[i].bytes;
        out->tie_peak_bytes[peak->holdings[i].tie] += peak->holdings[i].bytes;
    }
    fill_tags(&analysis->report->arena, &analysis->source->symbols, peak, out);
    const struct mt_snapshot *snapshot = find_snapshot(analysis, peak->event, out->device);
    if (!snapshot)
        return;
    mt_attribute_sites(&analysis->attribution, snapshot, &out->peak_sites, &out->peak_site_count);
}

static void fill_answer(struct mt_analysis *analysis, struct mt_device_report *out, uint32_t slot)
{
    if (!analysis->answers)
        return;
    out->answer = &analysis->answers[slot];
    if (out->answer->missing)
        return;
    const struct mt_snapshot *snapshot =
        find_snapshot(analysis, out->answer->instant.event, out->device);
    if (snapshot)
        mt_question_answer(analysis->options->question, &analysis->attribution, snapshot,
                           out->answer);
    if (analysis->options->by_segment)
        mt_question_free_uses(&analysis->report->arena, analysis->source,
                              &analysis->holders.devices[slot].pins, out->answer);
}

static void fill_explanations(struct mt_analysis *analysis, struct mt_device_report *out,
                              const struct mt_instants *chosen)
{
    out->explanations = mt_arena_array(
        &analysis->report->arena, (size_t)chosen->explanation_count + 1, sizeof *out->explanations);
    for (uint32_t i = 0; i < chosen->explanation_count; i++) {
        const struct mt_snapshot *to = find_snapshot(analysis, chosen->to_events[i], out->device);
        struct mt_explanation *why = &out->explanations[i];

        *why = chosen->explanations[i];
        if (to)
            mt_attribute_change(&analysis->attribution,
                                find_snapshot(analysis, chosen->from_events[i], out->device), to,
                                MAX_CONTRIBUTIONS, &why->contributions, &why->contribution_count);
    }
    out->explanation_count = chosen->explanation_count;
}

static void fill_lists(struct mt_analysis *analysis, struct mt_device_report *out,
                       const struct mt_survey_device *device)
{
    struct mt_arena *arena = &analysis->report->arena;

    out->oom_list = mt_arena_array(arena, (size_t)device->oom_count + 1, sizeof *out->oom_list);
    out->gaps = mt_arena_array(arena, (size_t)device->gap_count + 1, sizeof *out->gaps);
    out->retry_marks =
        mt_arena_array(arena, (size_t)device->retries.count + 1, sizeof *out->retry_marks);
    if (device->oom_count)
        memcpy(out->oom_list, device->oom_list, device->oom_count * sizeof *out->oom_list);
    if (device->gap_count)
        memcpy(out->gaps, device->gaps, device->gap_count * sizeof *out->gaps);
    if (device->retries.count)
        memcpy(out->retry_marks, device->retries.marks,
               device->retries.count * sizeof *out->retry_marks);
    out->retry_mark_count = device->retries.count;
    out->oom_count = device->oom_count;
    out->gap_count = device->gap_count;
}

static void fill_name(struct mt_analysis *analysis, struct mt_device_report *out)
{
    const struct mt_symbols *symbols = &analysis->source->symbols;

    if (out->device >= symbols->device_count)
        return;
    if (symbols->devices[out->device].name != MT_NO_ID)
        out->name = mt_symbols_text(symbols, symbols->devices[out->device].name);
    out->total_memory_bytes = symbols->devices[out->device].total_memory_bytes;
}

/* Memory that was reserved when the trace began is used best at the allocated peak, if it is still
 * reserved then. */
static struct mt_peak reserved_peak_of(struct mt_analysis *analysis,
                                       struct mt_survey_device *device)
{
    const struct mt_peak allocated = peak_of(analysis, device, MT_HIGH_ALLOCATED);
    struct mt_peak reserved = peak_of(analysis, device, MT_HIGH_RESERVED);

    if (reserved.event >= device->first_event || reserved.bytes != allocated.then.reserved)
        return reserved;
    reserved = allocated;
    reserved.bytes = allocated.then.reserved;
    return reserved;
}

static void fill_summary(struct mt_analysis *analysis, struct mt_device_report *out,
                         struct mt_survey_device *device)
{
    const struct mt_replay_summary *summary = analysis->summary;
    const struct mt_integrity *integrity = &analysis->source->whole_integrity;

    for (uint16_t i = 0; i < summary->device_count; i++)
        if (summary->devices[i].device == out->device)
            out->replay = summary->devices[i];
    out->events = device->events;
    out->allocations = device->allocations;
    out->frees = device->frees;
    out->refusals = device->refusals;
    out->segments_peak = out->replay.counters.segments.peak;
    out->ooms = out->replay.counters.ooms;
    out->retries = out->replay.counters.retries;
    out->complete = !out->replay.starts_in_middle && !analysis->source->header.starts_in_middle &&
                    !analysis->survey.dropped && !integrity->cut && !integrity->frames_damaged &&
                    !integrity->events_dropped;
    out->requested_peak = peak_of(analysis, device, MT_HIGH_REQUESTED);
    out->allocated_peak = peak_of(analysis, device, MT_HIGH_ALLOCATED);
    out->active_peak = peak_of(analysis, device, MT_HIGH_ACTIVE);
    out->reserved_peak = reserved_peak_of(analysis, device);
    out->has_failure = device->has_failure;
    out->first_failure = device->first_failure;
    out->worst_unused_bytes = device->worst_unused.bytes;
    out->worst_unused_t_ns = device->worst_unused.t_ns;
    out->start = device->start;
    out->end = device->now;
    out->first_t_ns = device->first_t_ns;
    out->last_t_ns = device->last_t_ns;
    out->first_event = device->first_event;
    out->last_event = device->last_event;
}

static void fill_device_facts(struct mt_analysis *analysis, struct mt_device_report *out,
                              uint32_t slot)
{
    struct mt_survey_device *device = &analysis->survey.devices[slot];

    out->device = device->device;
    fill_name(analysis, out);
    fill_summary(analysis, out, device);
    fill_uses(analysis, out, device);
    fill_lists(analysis, out, device);
}

static enum mt_status fill_device(struct mt_analysis *analysis, struct mt_device_report *out)
{
    const uint32_t slot = mt_survey_slot(&analysis->survey, out->device);
    enum mt_status status = MT_OK;

    fill_instants(analysis, out, &analysis->instants[slot]);
    fill_explanations(analysis, out, &analysis->instants[slot]);
    mt_idle_fill(&analysis->holders.devices[slot].idle, &analysis->report->arena,
                 analysis->report->saw_backward, out);
    fill_pools(analysis, out, slot);
    fill_answer(analysis, out, slot);
    status = mt_models_finish(analysis, &analysis->holders.devices[slot].models, out);
    if (!status && out->answer && out->modules && out->answer->question->by == MT_BY_MODULE)
        mt_modules_answer(out->modules, &analysis->report->arena, out->answer);
    return status;
}

static enum mt_status fill_devices(struct mt_analysis *analysis)
{
    struct mt_report *report = analysis->report;
    const struct mt_survey *survey = &analysis->survey;

    mt_attribution_init(&analysis->attribution, &report->arena, &analysis->source->symbols,
                        &survey->phases);
    enum mt_status status = MT_OK;
    analysis->attribution.has_stacks = analysis->source->header.has_stacks;
    analysis->attribution.names_operations = mt_header_names_operations(&analysis->source->header);
    analysis->attribution.first_event = survey->first_event;
    for (uint32_t i = 0; i < report->device_count && !status; i++)
        status = fill_device(analysis, &report->devices[i]);
    return status;
}

/* A bare name means the recorded options, with the recorded limit, if the run's allocator may have
 * that name. */
static bool is_what_if(const struct mt_trace_header *header,
                       const struct mt_replay_options *options)
{
    return options->limit_bytes || options->blind ||
           (options->policy && strcmp(options->policy, "recorded") &&
            (strcmp(options->policy, "pytorch") || mt_header_why_no_rules(header)));
}

/* A dry run shows the need of a whole run only if it was not ended early. */
static const char *doubt_of_dry_run(const struct mt_trace_header *header)
{
    enum mt_ending kind;
    int32_t number;

    mt_ending_read(header->ended, &kind, &number);
    return mt_ending_doubt(kind, number);
}

static void fill_input(struct mt_analysis *analysis)
{
    struct mt_report *report = analysis->report;
    const struct mt_source *source = analysis->source;
    const char *path = analysis->options->path ? analysis->options->path : "";

    report->path = mt_arena_text(&report->arena, path, strlen(path));
    report->name = mt_report_name(&report->arena, path);
    report->format = source->format;
    report->framework = source->header.framework;
    report->options = source->header.allocator_options;
    report->not_recorded = source->header.not_recorded;
    report->world_size = source->header.world_size;
    report->is_dry_run = mt_dry_run_read(source->header.dry_run, &report->dry_run);
    report->doubt = report->is_dry_run ? doubt_of_dry_run(&source->header)
                                       : mt_header_why_only_recorded(&source->header);
    report->integrity = source->whole_integrity;
    report->starts_in_middle = source->header.starts_in_middle;
    report->is_snapshot = mt_header_is_snapshot(&source->header);
    report->is_imported = mt_header_is_imported(&source->header);
    report->is_driver_level = source->view.level == MT_VIEW_DRIVER;
    report->is_plain = report->is_driver_level && !mt_symbols_have_python(&source->symbols);
    report->first_t_ns = analysis->survey.first_t_ns;
    report->last_t_ns = analysis->survey.last_t_ns;
    report->symbols = &source->symbols;
    report->roles_inferred = analysis->survey.infers_roles;
    report->what_if = is_what_if(&source->header, &analysis->options->replay);
    report->has_stacks = source->header.has_stacks ||
                         (source->symbols.stack_count && source->view.level != MT_VIEW_FRAMEWORK);
    report->names_operations = mt_header_names_operations(&source->header);
    report->lacks_rules = mt_header_why_no_rules(&source->header) != NULL;
    report->has_segments = source->header.has_segments;
    report->saw_backward = analysis->survey.roles.saw_backward;
    memcpy(report->policy, analysis->summary->policy, sizeof report->policy);
}

enum mt_status mt_report_fill_facts(struct mt_analysis *analysis)
{
    const struct mt_survey *survey = &analysis->survey;
    struct mt_report *report = analysis->report;

    fill_phases(analysis);
    fill_input(analysis);
    report->devices =
        mt_arena_array(&report->arena, (size_t)survey->device_count + 1, sizeof *report->devices);
    for (uint32_t id = 0; id < MT_ARRAY_LEN(survey->device_slot); id++)
        if (survey->device_slot[id])
            fill_device_facts(analysis, &report->devices[report->device_count++],
                              mt_survey_slot(survey, (uint16_t)id));
    report->devices_left_out = analysis->source->devices_left_out;
    report->devices_not_followed = survey->not_followed;
    analysis->source->devices_not_followed |= survey->not_followed;
    return MT_OK;
}

static void fill_parts_of_devices(struct mt_analysis *analysis)
{
    struct mt_report *report = analysis->report;

    for (uint32_t i = 0; i < report->device_count; i++) {
        struct mt_device_report *device = &report->devices[i];

        if (device->instant_count)
            mt_report_fill_device_parts(
                analysis, find_snapshot(analysis, device->instants[0].event, device->device),
                device);
    }
}

enum mt_status mt_report_fill(struct mt_analysis *analysis)
{
    if (analysis->report->phase_count)
        memcpy(analysis->report->main_phase, analysis->is_main,
               analysis->report->phase_count * sizeof *analysis->is_main);
    enum mt_status status = fill_devices(analysis);
    if (status)
        return status;
    mt_report_fill_driver(analysis);
    fill_parts_of_devices(analysis);
    return MT_OK;
}
