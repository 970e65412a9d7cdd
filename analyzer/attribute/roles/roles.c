#include "roles.h"

#include "early_roles.h"
#include "grow.h"
#include "map.h"
#include "process_memory.h"
#include "sorted.h"
#include "util.h"

#include <stdlib.h>
#include <string.h>

/* Blocks that survive this many model calls count as kept on purpose. */
#define CALLS_OF_A_CACHE 4

void mt_role_clock_init(struct mt_role_clock *clock, const struct mt_phases *phases,
                        const struct mt_symbols *symbols, bool has_stacks)
{
    memset(clock, 0, sizeof *clock);
    clock->phases = phases;
    clock->symbols = symbols;
    clock->has_stacks = has_stacks;
    clock->phase = MT_NO_PHASE;
    clock->stale = true;
}

void mt_role_clock_release(struct mt_role_clock *clock)
{
    mt_stack_kinds_release(&clock->stacks);
    mt_early_blocks_release(&clock->early);
    mt_cache_chains_release(&clock->chains);
    mt_weight_copies_release(&clock->copies);
    mt_dropped_graphs_release(&clock->graphs);
    mt_parameter_sets_release(&clock->sets);
    free(clock->runs);
    memset(clock, 0, sizeof *clock);
}

static void next_cycle(struct mt_role_clock *clock)
{
    clock->cycles++;
    clock->cycle_calls = clock->now.calls;
    clock->turn_name_count = 0;
    clock->stale = true;
}

/* A top-level range whose name was already in this cycle begins the next one; so does the first
 * one. */
static void watch_turn(struct mt_role_clock *clock, uint32_t name)
{
    bool seen = clock->named_ranges == 1 && !clock->began_within;

    for (uint32_t i = 0; i < clock->turn_name_count; i++)
        seen |= clock->turn_names[i] == name;
    if (seen)
        next_cycle(clock);
    if (clock->turn_name_count < MT_ARRAY_LEN(clock->turn_names))
        clock->turn_names[clock->turn_name_count++] = name;
}

void mt_role_clock_push(struct mt_role_clock *clock, int32_t phase, uint32_t name)
{
    clock->stale = true;
    if (phase == MT_NO_PHASE)
        return;
    const struct mt_phase *range = &clock->phases->phases[phase];
    const struct mt_phase_facts *facts = &clock->phases->facts[phase];
    if (range->is_plumbing)
        return;
    clock->named_ranges++;
    if (facts->step_rank && facts->step_rank >= clock->step_rank) {
        clock->step_rank = facts->step_rank;
        next_cycle(clock);
    } else if (!clock->step_rank && range->depth == 0 && facts->kind != MT_PHASE_DATA) {
        watch_turn(clock, name);
    }
}

static void see(struct mt_role_clock *clock, uint8_t kind)
{
    clock->now.losses += kind == MT_PHASE_LOSS;
    if (kind == MT_PHASE_FORWARD && clock->now.instance != clock->last_call) {
        clock->last_call = clock->now.instance;
        clock->now.calls++;
    }
    if (clock->early.initial_count && !clock->cycles && mt_early_is_part(kind)) {
        clock->cycles = clock->now.cycle = 1;
        clock->began_within = true;
    }
    clock->saw_backward |= kind == MT_PHASE_BACKWARD || kind == MT_PHASE_OPTIMIZER;
    clock->saw_model |= kind != MT_PHASE_UNKNOWN && kind != MT_PHASE_DATA;
    if (kind != MT_PHASE_UNKNOWN)
        clock->last_part = kind;
    if (kind == MT_PHASE_OPTIMIZER)
        mt_parameter_sets_step(&clock->sets, clock->now.calls);
    clock->now.before_call = clock->now.calls == clock->cycle_calls;
}

