/* Contexts of the driver: the device of each, and whether it still works. */
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

/* Sets the function that returns the device of a context, for contexts whose creating call did
 * not name the device. CUPTI has one, which a callback may call. NULL: there is none. */
void mt_cupti_contexts_ask(int (*device_id)(const void *context, uint32_t *device));

/* CUPTI's resource callbacks. */
void mt_cupti_context_created(uint64_t context);
void mt_cupti_context_destroyed(uint64_t context);

/* Handles calls that query a device's name or size. Keeps the answers and records them in the
 * trace: at once if there is a trace, otherwise in mt_cupti_contexts_tell_devices. */
bool mt_cupti_asks_device(const struct mt_cupti_entry *entry);
void mt_cupti_contexts_tell_devices(void);

void mt_cupti_contexts_forget(void); /* in a forked child */

#endif
