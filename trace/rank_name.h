/* The rank in the name of a trace's or snapshot's file. */
#ifndef MT_TRACE_RANK_NAME_H
#define MT_TRACE_RANK_NAME_H

#include <stdint.h>

/* Returns the rank in the name of a file, 0 to MT_MAX_RANK; -1 if there is none, or several that
 * differ. Looks at the last part of the path for "rank" or "r" as a separate word, followed by
 * digits, with an optional '_', '-' or '=' in between. */
int32_t mt_rank_of_name(const char *path);

#endif
