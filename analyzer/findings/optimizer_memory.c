/* Findings about the optimizer: its state, its state outside of its step, and temporaries of its
 * step. */
#include <stdlib.h>
#include <string.h>

#include "analysis.h"
#include "finding.h"
#include "grow.h"
#include "map.h"
#include "process_memory.h"
#include "sorted.h"
#include "units.h"

/* The optimizer's state for each parameter, if it is a large part of the peak. That optimizer needs
 * it; others keep less, and ranks can share it. */

enum { OPTIMIZER_STATE_MIN_SHARE = 10 }; /* of the peak */

/* PyTorch's depends on the libraries in use. */
static const struct mt_framework_texts advice = {
    {[MT_FRAMEWORK_UNKNOWN] =
         "an optimizer with less state (Adafactor, Lion, SGD), or shard the state over the devices",
     [MT_FRAMEWORK_JAX] = "an optimizer with less state (optax.adafactor, optax.lion, SGD), or "
                          "shard the state over the devices (jax.sharding)",
     [MT_FRAMEWORK_TENSORFLOW] =
         "an optimizer with less state (tf.keras.optimizers.Adafactor, Lion, SGD), or shard the "
         "state over the devices (tf.distribute)"}};

static void advise_less_state(const struct mt_finding_search *search, struct mt_finding *finding)
{
    const struct mt_loop_words words = mt_loop_words_of(&search->analysis->source->symbols);
    const bool is_torch = mt_framework_of(search) == MT_FRAMEWORK_TORCH;

    finding->advice = is_torch ? words.optimizer : mt_framework_text(search, &advice);
    finding->cost = "another optimizer changes the results";
    if (!is_torch) {
        finding->cost = "another optimizer changes the results; sharding adds communication";
    } else if (!mt_run_is_sharded(search)) {
        finding->advice = mt_arena_printf(&search->analysis->report->arena,
                                          "%s, or shard the state over the ranks (%s)",
                                          words.optimizer, words.shard);
        finding->cost = "8-bit state changes the numerics; sharding adds communication";
    }
}

static enum mt_status find_optimizer_state(struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;
    struct mt_arena *arena = &search->analysis->report->arena;
    const uint64_t peak = device->allocated_peak.bytes,
                   bytes = device->peak_role_bytes[MT_ROLE_OPTIMIZER_STATE],
                   parameters = device->peak_role_bytes[MT_ROLE_PARAMETERS];
    const char *evidence[1];
    char n[2][MT_UNITS_TEXT];
    struct mt_finding finding = {.id = "optimizer-state",
                                 .severity = "info",
                                 .bytes = bytes,
                                 .evidence = evidence,
                                 .evidence_count = 1};

    if (!mt_finding_matters(bytes, peak) || bytes < peak / OPTIMIZER_STATE_MIN_SHARE)
        return MT_OK;
    finding.title =
        mt_arena_printf(arena, "%s (%s) of the peak: optimizer state", mt_format_bytes(n[0], bytes),
                        mt_format_percent(n[1], (double)bytes / (double)peak));
    evidence[0] = mt_arena_printf(arena, "parameters: %s", mt_format_bytes(n[0], parameters));
    advise_less_state(search, &finding);
    mt_finding_mark_role(search, MT_ROLE_OPTIMIZER_STATE);
    mt_finding_publish(search, &finding);
    return MT_OK;
}

const struct mt_finding_ops mt_finding_optimizer_state = {.find = find_optimizer_state};

/* Moving the optimizer's state to the host, except during the optimizer's step: nothing else reads
 * it. Peaks of forward and backward would be lower by its size, that of the step would not. The
 * claimed saving is that of a replay in which each block of the state ends after a step and is
 * requested again before the next.
 *
 * The peaks of phases first give an upper bound without another pass: phases that need the state,
 * and earlier phases, save nothing. */

#define MAX_MOVES  (1u << 20) /* moves of a block, in both directions, that are replayed */
#define MAX_EVENTS 500000     /* of the device: a replay takes as long as the first pass */

