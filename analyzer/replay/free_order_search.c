#include "free_order_search.h"

#include "util.h"

enum mt_status mt_free_order_search(struct mt_source *source, struct mt_pool_reach lowest,
                                    const struct mt_free_order_trial *trial, struct mt_error *error)
{
    static const enum mt_free_order others[] = {MT_FREE_OLDEST_SEGMENT, MT_FREE_OLDEST_BLOCK};
    enum mt_free_order best = MT_FREE_LOWEST;
    struct mt_pool_reach most = lowest, reach;
    enum mt_status status = MT_OK;
    size_t i;

    for (i = 0; status == MT_OK && i < MT_ARRAY_LEN(others); i++) {
        source->header.free_order = others[i];
        status = trial->run(trial->context, &reach, error);
        if (status != MT_OK || !mt_pool_reach_is_further(reach, most))
            continue;
        most = reach;
        best = others[i];
    }
    source->header.free_order = best;
    return status;
}
