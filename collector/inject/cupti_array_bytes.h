/* The size of CUDA arrays. */
#ifndef MT_INJECT_CUPTI_ARRAY_BYTES_H
#define MT_INJECT_CUPTI_ARRAY_BYTES_H

#include <stdint.h>

#include "cupti_abi.h"

/* Returns the bytes of the texels of all levels. The driver takes more. Returns 0 if `array` is
 * NULL. */
uint64_t mt_cupti_array_bytes(const struct mt_cu_array3d_descriptor *array, uint32_t levels);

#endif
