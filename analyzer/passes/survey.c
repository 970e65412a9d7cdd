/* Finds the instants of interest of a run: peaks, phases, steps. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "alloc_log.h"
#include "counters.h"
#include "driver_ledger.h"
#include "grow.h"
#include "process_memory.h"
#include "recorded_roles.h"
#include "report.h"
#include "roles.h"
#include "sorted.h"
#include "survey.h"
#include "util.h"
#include "xla_roles.h"

static void join_pairs(struct mt_retry_marks *list)
{
    for (uint32_t i = 0; i < list->count / 2; i++) {
        list->marks[i] = list->marks[2 * i];
        list->marks[i].retries += list->marks[2 * i + 1].retries;
    }
    list->count /= 2;
}

void mt_retry_marks_add(struct mt_retry_marks *list, uint64_t t_ns, uint64_t event,
                        uint64_t retries)
{
    if (retries <= list->retries)
        return;
    if (!list->marks)
        list->marks = mt_memory_zeroed(MT_MAX_RETRY_MARKS, sizeof *list->marks);
    if (list->count == MT_MAX_RETRY_MARKS)
        join_pairs(list);
    list->marks[list->count++] = (struct mt_retry_mark){t_ns, event, retries - list->retries};
    list->retries = retries;
}

void mt_retry_marks_release(struct mt_retry_marks *list)
{
    free(list->marks);
    memset(list, 0, sizeof *list);
}

/* `earlier` has the maxima of consecutive stretches of starts, from the first start. A stretch that
 * a later one exceeds is merged into it, so values never rise along the stack. Equal ones stay
 * separate: an earlier window needs the first instant of the maximum. A stretch that starts exactly
 * at the previous maximum is not a new one. */

/* Merges stretches that the last one exceeds. */
static void settle(struct mt_peak_windows *window)
{
    while (window->count && window->earlier[window->count - 1].value < window->top.value) {
        window->count--;
        window->top.begin = window->earlier[window->count].begin;
    }
}

void mt_peak_windows_begin(struct mt_peak_windows *window, const struct mt_high *now)
{
    settle(window);
    if (now->value == window->top.value)
        return; /* the previous maximum is still the maximum */
    mt_grow_to(&window->earlier, &window->capacity, window->count + 1, sizeof *window->earlier);
    window->earlier[window->count++] = window->top;
    window->top = *now;
}

const struct mt_high *mt_peak_windows_since(struct mt_peak_windows *window, uint64_t begin)
{
    size_t low = 0;

    settle(window);
    if (begin >= window->top.begin || window->count == 0)
        return &window->top;
    for (size_t high = window->count; low + 1 < high;) {
        size_t middle = low + (high - low) / 2;

        if (window->earlier[middle].begin <= begin)
            low = middle;
        else
            high = middle;
    }
    return &window->earlier[low];
}

void mt_peak_windows_release(struct mt_peak_windows *window)
{
    free(window->earlier);
    memset(window, 0, sizeof *window);
}

#define SURVEY_USES (1u << 21) /* maximum of phases times devices */
#define SURVEY_OOMS 256        /* the first ones, and the last */

void mt_survey_init(struct mt_survey *survey, struct mt_arena *arena,
                    const struct mt_source *source)
{
    memset(survey, 0, sizeof *survey);
    survey->arena = arena;
    survey->symbols = &source->symbols;
    survey->source = source;
    mt_phases_init(&survey->phases, arena, &source->symbols);
    mt_role_clock_init(&survey->roles, &survey->phases, &source->symbols,
                       source->header.has_stacks && !mt_header_names_operations(&source->header) &&
                           source->view.level != MT_VIEW_DRIVER);
    mt_xla_roles_init(&survey->xla, &source->symbols, source->view.level == MT_VIEW_DRIVER);
}

static void release_device(struct mt_survey_device *device)
{
    for (int i = 0; i < MT_HIGH_COUNT; i++)
        mt_peak_windows_release(&device->high[i]);
    if (device->use_capacity)
        free(device->uses);
    free(device->befores);
    free(device->oom_list);
    mt_pool_ledger_release(&device->pools);
    mt_retry_marks_release(&device->retries);
}

void mt_survey_release(struct mt_survey *survey)
{
    for (uint32_t i = 0; i < survey->device_count; i++)
        release_device(&survey->devices[i]);
    free(survey->devices);
    mt_phases_release(&survey->phases);
    mt_role_clock_release(&survey->roles);
    mt_xla_roles_release(&survey->xla);
    mt_alloc_log_release(&survey->log);
    memset(survey, 0, sizeof *survey);
}

