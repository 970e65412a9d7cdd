#include "plan.h"

#include "util.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_RISES = 12, MOST_LEFT = 6, MOST_STEP_RISES = 4, MOST_OOMS = 8 };

/* Changes below this share of the peak are not worth a word. */
#define LEAST_SHARE 200 /* 1/200 */

/* ---- main phases --------------------------------------------------------- */

/* Ranges around steps, and ranges of no kind around ranges of one ("train"
 * around "forward" and "backward"), are containers, no parts. */
static void mark_containers(const struct mt_phases *phases, bool *container)
{
    for (uint32_t i = 0; i < phases->count; i++) {
        const struct mt_phase_facts *facts = &phases->facts[i];
        bool is_step = phases->phases[i].is_step;
        bool has_kind = facts->kind != MT_PHASE_UNKNOWN && !phases->phases[i].is_plumbing;
        int32_t at = phases->phases[i].parent;

        container[i] |= facts->step_rank > 0;
        for (; (is_step || has_kind) && at != MT_NO_PHASE; at = phases->phases[at].parent)
            if (is_step || phases->facts[at].kind == MT_PHASE_UNKNOWN)
                container[at] = true;
    }
}

static void mark_main(const struct mt_phases *phases, const bool *container, bool plumbing,
                      bool *is_main)
{
    for (uint32_t i = 0; i < phases->count; i++) {
        int32_t at = phases->phases[i].parent;

        is_main[i] = !container[i] && (plumbing || !phases->phases[i].is_plumbing);
        for (; is_main[i] && at != MT_NO_PHASE; at = phases->phases[at].parent)
            if (!container[at] && (plumbing || !phases->phases[at].is_plumbing))
                is_main[i] = false;
    }
}

enum mt_status mt_plan_main_phases(struct mt_arena *arena, const struct mt_phases *phases,
                                   bool **is_main)
{
    bool *container = mt_arena_array(arena, (size_t)phases->count + 1, sizeof *container);
    bool any = false;

    *is_main = mt_arena_array(arena, (size_t)phases->count + 1, sizeof **is_main);
    if (!container || !*is_main)
        return MT_ERR_MEMORY;
    mark_containers(phases, container);
    mark_main(phases, container, false, *is_main);
    for (uint32_t i = 0; i < phases->count; i++)
        any |= (*is_main)[i];
    if (!any) /* better the framework's own ranges than none */
        mark_main(phases, container, true, *is_main);
    return MT_OK;
}

/* ---- instants ------------------------------------------------------------ */

static void add_instant(struct mt_plan *plan, const struct mt_survey *survey,
                        const struct mt_instant *instant)
{
    struct mt_instant *added;

    if (plan->instant_count == MT_ARRAY_LEN(plan->instants))
        return;
    added = &plan->instants[plan->instant_count++];
    *added = *instant;
    added->step =
        instant->phase == MT_NO_PHASE ? MT_NO_STEP : survey->phases.phases[instant->phase].step;
}

static void add_high(struct mt_plan *plan, const struct mt_survey *survey,
                     struct mt_survey_device *device, int which, enum mt_instant_kind kind)
{
    const struct mt_high *high = mt_highs_since(&device->high[which], 0);
    struct mt_instant instant = {.kind = kind,
                                 .t_ns = high->t_ns,
                                 .event = high->event,
                                 .phase = high->phase,
                                 .bytes = high->then};

    add_instant(plan, survey, &instant);
}

static void add_ooms(struct mt_plan *plan, const struct mt_survey *survey,
                     const struct mt_survey_device *device)
{
    for (uint32_t i = 0; i < device->oom_count; i++) {
        const struct mt_oom *oom = &device->oom_list[i];
        struct mt_instant instant = {.kind = MT_INSTANT_OOM,
                                     .t_ns = oom->t_ns,
                                     .event = oom->event,
                                     .phase = oom->phase,
                                     .bytes = oom->then};

        if (i < MOST_OOMS - 1 || i == device->oom_count - 1)
            add_instant(plan, survey, &instant);
    }
}

static void add_phase_peak(struct mt_plan *plan, const struct mt_survey *survey,
                           const struct mt_survey_device *device, int32_t phase,
                           enum mt_instant_kind kind)
{
    const struct mt_phase_use *use = &device->uses[phase];
    struct mt_instant instant = {
        .kind = kind,
        .t_ns = use->peak_allocated_t_ns,
        .event = use->peak_allocated_event,
        .phase = kind == MT_INSTANT_STEP_PEAK ? device->befores[phase].then_phase : phase,
        .bytes = device->befores[phase].then};

    add_instant(plan, survey, &instant);
    if (kind == MT_INSTANT_STEP_PEAK)
        plan->instants[plan->instant_count - 1].step = survey->phases.phases[phase].step;
}

