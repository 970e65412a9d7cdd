/* The table of findings, and what is reported if there are none. */
#include <stdlib.h>
#include <string.h>

#include "finding.h"
#include "process_memory.h"
#include "report.h"
#include "report_query.h"
#include "status.h"
#include "trend.h"
#include "units.h"
#include "util.h"

enum { MIN_UNKNOWN_SHARE = 20 }; /* of the peak, as a fraction: 5% */

static const char *unused_part(struct mt_arena *arena, const struct mt_report *report,
                               const struct mt_device_report *device)
{
    const bool has_history = device->events && !mt_is_one_instant(report, device);
    const struct mt_bytes *then = has_history ? &mt_fragmentation_peak(device)->then : &device->end;
    char n[2][MT_UNITS_TEXT];

    if (!report->has_segments)
        return "reserved memory was not recorded";
    return mt_arena_printf(arena, "%s of the %s reserved %s%s",
                           mt_format_bytes(n[0], mt_sub_or_0_u64(then->reserved, then->allocated)),
                           mt_format_bytes(n[1], then->reserved),
                           has_history ? "was unused at the " : "is unused",
                           has_history ? mt_fragmentation_instant(device) : "");
}

/* Steps may leave memory behind that is too little for a finding. */
static const char *growth_part(struct mt_arena *arena, const struct mt_report *report,
                               const struct mt_device_report *device)
{
    static const char *const words[] = {
        [MT_GROWTH_JUDGED] = "no growth from step to step was found",
        [MT_GROWTH_NO_STEPS] = "no steps were found, so growth is not judged",
        [MT_GROWTH_FEW_STEPS] = "there are too few steps to judge growth",
        [MT_GROWTH_MANY_BLOCKS] = "too many blocks outlive their step to judge growth"};
    const struct mt_growth *growth = &device->growth;
    char bytes[MT_UNITS_TEXT];

    if (growth->bytes_per_step)
        return mt_arena_printf(arena, "each step leaves %s behind, too little to matter",
                               mt_format_bytes(bytes, growth->bytes_per_step));
    return words[mt_growth_basis(report, device)];
}

static const char *unknown_part(struct mt_arena *arena, const struct mt_device_report *device)
{
    const uint64_t peak = device->allocated_peak.bytes,
                   unknown = device->peak_role_bytes[MT_ROLE_OTHER];
    char share[MT_UNITS_TEXT];

    if (unknown <= peak / MIN_UNKNOWN_SHARE)
        return "";
    return mt_arena_printf(arena, "; the role of %s of the peak is unknown",
                           mt_format_percent(share, (double)unknown / (double)peak));
}

static const char *refused_part(struct mt_arena *arena, const struct mt_device_report *device,
                                const struct mt_driver_report *driver)
{
    char count[MT_UNITS_TEXT];

    if (device->refusals)
        return mt_arena_printf(arena, "%s request%s refused",
                               mt_format_count(count, device->refusals),
                               device->refusals == 1 ? " was" : "s were");
    if (!driver || !driver->failures_in_all)
        return "no request was refused";
    return driver->failures_in_all == 1 ? "the driver refused a request"
                                        : "the driver refused requests";
}

const char *mt_nothing_found(struct mt_arena *arena, const struct mt_report *report,
                             const struct mt_device_report *device)
{
    const char *unused = unused_part(arena, report, device);
    const char *unknown = unknown_part(arena, device);
    const char *growth = growth_part(arena, report, device);
    const struct mt_driver_report *driver = mt_driver_of(report, device->device);

    if (!unused || !unknown || !growth || (driver && driver->no_space))
        return NULL;
    if (!device->events ||
        mt_is_one_instant(report, device)) /* then refused requests are also unknown */
        return mt_arena_printf(arena, "%s; the snapshot has no history%s", unused, unknown);
    return mt_arena_printf(arena, "%s, %s, and %s%s", unused, refused_part(arena, device, driver),
                           growth, unknown);
}

/* Every finding, in the order in which they run. The last one names the best of the others. */
#define FINDINGS(ROW)                                                                              \
    ROW(growth)                                                                                    \
    ROW(kept_values)                                                                               \
    ROW(better_settings)                                                                           \
    ROW(pinned_segments)                                                                           \
    ROW(optimizer_state)                                                                           \
    ROW(loss_peak)                                                                                 \
    ROW(foreach_peak)                                                                              \
    ROW(held_activations)                                                                          \
    ROW(cache_flushes)                                                                             \
    ROW(first_steps)                                                                               \
    ROW(kept_gradients)                                                                            \
    ROW(outside_memory)                                                                            \
    ROW(idle_state)                                                                                \
    ROW(exception_frames)                                                                          \
    ROW(large_layer)                                                                               \
    ROW(dtype_copies)                                                                              \
    ROW(cast_weights)                                                                              \
    ROW(kept_forward)                                                                              \
    ROW(earlier_results)                                                                           \
    ROW(attention_matrices)                                                                        \
    ROW(waiting_frees)                                                                             \
    ROW(not_donated)                                                                               \
    ROW(graph_pools)                                                                               \
    ROW(kv_cache)                                                                                  \
    ROW(cached_memory)                                                                             \
    ROW(out_of_memory)

