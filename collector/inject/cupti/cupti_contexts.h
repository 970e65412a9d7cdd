/* Contexts of the driver: the device of each context, and whether the context still works. */
#ifndef MT_INJECT_CUPTI_CONTEXTS_H
#define MT_INJECT_CUPTI_CONTEXTS_H

#include "cupti_calls.h"

#define MT_CU_UNKNOWN_DEVICE 255u

uint8_t mt_cupti_device_of(uint64_t context); /* MT_CU_UNKNOWN_DEVICE: not known */

/* Bit n is set if there is a context on device n; devices above 31 have no bit. Any thread may
 * call it. */
uint32_t mt_cupti_contexts_devices(void);

/* Returns true if the context had an error after which every call fails. */
bool mt_cupti_is_broken(uint64_t context);
void mt_cupti_see_result(const struct mt_cupti_call *call); /* at EXIT of a call that failed */

/* Sets the function that returns the device of a context, for contexts whose creation did not name
 * a device. CUPTI has such a function, and callbacks may call it. NULL: there is none. */
void mt_cupti_contexts_set_query(int (*device_id)(const void *context, uint32_t *device));

/* CUPTI's resource callbacks. */
void mt_cupti_context_created(uint64_t context);
void mt_cupti_context_destroyed(uint64_t context);

/* Returns true if the call queries the name or the size of a device. The decoders of these calls
 * keep the results. They record them at once if there is a trace; otherwise
 * mt_cupti_contexts_record_devices does. */
bool mt_cupti_is_device_query(const struct mt_cupti_entry *entry);
void mt_cupti_contexts_record_devices(void);

void mt_cupti_contexts_forget(void); /* in a forked child */

/* Pools of stream-ordered memory: the device of each pool, and the current pool of each device. */
void mt_cupti_pools_forget(void); /* in a forked child */

#endif