void mt_survey_restart(void *context)
{
    struct mt_survey *survey = context;
    const struct mt_source *source = survey->source;
    struct mt_arena *arena = survey->arena;

    mt_survey_release(survey);
    mt_survey_init(survey, arena, source);
}

static void reserve_uses(struct mt_survey_device *device, uint32_t count)
{
    uint32_t capacity = device->use_capacity ? device->use_capacity : 64;

    if (count <= device->use_capacity)
        return;
    while (capacity < count)
        capacity *= 2;
    void *bigger = mt_memory_resize(device->uses, capacity * sizeof *device->uses);
    device->uses = bigger;
    bigger = mt_memory_resize(device->befores, capacity * sizeof *device->befores);
    device->befores = bigger;
    memset(device->uses + device->use_capacity, 0,
           (capacity - device->use_capacity) * sizeof *device->uses);
    memset(device->befores + device->use_capacity, 0,
           (capacity - device->use_capacity) * sizeof *device->befores);
    device->use_capacity = capacity;
}

/* Phases that ended before the device's first event do not concern it. */
static void skip_ended(const struct mt_survey *survey, struct mt_survey_device *device)
{
    const struct mt_phases *phases = &survey->phases;

    for (uint32_t i = 0; i < phases->count; i++)
        device->befores[i].ended = true;
    for (uint32_t i = 0; i < phases->thread_count; i++)
        for (uint32_t at = phases->threads[i].top; at; at = phases->open[at - 1].outer)
            if (phases->open[at - 1].recorded)
                device->befores[phases->open[at - 1].phase].ended = false;
}

/* Phases cost memory per device, so their product is bounded. */
static bool can_follow(const struct mt_survey *survey, uint16_t device)
{
    return device < MT_MAX_DEVICES &&
           (uint64_t)survey->phases.count * (survey->device_count + 1) <= SURVEY_USES;
}

static struct mt_survey_device *new_device(struct mt_survey *survey, const struct mt_event *event)
{
    struct mt_survey_device *bigger;

    if (!can_follow(survey, event->device))
        return NULL;
    bigger = mt_memory_resize(survey->devices, (survey->device_count + 1) * sizeof *bigger);
    survey->devices = bigger;
    struct mt_survey_device *device = &bigger[survey->device_count++];
    memset(device, 0, sizeof *device);
    device->device = event->device;
    device->first_t_ns = device->last_t_ns = event->t_ns;
    device->first_event = event->seq;
    for (int i = 0; i < MT_HIGH_COUNT; i++) {
        device->high[i].top.t_ns = event->t_ns;
        device->high[i].top.event = event->seq;
        device->high[i].top.phase = MT_NO_PHASE;
    }
    survey->device_slot[event->device] = (uint8_t)survey->device_count;
    reserve_uses(device, survey->phases.count + 1);
    skip_ended(survey, device);
    return device;
}

static inline struct mt_survey_device *device_of(struct mt_survey *survey,
                                                 const struct mt_event *event)
{
    uint8_t slot =
        event->device < MT_ARRAY_LEN(survey->device_slot) ? survey->device_slot[event->device] : 0;

    return slot ? &survey->devices[slot - 1] : new_device(survey, event);
}

static void set_high(struct mt_peak_windows *window, uint64_t value, const struct mt_bytes *now,
                     const struct mt_event *event, int32_t phase)
{
    window->top.value = value;
    window->top.t_ns = event->t_ns;
    window->top.event = event->seq;
    window->top.phase = phase;
    window->top.then = *now;
}

static inline void note_reserved(struct mt_survey_device *device, const struct mt_event *event,
                                 const struct mt_bytes *now, int32_t phase)
{
    uint64_t unused = now->reserved - now->allocated;

    if (mt_peak_windows_is_higher(&device->high[MT_HIGH_RESERVED], now->reserved))
        set_high(&device->high[MT_HIGH_RESERVED], now->reserved, now, event, phase);
    if (unused > device->most_unused.bytes && now->reserved >= now->allocated) {
        device->most_unused.bytes = unused;
        device->most_unused.t_ns = event->t_ns;
    }
}

/* A program cannot observe a state between a segment and the block that it was made for, so
 * reserved bytes count when the request is served. */
