/* Deterministic, plausible reports for tests of charts, made without a trace. Release them with
 * synthetic_release. */
#ifndef TESTS_SYNTHETIC_REPORT_H
#define TESTS_SYNTHETIC_REPORT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dice.h"
#include "symbols.h"
#include "timeline_model.h"
#include "util.h"

enum synthetic_kind {
    SYNTHETIC_TRAINING, /* setup, a pause, `steps` steps of four phases */
    SYNTHETIC_NO_PHASES,
    SYNTHETIC_OOM_FIRST, /* nothing but one failed request */
    SYNTHETIC_RANDOM     /* arbitrary content, from `seed` */
};

struct synthetic_options {
    enum synthetic_kind kind;
    uint32_t steps;
    uint32_t ooms; /* caught, in the first step */
    bool fatal;    /* the last failed request ended the run */
    uint64_t limit_bytes;
    bool in_middle;
    uint16_t devices; /* 0 is read as 1 */
    uint64_t seed;
    uint32_t bins; /* 0 is read as 4096 */
};

/* One state after an event. */
struct synthetic_state {
    uint64_t t_ns, event, reserved;
    uint64_t roles[MT_ROLE_COUNT];
    int32_t phase;
    int64_t step;
};

struct synthetic_run {
    struct synthetic_state *states;
    size_t count, capacity;
    uint64_t t_ns, event, reserved, roles[MT_ROLE_COUNT];
    struct mt_phase *phases;
    uint32_t phase_count, phase_capacity;
    struct mt_gap gap;
    uint64_t seed;
};

static inline uint64_t synthetic_random(uint64_t *seed)
{
    return dice_linear(seed) >> 33;
}

static inline uint64_t synthetic_allocated(const uint64_t *roles)
{
    uint64_t sum = 0;

    for (int i = 0; i < MT_ROLE_COUNT; i++)
        sum += roles[i];
    return sum;
}

/* Changes one role by `change` bytes, `ns` later. */
static inline void synthetic_event(struct synthetic_run *run, uint64_t ns, int role, int64_t change,
                                   int32_t phase, int64_t step)
{
    struct synthetic_state *state;
    uint64_t allocated;

    if (run->count == run->capacity) {
        run->capacity = run->capacity ? run->capacity * 2 : 1024;
        run->states = realloc(run->states, run->capacity * sizeof *run->states);
    }
    run->t_ns += ns;
    run->roles[role] += (uint64_t)change;
    allocated = synthetic_allocated(run->roles);
    while (run->reserved < allocated)
        run->reserved += 20 * MT_MIB;
    state = &run->states[run->count++];
    state->t_ns = run->t_ns;
    state->event = run->event++;
    state->reserved = run->reserved;
    memcpy(state->roles, run->roles, sizeof state->roles);
    state->phase = phase;
    state->step = step;
}

static inline int32_t synthetic_begin(struct synthetic_run *run, struct mt_arena *arena,
                                      const char *name, int32_t parent, int64_t step, bool is_step)
{
    struct mt_phase *phase;

    if (run->phase_count == run->phase_capacity) {
        run->phase_capacity = run->phase_capacity ? run->phase_capacity * 2 : 64;
        run->phases = realloc(run->phases, run->phase_capacity * sizeof *run->phases);
    }
    phase = &run->phases[run->phase_count];
    memset(phase, 0, sizeof *phase);
    phase->name = mt_arena_text(arena, name, strlen(name));
    phase->path =
        parent < 0 ? phase->name : mt_arena_printf(arena, "%s/%s", run->phases[parent].path, name);
    phase->parent = parent;
    phase->depth = parent < 0 ? 0 : run->phases[parent].depth + 1;
    phase->step = step;
    phase->is_step = is_step;
    phase->is_plumbing = !strncmp(name, "Optimizer.", 10);
    phase->begin_t_ns = run->t_ns;
    phase->begin_event = run->event;
    return (int32_t)run->phase_count++;
}

static inline void synthetic_end(struct synthetic_run *run, int32_t phase)
{
    run->t_ns += 1000;
    run->phases[phase].end_t_ns = run->t_ns;
    run->phases[phase].end_event = run->event;
}

