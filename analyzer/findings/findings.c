#include "findings.h"

#include <stdlib.h>
#include <string.h>

#include "finding.h"
#include "nothing_found.h"
#include "report_query.h"

/* Every finding, in the order in which they run. */
#define FINDINGS(ROW)                                                                              \
    ROW(out_of_memory)                                                                             \
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
    ROW(cached_memory)

#define DECLARE(name)  extern const struct mt_finding_ops mt_finding_##name;
#define POINT_TO(name) &mt_finding_##name,
#define NAME(name)     "finding " #name,

FINDINGS(DECLARE)
static const struct mt_finding_ops *const findings[] = {FINDINGS(POINT_TO)};

/* Their names in the log of the passes. */
static const char *const names[] = {FINDINGS(NAME)};

/* "error": ends the run if it continues; "warning": memory can be saved; "info": where memory
 * is. */
static int rank_of(const struct mt_finding *finding)
{
    static const char *const severities[] = {"error", "warning", "info"};
    size_t i = 0;

    while (i < MT_ARRAY_LEN(severities) && strcmp(finding->severity, severities[i]) != 0)
        i++;
    return (int)i;
}

/* The cause of the run's end comes before causes that would have ended it later. Among equals: the
 * reduction of the device's need or, if no replay shows that, the bytes of the finding. */
static int by_worth(const void *a, const void *b)
{
    const struct mt_finding *x = a, *y = b;
    const uint64_t x_bytes = x->has_saving ? x->saved_need_bytes : x->bytes;
    const uint64_t y_bytes = y->has_saving ? y->saved_need_bytes : y->bytes;
    const bool x_died = strcmp(x->id, "out-of-memory") == 0;
    const bool y_died = strcmp(y->id, "out-of-memory") == 0;

    if (x_died != y_died)
        return x_died ? -1 : 1;
    if (rank_of(x) != rank_of(y))
        return rank_of(x) - rank_of(y);
    if (x_bytes != y_bytes)
        return x_bytes > y_bytes ? -1 : 1;
    return strcmp(x->title, y->title);
}

static void add(struct mt_device_report *device, const struct mt_finding_search *search)
{
    memcpy(device->findings + device->finding_count, search->found,
           search->count * sizeof *search->found);
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
    uint32_t i;

    for (i = 0; i < report->device_count; i++) {
        struct mt_finding_search search = search_of(analysis, &report->devices[i]);
        mt_lives_begin(&search.held->lives, report, search.device,
                       mt_first_step(report, search.device), MT_LIVES_MAX / report->device_count);
        for (size_t j = 0; j < MT_ARRAY_LEN(findings); j++)
            if (findings[j]->ask)
                findings[j]->ask(&search);
    }
}

static enum mt_status look_at(struct mt_analysis *analysis, struct mt_finding_marks *marks,
                              struct mt_device_report *device)
{
    enum mt_status status = MT_OK;
    size_t i;

    device->findings =
        mt_arena_array(&analysis->report->arena, MT_ARRAY_LEN(findings) * MT_FINDINGS_MAX,
                       sizeof *device->findings);
    for (i = 0; status == MT_OK && i < MT_ARRAY_LEN(findings); i++) {
        struct mt_finding_search search = search_of(analysis, device);
        uint32_t outer = mt_readings_enter(&analysis->readings, names[i]);

        search.marks = marks;
        status = findings[i]->find(&search);
        mt_readings_leave(&analysis->readings, outer);
        if (status == MT_OK)
            add(device, &search);
    }
    if (status == MT_OK && !device->finding_count && !device->ooms && !analysis->report->what_if &&
        !analysis->report->is_driver_level)
        device->no_finding = mt_nothing_found(&analysis->report->arena, analysis->report, device);
    if (device->finding_count)
        qsort(device->findings, device->finding_count, sizeof *device->findings, by_worth);
    return status;
}

enum mt_status mt_findings_fill(struct mt_analysis *analysis)
{
    struct mt_finding_marks marks = {0};
    enum mt_status status = MT_OK;
    uint32_t i;

    for (i = 0; status == MT_OK && i < analysis->report->device_count; i++)
        status = look_at(analysis, &marks, &analysis->report->devices[i]);
    mt_stack_marks_release(&marks.loss);
    mt_stack_marks_release(&marks.foreach);
    return status;
}