static inline void note_levels(struct mt_survey_device *device, const struct mt_event *event,
                               const struct mt_bytes *now, int32_t phase)
{
    struct mt_peak_windows *high = device->high;

    device->waits_for_block = mt_event_is_segment(event);
    if (device->waits_for_block)
        return;
    if (mt_peak_windows_is_higher(&high[MT_HIGH_REQUESTED], now->requested))
        set_high(&high[MT_HIGH_REQUESTED], now->requested, now, event, phase);
    if (mt_peak_windows_is_higher(&high[MT_HIGH_ALLOCATED], now->allocated))
        set_high(&high[MT_HIGH_ALLOCATED], now->allocated, now, event, phase);
    if (mt_peak_windows_is_higher(&high[MT_HIGH_ACTIVE], now->active))
        set_high(&high[MT_HIGH_ACTIVE], now->active, now, event, phase);
    note_reserved(device, event, now, phase);
}

/* For a trace that ends there. If nothing happened on the device, its state at the start is the
 * only known instant. */
static void note_last_level(struct mt_survey_device *device)
{
    const struct mt_event end = {.seq = device->last_event, .t_ns = device->last_t_ns};

    if (device->begun && device->waits_for_block)
        note_reserved(device, &end, &device->now, MT_NO_PHASE);
    if (device->begun)
        return;
    note_levels(device, &end, &device->now, MT_NO_PHASE);
    device->worst_unused = device->most_unused;
}

static void keep_gap(struct mt_survey_device *device, uint64_t begin_t_ns, uint64_t end_t_ns)
{
    uint32_t shortest = 0;

    if (device->gap_count < MT_SURVEY_GAPS) {
        device->gaps[device->gap_count++] = (struct mt_gap){begin_t_ns, end_t_ns};
        return;
    }
    for (uint32_t i = 1; i < MT_SURVEY_GAPS; i++)
        if (device->gaps[i].end_t_ns - device->gaps[i].begin_t_ns <
            device->gaps[shortest].end_t_ns - device->gaps[shortest].begin_t_ns)
            shortest = i;
    if (end_t_ns - begin_t_ns > device->gaps[shortest].end_t_ns - device->gaps[shortest].begin_t_ns)
        device->gaps[shortest] = (struct mt_gap){begin_t_ns, end_t_ns};
    device->shortest_gap_ns = UINT64_MAX;
    for (uint32_t i = 0; i < MT_SURVEY_GAPS; i++)
        device->shortest_gap_ns = mt_min_u64(device->shortest_gap_ns,
                                             device->gaps[i].end_t_ns - device->gaps[i].begin_t_ns);
}

static inline void note_time(struct mt_survey_device *device, uint64_t t_ns)
{
    if (t_ns > device->last_t_ns) {
        if (t_ns - device->last_t_ns > device->shortest_gap_ns)
            keep_gap(device, device->last_t_ns, t_ns);
        device->last_t_ns = t_ns;
    }
}

static void begin_use(const struct mt_survey *survey, struct mt_survey_device *device,
                      const struct mt_event *event, int32_t phase)
{
    const uint64_t values[MT_HIGH_COUNT] = {device->now.requested, device->now.allocated,
                                            device->now.active, device->now.reserved};
    struct mt_high begin = {.begin = (uint64_t)phase + 1,
                            .t_ns = event->t_ns,
                            .event = mt_phase_last_event_before(&survey->phases.phases[phase]),
                            .phase = phase,
                            .then = device->now};
    const struct mt_high *so_far = mt_peak_windows_since(&device->high[MT_HIGH_ALLOCATED], 0);

    reserve_uses(device, (uint32_t)phase + 1);
    device->befores[phase].peak_bytes = so_far->value;
    device->befores[phase].peak_event = so_far->event;
    device->befores[phase].peak_phase = so_far->phase;
    device->uses[phase].enter = device->now;
    device->uses[phase].allocations = device->allocations;
    device->uses[phase].frees = device->frees;
    for (int i = 0; i < MT_HIGH_COUNT; i++) {
        begin.value = values[i];
        mt_peak_windows_begin(&device->high[i], &begin);
    }
}

