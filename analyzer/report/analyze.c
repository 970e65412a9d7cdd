/* A trace is read twice: once through the replay, to learn what was when
 * (survey.h), and once to see who held the memory at the instants that turned
 * out to matter (plan.h, holders.h). */
#include "attribution.h"
#include "flamechart_model.h"
#include "plan.h"
#include "timeline_model.h"
#include "util.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_BINS       4096
#define MOST_CONTRIBUTIONS 8
#define MOST_HOLDERS       12
/* Snapshots are bounded by the rows that they may hold in all. */
#define MOST_SNAPSHOT_ROWS 2000000

struct analysis {
    struct mt_source *source;
    const struct mt_analyze_options *options;
    struct mt_report *report;
    struct mt_replay_summary *summary;
    struct mt_survey survey;
    struct mt_holders holders;
    struct mt_attribution attribution;
    struct mt_plan *plans; /* parallel to the survey's devices */
    uint32_t *order;       /* report device -> survey device */
    bool *is_main;
    struct mt_error *error;
};

/* ---- first reading ------------------------------------------------------- */

static enum mt_status replay(struct analysis *analysis, const char *policy)
{
    struct mt_replay_options options = analysis->options->replay;
    struct mt_replay_observer observer = {&analysis->survey, mt_survey_event};

    mt_survey_release(&analysis->survey);
    mt_survey_init(&analysis->survey, &analysis->report->arena, analysis->source);
    memset(analysis->summary, 0, sizeof *analysis->summary);
    options.policy = policy;
    options.verify = true;
    return mt_replay_run(analysis->source, &options, &observer, analysis->summary, analysis->error);
}

static bool is_exact(const struct mt_replay_summary *summary)
{
    for (uint16_t i = 0; i < summary->device_count; i++)
        if (summary->devices[i].has_events && !summary->devices[i].verify.exact)
            return false;
    return true;
}

/* Without a wish: PyTorch's own rules, as long as they reproduce what was
 * recorded; else what was recorded. */
static enum mt_status read_once(struct analysis *analysis)
{
    const struct mt_replay_options *wish = &analysis->options->replay;
    enum mt_status status;

    if (wish->policy)
        return replay(analysis, wish->policy);
    status = replay(analysis, "pytorch");
    if (status || is_exact(analysis->summary) || wish->limit_bytes || wish->blind)
        return status;
    status = mt_source_rewind(analysis->source, analysis->error);
    if (status)
        return status;
    analysis->report->pytorch_difference = mt_arena_text(&analysis->report->arena, "", 0);
    for (uint16_t i = 0; i < analysis->summary->device_count; i++) {
        const struct mt_replay_verify *verify = &analysis->summary->devices[i].verify;

        if (!verify->exact && verify->first_difference[0] && !*analysis->report->pytorch_difference)
            analysis->report->pytorch_difference =
                mt_arena_text(&analysis->report->arena, verify->first_difference,
                              strlen(verify->first_difference));
    }
    return replay(analysis, "recorded");
}

/* ---- between ------------------------------------------------------------- */

static int by_event(const void *a, const void *b)
{
    const struct mt_snapshot *x = a, *y = b;

    if (x->event != y->event)
        return x->event < y->event ? -1 : 1;
    return (int)x->device - (int)y->device;
}

static void want(struct mt_holders *holders, uint64_t event, uint16_t device)
{
    if (event != MT_PLAN_NOTHING)
        holders->snapshots[holders->snapshot_count++] =
            (struct mt_snapshot){.event = event, .device = device};
}

static void drop_duplicates(struct mt_holders *holders)
{
    uint32_t kept = 0;

    qsort(holders->snapshots, holders->snapshot_count, sizeof *holders->snapshots, by_event);
    for (uint32_t i = 0; i < holders->snapshot_count; i++)
        if (!kept || by_event(&holders->snapshots[kept - 1], &holders->snapshots[i]))
            holders->snapshots[kept++] = holders->snapshots[i];
    holders->snapshot_count = kept;
}

