/* Copies of CUPTI on this machine, in the order in which the collector would
 * try them: a framework's own first, since its version fits. */
#ifndef MT_RECORD_CUPTI_COPIES_H
#define MT_RECORD_CUPTI_COPIES_H

#include <stdbool.h>

#include "program_kind.h"

/* Calls `visit` with names for dlopen, until it returns true or there are no
 * more; returns whether it did. `program` (may be NULL): what is to be run; if it
 * is a Python interpreter, or a script of one, its packages count. MEMTRACE_CUPTI
 * is the only one if it is set ("none": none). */
bool mt_cupti_copies(const struct mt_program *program,
                     bool (*visit)(void *context, const char *name), void *context);

#endif