#define DECLARE(name)  extern const struct mt_finding_ops mt_finding_##name;
#define POINT_TO(name) &mt_finding_##name,
#define NAME(name)     "finding " #name,

FINDINGS(DECLARE)

static const struct mt_finding_ops *const findings[] = {FINDINGS(POINT_TO)};

/* Their names in the log of the passes. */
static const char *const names[] = {FINDINGS(NAME)};

/* Bits of findings are handed out in the order of the table. */
static void take_marks(struct mt_device_report *device, struct mt_finding_scope *scopes,
                       const struct mt_finding_search *search)
{
    uint32_t used = 0;

    for (uint32_t i = 0; i < device->finding_count; i++)
        used += device->findings[i].mark != 0;
    if (!search->has_marked || !search->count || used == MT_FINDINGS_MARKED)
        return;
    device->findings[device->finding_count].mark = 1u << used;
    scopes[used] = search->scope;
    for (uint32_t i = 0; i < device->instants[0].holding_count; i++)
        device->marks[i] |= search->marked[i] ? 1u << used : 0;
}

static void add(struct mt_device_report *device, struct mt_finding_scope *scopes,
                const struct mt_finding_search *search)
{
    memcpy(device->findings + device->finding_count, search->found,
           search->count * sizeof *search->found);
    take_marks(device, scopes, search);
    device->finding_count += search->count;
    if (search->growth.judged)
        device->growth = search->growth;
}

static struct mt_finding_search search_of(struct mt_analysis *analysis,
                                          const struct mt_device_report *device)
{
    const uint32_t slot = mt_survey_slot(&analysis->survey, device->device);

    return (struct mt_finding_search){
        .analysis = analysis, .device = device, .held = &analysis->holders.devices[slot]};
}

void mt_findings_begin(struct mt_analysis *analysis)
{
    const struct mt_report *report = analysis->report;

    for (uint32_t i = 0; i < report->device_count; i++) {
        struct mt_finding_search search = search_of(analysis, &report->devices[i]);
        mt_lives_begin(&search.held->lives, report, mt_judged_steps(report, search.device),
                       MT_LIVES_MAX / report->device_count);
        for (size_t j = 0; j < MT_ARRAY_LEN(findings); j++)
            if (findings[j]->ask)
                findings[j]->ask(&search);
    }
}

static enum mt_status look_at(struct mt_analysis *analysis, struct mt_finding_marks *marks,
                              struct mt_device_report *device)
{
    struct mt_arena *arena = &analysis->report->arena;
    const size_t holdings = device->instant_count ? device->instants[0].holding_count : 0;
    bool *marked = mt_memory_zeroed(holdings + 1, sizeof *marked);
    enum mt_status status = MT_OK;

    device->findings =
        mt_arena_array(arena, MT_ARRAY_LEN(findings) * MT_FINDINGS_MAX, sizeof *device->findings);
    device->marks = mt_arena_array(arena, holdings + 1, sizeof *device->marks);
    for (size_t i = 0; status == MT_OK && i < MT_ARRAY_LEN(findings); i++) {
        struct mt_finding_search search = search_of(analysis, device);
        uint32_t outer = mt_readings_enter(&analysis->readings, names[i]);

        search.marks = marks;
        search.marked = marked;
        status = findings[i]->find(&search);
        mt_readings_leave(&analysis->readings, outer);
        if (status == MT_OK)
            add(device, marks->scopes[device - analysis->report->devices], &search);
        if (search.has_marked)
            memset(marked, 0, holdings * sizeof *marked);
    }
    free(marked);
    if (status == MT_OK && !device->finding_count && !device->ooms && !analysis->report->what_if &&
        !analysis->report->is_driver_level)
        device->no_finding = mt_nothing_found(arena, analysis->report, device);
    return status;
}

enum mt_status mt_findings_fill(struct mt_analysis *analysis)
{
    struct mt_report *report = analysis->report;
    struct mt_finding_marks marks = {
        .scopes = mt_memory_zeroed((size_t)report->device_count + 1, sizeof *marks.scopes)};
    enum mt_status status = MT_OK;

    for (uint32_t i = 0; status == MT_OK && i < report->device_count; i++)
        status = look_at(analysis, &marks, &report->devices[i]);
    uint32_t outer = mt_readings_enter(&analysis->readings, "finding savings");
    if (status == MT_OK)
        status = mt_savings_bound(analysis, &marks);
    mt_readings_leave(&analysis->readings, outer);
    for (uint32_t i = 0; status == MT_OK && i < report->device_count; i++)
        mt_findings_rank(&report->arena, &report->devices[i]);
    mt_stack_marks_release(&marks.loss);
    mt_stack_marks_release(&marks.foreach);
    mt_stack_marks_release(&marks.softmax);
    mt_stack_marks_release(&marks.checkpoint);
    free(marks.scopes);
    return status;
}