/* Enters the part of an event in `phase`, as far as the ranges show it. */
static void enter(struct mt_role_clock *clock, int32_t phase)
{
    struct mt_moment *now = &clock->now;

    if (!clock->stale && phase == clock->phase)
        return;
    clock->stale = false;
    clock->phase = phase;
    clock->last_stack_kind = MT_PHASE_UNKNOWN;
    now->cycle = clock->cycles;
    now->outside = phase == MT_NO_PHASE;
    now->kind = now->outside ? MT_PHASE_UNKNOWN : clock->phases->facts[phase].kind;
    now->instance = now->outside ? MT_NO_PHASE : clock->phases->facts[phase].owner;
    clock->ask_stacks = now->kind == MT_PHASE_UNKNOWN;
    if (now->instance == MT_NO_PHASE)
        now->instance = -2 - (int32_t)clock->phases->next;
    see(clock, now->kind);
}

/* The ranges do not show the part, so the stack may. Parts found from stacks get instances of their
 * own, below those of pauses. */
static void consult(struct mt_role_clock *clock, uint32_t stack)
{
    uint8_t kind = mt_stack_kind(&clock->stacks, stack) & MT_STACK_KIND_MASK;

    if (stack == MT_NO_ID)
        kind = clock->has_stacks ? MT_PHASE_BACKWARD : MT_PHASE_UNKNOWN;
    if (kind == clock->last_stack_kind)
        return;
    bool turns = kind == MT_PHASE_FORWARD && clock->last_stack_kind != MT_PHASE_LOSS;
    clock->last_stack_kind = kind;
    if (turns && clock->named_ranges == 0 &&
        (clock->cycles == 0 || clock->now.kind != MT_PHASE_FORWARD)) {
        clock->began_within |= clock->early.initial_count && clock->cycles == 0;
        clock->cycles++;
        clock->now.cycle = clock->cycles;
    }
    clock->now.kind = kind;
    clock->now.instance = INT32_MIN + clock->stack_instance++;
    see(clock, kind);
}

static bool same_moment(const struct mt_moment *a, const struct mt_moment *b)
{
    return a->instance == b->instance && a->cycle == b->cycle && a->kind == b->kind &&
           a->outside == b->outside && a->before_call == b->before_call;
}

static void note_birth(struct mt_role_clock *clock, uint64_t allocation, bool initial)
{
    struct mt_birth_run *last = clock->run_count ? &clock->runs[clock->run_count - 1] : NULL;

    if (last && last->initial == initial && same_moment(&last->moment, &clock->now))
        return;
    mt_grow_to(&clock->runs, &clock->run_capacity, clock->run_count + 1, sizeof *clock->runs);
    clock->runs[clock->run_count++] = (struct mt_birth_run){allocation, clock->now, initial};
}

/* Whether the start of the current part is an event of the trace. */
static bool is_in_named_part(const struct mt_role_clock *clock)
{
    int32_t instance = clock->now.instance;

    return instance >= 0 && clock->phases->phases[instance].source <= MT_PHASE_SCOPES;
}

static void note_copy(struct mt_role_clock *clock, const struct mt_event *event,
                      uint64_t allocation)
{
    const struct mt_moment *now = &clock->now;
    bool initial = event->flags & MT_EVENT_INITIAL;
    struct mt_copy_birth birth = {.allocation = allocation,
                                  .bytes = event->size_bytes,
                                  .stack = event->stack,
                                  .call = now->calls,
                                  .is_early = initial || now->cycle == 0};
    bool may_cast = mt_phase_is_forward(now->kind) || now->kind == MT_PHASE_UNKNOWN;

    if (may_cast && clock->stacks.stack_count < clock->symbols->stack_count)
        mt_stack_kinds_update(&clock->stacks, clock->symbols);
    birth.casts = may_cast && (mt_stack_kind(&clock->stacks, event->stack) & MT_STACK_CASTS);
    birth.in_forward =
        may_cast && event->stack != MT_NO_ID && (birth.casts || now->kind != MT_PHASE_UNKNOWN);
    mt_weight_copies_birth(&clock->copies, &birth);
}

