#include "analysis.h"

#include "util.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_RISES = 12, MAX_LEFT = 6, MAX_OF_A_NAME = 2, MAX_OOMS = 8 };

/* Changes below this share of the peak are not explained. */
#define MIN_SHARE 200 /* 1/200 */

/* Ranges around steps, and ranges of no kind around ranges of one ("train" around "forward" and
 * "backward"), are containers, not parts. */
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

void mt_main_phases(struct mt_arena *arena, const struct mt_phases *phases, bool **is_main)
{
    bool *container = mt_arena_array(arena, (size_t)phases->count + 1, sizeof *container);
    bool any = false;

    *is_main = mt_arena_array(arena, (size_t)phases->count + 1, sizeof **is_main);
    mark_containers(phases, container);
    mark_main(phases, container, false, *is_main);
    for (uint32_t i = 0; i < phases->count; i++)
        any |= (*is_main)[i];
    if (!any) /* without user ranges, use those of the framework */
        mark_main(phases, container, true, *is_main);
}

static void add_instant(struct mt_instants *chosen, const struct mt_survey *survey,
                        const struct mt_instant *instant)
{
    if (chosen->instant_count == MT_ARRAY_LEN(chosen->instants))
        return;
    struct mt_instant *added = &chosen->instants[chosen->instant_count++];
    *added = *instant;
    added->step =
        instant->phase == MT_NO_PHASE ? MT_NO_STEP : survey->phases.phases[instant->phase].step;
}

static void add_high(struct mt_instants *chosen, const struct mt_survey *survey,
                     struct mt_survey_device *device, int which, enum mt_instant_kind kind)
{
    const struct mt_high *high = mt_peak_windows_since(&device->high[which], 0);
    struct mt_instant instant = {.kind = kind,
                                 .t_ns = high->t_ns,
                                 .event = high->event,
                                 .phase = high->phase,
                                 .bytes = high->then};

    add_instant(chosen, survey, &instant);
}

static void add_ooms(struct mt_instants *chosen, const struct mt_survey *survey,
                     const struct mt_survey_device *device)
{
    for (uint32_t i = 0; i < device->oom_count; i++) {
        const struct mt_oom *oom = &device->oom_list[i];
        struct mt_instant instant = {.kind = MT_INSTANT_OOM,
                                     .t_ns = oom->t_ns,
                                     .event = oom->event,
                                     .phase = oom->phase,
                                     .bytes = oom->then};

        if (i < MAX_OOMS - 1 || i == device->oom_count - 1)
            add_instant(chosen, survey, &instant);
    }
}

static void add_phase_peak(struct mt_instants *chosen, const struct mt_survey *survey,
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

    add_instant(chosen, survey, &instant);
    if (kind == MT_INSTANT_STEP_PEAK)
        chosen->instants[chosen->instant_count - 1].step = survey->phases.phases[phase].step;
}

static void add_phase_end(struct mt_instants *chosen, const struct mt_survey *survey,
                          const struct mt_survey_device *device, int32_t phase)
{
    struct mt_instant instant = {.kind = MT_INSTANT_PHASE_END,
                                 .t_ns = survey->phases.phases[phase].end_t_ns,
                                 .event = survey->phases.phases[phase].end_event,
                                 .phase = phase,
                                 .bytes = device->uses[phase].exit};

    add_instant(chosen, survey, &instant);
}

/* A change that may be explained. */
struct change {
    struct mt_explanation why;
    const char *name; /* changes of one name compete with each other */
    uint64_t from_event, to_event;
};

/* Keeps the `most` largest, in order of arrival. */
struct choice {
    struct change kept[MAX_RISES];
    size_t count, most;
    uint64_t least_bytes;
};

static uint64_t size_of(const struct change *change)
{
    return change->why.to_bytes - change->why.from_bytes;
}

/* The smallest one kept, of a name or (NULL) of all, and their number. */
static size_t smallest_of(const struct choice *choice, const char *name, size_t *count)
{
    size_t smallest = SIZE_MAX;

    *count = 0;
    for (size_t i = 0; i < choice->count; i++) {
        if (name && strcmp(choice->kept[i].name, name) != 0)
            continue;
        (*count)++;
        if (smallest == SIZE_MAX || size_of(&choice->kept[i]) < size_of(&choice->kept[smallest]))
            smallest = i;
    }
    return smallest;
}