struct look_idle_state {
    struct mt_finding_search *search;
    const struct mt_phases *phases;
    struct mt_arena *arena;
    const struct mt_idle_use *idle; /* of the state in the peak's phase */
    struct away {                   /* from the end of one step to the start of the next */
        uint64_t from, until;       /* events: away before `from`, back before `until` */
    } * aways;
    uint32_t away_count;
    const struct mt_life **state; /* in order of allocation */
    uint32_t state_count;
    uint64_t moved_bytes; /* in one direction, each time; at its maximum */
    struct mt_retime retime;
    struct mt_retimed_peaks after;
};

/* For the phase of the peak: the row of the state that stays through it. */
static const struct mt_idle_use *idle_at_peak(const struct mt_finding_search *search)
{
    const struct mt_device_report *device = search->device;
    const struct mt_phase *phases = search->analysis->report->phases;
    const uint64_t peak = device->allocated_peak.event;

    for (uint32_t i = 0; i < device->idle_count; i++) {
        const struct mt_idle_use *idle = &device->idle[i];
        const struct mt_phase *phase = &phases[idle->phase];
        if (idle->role == MT_ROLE_OPTIMIZER_STATE && peak >= phase->begin_event &&
            peak <= phase->end_event)
            return idle;
    }
    return NULL;
}

static bool is_optimizer(const struct look_idle_state *look, uint32_t phase)
{
    return look->phases->facts[phase].kind == MT_PHASE_OPTIMIZER;
}

/* The highest peak of a phase in which the state exists, or does not exist yet. */
static uint64_t least_peak(const struct look_idle_state *look)
{
    const struct mt_device_report *device = look->search->device;
    uint64_t least = 0;
    bool stepped = false;

    for (uint32_t i = 0; i < look->phases->count; i++) {
        uint64_t peak = device->phase_uses[i].peak.allocated;
        if (look->phases->phases[i].is_step || !look->search->analysis->report->main_phase[i])
            continue;
        stepped |= is_optimizer(look, i);
        if ((!stepped || is_optimizer(look, i)) && peak > least)
            least = peak;
    }
    return least;
}

static bool may_pay(struct look_idle_state *look)
{
    const struct mt_finding_search *search = look->search;
    const uint64_t peak = search->device->allocated_peak.bytes, least = least_peak(look);

    look->idle = idle_at_peak(search);
    return look->idle && peak > least && mt_finding_matters(peak - least, peak) &&
           mt_finding_matters(look->idle->bytes, peak);
}

/* From the end of a step of the optimizer to the start of the next, if backward is in between:
 * parts of one step are not separated. */
static void note_aways(struct look_idle_state *look)
{
    uint64_t over = 0, backward = 0;

    look->aways = mt_arena_array(look->arena, (size_t)look->phases->count + 1, sizeof *look->aways);
    for (uint32_t i = 0; i < look->phases->count; i++) {
        const struct mt_phase *phase = &look->phases->phases[i];
        if (look->phases->facts[i].kind == MT_PHASE_BACKWARD)
            backward = phase->begin_event;
        if (!is_optimizer(look, i))
            continue;
        if (over && backward >= over && phase->begin_event > backward)
            look->aways[look->away_count++] = (struct away){over, phase->begin_event};
        if (phase->end_event >= over)
            over = phase->end_event + 1;
    }
}

static bool is_away(const struct mt_life *life, const struct away *away)
{
    return life->birth_event < away->from && life->end_event >= away->until;
}

MT_DEFINE_POINTER_ORDER(by_birth, struct mt_life, MT_ASCENDING(birth_event))

static void gather_state(struct look_idle_state *look, const struct mt_lives *lives)
{
    look->state = mt_arena_array(look->arena, (size_t)lives->count + 1, sizeof *look->state);
    for (uint32_t i = 0; i < lives->count; i++)
        if (lives->lives[i].role == MT_ROLE_OPTIMIZER_STATE)
            look->state[look->state_count++] = &lives->lives[i];
    if (look->state_count)
        qsort(look->state, look->state_count, sizeof *look->state, by_birth);
}

/* All blocks leave in order of allocation, and return in that order. */
static void send_away(struct look_idle_state *look, const struct away *away)
{
    const uint16_t device = look->search->device->device;
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < look->state_count; i++) {
        if (!is_away(look->state[i], away))
            continue;
        bytes += look->state[i]->requested_bytes;
        mt_retime_free(&look->retime, device, away->from, look->state[i]);
        mt_retime_alloc(&look->retime, device, away->until, look->state[i]);
    }
    if (bytes > look->moved_bytes)
        look->moved_bytes = bytes;
}

