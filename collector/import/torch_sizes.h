/* Determines the sizes of blocks at the start of an incomplete history. */
#ifndef MT_COLLECTOR_TORCH_SIZES_H
#define MT_COLLECTOR_TORCH_SIZES_H

#include "torch_start_state.h"

/* Fills size_bytes, pool and flags of all blocks. Blocks and segments must be sorted by address. */
void mt_torch_size_blocks(struct mt_torch_start *start);

#endif
