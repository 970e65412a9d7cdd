/* A question about one instant: the matching event on each device, the replay's counters there, and
 * the answer from both passes. */
#ifndef MT_ANALYZER_QUESTION_WATCH_H
#define MT_ANALYZER_QUESTION_WATCH_H

#include "live_rows.h"
#include "survey.h"

/* State when the instant of TIME or EVENT passed, by the survey's devices. Zeroed memory with a
 * question is ready; costs one comparison per event. */
struct mt_watch {
    const struct mt_question *question; /* NULL = none */
    bool passed;
    uint64_t event, t_ns; /* the last event up to that instant */
    int32_t phase;        /* innermost, for the thread of that event */
    struct mt_bytes *now;
    uint32_t device_count;
    uint16_t last_thread;
};

/* Call it before the survey receives the event. An instant before the first event means the whole
 * initial state, never a part of it. */
void mt_watch_event(struct mt_watch *watch, const struct mt_survey *survey,
                    const struct mt_event *event);
/* Call it after the last event. */
void mt_watch_finish(struct mt_watch *watch, const struct mt_survey *survey);
void mt_watch_release(struct mt_watch *watch);

/* Between the passes: resolves the instant on device number `slot` of the survey, or the reason why
 * there is none. */
void mt_question_resolve(const struct mt_watch *watch, struct mt_survey *survey, uint32_t slot,
                         struct mt_answer *answer);

/* After both passes: fills the rows from the snapshot of that instant. */
void mt_question_answer(const struct mt_question *question, struct mt_attribution *attribution,
                        const struct mt_snapshot *snapshot, struct mt_answer *answer);

#endif
