#include "allocator_settings.h"

#include <string.h>

const struct mt_setting mt_settings[MT_SETTING_COUNT] = {
    {"pytorch:", "the allocator's defaults", "unset PYTORCH_CUDA_ALLOC_CONF"},
    {"pytorch:expandable_segments:True", "expandable segments",
     "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
};

bool mt_setting_is_own(const struct mt_report *report, const struct mt_setting *setting)
{
    const char *own = report->policy;

    return strcmp(own, setting->policy) == 0 ||
           (strcmp(own, "pytorch") == 0 && strcmp(setting->policy, "pytorch:") == 0);
}

const struct mt_setting *mt_setting_of(const char *policy)
{
    for (int i = 0; i < MT_SETTING_COUNT; i++)
        if (strcmp(mt_settings[i].policy, policy) == 0)
            return &mt_settings[i];
    return NULL;
}
