/* Contexts of the driver: the device of each, and whether it still works. */
#ifndef MT_INJECT_CUPTI_CONTEXTS_H
#define MT_INJECT_CUPTI_CONTEXTS_H

#include "cupti_calls.h"

#define MT_CU_UNKNOWN_DEVICE 255u

uint8_t mt_cupti_device_of(uint64_t context); /* MT_CU_UNKNOWN_DEVICE: not known */

/* Bit n: there is a context on device n, which is below 32. Any thread. */
uint32_t mt_cupti_contexts_devices(void);

/* Was an error seen in it after which every call of a context fails? */
bool mt_cupti_is_broken(uint64_t context);
void mt_cupti_see_result(const struct mt_cupti_call *call); /* at EXIT of a call that failed */

/* Whom to ask for the device of a context whose creator did not say (CUPTI, which
 * may be asked in a callback); NULL: nobody. */
void mt_cupti_contexts_ask(int (*device_id)(const void *context, uint32_t *device));

/* CUPTI's resource callbacks. */
void mt_cupti_context_created(uint64_t context);
void mt_cupti_context_destroyed(uint64_t context);

/* Handles calls that query a device's name or size. Keeps the answers and records them in the
 * trace: at once if there is one, otherwise in tell_devices. */
bool mt_cupti_asks_device(const struct mt_cupti_entry *entry);
void mt_cupti_contexts_tell_devices(void);

void mt_cupti_contexts_forget(void); /* in a forked child */

#endif
