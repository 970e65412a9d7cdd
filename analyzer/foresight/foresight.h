/* What is known of a whole trace before a replay begins: what a policy's text, or
 * the policy, wants to know. For the others nothing is read, and it is empty. */
#ifndef MT_ANALYZER_FORESIGHT_H
#define MT_ANALYZER_FORESIGHT_H

#include "policy_text.h"
#include "pool_routes.h"
#include "step_plan.h"

/* Zeroed memory is empty. Large: keep it on the heap. */
struct mt_foresight {
    struct mt_pool_routes routes; /* of the pools in the text */
    struct mt_step_plan plan;     /* for `planned` */
};

/* The source stands at its start, before and after. */
enum mt_status mt_foresight_make(struct mt_source *source, const struct mt_policy_text *policy,
                                 struct mt_foresight *foresight,
                                 struct mt_error *error) MT_MUST_USE;
void mt_foresight_release(struct mt_foresight *foresight);

/* Does the policy want any? */
static inline bool mt_foresight_is_wanted(const struct mt_policy_text *policy)
{
    return *policy->pools || policy->ops == &mt_policy_planned;
}

#endif