static enum mt_set_place set_place(const struct mt_moment *birth, bool initial)
{
    if (initial)
        return MT_SET_NOWHERE;
    if (birth->cycle == 0)
        return MT_SET_SETUP;
    switch (birth->kind) {
    case MT_PHASE_UNKNOWN: return MT_SET_PAUSE;
    case MT_PHASE_BACKWARD: return MT_SET_BACKWARD;
    case MT_PHASE_OPTIMIZER: return MT_SET_OPTIMIZER;
    default: return MT_SET_NOWHERE;
    }
}

static void note_set_birth(struct mt_role_clock *clock, const struct mt_event *event,
                           uint64_t allocation)
{
    const struct mt_moment *now = &clock->now;
    struct mt_set_block block = {
        .allocation = allocation,
        .units = (uint32_t)mt_min_u64(mt_round_up(event->size_bytes, 512) / 512, UINT32_MAX),
        .stack = event->stack,
        .calls = now->calls};

    block.place = (uint8_t)set_place(now, event->flags & MT_EVENT_INITIAL);
    block.after_backward = clock->last_part == MT_PHASE_BACKWARD;
    if (now->kind == MT_PHASE_FORWARD && event->stack < clock->stacks.stack_count)
        clock->sets.model_stack = event->stack + 1;
    mt_parameter_sets_birth(&clock->sets, &block);
}

void mt_role_clock_birth(struct mt_role_clock *clock, int32_t phase, const struct mt_event *event,
                         uint64_t allocation)
{
    bool initial = event->flags & MT_EVENT_INITIAL;
    struct mt_early_block block = {
        .bytes = event->size_bytes, .device = event->device, .initial = initial};

    enter(clock, phase);
    clock->devices |= UINT64_C(1) << (event->device % 64);
    if ((clock->ask_stacks || initial) && clock->stacks.stack_count < clock->symbols->stack_count)
        mt_stack_kinds_update(&clock->stacks, clock->symbols);
    if (clock->ask_stacks && !initial)
        consult(clock, event->stack);
    if (initial)
        block.stack_kind = mt_stack_kind(&clock->stacks, event->stack) & MT_STACK_KIND_MASK;
    note_birth(clock, allocation, initial);
    block.birth_kind = clock->now.kind;
    block.in_named_part = is_in_named_part(clock);
    if (!initial && !clock->saw_backward)
        mt_cache_chains_birth(&clock->chains, allocation, event->stack, event->size_bytes);
    note_set_birth(clock, event, allocation);
    mt_early_blocks_birth(&clock->early, allocation, &block);
    note_copy(clock, event, allocation);
    mt_dropped_graphs_birth(&clock->graphs, !initial && mt_phase_is_forward(clock->now.kind));
}

/* Finds the run of an allocation. Most blocks die young, so searches from the end in growing
 * strides, then between. */
static const struct mt_birth_run *birth_of(const struct mt_role_clock *clock, uint64_t allocation)
{
    size_t high = clock->run_count, low = high - 1, stride = 1;

    while (low > 0 && clock->runs[low].first > allocation) {
        high = low;
        low = low > stride ? low - stride : 0;
        stride *= 2;
    }
    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;

        if (clock->runs[middle].first <= allocation)
            low = middle;
        else
            high = middle;
    }
    return &clock->runs[low];
}

static uint8_t code_of_setup(const struct mt_moment *end, enum mt_fate fate)
{
    if (fate != MT_FATE_FREED || end->cycle > 2)
        return MT_ROLE_CODE_SETUP_KEPT;
    return (uint8_t)(MT_ROLE_CODE_SETUP_FREED + end->cycle);
}

static uint8_t code_of_forward(struct mt_role_clock *clock, const struct mt_moment *birth,
                               const struct mt_moment *end, enum mt_fate fate)
{
    if (fate == MT_FATE_UNWOUND)
        return MT_ROLE_ACTIVATIONS;
    clock->kept_twice |= fate == MT_FATE_NEVER && birth->cycle > 1 && end->cycle > birth->cycle;
    if (end->cycle >= birth->cycle + 2) {
        clock->kept_late |= birth->cycle > 1;
        return birth->cycle > 1 ? MT_ROLE_CODE_KEPT_LATE : MT_ROLE_CODE_KEPT_EARLY;
    }
    if (fate == MT_FATE_NEVER && birth->cycle <= 1)
        return MT_ROLE_CODE_KEPT_ONLY;
    return MT_ROLE_ACTIVATIONS;
}

