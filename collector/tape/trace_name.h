/* Names of traces that are derived from the name that the user chose: words come before the
 * extension, as in run-12399.trace.zst. */
#ifndef MT_COLLECTOR_TRACE_NAME_H
#define MT_COLLECTOR_TRACE_NAME_H

#include <stddef.h>

/* Returns the length of `path` without its last extension. ".trace.zst" counts as one. */
size_t mt_trace_stem_length(const char *path);

#endif
