/* Lists the copies of CUPTI on this machine in the order in which the collector tries them: a
 * framework's own copy first, because its version fits. */
#ifndef MT_RECORD_CUPTI_COPIES_H
#define MT_RECORD_CUPTI_COPIES_H

#include <stdbool.h>

#include "program_kind.h"

/* Calls `visit` with names for dlopen until it returns true or the list ends. Returns whether a
 * call returned true. `program` (may be NULL) is the program to run; if it is a Python
 * interpreter or a Python script, its packages are searched. If MEMTRACE_CUPTI is set, it is the
 * only candidate ("none": no candidate). */
bool mt_cupti_copies(const struct mt_program *program,
                     bool (*visit)(void *context, const char *name), void *context);

#endif