static inline void synthetic_step(struct synthetic_run *run, struct mt_arena *arena, int64_t number)
{
    char name[32];
    int32_t step, phase, inner;

    snprintf(name, sizeof name, "step#%lld", (long long)number);
    step = synthetic_begin(run, arena, name, -1, number, true);
    phase = synthetic_begin(run, arena, "forward", step, number, false);
    for (int i = 0; i < 30; i++)
        synthetic_event(run, 1500000, MT_ROLE_ACTIVATIONS, 70 * (int64_t)MT_MIB, phase, number);
    synthetic_end(run, phase);
    phase = synthetic_begin(run, arena, "loss", step, number, false);
    synthetic_event(run, 300000, MT_ROLE_TEMPORARIES, (600 + number % 3 * 90) * (int64_t)MT_MIB,
                    phase, number);
    synthetic_end(run, phase);
    phase = synthetic_begin(run, arena, "backward", step, number, false);
    synthetic_event(run, 20000, MT_ROLE_TEMPORARIES, 400 * (int64_t)MT_MIB, phase, number);
    synthetic_event(run, 15000, MT_ROLE_TEMPORARIES, -(1000 + number % 3 * 90) * (int64_t)MT_MIB,
                    phase, number);
    for (int i = 0; i < 30; i++) {
        synthetic_event(run, 1900000, MT_ROLE_ACTIVATIONS, -70 * (int64_t)MT_MIB, phase, number);
        synthetic_event(run, 1000, MT_ROLE_GRADIENTS, 10 * (int64_t)MT_MIB, phase, number);
    }
    synthetic_end(run, phase);
    phase = synthetic_begin(run, arena, "optimizer", step, number, false);
    inner = synthetic_begin(run, arena, "Optimizer.step#Adam.step", phase, number, false);
    if (number == 0)
        synthetic_event(run, 900000, MT_ROLE_OPTIMIZER_STATE, 600 * (int64_t)MT_MIB, inner, number);
    synthetic_event(run, 900000, MT_ROLE_GRADIENTS, -300 * (int64_t)MT_MIB, inner, number);
    synthetic_end(run, inner);
    synthetic_end(run, phase);
    synthetic_end(run, step);
}

static inline void synthetic_training(struct synthetic_run *run, struct mt_arena *arena,
                                      uint32_t steps)
{
    for (uint32_t i = 0; i < 20; i++)
        synthetic_event(run, i ? 4000000 : 0, MT_ROLE_PARAMETERS, 15 * (int64_t)MT_MIB, -1,
                        MT_NO_STEP);
    run->gap.begin_t_ns = run->t_ns;
    run->t_ns += 3200000000u;
    run->gap.end_t_ns = run->t_ns;
    for (uint32_t i = 0; i < steps; i++)
        synthetic_step(run, arena, i);
}

static inline void synthetic_noise(struct synthetic_run *run, struct mt_arena *arena, bool phases)
{
    static const char *const names[] = {"forward", "a rather long name of a phase", "x",
                                        "backward"};
    size_t i, events = 1 + synthetic_random(&run->seed) % 3000;
    unsigned scale = (unsigned)(synthetic_random(&run->seed) % 34);
    int32_t phase = -1;

    for (i = 0; i < events; i++) {
        int role = (int)(synthetic_random(&run->seed) % MT_ROLE_COUNT);
        uint64_t wanted = (synthetic_random(&run->seed) % 1000) << scale;

        if (phases && synthetic_random(&run->seed) % 40 == 0) {
            if (phase >= 0)
                synthetic_end(run, phase);
            phase = synthetic_begin(run, arena, names[synthetic_random(&run->seed) % 4], -1,
                                    MT_NO_STEP, false);
        }
        synthetic_event(run, synthetic_random(&run->seed) % 100000, role,
                        (int64_t)(wanted - run->roles[role]), phase, MT_NO_STEP);
        if (synthetic_random(&run->seed) % 300 == 0)
            run->reserved = synthetic_allocated(run->roles);
    }
    if (phase >= 0)
        synthetic_end(run, phase);
}

