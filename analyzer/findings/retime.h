/* Replays the run with other lifetimes: blocks that end earlier, or are absent for a while. The
 * changes are inserted into the source like inferred ranges (source.h), and the run's own policy
 * and limit are replayed.
 *
 *     mt_retime_free(&retime, device, before, life);    it ends there, and its own end is ignored
 *     mt_retime_alloc(&retime, device, before, life);   it is requested again
 *     mt_retime_replay(&retime, search, &peaks); */
#ifndef MT_ANALYZER_RETIME_H
#define MT_ANALYZER_RETIME_H

#include "finding.h"

/* Zeroed memory is ready. */
struct mt_retime {
    struct mt_retimed {
        struct mt_overlay_event at;
        size_t number; /* order in which the changes were added, which breaks ties */
    } * events;
    size_t count, capacity;
    bool within_reserved; /* give up if more is reserved than in the run */
};

struct mt_retimed_peaks {
    /* False if a request failed that did not fail in the run, or if the replay was given up. */
    bool known;
    uint64_t allocated_bytes, reserved_bytes;
};

/* Ends the block before event number `before`. */
void mt_retime_free(struct mt_retime *retime, uint16_t device, uint64_t before,
                    const struct mt_life *life);

/* Requests the block again before that event; its own end then ends the new block. */
void mt_retime_alloc(struct mt_retime *retime, uint16_t device, uint64_t before,
                     const struct mt_life *life);

/* Reads the source from its start. Costs a replay. */
enum mt_status mt_retime_replay(struct mt_retime *retime, struct mt_finding_search *search,
                                struct mt_retimed_peaks *peaks) MT_MUST_USE;
void mt_retime_release(struct mt_retime *retime);

#endif