static enum mt_status replay_idle_state(struct look_idle_state *look)
{
    const struct mt_lives *lives = &look->search->held->lives;

    if (lives->too_many)
        return MT_OK;
    gather_state(look, lives);
    note_aways(look);
    if ((uint64_t)look->state_count * look->away_count > MAX_MOVES)
        return MT_OK;
    for (uint32_t i = 0; i < look->away_count; i++)
        send_away(look, &look->aways[i]);
    return look->moved_bytes ? mt_retime_replay(&look->retime, look->search, &look->after) : MT_OK;
}

static void say_idle_state(struct look_idle_state *look)
{
    const struct mt_device_report *device = look->search->device;
    const struct mt_phase *phase = &look->phases->phases[look->idle->phase];
    const char *evidence[4];
    char n[2][MT_UNITS_TEXT];
    struct mt_finding finding = {
        .id = "idle-state",
        .severity = "info",
        .bytes = device->allocated_peak.bytes - look->after.allocated_bytes,
        .saving = MT_SAVING_ESTIMATED,
        .saves_bytes = mt_reserved_saving(look->search, &look->after),
        .evidence = evidence,
        .evidence_count = 4,
        .advice = mt_run_is_sharded(look->search)
                      ? "keep it in host memory and copy it to the device for the step, if there "
                        "is time for the transfer (CPU offload, a paged optimizer)"
                      : "keep it in host memory and copy it to the device for the step, if there "
                        "is time for the transfer (ZeRO-Offload, FSDP's CPUOffload, a paged "
                        "optimizer)"};

    finding.title = mt_arena_printf(look->arena,
                                    "%s less at the peak if the optimizer state is on the device "
                                    "only during the optimizer step",
                                    mt_format_bytes(n[0], finding.bytes));
    evidence[0] = mt_arena_printf(
        look->arena,
        "%s of it stays allocated throughout %s, where the peak is, and is not used there",
        mt_format_bytes(n[0], look->idle->bytes), phase->path);
    evidence[1] = mt_arena_printf(
        look->arena,
        "replay with the state absent between optimizer steps: %s allocated instead of %s",
        mt_format_bytes(n[0], look->after.allocated_bytes),
        mt_format_bytes(n[1], device->allocated_peak.bytes));
    evidence[2] = mt_arena_printf(look->arena, "in the same replay: %s reserved instead of %s",
                                  mt_format_bytes(n[0], look->after.reserved_bytes),
                                  mt_format_bytes(n[1], device->reserved_peak.bytes));
    evidence[3] =
        mt_arena_printf(look->arena, "%s to transfer in each direction for each optimizer step",
                        mt_format_bytes(n[0], look->moved_bytes));
    mt_finding_publish(look->search, &finding);
}

static enum mt_status find_idle_state(struct mt_finding_search *search)
{
    struct look_idle_state look = {.search = search,
                                   .retime = {.within_reserved = true},
                                   .phases = &search->analysis->survey.phases,
                                   .arena = &search->analysis->report->arena};
    const struct mt_device_report *device = search->device;
    enum mt_status status = MT_OK;

    if (!mt_finding_replayable(search) || search->analysis->source->header.starts_in_middle ||
        device->events > MAX_EVENTS || !may_pay(&look))
        return MT_OK;
    status = replay_idle_state(&look);
    if (status == MT_OK && look.after.known &&
        look.after.allocated_bytes < device->allocated_peak.bytes &&
        mt_finding_matters(device->allocated_peak.bytes - look.after.allocated_bytes,
                           device->allocated_peak.bytes))
        say_idle_state(&look);
    mt_retime_release(&look.retime);
    return status;
}

const struct mt_finding_ops mt_finding_idle_state = {.find = find_idle_state};

/* A peak in the optimizer's step, made by temporaries of all parameters at once: the foreach
 * implementation of torch.optim makes lists of them. The memory of a step that handles one
 * parameter after the other is that of a replay in which each temporary ends before the next one is
 * made. How many exist at a time in a loop that did not run is unknown: as many as foreach has
 * lists at a time; one more, because the loop may not do in place what foreach does (Adam's root,
 * and its quotient); and the last one of the previous parameter, which its name keeps. So only the
 * smallest possible saving is claimed. */