/* The phase's own maximum of allocated bytes; the level at its start, if it never rose. */
static void take_peak(struct mt_survey *survey, struct mt_survey_device *device, int32_t index)
{
    const struct mt_high *high =
        mt_peak_windows_since(&device->high[MT_HIGH_ALLOCATED], (uint64_t)index + 1);
    const struct mt_phase *phase = &survey->phases.phases[index];
    struct mt_phase_use *use = &device->uses[index];
    struct mt_survey_before *before = &device->befores[index];
    bool at_begin = high->event < phase->begin_event;

    use->peak.allocated = high->value;
    use->peak_allocated_t_ns = at_begin ? phase->begin_t_ns : high->t_ns;
    use->peak_allocated_event = at_begin ? mt_phase_last_event_before(phase) : high->event;
    before->then = at_begin ? use->enter : high->then;
    before->then_phase = at_begin ? index : high->phase;
    use->raises_peak = high->value > before->peak_bytes;
}

static void end_use(struct mt_survey *survey, struct mt_survey_device *device, int32_t phase)
{
    struct mt_phase_use *use = &device->uses[phase];
    const uint64_t begin = (uint64_t)phase + 1;

    if (device->befores[phase].ended)
        return;
    device->befores[phase].ended = true;
    use->exit = device->now;
    use->allocations = device->allocations - use->allocations;
    use->frees = device->frees - use->frees;
    use->peak.requested = mt_peak_windows_since(&device->high[MT_HIGH_REQUESTED], begin)->value;
    use->peak.active = mt_peak_windows_since(&device->high[MT_HIGH_ACTIVE], begin)->value;
    use->peak.reserved = mt_peak_windows_since(&device->high[MT_HIGH_RESERVED], begin)->value;
    take_peak(survey, device, phase);
}

static void on_push(struct mt_survey *survey, const struct mt_event *event)
{
    int32_t phase;

    if ((uint64_t)survey->phases.count * survey->device_count >= SURVEY_USES)
        mt_phases_stop(&survey->phases);
    mt_phases_push(&survey->phases, event, &phase);
    mt_role_clock_push(&survey->roles, phase, event->name);
    for (uint32_t i = 0; phase != MT_NO_PHASE && i < survey->device_count; i++) {
        note_time(&survey->devices[i], event->t_ns);
        begin_use(survey, &survey->devices[i], event, phase);
    }
}

static void on_pop(struct mt_survey *survey, const struct mt_event *event)
{
    mt_phases_pop(&survey->phases, event);
    mt_role_clock_pop(&survey->roles);
    for (uint32_t i = 0; i < survey->device_count; i++) {
        struct mt_survey_device *device = &survey->devices[i];

        note_time(device, event->t_ns);
        for (uint32_t j = 0; j < survey->phases.ended_count; j++)
            if ((uint32_t)survey->phases.ended[j] < device->use_capacity)
                end_use(survey, device, survey->phases.ended[j]);
    }
}

/* Allocations of untracked devices also take an entry in the log. */
static void pad_log(struct mt_survey *survey, uint64_t allocation)
{
    while (allocation != MT_NO_ALLOCATION && survey->log.count < allocation)
        mt_alloc_log_add(&survey->log, 0, MT_ROLE_OTHER);
}

static struct mt_oom oom_of(const struct mt_survey_device *device, const struct mt_event *event,
                            int32_t phase)
{
    return (struct mt_oom){.t_ns = event->t_ns,
                           .event = event->seq,
                           .request_bytes = event->size_bytes,
                           .phase = phase,
                           .step = MT_NO_STEP,
                           .stack = event->stack,
                           .then = device->now};
}

static void note_failure(struct mt_survey_device *device, const struct mt_event *event,
                         int32_t phase)
{
    device->has_failure = true;
    device->first_failure = oom_of(device, event, phase);
}

/* A recorded role is final. */
static uint8_t first_code(struct mt_survey *survey, const struct mt_event *event)
{
    enum mt_role role;

    if (!mt_recorded_role(survey->symbols, event->name, &role)) {
        survey->infers_roles = true;
        return MT_ROLE_CODE_OPEN;
    }
    return (uint8_t)(MT_ROLE_CODE_RECORDED + (int)role);
}

/* A recorded role stays, but the end is evidence for other blocks. */
static void end_block(struct mt_survey *survey, int32_t phase, uint64_t allocation,
                      enum mt_fate fate)
{
    uint8_t *code = &survey->log.roles[allocation];
    const uint8_t inferred = mt_role_clock_end(&survey->roles, phase, allocation, fate);

    *code = mt_role_code_is_recorded(*code)
                ? (uint8_t)(*code + (MT_ROLE_CODE_ENDED - MT_ROLE_CODE_RECORDED))
                : inferred;
}