/* A block freed where gradients are cleared was a gradient, however large: a workspace stays. */
static uint8_t code_of_backward(const struct mt_moment *birth, const struct mt_moment *end,
                                enum mt_fate fate)
{
    if (fate == MT_FATE_FREED && end->kind == MT_PHASE_ZERO_GRAD)
        return MT_ROLE_GRADIENTS;
    if (fate == MT_FATE_FREED && end->kind == MT_PHASE_BACKWARD && end->cycle == birth->cycle)
        return MT_ROLE_CODE_TWO_BACKWARDS;
    if (fate == MT_FATE_NEVER || end->cycle >= birth->cycle + 2)
        return MT_ROLE_CODE_KEPT_BACKWARD;
    return MT_ROLE_GRADIENTS;
}

/* A batch that something keeps, such as the graph of a retained loss. In the first cycle programs
 * also make what they need later. */
static bool is_kept_batch(const struct mt_role_clock *clock, const struct mt_moment *birth,
                          enum mt_fate fate)
{
    return clock->saw_backward && birth->cycle > 1 && birth->before_call &&
           clock->now.calls > birth->calls && fate != MT_FATE_UNWOUND;
}

static uint8_t code_of_unknown(const struct mt_role_clock *clock, const struct mt_moment *birth,
                               const struct mt_moment *end, enum mt_fate fate)
{
    bool between = birth->instance < MT_NO_PHASE || clock->phases->facts[birth->instance].step_rank;

    if (fate != MT_FATE_NEVER && between && end->cycle <= birth->cycle + 1)
        return MT_ROLE_INPUTS;
    if (between && is_kept_batch(clock, birth, fate))
        return MT_ROLE_INPUTS;
    return MT_ROLE_OTHER;
}

/* Whether autograd saved it: backward frees it, and no model was called since it was made, so it is
 * no input. It is of a loss function of the program, or of a program without modules. A loss
 * function of PyTorch also saves labels, which the program may copy after the call. */
static bool is_of_graph(const struct mt_moment *birth, const struct mt_moment *end,
                        enum mt_fate fate)
{
    if (end->kind != MT_PHASE_BACKWARD || end->calls != birth->calls || fate != MT_FATE_FREED)
        return false;
    return birth->calls ? birth->kind == MT_PHASE_UNKNOWN && end->losses == birth->losses
                        : birth->kind == MT_PHASE_UNKNOWN || birth->kind == MT_PHASE_DATA;
}

static uint8_t code_of_part(struct mt_role_clock *clock, const struct mt_birth_run *run,
                            uint64_t allocation, enum mt_fate fate)
{
    const struct mt_moment *birth = &run->moment, *end = &clock->now;

    if (run->initial)
        return fate == MT_FATE_FREED ? MT_ROLE_CODE_INITIAL_FREED : MT_ROLE_CODE_INITIAL_KEPT;
    if (is_of_graph(birth, end, fate)) /* the first one after a call may be the labels */
        return birth->calls && allocation == run->first ? MT_ROLE_OTHER : MT_ROLE_ACTIVATIONS;
    if (birth->cycle == 0)
        return code_of_setup(end, fate);
    if (fate == MT_FATE_FREED && end->instance == birth->instance && end->kind == birth->kind)
        return MT_ROLE_TEMPORARIES;
    switch (birth->kind) {
    case MT_PHASE_FORWARD:
    case MT_PHASE_LOSS: return code_of_forward(clock, birth, end, fate);
    case MT_PHASE_BACKWARD: return code_of_backward(birth, end, fate);
    case MT_PHASE_OPTIMIZER:
        return fate == MT_FATE_FREED && end->cycle == birth->cycle && !end->outside
                   ? MT_ROLE_TEMPORARIES
                   : MT_ROLE_OPTIMIZER_STATE;
    case MT_PHASE_DATA: return MT_ROLE_INPUTS;
    case MT_PHASE_UNKNOWN: return code_of_unknown(clock, birth, end, fate);
    default: return MT_ROLE_OTHER;
    }
}

