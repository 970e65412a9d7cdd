/* The second pass over roles: from the code of a block and its stack to its role. */
#include "roles.h"

/* A module that is moved while the loop continues, layer by layer, between the parts of a step or
 * by the call of an outer module: the kept blocks are its parameters, for any duration. */
static bool is_moved_module(const struct mt_role_clock *clock, uint8_t code, uint32_t stack)
{
    if (!(mt_stack_kind(&clock->stacks, stack) & MT_STACK_MOVES))
        return false;
    switch (mt_role_code_without_calls(code)) {
    case MT_ROLE_OTHER:
    case MT_ROLE_INPUTS:
    case MT_ROLE_ACTIVATIONS:
    case MT_ROLE_CODE_KEPT_ONLY:
    case MT_ROLE_CODE_KEPT_EARLY:
    case MT_ROLE_CODE_KEPT_LATE:
    case MT_ROLE_CODE_SETUP_FREED_1:
    case MT_ROLE_CODE_SETUP_FREED_2: return true;
    case MT_ROLE_TEMPORARIES:
        return (mt_stack_kind(&clock->stacks, stack) & MT_STACK_KIND_MASK) == MT_PHASE_SETUP;
    default: return false;
    }
}

/* A model that is called before the first cycle, for validation or warm-up, takes the workspaces
 * then. */
static bool is_early_workspace(uint8_t stack_kind, uint64_t requested_bytes)
{
    return mt_phase_is_forward(stack_kind) &&
           (mt_is_workspace(requested_bytes) || requested_bytes == MT_LT_WORKSPACE_BYTES);
}

/* The role of a block from before the first cycle that stayed. If stacks show how the model was
 * loaded, a block that came in another way and has no gradient is a batch or a data set. */
static enum mt_role role_of_kept(const struct mt_role_clock *clock, uint8_t code, uint8_t kind,
                                 uint64_t requested_bytes)
{
    if (is_early_workspace(kind, requested_bytes))
        return MT_ROLE_WORKSPACE;
    if (kind == MT_PHASE_OPTIMIZER) /* torch's Adagrad makes its state in its constructor */
        return MT_ROLE_OPTIMIZER_STATE;
    if (kind == MT_PHASE_DATA ||
        (code == MT_ROLE_CODE_SETUP_ALONE && clock->moves_models && kind == MT_PHASE_UNKNOWN))
        return MT_ROLE_INPUTS;
    return MT_ROLE_PARAMETERS;
}

/* If no model works in the trace, as in a snapshot without a history, only names show the role. */
static enum mt_role role_by_names(const struct mt_role_clock *clock, uint32_t stack)
{
    if (!clock->stacks.made || stack >= clock->stacks.stack_count)
        return MT_ROLE_OTHER;
    switch (clock->stacks.made[stack]) {
    case MT_MAKES_WEIGHTS: /* to load a model may also call it */
        return (mt_stack_kind(&clock->stacks, stack) & MT_STACK_KIND_MASK) == MT_PHASE_UNKNOWN
                   ? MT_ROLE_PARAMETERS
                   : MT_ROLE_OTHER;
    case MT_MAKES_CACHE: return MT_ROLE_KV_CACHE;
    default: return MT_ROLE_OTHER;
    }
}

static enum mt_role role_of_setup(const struct mt_role_clock *clock, uint8_t code, uint32_t stack,
                                  uint64_t requested_bytes)
{
    uint8_t kind = mt_stack_kind(&clock->stacks, stack) & MT_STACK_KIND_MASK;
    bool kept = code == MT_ROLE_CODE_SETUP_KEPT || code == MT_ROLE_CODE_SETUP_ALONE;
    uint32_t freed_in = code - (uint32_t)MT_ROLE_CODE_SETUP_FREED;
    enum mt_role role;

    if (clock->cycles == 0 || (!clock->saw_model && code != MT_ROLE_CODE_SETUP_FREED))
        return kind == MT_PHASE_SETUP && kept ? MT_ROLE_PARAMETERS
               : kept                         ? role_by_names(clock, stack)
                                              : MT_ROLE_OTHER;
    if (kept)
        return role_of_kept(clock, code, kind, requested_bytes);
    /* a block that was moved or converted again was a parameter until then */
    if (code == MT_ROLE_CODE_SETUP_FREED)
        return mt_stack_kind(&clock->stacks, stack) & MT_STACK_MOVES ? MT_ROLE_PARAMETERS
                                                                     : MT_ROLE_TEMPORARIES;
    if (freed_in >= clock->cycles)
        return MT_ROLE_PARAMETERS;
    /* freed while the loop continued: a batch, or one of a set, not a parameter */
    return mt_parameter_sets_role(&clock->sets, stack, &role) && role == MT_ROLE_OTHER
               ? MT_ROLE_OTHER
               : MT_ROLE_INPUTS;
}

/* A checkpoint calls the model in backward; gradients come from below its calls. */
static bool is_recomputed_workspace(const struct mt_role_clock *clock, uint32_t stack,
                                    uint64_t requested_bytes)
{
    return requested_bytes == MT_LT_WORKSPACE_BYTES &&
           mt_stack_kinds_calls_model(&clock->stacks, clock->symbols, stack);
}

