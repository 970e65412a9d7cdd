/* A policy as text, and facts about a whole trace that the text or the policy needs before a replay
 * begins. If neither needs any, the trace is not read, and the foresight is empty. */
#ifndef MT_ANALYZER_FORESIGHT_H
#define MT_ANALYZER_FORESIGHT_H

#include "policy.h"
#include "pool_routes.h"
#include "replay_result.h"
#include "step_plan.h"

/* A policy as a user spells it: "name", "name:options", or a bare option string of PyTorch; pools
 * that the run did not have may follow "pytorch" (pool_routes.h). */
struct mt_policy_text {
    const struct mt_policy_ops *ops;
    const char *options;       /* in `head`; NULL = none */
    const char *pools;         /* " --pool SELECTOR ...", in the text; "" = none */
    char head[MT_POLICY_TEXT]; /* the text without the pools */
};

/* `text` has to outlive the result. MT_ERR_USAGE with a reason. */
enum mt_status mt_policy_text_parse(const char *text, struct mt_policy_text *policy,
                                    struct mt_error *error) MT_MUST_USE;

/* Zeroed memory is empty. Large: keep it on the heap. */
struct mt_foresight {
    struct mt_pool_routes routes; /* of the pools in the text */
    struct mt_step_plan plan;     /* for `planned` */
};

/* Fills *foresight, released by the caller. The source must be at its start, and is there again
 * afterwards. */
enum mt_status mt_foresight_make(struct mt_source *source, const struct mt_policy_text *policy,
                                 struct mt_foresight *foresight,
                                 struct mt_error *error) MT_MUST_USE;
void mt_foresight_release(struct mt_foresight *foresight);

/* Whether the policy needs foresight. */
static inline bool mt_foresight_is_wanted(const struct mt_policy_text *policy)
{
    return *policy->pools || policy->ops == &mt_policy_planned;
}

#endif