static uint8_t code_of(struct mt_role_clock *clock, const struct mt_birth_run *run,
                       uint64_t allocation, enum mt_fate fate)
{
    const struct mt_moment *birth = &run->moment, *end = &clock->now;
    uint8_t code = code_of_part(clock, run, allocation, fate);
    bool over_calls = birth->cycle && end->cycle == birth->cycle && !run->initial &&
                      fate != MT_FATE_UNWOUND && end->calls >= birth->calls + CALLS_OF_A_CACHE;

    return over_calls && code < MT_ROLE_COUNT ? (uint8_t)(MT_ROLE_CODE_OVER_CALLS + code) : code;
}

uint8_t mt_role_clock_end(struct mt_role_clock *clock, int32_t phase, uint64_t allocation,
                          enum mt_fate fate)
{
    const struct mt_birth_run *run = birth_of(clock, allocation);
    struct mt_early_block end = {.role = MT_ROLE_OTHER};

    enter(clock, phase);
    uint8_t code = code_of(clock, run, allocation, fate);
    end.end_kind = clock->now.kind;
    end.in_named_part = is_in_named_part(clock);
    end.died_in_part =
        clock->now.instance == run->moment.instance && clock->now.kind == run->moment.kind;
    end.left_behind = code == MT_ROLE_CODE_KEPT_LATE;
    end.role = end.left_behind ? MT_ROLE_ACTIVATIONS : code < MT_ROLE_COUNT ? code : MT_ROLE_OTHER;
    mt_early_blocks_end(&clock->early, allocation, &end);
    mt_weight_copies_end(&clock->copies, allocation);
    if (!run->initial && mt_phase_is_forward(run->moment.kind))
        mt_dropped_graphs_end(&clock->graphs, allocation);
    if (set_place(&run->moment, run->initial))
        mt_parameter_sets_end(&clock->sets, &(struct mt_set_block){
                                                .allocation = allocation,
                                                .calls = clock->now.calls,
                                                .is_short = run->moment.cycle ? end.died_in_part
                                                                              : !clock->now.cycle});
    if (!clock->saw_backward)
        mt_cache_chains_end(&clock->chains, allocation);
    return code;
}

/* Infers initial blocks from later events, if no stack of their own identifies them. */
static void infer_initial(struct mt_role_clock *clock, uint8_t *codes, uint64_t count)
{
    clock->early.keeps_no_graph = mt_dropped_graphs_keeps_none(&clock->graphs);
    mt_initial_roles_infer(&clock->early);
    for (uint64_t i = 0; i < count && i < clock->early.initial_count; i++) {
        const struct mt_early_block *block = &clock->early.blocks[i];
        bool kept = codes[i] == MT_ROLE_CODE_INITIAL_KEPT;

        if ((kept || codes[i] == MT_ROLE_CODE_INITIAL_FREED) && block->role != MT_ROLE_OTHER &&
            mt_initial_role_by_stack(block->stack_kind, kept) == MT_ROLE_OTHER)
            codes[i] = (uint8_t)(MT_ROLE_CODE_INITIAL + block->role);
    }
}

/* A block of setup that others replace was there as long as those are. */
static void keep_replaced(void *codes, uint64_t allocation)
{
    uint8_t *code = (uint8_t *)codes + allocation;

    if (*code == MT_ROLE_CODE_SETUP_FREED_1 || *code == MT_ROLE_CODE_SETUP_FREED_2)
        *code = MT_ROLE_CODE_SETUP_KEPT;
}

/* Facts about the program as a whole from stacks. */
static void learn_from_stacks(struct mt_role_clock *clock)
{
    mt_stack_kinds_update(&clock->stacks, clock->symbols);
    mt_stack_kinds_find_buffers(&clock->stacks, clock->symbols);
    for (uint32_t i = 0; i < clock->stacks.stack_count; i++) {
        uint8_t kind = mt_stack_kind(&clock->stacks, i);

        clock->moves_models |= (kind & MT_STACK_KIND_MASK) == MT_PHASE_SETUP;
        clock->names_caches |= !!(kind & MT_STACK_KV_CACHE);
    }
}

