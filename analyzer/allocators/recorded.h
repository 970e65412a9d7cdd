/* Access to the policy `recorded`: the recorded positions of blocks. */
#ifndef MT_ANALYZER_RECORDED_H
#define MT_ANALYZER_RECORDED_H

#include "block_store.h"
#include "policy.h"

/* Returns all blocks, including free ones, of an instance of mt_policy_recorded. Unmapped address
 * space has no block: a free block that ends at such space, or at the end of its segment, has no
 * next one. */
const struct mt_block_store *mt_recorded_blocks(const struct mt_policy *policy);

#endif
