#include "policy.h"

#include "heap.h"

#include <string.h>

/* Every policy, in the order of the list that `replay --policies` prints. */
#define POLICIES(ROW)                                                                              \
    ROW(pytorch)                                                                                   \
    ROW(recorded)                                                                                  \
    ROW(bfc)                                                                                       \
    ROW(ort)                                                                                       \
    ROW(cuda_async)                                                                                \
    ROW(cupy)                                                                                      \
    ROW(cub)                                                                                       \
    ROW(rmm_pool)                                                                                  \
    ROW(rmm_arena)                                                                                 \
    ROW(rmm_binning)                                                                               \
    ROW(first_fit)                                                                                 \
    ROW(best_fit)                                                                                  \
    ROW(next_fit)                                                                                  \
    ROW(worst_fit)                                                                                 \
    ROW(buddy)                                                                                     \
    ROW(segregated)                                                                                \
    ROW(tlsf)                                                                                      \
    ROW(paged)                                                                                     \
    ROW(planned)                                                                                   \
    ROW(none)

#define DECLARE(name)  extern const struct mt_policy_ops mt_policy_##name;
#define POINT_TO(name) &mt_policy_##name,

POLICIES(DECLARE)
const struct mt_policy_ops *const mt_policies[] = {POLICIES(POINT_TO) NULL};

const struct mt_policy_ops *mt_policy_find(const char *name, size_t length)
{
    for (size_t i = 0; mt_policies[i]; i++)
        if (strlen(mt_policies[i]->name) == length &&
            memcmp(mt_policies[i]->name, name, length) == 0)
            return mt_policies[i];
    return NULL;
}

enum mt_status mt_policy_create(const struct mt_policy_ops *ops,
                                const struct mt_policy_setup *setup, struct mt_policy **policy,
                                struct mt_error *error)
{
    return ops->heap ? mt_heap_create(ops, setup, policy, error)
                     : ops->create(setup, policy, error);
}