static void consider(struct choice *choice, const struct change *change)
{
    size_t count;

    if (change->why.to_bytes <= change->why.from_bytes || size_of(change) < choice->least_bytes)
        return;
    size_t smallest = smallest_of(choice, change->name, &count);
    if (count < MAX_OF_A_NAME) {
        if (choice->count < choice->most) {
            choice->kept[choice->count++] = *change;
            return;
        }
        smallest = smallest_of(choice, NULL, &count);
    }
    if (size_of(change) <= size_of(&choice->kept[smallest]))
        return;
    memmove(&choice->kept[smallest], &choice->kept[smallest + 1],
            (choice->count - smallest - 1) * sizeof *choice->kept);
    choice->kept[choice->count - 1] = *change;
}

static void explain_chosen(struct mt_instants *chosen, const struct choice *choice)
{
    for (size_t i = 0; i < choice->count; i++) {
        const struct change *change = &choice->kept[i];
        uint32_t at = chosen->explanation_count;

        if (at == MT_ARRAY_LEN(chosen->explanations))
            return;
        chosen->explanations[at] = change->why;
        chosen->from_events[at] = change->from_event;
        chosen->to_events[at] = change->to_event;
        chosen->explanation_count++;
    }
}

/* Whether it did not end before the first event of the trace. */
static bool is_recorded(const struct mt_survey_device *device, const struct mt_phase *phase)
{
    return phase->end_event >= device->first_event;
}

struct maximum {
    uint64_t bytes, event;
};

static void consider_rise(struct choice *choice, const struct mt_survey *survey, int32_t phase,
                          struct maximum *running, uint64_t bytes, uint64_t event)
{
    struct change change = {.why = {.kind = MT_WHY_PHASE_RAISED_PEAK,
                                    .phase = phase,
                                    .other_phase = MT_NO_PHASE,
                                    .step = MT_NO_STEP,
                                    .other_step = MT_NO_STEP,
                                    .from_bytes = running->bytes,
                                    .to_bytes = bytes},
                            .name = "",
                            .from_event = running->event,
                            .to_event = event};

    if (bytes <= running->bytes)
        return;
    if (phase != MT_NO_PHASE) {
        change.name = survey->phases.phases[phase].name;
        change.why.step = survey->phases.phases[phase].step;
    }
    consider(choice, &change);
    running->bytes = bytes;
    running->event = event;
}

static void find_rises(struct choice *choice, const struct mt_survey *survey,
                       struct mt_survey_device *device, const bool *is_main)
{
    const struct mt_high *peak = mt_peak_windows_since(&device->high[MT_HIGH_ALLOCATED], 0);
    struct maximum running = {0, MT_INSTANT_NOTHING};

    for (uint32_t i = 0; i < survey->phases.count; i++) {
        const struct mt_survey_before *before = &device->befores[i];
        const struct mt_phase_use *use = &device->uses[i];

        if (!is_main[i] || !is_recorded(device, &survey->phases.phases[i]))
            continue;
        consider_rise(choice, survey, before->peak_phase, &running, before->peak_bytes,
                      before->peak_event);
        consider_rise(choice, survey, (int32_t)i, &running, use->peak.allocated,
                      use->peak_allocated_event);
    }
    consider_rise(choice, survey, peak->phase, &running, peak->value, peak->event);
}

/* Forward and loss leave memory that backward will free, so they need no explanation. For other
 * parts the first instance is informative; traces without steps are compared with the last but
 * one. */
static int32_t instance_before(const struct mt_phases *phases, const bool *is_main, uint32_t index)
{
    for (uint32_t i = index; i-- > 0 && index - i < 200;)
        if (is_main[i] && !strcmp(phases->phases[i].name, phases->phases[index].name))
            return (int32_t)i;
    return MT_NO_PHASE;
}

/* Memory before the first event is empty. */
static uint64_t state_before(const struct mt_phase *phase)
{
    bool is_found = phase->source > MT_PHASE_SCOPES;

    return is_found && phase->begin_event == 0 ? MT_INSTANT_NOTHING
                                               : mt_phase_last_event_before(phase);
}

