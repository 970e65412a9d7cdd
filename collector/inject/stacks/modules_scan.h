/* Defines the modules of the process in the tape (MT_DEFINE_MODULE) as they are loaded and
 * unloaded. Without them, native stacks are only numbers. */
#ifndef MT_INJECT_MODULES_SCAN_H
#define MT_INJECT_MODULES_SCAN_H

#include "inject_source.h"

extern const struct mt_inject_source mt_modules_source;

#endif
