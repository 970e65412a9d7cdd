#include "oracle.h"

#include <string.h>

/* A slow model of every policy; its place here chooses the seeds that it is tried with. */
#define MODELS(ROW)                                                                                \
    ROW(none)                                                                                      \
    ROW(cupy)                                                                                      \
    ROW(cub)                                                                                       \
    ROW(first_fit)                                                                                 \
    ROW(next_fit)                                                                                  \
    ROW(best_fit)                                                                                  \
    ROW(worst_fit)                                                                                 \
    ROW(buddy)                                                                                     \
    ROW(tlsf)                                                                                      \
    ROW(segregated)                                                                                \
    ROW(paged)                                                                                     \
    ROW(bfc)                                                                                       \
    ROW(ort)                                                                                       \
    ROW(rmm_pool)                                                                                  \
    ROW(rmm_binning)                                                                               \
    ROW(rmm_arena)                                                                                 \
    ROW(cuda_async)                                                                                \
    ROW(pytorch)                                                                                   \
    ROW(planned)

#define DECLARE(name)  extern const struct oracle_rules oracle_##name;
#define POINT_TO(name) &oracle_##name,

MODELS(DECLARE)
const struct oracle_rules *const oracle_models[] = {MODELS(POINT_TO) NULL};

const struct oracle_rules *oracle_find(const char *policy)
{
    for (size_t i = 0; oracle_models[i]; i++) {
        if (strcmp(oracle_models[i]->policy, policy) == 0)
            return oracle_models[i];
    }
    return NULL;
}
