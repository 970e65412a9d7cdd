/* How large the blocks at the start of an incomplete history were. */
#ifndef MT_COLLECTOR_TORCH_SIZES_H
#define MT_COLLECTOR_TORCH_SIZES_H

#include "torch_start_state.h"

/* Fills size_bytes, pool and flags of all blocks. Blocks and segments are
 * sorted by address. */
void mt_torch_size_blocks(struct mt_torch_start *start);

#endif
