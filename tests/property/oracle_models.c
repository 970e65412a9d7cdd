#include "oracle.h"

#include <string.h>

extern const struct oracle_rules oracle_none, oracle_cupy, oracle_cub, oracle_first_fit,
    oracle_next_fit, oracle_best_fit, oracle_worst_fit, oracle_buddy, oracle_tlsf,
    oracle_segregated, oracle_paged, oracle_bfc, oracle_ort, oracle_rmm_pool, oracle_rmm_binning,
    oracle_rmm_arena, oracle_cuda_async, oracle_pytorch, oracle_planned;

const struct oracle_rules *const oracle_models[] = {
    &oracle_none,      &oracle_cupy,       &oracle_cub,     &oracle_first_fit, &oracle_next_fit,
    &oracle_best_fit,  &oracle_worst_fit,  &oracle_buddy,   &oracle_tlsf,      &oracle_segregated,
    &oracle_paged,     &oracle_bfc,        &oracle_ort,     &oracle_rmm_pool,  &oracle_rmm_binning,
    &oracle_rmm_arena, &oracle_cuda_async, &oracle_pytorch, &oracle_planned,   NULL};

const struct oracle_rules *oracle_find(const char *policy)
{
    size_t i;

    for (i = 0; oracle_models[i]; i++) {
        if (strcmp(oracle_models[i]->policy, policy) == 0)
            return oracle_models[i];
    }
    return NULL;
}
