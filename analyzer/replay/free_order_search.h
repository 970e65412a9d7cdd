/* Infers the rule by which the run's allocator chose among equal free blocks, if the trace does not
 * name the version of PyTorch. It is the rule whose replay agrees with the recorded addresses for
 * the longest time. */
#ifndef MT_ANALYZER_FREE_ORDER_SEARCH_H
#define MT_ANALYZER_FREE_ORDER_SEARCH_H

#include "pool_search.h"
#include "source.h"

/* A replay of the run by the rule in source->header.free_order. */
struct mt_free_order_trial {
    void *context;
    enum mt_status (*run)(void *context, struct mt_pool_reach *reach, struct mt_error *error);
};

/* `lowest` is the result of the replay with MT_FREE_LOWEST. Makes two more trials, and sets
 * source->header.free_order to the rule whose replay agreed longest. */
enum mt_status mt_free_order_search(struct mt_source *source, struct mt_pool_reach lowest,
                                    const struct mt_free_order_trial *trial,
                                    struct mt_error *error) MT_MUST_USE;

#endif
