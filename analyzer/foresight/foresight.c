#include "foresight.h"

#include <string.h>

enum mt_status mt_foresight_make(struct mt_source *source, const struct mt_policy_text *policy,
                                 struct mt_foresight *foresight, struct mt_error *error)
{
    memset(foresight, 0, sizeof *foresight);
    if (policy->ops == &mt_policy_planned)
        return mt_step_plan_make(source, &foresight->plan, error);
    return mt_pool_routes_make(source, policy->pools, &foresight->routes, error);
}

void mt_foresight_release(struct mt_foresight *foresight)
{
    mt_pool_routes_release(&foresight->routes);
    mt_step_plan_release(&foresight->plan);
}
