/* CUPTI as a source of driver events. */
#ifndef MT_INJECT_SOURCE_CUPTI_H
#define MT_INJECT_SOURCE_CUPTI_H

#include <stdbool.h>

#include "cupti_calls.h"
#include "inject_source.h"

extern const struct mt_inject_source mt_cupti_source;

/* Called by the driver during cuInit (CUDA_INJECTION64_PATH). Returns 1: cuInit continues. */
int InitializeInjection(void);

/* Returns true if the collector is subscribed to CUPTI in this process, so that CUPTI reports every
 * call. */
bool mt_cupti_is_active(void);

/* Handle a driver call that CUPTI or the interposer reports. Call them between mt_collect_enter and
 * leave. */
void mt_cupti_on_enter(const struct mt_cupti_entry *entry, const struct mt_cupti_call *call);
void mt_cupti_on_exit(const struct mt_cupti_entry *entry, const struct mt_cupti_call *call);

/* Checks whether a stream-ordered allocation adds a node to the graph that its stream is capturing.
 * CUPTI reports such a call like any other allocation, and its resource callback for graph nodes
 * does not report captured nodes (seen with CUPTI 13.0 and driver 580). So this file queries the
 * driver, which no other callback does. */

typedef uint32_t mt_cu_is_capturing(uint64_t stream, uint32_t *status);

/* Sets the functions that query a stream: one for calls in which stream 0 means the legacy default
 * stream, and one for calls in which it means the default stream of the thread. NULL: nothing
 * counts as captured. */
void mt_cupti_capture_set_query(mt_cu_is_capturing *legacy, mt_cu_is_capturing *per_thread);

#endif
