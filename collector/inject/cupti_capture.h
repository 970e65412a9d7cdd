/* Checks whether a stream-ordered allocation adds a node to the graph that its stream is capturing.
 * CUPTI reports such a call like any other allocation, and its resource callback for graph nodes
 * does not report captured nodes (seen with CUPTI 13.0 and driver 580). So this file queries the
 * driver, which no other callback does. */
#ifndef MT_INJECT_CUPTI_CAPTURE_H
#define MT_INJECT_CUPTI_CAPTURE_H

#include <stdbool.h>

#include "cupti_calls.h"

typedef uint32_t mt_cu_is_capturing(uint64_t stream, uint32_t *status);

/* Sets the functions that query a stream: one for calls in which stream 0 means the legacy default
 * stream, and one for calls in which it means the default stream of the thread. NULL: nothing
 * counts as captured. */
void mt_cupti_capture_ask(mt_cu_is_capturing *legacy, mt_cu_is_capturing *per_thread);

/* Like mt_cupti_capture_ask, with the functions of the libcuda that the process has loaded. */
void mt_cupti_capture_find(void);

/* Call it at EXIT of a call that succeeded. Returns false for calls that cannot be captured. */
bool mt_cupti_is_captured(const struct mt_cupti_entry *entry, const void *params);

#endif
