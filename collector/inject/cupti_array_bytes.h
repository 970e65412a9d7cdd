/* Computes the size of arrays from their descriptors. */
#ifndef MT_INJECT_CUPTI_ARRAY_BYTES_H
#define MT_INJECT_CUPTI_ARRAY_BYTES_H

#include <stdint.h>

#include "cupti_abi.h"

/* Bytes of the texels of all levels: less than what the driver takes. NULL: 0. */
uint64_t mt_cupti_array_bytes(const struct mt_cu_array3d_descriptor *array, uint32_t levels);

#endif