/* Accumulated gradients stay while the model is called once per micro-batch. */
static bool is_of_a_parameter(uint8_t code)
{
    return mt_role_code_without_calls(code) == MT_ROLE_GRADIENTS ||
           code == MT_ROLE_CODE_KEPT_BACKWARD ||
           mt_role_code_without_calls(code) == MT_ROLE_OPTIMIZER_STATE;
}

/* A block of at least 1 MiB may have a remainder of up to 1 MiB, so blocks of one request differ:
 * sizes are compared by the MiB, and with the next one. */
#define LARGE_UNITS 2048

static uint64_t size_class(uint32_t units)
{
    return units < LARGE_UNITS ? units : LARGE_UNITS + 1 + units / LARGE_UNITS;
}

static bool has_size(const struct mt_map *sizes, uint32_t units)
{
    uint64_t class = size_class(units);
    uint64_t reach = units < LARGE_UNITS ? 0 : 1;

    for (uint64_t i = class - reach; i <= class + reach; i++)
        if (mt_map_get(sizes, i) != MT_MAP_NONE)
            return true;
    return false;
}

/* Whether a block with that code may be a parameter, or has the size of one. */
static bool shows_parameter_size(uint8_t code)
{
    return (code >= MT_ROLE_CODE_SETUP_FREED_1 && code <= MT_ROLE_CODE_SETUP_ALONE) ||
           code == MT_ROLE_CODE_INITIAL_KEPT || code == MT_ROLE_CODE_INITIAL_FREED ||
           mt_role_code_without_calls(code) == MT_ROLE_OPTIMIZER_STATE ||
           mt_role_code_is_recorded(code);
}

/* Settles blocks that one backward made and a later one freed: the graph of a gradient has such
 * blocks (create_graph=True). A gradient has the size of its parameter. */
static void settle_graphs_of_backward(uint8_t *codes, struct mt_block_units *units, uint64_t count)
{
    struct mt_map sizes = {0};

    for (uint64_t i = 0; i < count; i++)
        if (shows_parameter_size(codes[i]))
            mt_map_put(&sizes, size_class(mt_block_units_at(units, i)), 1);
    for (uint64_t i = 0; i < count; i++)
        if (codes[i] == MT_ROLE_CODE_TWO_BACKWARDS)
            codes[i] = has_size(&sizes, mt_block_units_at(units, i)) ? MT_ROLE_GRADIENTS
                                                                     : MT_ROLE_ACTIVATIONS;
    mt_map_release(&sizes);
}

/* Returns how many blocks of setup with that many units are parameters according to stacks. */
static uint64_t parameters_of(const struct mt_role_clock *clock, const uint8_t *codes,
                              uint64_t count, uint32_t units)
{
    uint64_t parameters = 0;

    for (size_t i = 0; i < clock->sets.count; i++) {
        const struct mt_set_block *block = &clock->sets.blocks[i];
        const uint8_t kind = mt_stack_kind(&clock->stacks, block->stack) & MT_STACK_KIND_MASK;

        parameters += block->units == units && block->allocation < count &&
                      codes[block->allocation] == MT_ROLE_CODE_SETUP_KEPT && kind == MT_PHASE_SETUP;
    }
    return parameters;
}

/* Each parameter with the size of a workspace has a gradient among the blocks of that size that
 * backward leaves behind. If such gradients end, only the last turn has some. */
static void find_large_gradients(struct mt_role_clock *clock, uint8_t *codes,
                                 struct mt_block_units *units, uint64_t count, uint32_t of)
{
    uint64_t left = parameters_of(clock, codes, count, of), ended = 0;
    uint32_t last = 0;
    bool do_end = false;

