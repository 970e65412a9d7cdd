#include "policy.h"

#include <string.h>

const struct mt_policy_ops *const mt_policies[] = {&mt_policy_pytorch, &mt_policy_recorded,
                                                   &mt_policy_none, &mt_policy_cupy, NULL};

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
