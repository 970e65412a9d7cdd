#include "foresight.h"

#include <string.h>

#include "pytorch_config.h"

enum mt_status mt_policy_text_parse(const char *text, struct mt_policy_text *policy,
                                    struct mt_error *error)
{
    const char *colon;
    size_t length;

    memset(policy, 0, sizeof *policy);
    policy->pools = mt_pool_routes_text(text);
    if (strlen(text) >= sizeof policy->head)
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "more than %zu characters",
                       sizeof policy->head - 1);
    memcpy(policy->head, text, (size_t)(policy->pools - text));
    colon = strchr(policy->head, ':');
    length = colon ? (size_t)(colon - policy->head) : strlen(policy->head);
    policy->ops = mt_policy_find(policy->head, length);
    policy->options = colon ? colon + 1 : NULL;
    if (!policy->ops && strpbrk(policy->head, ":=")) {
        struct mt_pytorch_config config;
        enum mt_status status = mt_pytorch_config_parse(policy->head, &config, error);
        if (status != MT_OK)
            return status;
        policy->ops = &mt_policy_pytorch;
        policy->options = policy->head;
    }
    if (!policy->ops)
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "there is no such policy");
    if (*policy->pools && policy->ops != &mt_policy_pytorch)
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "only pytorch has private pools");
    return MT_OK;
}

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