static void on_alloc(struct mt_survey *survey, struct mt_survey_device *device,
                     const struct mt_event *event, const struct mt_replay_view *view, int32_t phase)
{
    const bool initial = event->flags & MT_EVENT_INITIAL;
    const bool is_failure = !view->block_bytes && event->size_bytes && !view->is_left_out;

    pad_log(survey, view->allocation);
    if (view->allocation == MT_NO_ALLOCATION)
        return;
    mt_role_clock_birth(&survey->roles, phase, event, view->allocation);
    mt_xla_roles_birth(&survey->xla, event, view->allocation);
    if (view->block_bytes) {
        device->unwinding = false;
        if (!initial)
            device->maybe_fatal = device->oom_count;
        device->live_blocks++;
        device->live_blocks_peak = mt_max_u64(device->live_blocks_peak, device->live_blocks);
    } else if (is_failure && !device->has_failure)
        note_failure(device, event, phase);
    device->allocations += !initial;
    mt_pool_ledger_alloc(&device->pools, event, view);
    mt_alloc_log_add(&survey->log, view->block_bytes, first_code(survey, event));
    if (is_failure) {
        end_block(survey, phase, view->allocation, MT_FATE_FREED);
        mt_xla_roles_end(&survey->xla, view->allocation);
    }
}

/* Whether it is the first of the events that free a block. */
static bool is_first_of_free(const struct mt_survey *survey, const struct mt_event *event)
{
    return event->kind == MT_EVENT_FREE_REQUESTED || !survey->source->header.has_free_requested;
}

static void on_free(struct mt_survey *survey, struct mt_survey_device *device,
                    const struct mt_event *event, const struct mt_replay_view *view, int32_t phase)
{
    if (view->allocation >= survey->log.count)
        return;
    if (!mt_role_code_is_open(survey->log.roles[view->allocation])) {
        /* A refused request ended when it failed. */
        device->frees += !view->block_bytes && is_first_of_free(survey, event);
        return;
    }
    end_block(survey, phase, view->allocation, device->unwinding ? MT_FATE_UNWOUND : MT_FATE_FREED);
    if (view->block_bytes && device->live_blocks)
        device->live_blocks--; /* it was served */
    mt_pool_ledger_free(&device->pools, view);
    device->frees++;
    mt_xla_roles_end(&survey->xla, view->allocation);
}

static void on_oom(struct mt_survey_device *device, const struct mt_event *event, int32_t phase)
{
    if (!device->oom_list)
        device->oom_list = mt_memory_zeroed(SURVEY_OOMS, sizeof *device->oom_list);
    device->ooms++;
    device->unwinding = true;
    if (device->oom_count < SURVEY_OOMS)
        device->oom_count++;
    device->oom_list[device->oom_count - 1] = oom_of(device, event, phase);
    device->oom_list[device->oom_count - 1].device_free_bytes = event->aux_bytes;
    if (device->maybe_fatal == SURVEY_OOMS)
        device->maybe_fatal--;
}

/* State at the start of the trace counts: peaks are those since then. */
static void begin_devices(struct mt_survey *survey, uint64_t first_event)
{
    survey->first_event = first_event;
    survey->begun = true;
    for (uint32_t i = 0; i < survey->device_count; i++) {
        struct mt_survey_device *device = &survey->devices[i];
        const struct mt_event start = {.seq = device->last_event, .t_ns = device->first_t_ns};

        if (device->counters) /* a limit may have released the cache */
            device->now.reserved = device->start.reserved =
                mt_min_u64(device->start.reserved, device->counters->reserved.peak);
        note_levels(device, &start, &device->start, MT_NO_PHASE);
        device->worst_unused = device->most_unused;
    }
}

/* A level of zero at the start is the maximum after the last initial event, not after the first:
 * an initial block may already be free, and only wait for the end of its stream. */
static void put_off_highs(struct mt_survey_device *device, const struct mt_event *event)
{
    for (int i = 0; i < MT_HIGH_COUNT; i++)
        device->high[i].top.event = event->seq;
}

static void begin_device(struct mt_survey_device *device, const struct mt_event *event)
{
    device->begun = true;
    device->first_event = event->seq;
    device->first_t_ns = device->last_t_ns = event->t_ns;
}

