/* Compares the actions of a policy with the recorded ones; describes the first difference and
 * counts the others. */
#ifndef MT_ANALYZER_VERIFY_H
#define MT_ANALYZER_VERIFY_H

#include "device_model.h"
#include "live_table.h"
#include "replay_result.h"
#include "source.h"

/* Compares the operations on the device with the recorded group of segment events: the same number,
 * order, kinds, addresses and sizes. */
void mt_verify_group(struct mt_replay_verify *verify, const struct mt_device_model *device,
                     uint64_t event_seq);

void mt_verify_address(struct mt_replay_verify *verify, const struct mt_event *event,
                       enum mt_status got, uint64_t got_addr);

void mt_verify_oom(struct mt_replay_verify *verify, const struct mt_event *event,
                   enum mt_status got);

/* Compares a completed free: the block has to be live (NULL: it is not) and served by the policy,
 * and its free requested before if `needs_request`. */
void mt_verify_free(struct mt_replay_verify *verify, const struct mt_event *event,
                    const struct mt_live *live, bool needs_request);

/* An allocation at the address of a live block: the block's free is missing. */
void mt_verify_lost_free(struct mt_replay_verify *verify, const struct mt_event *event);

/* A level at the end of the history, in bytes. */
struct mt_end_level {
    const char *name;
    uint64_t segment_addr; /* 0 = of the whole device */
};

/* `recorded`: MT_NOT_COUNTED = not recorded, so there is nothing to compare. */
void mt_verify_level(struct mt_replay_verify *verify, const struct mt_end_level *level,
                     uint64_t recorded, uint64_t replayed);

/* Sets the results from the counts. */
void mt_verify_finish(struct mt_replay_verify *verify, const struct mt_trace_header *header);

/* Compares a replay, after its last event, with what the allocator itself counted at the end of the
 * history (struct mt_segment_end): each level of the device, and of each segment. */

struct mt_lane;

/* Adds to lane->result->verify. Does nothing if the recording has no such levels. Costs a search
 * for each live block. */
void mt_end_levels_compare(struct mt_lane *lane, const struct mt_source *source);

#endif
