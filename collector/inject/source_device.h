/* Which devices the process uses, by what does not change when devices are numbered otherwise:
 * UUID, PCI address, and the profile of a MIG instance. Also what else the machine says of the
 * process: its boot, and the limit of its control group. */
#ifndef MT_INJECT_SOURCE_DEVICE_H
#define MT_INJECT_SOURCE_DEVICE_H

#include "inject_source.h"

extern const struct mt_inject_source mt_device_source;

#endif