enum {
    FOREACH_PEAK_MIN_SHARE = 10, /* of the peak */
    BEYOND_LISTS = 2,            /* see above */
    MAX_LISTS = 8,               /* at a time */
    MAX_MADE = 1 << 18           /* temporaries of a run that is replayed */
};

#define COPY_ADDRESSES (UINT64_C(1) << 62) /* an address range without blocks of the run */

static const char *const has_fused[] = {"_multi_tensor_adam", "_multi_tensor_adamw",
                                        "_multi_tensor_sgd"};

/* Whether it is a function of torch.optim that makes lists. */
static uint8_t makes_lists(const struct mt_symbols *symbols, const struct mt_frame *frame)
{
    static const char prefix[] = "_multi_tensor_";

    return strncmp(mt_symbols_text(symbols, frame->function), prefix, sizeof prefix - 1) == 0;
}

/* The innermost such function of a stack that has one. */
static const char *foreach_of(const struct mt_symbols *symbols, uint32_t stack)
{
    while (!makes_lists(symbols, &symbols->frames[symbols->stacks[stack].frame]))
        stack = symbols->stacks[stack].parent;
    return mt_symbols_text(symbols, symbols->frames[symbols->stacks[stack].frame].function);
}

struct look_foreach_peak {
    struct mt_finding_search *search;
    const struct mt_symbols *symbols;
    const struct mt_stack_marks *foreach;
    uint64_t bytes, blocks; /* at the peak */
    const char *function;   /* that makes them */

    struct mt_life *made; /* temporaries of foreach, in order of their births */
    size_t made_count, made_capacity;
    bool too_many;
    uint32_t lists;                        /* at a time */
    struct mt_retimed_peaks loop, nothing; /* with temporaries as in a loop; with one at a time */
};

static void look_at_peak(struct look_foreach_peak *look)
{
    const struct mt_device_report *device = look->search->device;
    uint32_t stack = MT_NO_ID;

    look->search->scope = (struct mt_finding_scope){
        .roles = 1u << MT_ROLE_TEMPORARIES, .stacks = look->foreach, .marks = 1u << 1};
    for (uint32_t i = 0; device->instant_count && i < device->instants[0].holding_count; i++) {
        const struct mt_holding *holding = &device->instants[0].holdings[i];

        if (holding->role != MT_ROLE_TEMPORARIES || !mt_stack_mark(look->foreach, holding->stack))
            continue;
        mt_finding_mark(look->search, i);
        stack = holding->stack;
        look->bytes += holding->bytes;
        look->blocks += holding->blocks;
    }
    if (stack != MT_NO_ID)
        look->function = foreach_of(look->symbols, stack);
}

struct reading {
    struct look_foreach_peak *look;
    uint64_t *alive_bytes;  /* by stack: of its temporaries */
    struct mt_map slots;    /* address -> index in `made` */
    uint64_t now_bytes;     /* live, over all stacks */
    uint64_t most_bytes;    /* at most */
    uint64_t longest_bytes; /* at most, of one stack: a list */
};

static enum mt_status add_made(struct reading *reading, const struct mt_event *event,
                               uint64_t bytes)
{
    struct look_foreach_peak *look = reading->look;
    uint64_t *alive = &reading->alive_bytes[event->stack];

    look->too_many = look->made_count == MAX_MADE;
    if (look->too_many)
        return MT_END;
    mt_grow_to(&look->made, &look->made_capacity, look->made_count + 1, sizeof *look->made);
    look->made[look->made_count] = mt_life_of_event(event, bytes);
    *alive += bytes;
    reading->now_bytes += bytes;
    reading->most_bytes = mt_max_u64(reading->most_bytes, reading->now_bytes);
    reading->longest_bytes = mt_max_u64(reading->longest_bytes, *alive);
    mt_map_put(&reading->slots, event->addr, (uint32_t)look->made_count++);
    return MT_OK;
}

static void end_made(struct reading *reading, uint64_t addr)
{
    uint32_t slot = mt_map_take(&reading->slots, addr);

    if (slot == MT_MAP_NONE)
        return;
    reading->now_bytes -= reading->look->made[slot].bytes;
    reading->alive_bytes[reading->look->made[slot].stack] -= reading->look->made[slot].bytes;
}

