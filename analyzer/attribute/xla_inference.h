/* Roles of a program of XLA that computes no gradients: no operation of its modules is one of a
 * backward pass, and no library made state of an optimizer. What counts are the runs of the
 * program's own module (xla_runs.h):
 *
 *   KV cache    outlives four of them and ends before the last one, as each request makes its own,
 *               where some operation writes a part of an array; so are the other blocks that the
 *               same stacks made and that outlive as many. At once
 *               there are two such blocks of a size or more: keys and values
 *   parameters  there before the first of them, and still there after the last
 *
 * A cache that the module updates in place looks like a parameter if there is one request: where
 * operations write parts of arrays and no request replaced a cache, parameters stay unknown. */
#ifndef MT_ANALYZER_XLA_INFERENCE_H
#define MT_ANALYZER_XLA_INFERENCE_H

#include "xla_block.h"
#include "xla_runs.h"

/* After the other rules: sets roles that are not known. O(blocks log runs). */
enum mt_status mt_xla_inference_find(struct mt_xla_block *blocks, uint64_t count,
                                     const struct mt_xla_runs *runs) MT_MUST_USE;

#endif