static void add_phase_end(struct mt_plan *plan, const struct mt_survey *survey,
                          const struct mt_survey_device *device, int32_t phase)
{
    struct mt_instant instant = {.kind = MT_INSTANT_PHASE_END,
                                 .t_ns = survey->phases.phases[phase].end_t_ns,
                                 .event = survey->phases.phases[phase].end_event,
                                 .phase = phase,
                                 .bytes = device->uses[phase].exit};

    add_instant(plan, survey, &instant);
}

/* ---- choosing among candidates ------------------------------------------- */

/* A change that may be explained. */
struct change {
    enum mt_explanation_kind kind;
    int32_t phase;
    int64_t step, other_step;
    uint64_t from_bytes, to_bytes, from_event, to_event;
};

/* Keeps the `most` largest, in order of arrival. */
struct choice {
    struct change kept[MOST_RISES];
    size_t count, most;
    uint64_t least_bytes;
};

static uint64_t size_of(const struct change *change)
{
    return change->to_bytes - change->from_bytes;
}

static void consider(struct choice *choice, const struct change *change)
{
    size_t smallest = 0;

    if (change->to_bytes <= change->from_bytes || size_of(change) < choice->least_bytes)
        return;
    if (choice->count < choice->most) {
        choice->kept[choice->count++] = *change;
        return;
    }
    for (size_t i = 1; i < choice->count; i++)
        if (size_of(&choice->kept[i]) < size_of(&choice->kept[smallest]))
            smallest = i;
    if (size_of(change) <= size_of(&choice->kept[smallest]))
        return;
    memmove(&choice->kept[smallest], &choice->kept[smallest + 1],
            (choice->count - smallest - 1) * sizeof *choice->kept);
    choice->kept[choice->count - 1] = *change;
}

static void explain_chosen(struct mt_plan *plan, const struct choice *choice)
{
    for (size_t i = 0; i < choice->count; i++) {
        const struct change *change = &choice->kept[i];
        uint32_t at = plan->explanation_count;

        if (at == MT_ARRAY_LEN(plan->explanations))
            return;
        plan->explanations[at] = (struct mt_explanation){.kind = change->kind,
                                                         .phase = change->phase,
                                                         .step = change->step,
                                                         .other_step = change->other_step,
                                                         .from_bytes = change->from_bytes,
                                                         .to_bytes = change->to_bytes};
        plan->from_events[at] = change->from_event;
        plan->to_events[at] = change->to_event;
        plan->explanation_count++;
    }
}

/* ---- why the maximum rose ------------------------------------------------ */

struct maximum {
    uint64_t bytes, event;
};

static void consider_rise(struct choice *choice, const struct mt_survey *survey, int32_t phase,
                          struct maximum *running, uint64_t bytes, uint64_t event)
{
    struct change change = {.kind = MT_WHY_PHASE_RAISED_PEAK,
                            .phase = phase,
                            .step = MT_NO_STEP,
                            .other_step = MT_NO_STEP,
                            .from_bytes = running->bytes,
                            .to_bytes = bytes,
                            .from_event = running->event,
                            .to_event = event};

    if (bytes <= running->bytes)
        return;
    if (phase != MT_NO_PHASE)
        change.step = survey->phases.phases[phase].step;
    consider(choice, &change);
    running->bytes = bytes;
    running->event = event;
}

static void find_rises(struct choice *choice, const struct mt_survey *survey,
                       struct mt_survey_device *device, const bool *is_main)
{
    const struct mt_high *peak = mt_highs_since(&device->high[MT_HIGH_ALLOCATED], 0);
    struct maximum running = {0, MT_PLAN_NOTHING};

    for (uint32_t i = 0; i < survey->phases.count; i++) {
        const struct mt_survey_before *before = &device->befores[i];
        const struct mt_phase_use *use = &device->uses[i];

        if (!is_main[i])
            continue;
        consider_rise(choice, survey, before->peak_phase, &running, before->peak_bytes,
                      before->peak_event);
        consider_rise(choice, survey, (int32_t)i, &running, use->peak.allocated,
                      use->peak_allocated_event);
    }
    consider_rise(choice, survey, peak->phase, &running, peak->value, peak->event);
}

/* ---- why more was left --------------------------------------------------- */

/* Forward and loss leave what backward will free: no need to ask. */
static void find_left(struct choice *choice, const struct mt_survey *survey,
                      const struct mt_survey_device *device, const bool *is_main)
{
    for (uint32_t i = 0; i < survey->phases.count; i++) {
        const struct mt_phase *phase = &survey->phases.phases[i];
        const struct mt_phase_use *use = &device->uses[i];
        uint8_t kind = survey->phases.facts[i].kind;
        struct change change = {.kind = MT_WHY_PHASE_LEFT_MORE,
                                .phase = (int32_t)i,
                                .step = phase->step,
                                .other_step = phase->step,
                                .from_bytes = use->enter.allocated,
                                .to_bytes = use->exit.allocated,
                                .from_event = phase->begin_event,
                                .to_event = phase->end_event};

        if (is_main[i] && kind != MT_PHASE_FORWARD && kind != MT_PHASE_LOSS)
            consider(choice, &change);
    }
}

