#include "policy.h"

#include "heap.h"

#include <string.h>

const struct mt_policy_ops *const mt_policies[] = {
    &mt_policy_pytorch,     &mt_policy_recorded,   &mt_policy_bfc,
    &mt_policy_ort,         &mt_policy_cuda_async, &mt_policy_cupy,
    &mt_policy_cub,         &mt_policy_rmm_pool,   &mt_policy_rmm_arena,
    &mt_policy_rmm_binning, &mt_policy_first_fit,  &mt_policy_best_fit,
    &mt_policy_next_fit,    &mt_policy_worst_fit,  &mt_policy_buddy,
    &mt_policy_segregated,  &mt_policy_tlsf,       &mt_policy_paged,
    &mt_policy_planned,     &mt_policy_none,       NULL};

const struct mt_policy_ops *mt_policy_find(const char *name, size_t length)
{
    size_t i;

    for (i = 0; mt_policies[i]; i++) {
        if (strlen(mt_policies[i]->name) == length &&
            memcmp(mt_policies[i]->name, name, length) == 0)
            return mt_policies[i];
    }
    return NULL;
}

enum mt_status mt_policy_create(const struct mt_policy_ops *ops,
                                const struct mt_policy_setup *setup, struct mt_policy **policy,
                                struct mt_error *error)
{
    return ops->heap ? mt_heap_create(ops, setup, policy, error)
                     : ops->create(setup, policy, error);
}
