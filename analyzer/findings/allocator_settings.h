/* The settings of PyTorch's allocator that findings try: its defaults, and expandable segments. */
#ifndef MT_ANALYZER_ALLOCATOR_SETTINGS_H
#define MT_ANALYZER_ALLOCATOR_SETTINGS_H

#include <stdbool.h>

#include "report.h"

struct mt_setting {
    const char *policy; /* as for mt_replay_options */
    const char *what;   /* in words */
    const char *advice; /* a shell command */
};

enum { MT_SETTING_COUNT = 2 };
extern const struct mt_setting mt_settings[MT_SETTING_COUNT];

/* Returns true if the run used this setting. */
bool mt_setting_is_own(const struct mt_report *report, const struct mt_setting *setting);

/* Returns the setting with that policy, or NULL. */
const struct mt_setting *mt_setting_of(const char *policy);

#endif
