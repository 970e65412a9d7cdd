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

#endif