    for (uint64_t i = 0; left && i < count; i++) {
        const bool has_ended = codes[i] == MT_ROLE_GRADIENTS;

        if (mt_block_units_at(units, i) != of ||
            (!has_ended && codes[i] != MT_ROLE_CODE_KEPT_BACKWARD))
            continue;
        if (birth_of(clock, i)->moment.cycle != last)
            ended = 0;
        last = birth_of(clock, i)->moment.cycle;
        ended += has_ended;
        do_end |= has_ended;
    }
    left -= mt_min_u64(left, ended);
    for (uint64_t i = count; i-- > 0 && left;) {
        if (mt_block_units_at(units, i) != of || codes[i] != MT_ROLE_CODE_KEPT_BACKWARD ||
            (do_end && birth_of(clock, i)->moment.cycle != last))
            continue;
        codes[i] = MT_ROLE_GRADIENTS;
        clock->kept_workspaces--;
        left--;
    }
}

/* Backward leaves a gradient, or an optimizer its state, of the size of each parameter; and
 * backward takes workspaces. */
static void find_alone(const struct mt_role_clock *clock, uint8_t *codes,
                       struct mt_block_units *units, uint64_t count)
{
    struct mt_map sizes = {0};

    for (uint64_t i = 0; i < count; i++)
        if (is_of_a_parameter(codes[i]) &&
            !(codes[i] == MT_ROLE_CODE_KEPT_BACKWARD &&
              mt_role_are_workspaces(clock, clock->kept_workspaces,
                                     (uint64_t)mt_block_units_at(units, i) * 512)))
            mt_map_put(&sizes, size_class(mt_block_units_at(units, i)), 1);
    for (uint64_t i = 0; i < count; i++)
        if (codes[i] == MT_ROLE_CODE_SETUP_KEPT && !has_size(&sizes, mt_block_units_at(units, i)))
            codes[i] = MT_ROLE_CODE_SETUP_ALONE;
    mt_map_release(&sizes);
}

/* A block that outlived calls of the model. */
struct over_calls {
    uint32_t cycle; /* of its allocation, and of its end */
    uint32_t units;
    uint64_t allocation;
};

MT_DEFINE_ORDER(by_cycle_and_units, struct over_calls, MT_ASCENDING(cycle) || MT_ASCENDING(units))

/* Whether `b` follows `a` in order. */
static bool may_be_pair(const struct over_calls *a, const struct over_calls *b)
{
    uint32_t apart = b->units - a->units;

    return a->cycle == b->cycle && (a->units < LARGE_UNITS ? apart == 0 : apart < LARGE_UNITS);
}

/* A cache has keys and values, so at least two blocks of a size in its cycle. A single one is the
 * working data of the loop of calls, in each cycle. */
static void drop_lone_caches(const struct mt_role_clock *clock, uint8_t *codes,
                             struct mt_block_units *units, uint64_t count)
{
    struct over_calls *blocks;
    size_t kept = 0;

    for (uint64_t i = 0; i < count; i++)
        kept += mt_role_code_is_over_calls(codes[i]);
    if (!kept)
        return;
    blocks = mt_memory_zeroed(kept, sizeof *blocks);
    kept = 0;
    for (uint64_t i = 0; i < count; i++)
        if (mt_role_code_is_over_calls(codes[i]))
            blocks[kept++] = (struct over_calls){birth_of(clock, i)->moment.cycle,
                                                 mt_block_units_at(units, i), i};
    qsort(blocks, kept, sizeof *blocks, by_cycle_and_units);
    for (size_t i = 0; i < kept; i++)
        if ((i == 0 || !may_be_pair(&blocks[i - 1], &blocks[i])) &&
            (i + 1 == kept || !may_be_pair(&blocks[i], &blocks[i + 1])))
            codes[blocks[i].allocation] = mt_role_code_without_calls(codes[blocks[i].allocation]);
    free(blocks);
}

/* Marks the blocks that a chain of caches replaced, wherever they were made. */
static void mark_replaced(const struct mt_role_clock *clock, uint8_t *codes,
                          struct mt_block_units *units, uint64_t count)
{
    const struct mt_cache_chains *chains = &clock->chains;