static void consider_left(struct choice *choice, const struct mt_survey *survey,
                          const struct mt_survey_device *device, int32_t index, int32_t before,
                          bool has_steps)
{
    const struct mt_phase *phase = &survey->phases.phases[index];
    struct change change = {.why = {.kind = MT_WHY_PHASE_LEFT_MORE,
                                    .phase = index,
                                    .other_phase = before,
                                    .step = phase->step,
                                    .other_step = phase->step,
                                    .from_bytes = device->uses[index].enter.allocated,
                                    .to_bytes = device->uses[index].exit.allocated},
                            .name = phase->name,
                            .from_event = state_before(phase),
                            .to_event = phase->end_event};

    if (before != MT_NO_PHASE) {
        change.why.from_bytes = device->uses[before].exit.allocated;
        change.from_event = survey->phases.phases[before].end_event;
    }
    if (before == MT_NO_PHASE || !has_steps)
        consider(choice, &change);
}

static void find_left(struct choice *choice, const struct mt_survey *survey,
                      const struct mt_survey_device *device, const bool *is_main, bool has_steps)
{
    for (uint32_t i = 0; i < survey->phases.count; i++) {
        uint8_t kind = survey->phases.facts[i].kind;

        if (!is_main[i] || !is_recorded(device, &survey->phases.phases[i]))
            continue;
        if (kind != MT_PHASE_FORWARD && kind != MT_PHASE_LOSS)
            consider_left(choice, survey, device, (int32_t)i,
                          instance_before(&survey->phases, is_main, i), has_steps);
    }
}

static struct change step_change(enum mt_explanation_kind kind, const struct mt_phases *phases,
                                 int32_t last, int32_t phase)
{
    return (struct change){.why = {.kind = kind,
                                   .phase = phase,
                                   .other_phase = last,
                                   .step = phases->phases[phase].step,
                                   .other_step = phases->phases[last].step},
                           .name = "step"};
}

static void consider_ends(struct choice *choice, const struct mt_survey *survey,
                          const struct mt_survey_device *device, int32_t last, int32_t phase)
{
    struct change change = step_change(MT_WHY_PHASE_LEFT_MORE, &survey->phases, last, phase);

    change.why.from_bytes = device->uses[last].exit.allocated;
    change.why.to_bytes = device->uses[phase].exit.allocated;
    change.from_event = survey->phases.phases[last].end_event;
    change.to_event = survey->phases.phases[phase].end_event;
    consider(choice, &change);
}

static void consider_peaks(struct choice *choice, const struct mt_survey *survey,
                           const struct mt_survey_device *device, int32_t last, int32_t phase)
{
    const struct mt_phase_use *a = &device->uses[last], *b = &device->uses[phase];
    struct change change = step_change(MT_WHY_STEP_PEAK_ROSE, &survey->phases, last, phase);

    change.why.from_bytes = a->peak.allocated;
    change.why.to_bytes = b->peak.allocated;
    change.from_event = a->peak_allocated_event;
    change.to_event = b->peak_allocated_event;
    consider(choice, &change);
}

/* The next step on the same thread; MT_NO_PHASE at the end. */
static int32_t next_step(const struct mt_survey *survey, const struct mt_survey_device *device,
                         int32_t last)
{
    const struct mt_phase *phases = survey->phases.phases;

    for (int32_t i = last + 1; i < (int32_t)survey->phases.count; i++) {
        if (!phases[i].is_step || !is_recorded(device, &phases[i]))
            continue;
        if (last == MT_NO_PHASE || (phases[i].thread == phases[last].thread &&
                                    phases[i].begin_event >= phases[last].end_event))
            return i;
    }
    return MT_NO_PHASE;
}

/* Memory that grows from step to step, after the first two, is explained as a whole, because it
 * looks like a leak. Otherwise the largest growths are. */
