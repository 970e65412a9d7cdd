/* Roles in a program of XLA that computes no gradients: no operation of its modules belongs to a
 * backward pass, and no library made state of an optimizer. The rules count runs of the program's
 * own module (xla_runs.h):
 *
 *   KV cache    outlives four of them and ends before the last one, because each request makes its
 *               own; some operation must write a part of an array. Other long-lived blocks of the
 *               same stacks are also cache. At least two such blocks of a size exist at the same
 *               time: keys and values
 *   parameters  exist before the first run, and still after the last
 *
 * A cache that the module updates in place looks like a parameter if there is one request. So if
 * operations write parts of arrays and no request replaced a cache, parameters stay unknown. */
#ifndef MT_ANALYZER_XLA_INFERENCE_H
#define MT_ANALYZER_XLA_INFERENCE_H

#include "xla_block.h"
#include "xla_runs.h"

/* After the other rules: sets roles that are not known. O(blocks log runs). */
void mt_xla_inference_find(struct mt_xla_block *blocks, uint64_t count,
                           const struct mt_xla_runs *runs);

#endif
