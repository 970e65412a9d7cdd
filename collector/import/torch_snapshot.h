/* PyTorch memory snapshots (torch.cuda.memory._dump_snapshot and the C++ writer) as a source.
 * Supports every version since 1.12. */
#ifndef MT_COLLECTOR_TORCH_SNAPSHOT_H
#define MT_COLLECTOR_TORCH_SNAPSHOT_H

#include "feed.h"
#include "source.h"

/* Reads all of `feed`, which the caller keeps. Memory: about the size of the decoded pickle while
 * reading, half of it afterwards. */
enum mt_status mt_torch_snapshot_open(struct mt_feed *feed, struct mt_source **source,
                                      struct mt_error *error) MT_MUST_USE;

#endif