static enum mt_status on_event(void *context, struct mt_event *event)
{
    struct reading *reading = context;
    struct mt_survey *survey = &reading->look->search->analysis->survey;
    bool is_here = event->device == reading->look->search->device->device;
    uint64_t bytes;
    uint8_t code;

    if (is_here &&
        (event->kind == MT_EVENT_FREE_REQUESTED || event->kind == MT_EVENT_FREE_COMPLETED))
        end_made(reading, event->addr);
    if (event->kind != MT_EVENT_ALLOC)
        return MT_OK;
    if (!mt_alloc_log_next(&survey->log, &bytes, &code) || !is_here)
        return MT_OK; /* the log has those of every device */
    if (mt_alloc_log_ends_old(event, bytes))
        end_made(reading, event->addr);
    if (!bytes)
        return MT_OK;
    if (!mt_stack_mark(reading->look->foreach, event->stack) ||
        mt_role_resolve(&survey->roles, code, event->stack, event->size_bytes) !=
            MT_ROLE_TEMPORARIES)
        return MT_OK;
    return add_made(reading, event, bytes);
}

static enum mt_status read_all(struct look_foreach_peak *look)
{
    struct mt_analysis *analysis = look->search->analysis;
    const size_t stacks = (size_t)look->symbols->stack_count + 1;
    struct reading reading = {.look = look,
                              .alive_bytes = mt_memory_zeroed(stacks, sizeof *reading.alive_bytes)};

    mt_alloc_log_rewind(&analysis->survey.log);
    enum mt_status status = mt_read_again_events(analysis, &reading, on_event);
    if (status == MT_OK && reading.longest_bytes)
        look->lists = (uint32_t)mt_min_u64(
            (reading.most_bytes + reading.longest_bytes - 1) / reading.longest_bytes, MAX_LISTS);
    free(reading.alive_bytes);
    mt_map_release(&reading.slots);
    return status;
}

/* Where it is made, `count` blocks of its size exist briefly, including itself. */
static void make_for_a_moment(const struct look_foreach_peak *look, struct mt_retime *retime,
                              const struct mt_life *made, uint32_t count)
{
    const uint16_t device = look->search->device->device;
    const uint64_t then = made->birth_event + 1;
    struct mt_life copy = *made;

    for (uint32_t i = 1; i < count; i++) {
        copy.addr = COPY_ADDRESSES + i;
        mt_retime_alloc(retime, device, then, &copy);
    }
    for (uint32_t i = 1; i < count; i++) {
        copy.addr = COPY_ADDRESSES + i;
        mt_retime_free(retime, device, then, &copy);
    }
    mt_retime_free(retime, device, then, made);
}

static enum mt_status replay_with(struct look_foreach_peak *look, uint32_t count,
                                  struct mt_retimed_peaks *peaks)
{
    struct mt_retime retime = {0};
    enum mt_status status = MT_OK;

    for (size_t i = 0; i < look->made_count; i++)
        make_for_a_moment(look, &retime, &look->made[i], count);
    status = mt_retime_replay(&retime, look->search, peaks);
    mt_retime_release(&retime);
    return status;
}

static enum mt_status replay_foreach_peak(struct look_foreach_peak *look)
{
    enum mt_status status = MT_OK;

    if (!mt_finding_replayable(look->search))
        return MT_OK;
    status = read_all(look);
    if (status != MT_OK || look->too_many || !look->lists)
        return status;
    status = replay_with(look, look->lists + BEYOND_LISTS, &look->loop);
    return status == MT_OK ? replay_with(look, 1, &look->nothing) : status;
}

static bool is_fused(const struct look_foreach_peak *look)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(has_fused); i++)
        if (strcmp(look->function, has_fused[i]) == 0)
            return true;
    return false;
}

/* 0 if it is too little. */
static uint64_t saving_of(const struct look_foreach_peak *look,
                          const struct mt_retimed_peaks *peaks)
{
    const struct mt_device_report *device = look->search->device;
    const uint64_t peak = device->allocated_peak.bytes;

    if (!peaks->known || peaks->allocated_bytes >= peak ||
        peaks->reserved_bytes > device->reserved_peak.bytes ||
        !mt_finding_matters(peak - peaks->allocated_bytes, peak))
        return 0;
    return peak - peaks->allocated_bytes;
}