static inline struct mt_peak synthetic_peak(const struct synthetic_state *state, uint64_t bytes)
{
    uint64_t allocated = synthetic_allocated(state->roles);
    struct mt_peak peak = {
        bytes,        state->t_ns,
        state->event, state->step,
        state->phase, {allocated - allocated / 100, allocated, allocated, state->reserved}};

    return peak;
}

static inline void synthetic_peaks(struct mt_device_report *device, const struct synthetic_run *run)
{
    for (size_t i = 0; i < run->count; i++) {
        const struct synthetic_state *state = &run->states[i];
        uint64_t allocated = synthetic_allocated(state->roles);

        if (allocated > device->allocated_peak.bytes) {
            device->allocated_peak = synthetic_peak(state, allocated);
            memcpy(device->peak_role_bytes, state->roles, sizeof state->roles);
        }
        if (state->reserved > device->reserved_peak.bytes)
            device->reserved_peak = synthetic_peak(state, state->reserved);
        if (state->reserved - allocated > device->worst_unused_bytes) {
            device->worst_unused_bytes = state->reserved - allocated;
            device->worst_unused_t_ns = state->t_ns;
        }
    }
    device->requested_peak = device->active_peak = device->allocated_peak;
    device->requested_peak.bytes = device->allocated_peak.then.requested;
}

static inline void synthetic_steps(struct mt_report *report, struct mt_device_report *device,
                                   const struct synthetic_run *run)
{
    device->steps = mt_arena_array(&report->arena, run->phase_count + 1, sizeof *device->steps);
    for (uint32_t i = 0; i < run->phase_count; i++) {
        const struct mt_phase *phase = &run->phases[i];
        struct mt_step_use *use = &device->steps[device->step_count];

        if (!phase->is_step)
            continue;
        use->step = phase->step;
        use->phase = (int32_t)i;
        use->begin_t_ns = phase->begin_t_ns;
        use->end_t_ns = phase->end_t_ns;
        use->begin_event = phase->begin_event;
        use->end_event = phase->end_event;
        device->step_count++;
    }
}

static inline void synthetic_ooms(struct mt_report *report, struct mt_device_report *device,
                                  const struct synthetic_run *run,
                                  const struct synthetic_options *options)
{
    device->oom_list = mt_arena_array(&report->arena, options->ooms + 1, sizeof *device->oom_list);
    device->ooms = device->oom_count = options->ooms;
    for (uint32_t i = 0; i < options->ooms; i++) {
        const struct synthetic_state *state =
            &run->states[(run->count - 1) * (i + 1) / (options->ooms + 1)];
        struct mt_oom *oom = &device->oom_list[i];

        oom->t_ns = state->t_ns;
        oom->event = state->event;
        oom->request_bytes = 2 * MT_GIB;
        oom->device_free_bytes = 300 * MT_MIB;
        oom->phase = state->phase;
        oom->step = state->step;
        oom->stack = MT_NO_ID;
        oom->fatal = options->fatal && i + 1 == options->ooms;
        oom->then.reserved = state->reserved;
        oom->then.allocated = synthetic_allocated(state->roles);
    }
}

static inline void synthetic_sites(struct mt_report *report, struct mt_device_report *device)
{
    static const char *const sites[] = {
        "forward linear.py:134",
        "autograd engine (no Python stack)",
        "forward train.py:58",
        "cross_entropy functional.py:3504",
        "_init_group adam.py:178",
        "a_function_with_a_name_that_nobody_can_remember a_file_with_a_long_name.py:1097"};
    uint64_t bytes = device->allocated_peak.bytes;

    device->peak_sites =
        mt_arena_array(&report->arena, MT_ARRAY_LEN(sites), sizeof *device->peak_sites);
    device->peak_site_count = bytes ? MT_ARRAY_LEN(sites) : 0;
    for (size_t i = 0; i < MT_ARRAY_LEN(sites); i++) {
        bytes /= 2;
        device->peak_sites[i].site = sites[i];
        device->peak_sites[i].stack = MT_NO_ID;
        device->peak_sites[i].phase = i % 2 ? "backward" : "forward";
        device->peak_sites[i].role = (enum mt_role)(i % MT_ROLE_COUNT);
        device->peak_sites[i].bytes = bytes;
        device->peak_sites[i].blocks = 3 * i + 1;
    }
}