/* Fewer instants and explanations of a device with very many live blocks. */
static void shorten(struct mt_plan *plan, const struct mt_survey_device *device)
{
    uint64_t most = MOST_SNAPSHOT_ROWS / (device->live_blocks_peak + 1);

    if (most < 8)
        most = 8;
    if (plan->instant_count > most)
        plan->instant_count = (uint32_t)most;
    if (plan->explanation_count > most / 2)
        plan->explanation_count = (uint32_t)(most / 2);
}

static enum mt_status make_plans(struct analysis *analysis)
{
    struct mt_survey *survey = &analysis->survey;
    struct mt_holders *holders = &analysis->holders;
    struct mt_arena *arena = &analysis->report->arena;
    size_t most = (size_t)survey->device_count * (MT_ARRAY_LEN(analysis->plans->instants) +
                                                  2 * MT_ARRAY_LEN(analysis->plans->explanations));

    analysis->plans = calloc((size_t)survey->device_count + 1, sizeof *analysis->plans);
    holders->snapshots = mt_arena_array(arena, most + 1, sizeof *holders->snapshots);
    if (!analysis->plans || !holders->snapshots ||
        mt_plan_main_phases(arena, &survey->phases, &analysis->is_main))
        return MT_ERR_MEMORY;
    for (uint32_t i = 0; i < survey->device_count; i++) {
        struct mt_plan *plan = &analysis->plans[i];

        mt_plan_make(plan, survey, &survey->devices[i], analysis->is_main);
        shorten(plan, &survey->devices[i]);
        for (uint32_t j = 0; j < plan->instant_count; j++)
            want(holders, plan->instants[j].event, survey->devices[i].device);
        for (uint32_t j = 0; j < plan->explanation_count; j++) {
            want(holders, plan->from_events[j], survey->devices[i].device);
            want(holders, plan->to_events[j], survey->devices[i].device);
        }
    }
    drop_duplicates(holders);
    return MT_OK;
}

/* ---- models -------------------------------------------------------------- */

static enum mt_status want_timeline(struct analysis *analysis, uint32_t slot, uint32_t bins)
{
    const struct mt_survey_device *device = &analysis->survey.devices[slot];
    struct mt_arena *arena = &analysis->report->arena;
    struct mt_span *spans;
    uint32_t span_count;
    enum mt_status status;

    status = mt_timeline_spans(arena, device->first_t_ns, device->last_t_ns, device->gaps,
                               device->gap_count, analysis->survey.phases.phases,
                               analysis->survey.phases.count, &spans, &span_count);
    if (status)
        return status;
    return mt_timeline_builder_new(arena, spans, span_count, device->first_event,
                                   device->last_event, bins,
                                   &analysis->holders.devices[slot].timeline);
}

static void set_window(const struct analysis *analysis, uint32_t slot,
                       struct mt_flamechart_window *window)
{
    struct mt_survey_device *device = &analysis->survey.devices[slot];
    const struct mt_phases *phases = &analysis->survey.phases;
    const struct mt_instant *peak = &analysis->plans[slot].instants[0];
    int64_t step = analysis->options->flamechart_step;

    window->step = MT_NO_STEP;
    window->begin_t_ns = device->first_t_ns;
    window->end_t_ns = device->last_t_ns;
    window->begin_event = device->first_event;
    window->end_event = device->last_event;
    if (step == MT_NO_STEP)
        step = peak->step;
    if (analysis->options->flamechart_whole || step == MT_NO_STEP)
        return;
    for (uint32_t i = 0; i < phases->count; i++) {
        const struct mt_phase *phase = &phases->phases[i];

        if (!phase->is_step || phase->step != step)
            continue;
        window->step = step;
        window->begin_t_ns = phase->begin_t_ns;
        window->end_t_ns = phase->end_t_ns;
        window->begin_event = phase->begin_event;
        window->end_event = phase->end_event;
        return;
    }
}