static const char *tell_peak(const struct look_foreach_peak *look)
{
    const uint64_t peak = look->search->device->allocated_peak.bytes;
    char n[3][MT_UNITS_TEXT];

    return mt_arena_printf(&look->search->analysis->report->arena,
                           "%s (%s) of the peak: temporaries of the optimizer step for all "
                           "parameters at once, %s blocks of its foreach implementation",
                           mt_format_bytes(n[0], look->bytes),
                           mt_format_percent(n[1], (double)look->bytes / (double)peak),
                           mt_format_count(n[2], look->blocks));
}

static const char *tell_replay(const struct look_foreach_peak *look,
                               const struct mt_retimed_peaks *peaks, const char *with)
{
    const struct mt_device_report *device = look->search->device;
    char n[4][MT_UNITS_TEXT];

    return mt_arena_printf(&look->search->analysis->report->arena,
                           "replay with %s: %s allocated instead of %s, %s reserved instead of %s",
                           with, mt_format_bytes(n[0], peaks->allocated_bytes),
                           mt_format_bytes(n[1], device->allocated_peak.bytes),
                           mt_format_bytes(n[2], peaks->reserved_bytes),
                           mt_format_bytes(n[3], device->reserved_peak.bytes));
}

static void say_foreach_peak(struct look_foreach_peak *look)
{
    struct mt_arena *arena = &look->search->analysis->report->arena;
    const uint64_t by_loop = saving_of(look, &look->loop),
                   by_fused = is_fused(look) ? saving_of(look, &look->nothing) : 0;
    const char *evidence[3];
    char n[2][MT_UNITS_TEXT];
    struct mt_finding finding = {
        .id = "foreach-peak",
        .severity = by_loop || by_fused ? "warning" : "info",
        .bytes = by_loop    ? by_loop
                 : by_fused ? by_fused
                            : look->bytes,
        .evidence = evidence,
        .evidence_count = 1,
        .advice = is_fused(look)
                      ? "pass fused=True to the optimizer: it has no temporaries (foreach=False "
                        "has those of one parameter at a time)"
                      : "pass foreach=False to the optimizer: it updates one parameter at a time",
        .change = is_fused(look) ? "fused=True" : "foreach=False"};

    if (by_loop || by_fused) {
        /* The lower bound is of allocated memory: reserved memory may fall by more in the replay.
         */
        finding.saving = MT_SAVING_AT_LEAST;
        finding.saves_bytes =
            mt_min_u64(finding.bytes,
                       mt_reserved_saving(look->search, by_loop ? &look->loop : &look->nothing));
    }
    evidence[0] = tell_peak(look);
    if (look->loop.known)
        evidence[finding.evidence_count++] = tell_replay(
            look, &look->loop,
            mt_arena_printf(
                arena, "at most %s temporaries, of one parameter at a time, as with foreach=False",
                mt_format_count(n[0], look->lists + BEYOND_LISTS)));
    if (look->nothing.known && is_fused(look))
        evidence[finding.evidence_count++] =
            tell_replay(look, &look->nothing, "one temporary at a time (fused=True has none)");
    finding.title =
        by_loop || by_fused
            ? mt_arena_printf(
                  arena, "At least %s less at the peak %s", mt_format_bytes(n[0], finding.bytes),
                  is_fused(look) ? "if the optimizer step is fused and has no temporaries"
                                 : "if the optimizer updates one parameter at a time")
            : mt_arena_printf(
                  arena,
                  "%s of the peak: temporaries of the optimizer step, for all parameters at once",
                  mt_format_bytes(n[0], look->bytes));
    mt_finding_publish(look->search, &finding);
}

static enum mt_status find_foreach_peak(struct mt_finding_search *search)
{
    const uint64_t peak = search->device->allocated_peak.bytes;
    struct look_foreach_peak look = {.search = search,
                                     .symbols = &search->analysis->source->symbols};

    mt_stack_marks_make(&search->marks->foreach, look.symbols, makes_lists);
    look.foreach = &search->marks->foreach;
    look_at_peak(&look);
    if (!mt_finding_matters(look.bytes, peak) || look.bytes < peak / FOREACH_PEAK_MIN_SHARE)
        return MT_OK;
    enum mt_status status = replay_foreach_peak(&look);
    if (status == MT_OK)
        say_foreach_peak(&look);
    free(look.made);
    return status;
}

const struct mt_finding_ops mt_finding_foreach_peak = {.find = find_foreach_peak};