/* Whether it is the code of a block that may be in a set of one for each parameter. */
static bool may_be_in_set(uint8_t code)
{
    switch (mt_role_code_without_calls(code)) {
    case MT_ROLE_CODE_SETUP_KEPT:
    case MT_ROLE_CODE_SETUP_ALONE:
    case MT_ROLE_OPTIMIZER_STATE:
    case MT_ROLE_INPUTS:
    case MT_ROLE_GRADIENTS:
    case MT_ROLE_CODE_KEPT_BACKWARD:
    case MT_ROLE_OTHER: return true;
    default: return false;
    }
}

static enum mt_role role_of_initial(const struct mt_role_clock *clock, uint8_t code, uint32_t stack)
{
    const bool kept = code == MT_ROLE_CODE_INITIAL_KEPT;
    const enum mt_role role =
        mt_initial_role_by_stack(mt_stack_kind(&clock->stacks, stack) & MT_STACK_KIND_MASK, kept);

    return role == MT_ROLE_OTHER && kept ? role_by_names(clock, stack) : role;
}

enum mt_role mt_role_resolve(const struct mt_role_clock *clock, uint8_t code, uint32_t stack,
                             uint64_t requested_bytes)
{
    bool kv = mt_stack_kind(&clock->stacks, stack) & MT_STACK_KV_CACHE;
    enum mt_role role;

    if (mt_role_code_is_recorded(code))
        return (enum mt_role)(code % (MT_ROLE_CODE_ENDED - MT_ROLE_CODE_RECORDED));
    if (mt_role_code_is_of_xla(code))
        return (enum mt_role)(code - MT_ROLE_CODE_XLA);
    if (mt_weight_copies_has(&clock->copies, stack, requested_bytes) &&
        !mt_role_code_is_inferred_initial(code))
        return MT_ROLE_WEIGHT_COPIES;
    if ((kv || mt_cache_chains_has(&clock->chains, stack)) && !clock->saw_backward)
        return MT_ROLE_KV_CACHE;
    if (mt_stack_kind(&clock->stacks, stack) & MT_STACK_BUCKETS)
        return MT_ROLE_GRADIENTS;
    if (is_moved_module(clock, code, stack))
        return MT_ROLE_PARAMETERS;
    if (may_be_in_set(code) && mt_parameter_sets_role(&clock->sets, stack, &role) &&
        role != MT_ROLE_OTHER)
        return role;
    switch (code) {
    case MT_ROLE_CODE_REPLACED: return MT_ROLE_KV_CACHE;
    case MT_ROLE_CODE_SETUP_FREED:
    case MT_ROLE_CODE_SETUP_FREED_1:
    case MT_ROLE_CODE_SETUP_FREED_2:
    case MT_ROLE_CODE_SETUP_KEPT:
    case MT_ROLE_CODE_SETUP_ALONE: return role_of_setup(clock, code, stack, requested_bytes);
    case MT_ROLE_CODE_KEPT_ONLY:
        return mt_role_are_workspaces(clock, clock->early_workspaces, requested_bytes)
                   ? MT_ROLE_WORKSPACE
                   : MT_ROLE_ACTIVATIONS;
    case MT_ROLE_CODE_KEPT_EARLY:
        if (mt_role_are_workspaces(clock, clock->early_workspaces, requested_bytes))
            return MT_ROLE_WORKSPACE;
        if (!clock->kept_late && requested_bytes == MT_LT_WORKSPACE_BYTES)
            return MT_ROLE_WORKSPACE;
        return clock->kept_late || (clock->kept_twice && !clock->saw_backward) ? MT_ROLE_ACTIVATIONS
                                                                               : MT_ROLE_OTHER;
    case MT_ROLE_CODE_KEPT_LATE:
        return mt_role_are_workspaces(clock, clock->kept_workspaces, requested_bytes)
                   ? MT_ROLE_WORKSPACE
                   : MT_ROLE_ACTIVATIONS;
    case MT_ROLE_CODE_KEPT_BACKWARD:
        return mt_role_are_workspaces(clock, clock->kept_workspaces, requested_bytes) ||
                       is_recomputed_workspace(clock, stack, requested_bytes)
                   ? MT_ROLE_WORKSPACE
                   : MT_ROLE_GRADIENTS;
    case MT_ROLE_CODE_INITIAL_KEPT:
    case MT_ROLE_CODE_INITIAL_FREED: return role_of_initial(clock, code, stack);
    default: break;
    }
    if (mt_role_code_is_inferred_initial(code))
        return (enum mt_role)(code - MT_ROLE_CODE_INITIAL);
    if (mt_role_code_is_over_calls(code))
        return clock->saw_backward || clock->names_caches
                   ? (enum mt_role)mt_role_code_without_calls(code)
                   : MT_ROLE_KV_CACHE;
    if (code == MT_ROLE_INPUTS && !clock->saw_model)
        return MT_ROLE_OTHER; /* no role: no model works in this trace */
    return code < MT_ROLE_COUNT ? (enum mt_role)code : MT_ROLE_OTHER;
}