static enum mt_status want_flamechart(struct analysis *analysis, uint32_t slot, uint32_t bins)
{
    struct mt_flamechart_window window;

    set_window(analysis, slot, &window);
    window.bins = bins;
    return mt_flamechart_builder_new(&analysis->report->arena, &window, analysis->report->phases,
                                     analysis->report->phase_count, &analysis->source->symbols,
                                     &analysis->holders.devices[slot].flamechart);
}

static enum mt_status want_models(struct analysis *analysis)
{
    uint32_t bins = analysis->options->bins ? analysis->options->bins : DEFAULT_BINS;
    enum mt_status status = MT_OK;

    for (uint32_t i = 0; i < analysis->survey.device_count && !status; i++) {
        if (analysis->options->want_timeline)
            status = want_timeline(analysis, i, bins);
        if (!status && analysis->options->want_flamechart)
            status = want_flamechart(analysis, i, bins);
    }
    return status;
}

/* ---- second reading ------------------------------------------------------ */

static enum mt_status read_again(struct analysis *analysis)
{
    enum mt_status status;

    analysis->holders.arena = &analysis->report->arena;
    analysis->holders.survey = &analysis->survey;
    analysis->holders.devices =
        calloc((size_t)analysis->survey.device_count + 1, sizeof *analysis->holders.devices);
    if (!analysis->holders.devices)
        return MT_ERR_MEMORY;
    status = make_plans(analysis);
    if (!status)
        status = want_models(analysis);
    if (!status)
        status = mt_source_rewind(analysis->source, analysis->error);
    if (!status)
        status = mt_holders_read(&analysis->holders, analysis->source, analysis->error);
    return status;
}

/* ---- the report ---------------------------------------------------------- */

static const struct mt_snapshot *find_snapshot(const struct analysis *analysis, uint64_t event,
                                               uint16_t device)
{
    struct mt_snapshot key = {.event = event, .device = device};

    if (event == MT_PLAN_NOTHING)
        return NULL;
    return bsearch(&key, analysis->holders.snapshots, analysis->holders.snapshot_count, sizeof key,
                   by_event);
}

static enum mt_status fill_phases(struct analysis *analysis)
{
    const struct mt_phases *phases = &analysis->survey.phases;
    struct mt_report *report = analysis->report;

    report->phases =
        mt_arena_array(&report->arena, (size_t)phases->count + 1, sizeof *report->phases);
    report->main_phase =
        mt_arena_array(&report->arena, (size_t)phases->count + 1, sizeof *report->main_phase);
    if (!report->phases || !report->main_phase)
        return MT_ERR_MEMORY;
    if (phases->count)
        memcpy(report->phases, phases->phases, phases->count * sizeof *report->phases);
    report->phase_count = phases->count;
    report->phases_not_recorded = phases->not_recorded;
    for (uint32_t i = 0; i < phases->count; i++)
        report->step_count += phases->phases[i].is_step;
    return MT_OK;
}

