/* The rank in the name of a trace's or snapshot's file. */
#ifndef MT_TRACE_RANK_NAME_H
#define MT_TRACE_RANK_NAME_H

#include <stdint.h>

/* The rank that the name of a file says, 0 to MT_MAX_RANK; -1 if it says none, or several that
 * differ. Looks at the last part of the path: "rank" or "r" with digits behind it, perhaps after
 * '_', '-' or '=', as a word of its own. */
int32_t mt_rank_of_name(const char *path);

#endif
