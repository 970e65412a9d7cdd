/* Decoders of driver calls: device and host memory, arrays, memory of others, physical memory and
 * mappings. */
#ifndef MT_INJECT_CUPTI_DECODERS_H
#define MT_INJECT_CUPTI_DECODERS_H

#include <stdint.h>

#include "cupti_abi.h"
#include "cupti_calls.h"
#include "cupti_live.h"
#include "tape.h"

/* The size of CUDA arrays. */

/* Returns the bytes of the texels of all levels. The driver takes more. Returns 0 if `array` is
 * NULL. */
uint64_t mt_cupti_array_bytes(const struct mt_cu_array3d_descriptor *array, uint32_t levels);

/* Converts driver calls to events, and keeps the live blocks (cupti_live.h) consistent with them.
 * Call these functions between mt_collect_enter and leave. */

/* Records that the block was allocated. If its device is MT_CU_UNKNOWN_DEVICE, uses the device of
 * the call's context. `stream` is the driver's handle. */
void mt_cupti_record_alloc(const struct mt_cupti_call *call,
                           const struct mt_cupti_live_block *block, uint64_t stream);

/* Records an allocation that failed. */
void mt_cupti_record_failed(const struct mt_cupti_call *call, enum mt_raw_heap heap, size_t bytes);

/* Removes the block and records its end. Returns false if there is no such block. */
bool mt_cupti_free(enum mt_cupti_live_space space, uint64_t addr, uint64_t stream);

/* Removes all blocks that end with the context, and records their ends. */
void mt_cupti_free_all_of(uint64_t context);

/* Call it when the thread enters a driver call. If the call fails, the decoder of its EXIT undoes
 * what mt_cupti_free and the decoders did since then (only the first few changes). */
void mt_cupti_begin_call(void);

/* Returns the number of successful frees of unknown memory: allocated before the collector
 * started, or of a kind that is not decoded. */
uint64_t mt_cupti_unknown_frees(void);

#endif
