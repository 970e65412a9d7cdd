/* Identifies the devices of the process by UUID, PCI address, and the profile of a MIG instance,
 * which do not depend on the numbering of devices. Also records facts about the machine: its
 * boot, and the limit of the process's control group. */
#ifndef MT_INJECT_SOURCE_DEVICE_H
#define MT_INJECT_SOURCE_DEVICE_H

#include "inject_source.h"

extern const struct mt_inject_source mt_device_source;

#endif
