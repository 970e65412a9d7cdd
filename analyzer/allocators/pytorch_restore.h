/* Internals of the policy `pytorch`: a start in the middle of a run. Segments first, ascending,
 * then blocks, ascending, then mt_pytorch_restored. */
#ifndef MT_ANALYZER_PYTORCH_RESTORE_H
#define MT_ANALYZER_PYTORCH_RESTORE_H

#include "pytorch_pools.h"

void mt_pytorch_restore_segment(struct mt_pytorch *self, const struct mt_event *event);
enum mt_status mt_pytorch_restore_block(struct mt_pytorch *self, const struct mt_event *event,
                                        uint32_t *handle) MT_MUST_USE;
void mt_pytorch_restored(struct mt_pytorch *self);

#endif