/* ---- steps --------------------------------------------------------------- */

static bool comes_next(const struct mt_phase *last, const struct mt_phase *phase)
{
    return last && phase->is_step && last->thread == phase->thread &&
           last->end_event <= phase->begin_event;
}

static struct change step_change(enum mt_explanation_kind kind, const struct mt_phases *phases,
                                 int32_t last, int32_t phase)
{
    return (struct change){.kind = kind,
                           .phase = phase,
                           .step = phases->phases[phase].step,
                           .other_step = phases->phases[last].step};
}

/* Ends of steps against the ends of those before, and likewise peaks. */
static void find_step_changes(struct choice *ends, struct choice *peaks,
                              const struct mt_survey *survey, const struct mt_survey_device *device)
{
    const struct mt_phases *phases = &survey->phases;
    int32_t last = MT_NO_PHASE;

    for (int32_t i = 0; i < (int32_t)phases->count; i++) {
        if (!phases->phases[i].is_step)
            continue;
        if (comes_next(last == MT_NO_PHASE ? NULL : &phases->phases[last], &phases->phases[i])) {
            const struct mt_phase_use *a = &device->uses[last], *b = &device->uses[i];
            struct change end = step_change(MT_WHY_PHASE_LEFT_MORE, phases, last, i);
            struct change peak = step_change(MT_WHY_STEP_PEAK_ROSE, phases, last, i);

            end.from_bytes = a->exit.allocated;
            end.to_bytes = b->exit.allocated;
            end.from_event = phases->phases[last].end_event;
            end.to_event = phases->phases[i].end_event;
            consider(ends, &end);
            peak.from_bytes = a->peak.allocated;
            peak.to_bytes = b->peak.allocated;
            peak.from_event = a->peak_allocated_event;
            peak.to_event = b->peak_allocated_event;
            consider(peaks, &peak);
        }
        last = i;
    }
}

/* ---- all of it ----------------------------------------------------------- */

static void add_step_peaks(struct mt_plan *plan, const struct mt_survey *survey,
                           const struct mt_survey_device *device)
{
    uint32_t added = 0;

    for (uint32_t i = 0; i < survey->phases.count && added < 16; i++) {
        if (survey->phases.phases[i].is_step) {
            add_phase_peak(plan, survey, device, (int32_t)i, MT_INSTANT_STEP_PEAK);
            added++;
        }
    }
}

static void add_explained_instants(struct mt_plan *plan, const struct mt_survey *survey,
                                   const struct mt_survey_device *device)
{
    for (uint32_t i = 0; i < plan->explanation_count; i++) {
        const struct mt_explanation *why = &plan->explanations[i];

        if (why->phase == MT_NO_PHASE)
            continue;
        if (why->kind == MT_WHY_PHASE_RAISED_PEAK &&
            plan->to_events[i] == device->uses[why->phase].peak_allocated_event)
            add_phase_peak(plan, survey, device, why->phase, MT_INSTANT_PHASE_PEAK);
        if (why->kind == MT_WHY_PHASE_LEFT_MORE)
            add_phase_end(plan, survey, device, why->phase);
    }
}

void mt_plan_make(struct mt_plan *plan, const struct mt_survey *survey,
                  struct mt_survey_device *device, const bool *is_main)
{
    uint64_t least = mt_highs_since(&device->high[MT_HIGH_ALLOCATED], 0)->value / LEAST_SHARE;
    struct choice rises = {.most = MOST_RISES, .least_bytes = least};
    struct choice left = {.most = MOST_LEFT, .least_bytes = least};
    struct choice ends = {.most = MOST_LEFT, .least_bytes = least};
    struct choice peaks = {.most = MOST_STEP_RISES, .least_bytes = least};

    plan->instant_count = 0;
    plan->explanation_count = 0;
    find_rises(&rises, survey, device, is_main);
    find_left(&left, survey, device, is_main);
    find_step_changes(&ends, &peaks, survey, device);
    explain_chosen(plan, &rises);
    explain_chosen(plan, &left);
    explain_chosen(plan, &ends);
    explain_chosen(plan, &peaks);
    add_high(plan, survey, device, MT_HIGH_ALLOCATED, MT_INSTANT_PEAK_ALLOCATED);
    add_high(plan, survey, device, MT_HIGH_RESERVED, MT_INSTANT_PEAK_RESERVED);
    add_ooms(plan, survey, device);
    add_explained_instants(plan, survey, device);
    add_step_peaks(plan, survey, device);
}
