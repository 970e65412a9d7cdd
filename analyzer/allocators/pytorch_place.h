/* Restores a checkpoint of a private pool (policy.h, `place`). */
#ifndef MT_ANALYZER_PYTORCH_PLACE_H
#define MT_ANALYZER_PYTORCH_PLACE_H

#include "policy.h"
#include "pytorch_pools.h"

/* Cuts [request->addr, + request->block_bytes) out of the free block that contains it, regardless
 * of the rules for splitting. O(free blocks of the pool and stream); for tiles in ascending order
 * only the first one searches. */
enum mt_status mt_pytorch_place(struct mt_pytorch *policy, const struct mt_policy_request *request,
                                uint32_t *block) MT_MUST_USE;

/* Whether [request->addr, + request->block_bytes) is a whole segment (for an expandable one, all
 * that is mapped), and free. O(free blocks of the pool and stream). */
bool mt_pytorch_is_idle_segment(struct mt_pytorch *policy, const struct mt_policy_request *request);

#endif