    for (size_t i = 0; i < chains->replaced_count && !clock->saw_backward; i++) {
        const struct mt_cache_replaced *block = &chains->replaced[i];

        if (block->allocation < count && !mt_role_code_is_recorded(codes[block->allocation]) &&
            (uint64_t)mt_block_units_at(units, block->allocation) * 512 >= block->least_bytes)
            codes[block->allocation] = MT_ROLE_CODE_REPLACED;
    }
}

/* The program frees them in the part that made them, as it frees temporaries. */
static void mark_graphs(struct mt_role_clock *clock, uint8_t *codes, uint64_t count)
{
    const struct mt_dropped_graphs *graphs = &clock->graphs;

    mt_dropped_graphs_finish(&clock->graphs);
    for (size_t i = 0; i < graphs->graph_count; i++)
        if (graphs->ended[i] < count && codes[graphs->ended[i]] == MT_ROLE_TEMPORARIES)
            codes[graphs->ended[i]] = MT_ROLE_ACTIVATIONS;
}

/* Whether a block from before the first call existed while the model worked. */
struct known_codes {
    const uint8_t *codes;
    uint64_t count;
};

static bool may_be_parameter(const void *context, uint64_t allocation)
{
    const struct known_codes *known = context;
    uint8_t code = allocation < known->count ? known->codes[allocation] : MT_ROLE_OTHER;

    return code == MT_ROLE_CODE_SETUP_KEPT || code == MT_ROLE_CODE_SETUP_ALONE ||
           code == MT_ROLE_CODE_INITIAL + MT_ROLE_PARAMETERS ||
           code == MT_ROLE_CODE_RECORDED + MT_ROLE_PARAMETERS ||
           code == MT_ROLE_CODE_ENDED + MT_ROLE_PARAMETERS ||
           (code >= MT_ROLE_CODE_SETUP_FREED_1 && code <= MT_ROLE_CODE_SETUP_FREED_2);
}

void mt_role_clock_finish(struct mt_role_clock *clock, uint8_t *codes, struct mt_block_units *units,
                          uint64_t count)
{
    size_t run = 0;

    clock->stale = true;
    enter(clock, MT_NO_PHASE);
    for (uint64_t i = 0; i < count; i++) {
        while (run + 1 < clock->run_count && clock->runs[run + 1].first <= i)
            run++;
        if (codes[i] == MT_ROLE_CODE_OPEN)
            codes[i] = code_of(clock, &clock->runs[run], i, MT_FATE_NEVER);
        if ((codes[i] == MT_ROLE_CODE_KEPT_LATE || codes[i] == MT_ROLE_CODE_KEPT_BACKWARD) &&
            mt_is_workspace((uint64_t)mt_block_units_at(units, i) * 512))
            clock->kept_workspaces++;
        if ((codes[i] == MT_ROLE_CODE_KEPT_ONLY || codes[i] == MT_ROLE_CODE_KEPT_EARLY) &&
            mt_is_workspace((uint64_t)mt_block_units_at(units, i) * 512))
            clock->early_workspaces++;
    }
    settle_graphs_of_backward(codes, units, count);
    for (size_t i = 0; clock->kept_workspaces && i < MT_ARRAY_LEN(mt_workspace_bytes); i++)
        find_large_gradients(clock, codes, units, count, (uint32_t)(mt_workspace_bytes[i] / 512));
    if (clock->saw_backward)
        find_alone(clock, codes, units, count);
    learn_from_stacks(clock);
    if (!clock->saw_model)
        mt_stack_kinds_judge_names(&clock->stacks, clock->symbols);
    drop_lone_caches(clock, codes, units, count);
    infer_initial(clock, codes, count);
    if (clock->saw_backward)
        mt_parameter_sets_infer(&clock->sets, clock->symbols, &clock->stacks, keep_replaced, codes);
    else
        mt_static_caches_infer(&clock->sets, &clock->stacks);
    mark_replaced(clock, codes, units, count);
    mark_graphs(clock, codes, count);
    mt_weight_copies_finish(&clock->copies, may_be_parameter, &(struct known_codes){codes, count});
    mt_parameter_sets_forget_blocks(&clock->sets);
}