static inline void synthetic_device(struct mt_report *report, struct mt_device_report *device,
                                    const struct synthetic_run *run,
                                    const struct synthetic_options *options)
{
    struct mt_timeline_builder *builder;
    struct mt_span *spans;
    uint32_t span_count;

    device->name = "NVIDIA H200";
    device->total_memory_bytes = 140 * MT_GIB;
    device->events = device->allocations = run->count;
    device->segments_peak = 196;
    device->complete = !options->in_middle;
    device->replay.limit_bytes = options->limit_bytes;
    device->first_t_ns = run->states[0].t_ns;
    device->last_t_ns = run->t_ns;
    device->last_event = run->event - 1;
    synthetic_peaks(device, run);
    synthetic_steps(report, device, run);
    synthetic_ooms(report, device, run, options);
    synthetic_sites(report, device);
    mt_timeline_spans(&report->arena, device->first_t_ns, device->last_t_ns, &run->gap,
                      run->gap.end_t_ns ? 1 : 0, run->phases, run->phase_count, &spans,
                      &span_count);
    mt_timeline_builder_new(&report->arena, spans, span_count, 0, device->last_event,
                            options->bins ? options->bins : 4096, &builder);
    for (size_t i = 0; i < run->count; i++) {
        const struct synthetic_state *state = &run->states[i];
        uint64_t allocated = synthetic_allocated(state->roles);
        struct mt_bytes bytes = {allocated, allocated, allocated, state->reserved};

        mt_timeline_builder_add(builder, state->t_ns, state->event, &bytes, state->roles);
    }
    device->timeline = mt_timeline_builder_finish(builder);
}

static inline void synthetic_report(struct mt_report *report,
                                    const struct synthetic_options *options)
{
    struct synthetic_run run = {.t_ns = 1795153021278383000u, .seed = options->seed};

    memset(report, 0, sizeof *report);
    report->name = "synthetic";
    report->format = "memtrace/1";
    report->framework = "PyTorch 2.11.0+cu130";
    report->options = "max_split_size_mb:64";
    report->roles_inferred = true;
    report->starts_in_middle = options->in_middle;
    report->first_t_ns = run.t_ns;
    strcpy(report->policy, "pytorch");
    memset(report->sha256, 'a', 64);
    if (options->kind == SYNTHETIC_OOM_FIRST)
        synthetic_event(&run, 0, 0, 0, -1, MT_NO_STEP);
    else if (options->kind == SYNTHETIC_RANDOM || options->kind == SYNTHETIC_NO_PHASES)
        synthetic_noise(&run, &report->arena, options->kind == SYNTHETIC_RANDOM);
    else
        synthetic_training(&run, &report->arena, options->steps);
    report->last_t_ns = run.t_ns;
    report->phases = mt_arena_array(&report->arena, run.phase_count + 1, sizeof *report->phases);
    if (run.phase_count)
        memcpy(report->phases, run.phases, run.phase_count * sizeof *run.phases);
    report->phase_count = run.phase_count;
    report->main_phase =
        mt_arena_array(&report->arena, run.phase_count + 1, sizeof *report->main_phase);
    for (uint32_t i = 0; i < run.phase_count; i++)
        report->main_phase[i] = !run.phases[i].is_step && !run.phases[i].is_plumbing;
    report->step_count = options->steps;
    report->device_count = options->devices ? options->devices : 1;
    report->devices = mt_arena_array(&report->arena, report->device_count, sizeof *report->devices);
    for (uint32_t i = 0; i < report->device_count; i++) {
        report->devices[i].device = (uint16_t)i;
        synthetic_device(report, &report->devices[i], &run, options);
    }
    free(run.states);
    free(run.phases);
}

static inline void synthetic_release(struct mt_report *report)
{
    mt_arena_release(&report->arena);
}

#endif