static void on_memory(struct mt_survey *survey, const struct mt_event *event,
                      const struct mt_replay_view *view)
{
    struct mt_survey_device *device = device_of(survey, event);
    int32_t phase = mt_phases_current(&survey->phases, event->thread);

    if (!device && can_follow(survey, event->device))
        mt_memory_end();
    if (!device) {
        if (event->device < MT_MAX_DEVICES) /* the replay counts the others */
            survey->not_followed |= UINT64_C(1) << event->device;
        return;
    }
    struct mt_bytes now = mt_counters_bytes(view->counters);
    if (now.reserved != device->now.reserved)
        mt_alloc_log_reserved(&survey->log, event->seq, event->device,
                              (int64_t)(now.reserved - device->now.reserved));
    if (!device->begun && !(event->flags & MT_EVENT_INITIAL))
        begin_device(device, event);
    mt_retry_marks_add(&device->retries, event->t_ns, event->seq, view->counters->retries);
    device->now = now;
    device->last_event = event->seq;
    if (event->kind == MT_EVENT_ALLOC)
        on_alloc(survey, device, event, view, phase);
    else if (event->kind == MT_EVENT_FREE_REQUESTED || event->kind == MT_EVENT_FREE_COMPLETED)
        on_free(survey, device, event, view, phase);
    else if (event->kind == MT_EVENT_OOM)
        on_oom(device, event, phase);
    else if (event->kind == MT_EVENT_ALLOC_FAILED)
        device->refusals++;
    else if (mt_event_is_segment(event))
        mt_pool_ledger_segment(&device->pools, event, view);
    if (event->flags & MT_EVENT_INITIAL) {
        device->start = now;
        if (survey->begun) { /* damaged: begin_devices has taken the level at the start before it */
            note_levels(device, event, &device->start, MT_NO_PHASE);
        } else {
            device->counters = view->counters;
            put_off_highs(device, event);
        }
        return;
    }
    device->events++;
    note_time(device, event->t_ns);
    note_levels(device, event, &device->now, phase);
    if ((event->kind == MT_EVENT_ALLOC && view->block_bytes) || event->kind == MT_EVENT_OOM)
        device->worst_unused = device->most_unused;
}

static void on_range(struct mt_survey *survey, const struct mt_event *event)
{
    mt_xla_roles_range(&survey->xla, event);
    if (event->kind == MT_EVENT_PHASE_POP)
        on_pop(survey, event);
    else
        on_push(survey, event);
}

void mt_survey_event(void *context, const struct mt_event *event, const struct mt_replay_view *view)
{
    struct mt_survey *survey = context;

    if (survey->events++ == 0)
        survey->first_t_ns = event->t_ns;
    survey->last_t_ns = event->t_ns;
    survey->last_event = event->seq;
    if (!survey->begun && !(event->flags & MT_EVENT_INITIAL))
        begin_devices(survey, event->seq);
    if (mt_event_is_memory(event)) {
        on_memory(survey, event, view);
        return;
    }
    if (event->kind == MT_EVENT_PHASE_PUSH || event->kind == MT_EVENT_PHASE_POP) {
        on_range(survey, event);
        return;
    }
    survey->dropped |= event->kind == MT_EVENT_DROPPED;
}

MT_DEFINE_ORDER(by_begin, struct mt_gap, MT_ASCENDING(begin_t_ns))

static void finish_device(struct mt_survey *survey, struct mt_survey_device *device)
{
    if (device->has_failure && device->first_failure.phase != MT_NO_PHASE)
        device->first_failure.step = survey->phases.phases[device->first_failure.phase].step;
    note_last_level(device);
    for (uint32_t i = 0; i < survey->phases.count && i < device->use_capacity; i++)
        end_use(survey, device, (int32_t)i);
    qsort(device->gaps, device->gap_count, sizeof *device->gaps, by_begin);
    for (uint32_t i = 0; i < device->oom_count; i++) {
        struct mt_oom *oom = &device->oom_list[i];

        oom->fatal = i >= device->maybe_fatal;
        if (oom->phase != MT_NO_PHASE)
            oom->step = survey->phases.phases[oom->phase].step;
    }
}

void mt_survey_finish(struct mt_survey *survey)
{
    mt_phases_finish(&survey->phases, survey->last_t_ns, survey->last_event);
    mt_role_clock_finish(&survey->roles, survey->log.roles, &survey->log.units, survey->log.count);
    mt_xla_roles_finish(&survey->xla, survey->log.roles, survey->log.count);
    for (uint32_t i = 0; i < survey->device_count; i++) {
        reserve_uses(&survey->devices[i], survey->phases.count);
        finish_device(survey, &survey->devices[i]);
    }
}
