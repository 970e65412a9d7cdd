/* A policy as a user spells it: "name", "name:options", a bare option string of
 * PyTorch; behind "pytorch" pools that the run did not have (pool_routes.h). */
#ifndef MT_ANALYZER_POLICY_TEXT_H
#define MT_ANALYZER_POLICY_TEXT_H

#include "policy.h"
#include "replay_result.h"

struct mt_policy_text {
    const struct mt_policy_ops *ops;
    const char *options;       /* in `head`; NULL = none were given */
    const char *pools;         /* " --pool SELECTOR ...", in the text; "" = none */
    char head[MT_POLICY_TEXT]; /* the text without the pools */
};

/* `text` has to outlive the result. MT_ERR_USAGE with a reason. */
enum mt_status mt_policy_text_parse(const char *text, struct mt_policy_text *policy,
                                    struct mt_error *error) MT_MUST_USE;

#endif