static struct mt_peak peak_of(struct analysis *analysis, struct mt_survey_device *device, int which)
{
    const struct mt_high *high = mt_highs_since(&device->high[which], 0);
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

static enum mt_status fill_uses(struct analysis *analysis, struct mt_device_report *out,
                                const struct mt_survey_device *device)
{
    struct mt_arena *arena = &analysis->report->arena;
    uint32_t count = analysis->report->phase_count;

    out->phase_uses = mt_arena_array(arena, (size_t)count + 1, sizeof *out->phase_uses);
    out->steps =
        mt_arena_array(arena, (size_t)analysis->report->step_count + 1, sizeof *out->steps);
    if (!out->phase_uses || !out->steps)
        return MT_ERR_MEMORY;
    if (count)
        memcpy(out->phase_uses, device->uses, count * sizeof *out->phase_uses);
    for (uint32_t i = 0; i < count; i++) {
        const struct mt_phase *phase = &analysis->report->phases[i];
        const struct mt_phase_use *use = &out->phase_uses[i];

        if (phase->is_step)
            out->steps[out->step_count++] =
                (struct mt_step_use){.step = phase->step,
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
    return MT_OK;
}

static enum mt_status fill_instant(struct analysis *analysis, struct mt_instant *instant,
                                   uint16_t device)
{
    const struct mt_snapshot *snapshot = find_snapshot(analysis, instant->event, device);

    if (!snapshot)
        return MT_OK;
    instant->holdings = snapshot->holdings;
    instant->holding_count = snapshot->holding_count;
    if (instant->kind != MT_INSTANT_PEAK_ALLOCATED && instant->kind != MT_INSTANT_PEAK_RESERVED &&
        instant->kind != MT_INSTANT_OOM)
        return MT_OK;
    return mt_attribute_change(&analysis->attribution, NULL, snapshot, MOST_HOLDERS,
                               &instant->holders, &instant->holder_count);
}

static enum mt_status fill_instants(struct analysis *analysis, struct mt_device_report *out,
                                    const struct mt_plan *plan)
{
    const struct mt_snapshot *snapshot;
    const struct mt_instant *peak;
    enum mt_status status = MT_OK;

    out->instants = mt_arena_array(&analysis->report->arena, (size_t)plan->instant_count + 1,
                                   sizeof *out->instants);
    if (!out->instants)
        return MT_ERR_MEMORY;
    out->instant_count = plan->instant_count;
    for (uint32_t i = 0; i < plan->instant_count && !status; i++) {
        out->instants[i] = plan->instants[i];
        status = fill_instant(analysis, &out->instants[i], out->device);
    }
    peak = &out->instants[0];
    for (uint32_t i = 0; i < peak->holding_count; i++) {
        out->peak_role_bytes[peak->holdings[i].role] += peak->holdings[i].bytes;
        if (peak->holdings[i].stack == MT_NO_ID)
            out->frameless_peak_bytes += peak->holdings[i].bytes;
    }
    snapshot = find_snapshot(analysis, peak->event, out->device);
    if (status || !snapshot)
        return status;
    return mt_attribute_sites(&analysis->attribution, snapshot, &out->peak_sites,
                              &out->peak_site_count);
}

static enum mt_status fill_explanations(struct analysis *analysis, struct mt_device_report *out,
                                        const struct mt_plan *plan)
{
    enum mt_status status = MT_OK;

    out->explanations = mt_arena_array(
        &analysis->report->arena, (size_t)plan->explanation_count + 1, sizeof *out->explanations);
    if (!out->explanations)
        return MT_ERR_MEMORY;
    for (uint32_t i = 0; i < plan->explanation_count && !status; i++) {
        const struct mt_snapshot *to = find_snapshot(analysis, plan->to_events[i], out->device);
        struct mt_explanation *why = &out->explanations[i];

        *why = plan->explanations[i];
        if (to)
            status = mt_attribute_change(
                &analysis->attribution, find_snapshot(analysis, plan->from_events[i], out->device),
                to, MOST_CONTRIBUTIONS, &why->contributions, &why->contribution_count);
    }
    out->explanation_count = plan->explanation_count;
    return status;
}

static enum mt_status fill_models(struct mt_device_report *out, struct mt_holders_device *device)
{
    if (device->timeline)
        out->timeline = mt_timeline_builder_finish(device->timeline);
    if (device->flamechart)
        return mt_flamechart_builder_finish(device->flamechart, &out->flamechart);
    return MT_OK;
}

static enum mt_status fill_lists(struct analysis *analysis, struct mt_device_report *out,
                                 const struct mt_survey_device *device)
{
    struct mt_arena *arena = &analysis->report->arena;

    out->oom_list = mt_arena_array(arena, (size_t)device->oom_count + 1, sizeof *out->oom_list);
    out->gaps = mt_arena_array(arena, (size_t)device->gap_count + 1, sizeof *out->gaps);
    if (!out->oom_list || !out->gaps)
        return MT_ERR_MEMORY;
    if (device->oom_count)
        memcpy(out->oom_list, device->oom_list, device->oom_count * sizeof *out->oom_list);
    if (device->gap_count)
        memcpy(out->gaps, device->gaps, device->gap_count * sizeof *out->gaps);
    out->oom_count = device->oom_count;
    out->gap_count = device->gap_count;
    return MT_OK;
}

static void fill_name(struct analysis *analysis, struct mt_device_report *out)
{
    const struct mt_symbols *symbols = &analysis->source->symbols;

    if (out->device >= symbols->device_count)
        return;
    if (symbols->devices[out->device].name != MT_NO_ID)
        out->name = mt_symbols_text(symbols, symbols->devices[out->device].name);
    out->total_memory_bytes = symbols->devices[out->device].total_memory_bytes;
}

static void fill_summary(struct analysis *analysis, struct mt_device_report *out,
                         struct mt_survey_device *device)
{
    const struct mt_replay_summary *summary = analysis->summary;
    const struct mt_integrity *integrity = &analysis->source->integrity;
    struct mt_peak *reserved = &out->reserved_peak;

    for (uint16_t i = 0; i < summary->device_count; i++)
        if (summary->devices[i].device == out->device)
            out->replay = summary->devices[i];
    out->events = device->events;
    out->allocations = device->allocations;
    out->frees = device->frees;
    out->segments_peak = out->replay.counters.segments.peak;
    out->ooms = out->replay.counters.ooms;
    out->retries = out->replay.counters.retries;
    out->complete = !out->replay.starts_in_middle && !analysis->source->header.starts_in_middle &&
                    !analysis->survey.dropped && !integrity->cut && !integrity->frames_damaged &&
                    !integrity->events_dropped;
    out->requested_peak = peak_of(analysis, device, MT_HIGH_REQUESTED);
    out->allocated_peak = peak_of(analysis, device, MT_HIGH_ALLOCATED);
    out->active_peak = peak_of(analysis, device, MT_HIGH_ACTIVE);
    *reserved = peak_of(analysis, device, MT_HIGH_RESERVED);
    if (reserved->bytes)
        out->fragmentation_at_reserved_peak =
            1.0 - (double)reserved->then.allocated / (double)reserved->bytes;
    out->has_failure = device->has_failure;
    out->first_failure = device->first_failure;
    out->worst_unused_bytes = device->worst_unused;
    out->worst_unused_t_ns = device->worst_unused_t_ns;
    out->start = device->start;
    out->end = device->now;
    out->first_t_ns = device->first_t_ns;
    out->last_t_ns = device->last_t_ns;
    out->first_event = device->first_event;
    out->last_event = device->last_event;
}

static enum mt_status fill_device(struct analysis *analysis, struct mt_device_report *out,
                                  uint32_t slot)
{
    struct mt_survey_device *device = &analysis->survey.devices[slot];
    enum mt_status status;

    out->device = device->device;
    fill_name(analysis, out);
    fill_summary(analysis, out, device);
    status = fill_uses(analysis, out, device);
    if (!status)
        status = fill_lists(analysis, out, device);
    if (!status)
        status = fill_instants(analysis, out, &analysis->plans[slot]);
    if (!status)
        status = fill_explanations(analysis, out, &analysis->plans[slot]);
    if (!status)
        status = fill_models(out, &analysis->holders.devices[slot]);
    return status;
}

static enum mt_status fill_devices(struct analysis *analysis)
{
    struct mt_report *report = analysis->report;
    const struct mt_survey *survey = &analysis->survey;
    enum mt_status status;

    status = mt_attribution_init(&analysis->attribution, &report->arena, &analysis->source->symbols,
                                 &survey->phases);
    analysis->attribution.has_stacks = analysis->source->header.has_stacks;
    analysis->attribution.first_event = survey->first_event;
    report->devices =
        mt_arena_array(&report->arena, (size_t)survey->device_count + 1, sizeof *report->devices);
    if (!status && !report->devices)
        status = MT_ERR_MEMORY;
    for (uint32_t id = 0; id < MT_ARRAY_LEN(survey->device_slot) && !status; id++)
        if (survey->device_slot[id])
            status = fill_device(analysis, &report->devices[report->device_count++],
                                 survey->device_slot[id] - 1u);
    return status;
}

/* "runs/seq2seq.pickle.zst" -> "seq2seq" */
static const char *name_of(struct mt_arena *arena, const char *path)
{
    static const char *const endings[] = {".zst", ".pickle", ".pkl", ".mt", ".trace", ".json"};
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    size_t length = strlen(base);

    for (size_t i = 0; i < MT_ARRAY_LEN(endings); i++) {
        size_t ending = strlen(endings[i]);

        if (length > ending && !strncmp(base + length - ending, endings[i], ending))
            length -= ending;
    }
    return mt_arena_text(arena, base, length);
}

static enum mt_status fill_input(struct analysis *analysis)
{
    struct mt_report *report = analysis->report;
    const struct mt_source *source = analysis->source;
    const char *path = analysis->options->path ? analysis->options->path : "";

    report->path = mt_arena_text(&report->arena, path, strlen(path));
    report->name = name_of(&report->arena, path);
    report->format = source->format;
    report->framework = source->header.framework;
    report->options = source->header.allocator_options;
    report->integrity = source->integrity;
    report->starts_in_middle = source->header.starts_in_middle;
    report->first_t_ns = analysis->survey.first_t_ns;
    report->last_t_ns = analysis->survey.last_t_ns;
    report->symbols = &source->symbols;
    report->roles_inferred = true;
    report->has_stacks = source->header.has_stacks;
    report->saw_backward = analysis->survey.roles.saw_backward;
    memcpy(report->policy, analysis->summary->policy, sizeof report->policy);
    return report->path && report->name ? MT_OK : MT_ERR_MEMORY;
}

static enum mt_status run(struct analysis *analysis)
{
    enum mt_status status = read_once(analysis);

    if (!status)
        status = mt_survey_finish(&analysis->survey);
    if (!status)
        status = fill_phases(analysis);
    if (!status)
        status = read_again(analysis);
    if (!status)
        status = fill_input(analysis);
    if (!status && analysis->report->phase_count)
        memcpy(analysis->report->main_phase, analysis->is_main,
               analysis->report->phase_count * sizeof *analysis->is_main);
    if (!status)
        status = fill_devices(analysis);
    return status;
}

enum mt_status mt_analyze(struct mt_source *source, const struct mt_analyze_options *options,
                          struct mt_report **report, struct mt_error *error)
{
    struct analysis analysis = {.source = source, .options = options};
    struct mt_error unused;
    enum mt_status status = MT_ERR_MEMORY;

    *report = NULL;
    analysis.error = error ? error : &unused;
    memset(analysis.error, 0, sizeof *analysis.error);
    analysis.report = calloc(1, sizeof *analysis.report);
    analysis.summary = calloc(1, sizeof *analysis.summary);
    if (analysis.report && analysis.summary)
        status = run(&analysis);
    if (status && !analysis.error->status)
        (void)mt_fail(analysis.error, status, MT_NO_OFFSET, "%s", mt_status_text(status));
    mt_attribution_release(&analysis.attribution);
    mt_holders_release(&analysis.holders);
    mt_survey_release(&analysis.survey);
    free(analysis.plans);
    free(analysis.summary);
    if (status == MT_OK)
        *report = analysis.report;
    else
        mt_report_release(analysis.report);
    return status;
}

void mt_report_release(struct mt_report *report)
{
    if (!report)
        return;
    mt_arena_release(&report->arena);
    free(report);
}
