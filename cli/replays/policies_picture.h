/* Measures and draws the same requests under several settings of the run's own allocator. */
#ifndef MT_CLI_POLICIES_PICTURE_H
#define MT_CLI_POLICIES_PICTURE_H

#include "picture_option.h"

/* Runs `memtrace render policies PATH` for a device (MT_EVERY_DEVICE: the device that reserves the
 * most). Prints errors; returns enum mt_exit. */
int mt_policies_render(const char *path, uint64_t device, const struct mt_picture *picture,
                       const struct mt_common *common);

#endif