static void find_step_ends(struct choice *choice, const struct mt_survey *survey,
                           const struct mt_survey_device *device)
{
    int32_t first = next_step(survey, device, MT_NO_PHASE), last, at;
    uint32_t steps = 0, grown = 0;
    int32_t second = first == MT_NO_PHASE ? first : next_step(survey, device, first);

    for (last = at = second; at != MT_NO_PHASE; at = next_step(survey, device, at)) {
        steps += at != second;
        grown += device->uses[at].exit.allocated > device->uses[last].exit.allocated;
        last = at;
    }
    if (steps >= 3 && grown * 3 >= steps * 2) {
        choice->least_bytes /= 10; /* a trend is worth explaining, a fluctuation is not */
        consider_ends(choice, survey, device, second, last);
        return;
    }
    for (last = first, at = second; at != MT_NO_PHASE; at = next_step(survey, device, at)) {
        consider_ends(choice, survey, device, last, at);
        last = at;
    }
}

/* Steps whose peak exceeds that of the previous step and of all earlier ones. */
static void find_step_peaks(struct choice *choice, const struct mt_survey *survey,
                            const struct mt_survey_device *device)
{
    int32_t last = next_step(survey, device, MT_NO_PHASE), at;
    uint64_t highest = 0;

    for (; last != MT_NO_PHASE; last = at) {
        highest = mt_max_u64(highest, device->uses[last].peak.allocated);
        at = next_step(survey, device, last);
        if (at != MT_NO_PHASE && device->uses[at].peak.allocated > highest)
            consider_peaks(choice, survey, device, last, at);
    }
}

static void add_step_peaks(struct mt_instants *chosen, const struct mt_survey *survey,
                           const struct mt_survey_device *device)
{
    uint32_t added = 0;

    for (uint32_t i = 0; i < survey->phases.count && added < 16; i++) {
        if (survey->phases.phases[i].is_step && is_recorded(device, &survey->phases.phases[i])) {
            add_phase_peak(chosen, survey, device, (int32_t)i, MT_INSTANT_STEP_PEAK);
            added++;
        }
    }
}

static void add_explained_instants(struct mt_instants *chosen, const struct mt_survey *survey,
                                   const struct mt_survey_device *device)
{
    for (uint32_t i = 0; i < chosen->explanation_count; i++) {
        const struct mt_explanation *why = &chosen->explanations[i];

        if (why->phase == MT_NO_PHASE)
            continue;
        if (why->kind == MT_WHY_PHASE_RAISED_PEAK &&
            chosen->to_events[i] == device->uses[why->phase].peak_allocated_event)
            add_phase_peak(chosen, survey, device, why->phase, MT_INSTANT_PHASE_PEAK);
        if (why->kind == MT_WHY_PHASE_LEFT_MORE)
            add_phase_end(chosen, survey, device, why->phase);
    }
}

void mt_instants_choose(struct mt_instants *chosen, const struct mt_survey *survey,
                        struct mt_survey_device *device, const bool *is_main)
{
    uint64_t least = mt_peak_windows_since(&device->high[MT_HIGH_ALLOCATED], 0)->value / MIN_SHARE;
    struct choice rises = {.most = MAX_RISES, .least_bytes = least};
    struct choice left = {.most = MAX_LEFT, .least_bytes = least};
    struct choice ends = {.most = MAX_LEFT, .least_bytes = 10 * least};
    struct choice peaks = {.most = MAX_OF_A_NAME, .least_bytes = least};

    chosen->instant_count = 0;
    chosen->explanation_count = 0;
    find_rises(&rises, survey, device, is_main);
    find_left(&left, survey, device, is_main,
              next_step(survey, device, MT_NO_PHASE) != MT_NO_PHASE);
    find_step_ends(&ends, survey, device);
    find_step_peaks(&peaks, survey, device);
    explain_chosen(chosen, &rises);
    explain_chosen(chosen, &left);
    explain_chosen(chosen, &ends);
    explain_chosen(chosen, &peaks);
    add_high(chosen, survey, device, MT_HIGH_ALLOCATED, MT_INSTANT_PEAK_ALLOCATED);
    add_high(chosen, survey, device, MT_HIGH_RESERVED, MT_INSTANT_PEAK_RESERVED);
    add_ooms(chosen, survey, device);
    add_explained_instants(chosen, survey, device);
    add_step_peaks(chosen, survey, device);
}
