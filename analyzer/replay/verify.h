/* Compares the actions of a policy with the recorded ones; describes the first difference and
 * counts the others. */
#ifndef MT_ANALYZER_VERIFY_H
#define MT_ANALYZER_VERIFY_H

#include "device_model.h"
#include "replay_result.h"

/* Compares the operations on the device with the recorded group of segment events: the same number,
 * order, kinds, addresses and sizes. */
void mt_verify_group(struct mt_replay_verify *verify, const struct mt_device_model *device,
                     uint64_t event_seq);

void mt_verify_address(struct mt_replay_verify *verify, const struct mt_event *event,
                       enum mt_status got, uint64_t got_addr);

void mt_verify_oom(struct mt_replay_verify *verify, const struct mt_event *event,
                   enum mt_status got);

/* Sets verify->exact from the counts. */
void mt_verify_finish(struct mt_replay_verify *verify);

#endif
