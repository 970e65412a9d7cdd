/* A question about one instant: which event it is on each device, what the
 * replay counted there, and the answer out of both readings. */
#ifndef MT_ANALYZER_QUESTION_WATCH_H
#define MT_ANALYZER_QUESTION_WATCH_H

#include "live_rows.h"
#include "survey.h"

/* What was when the instant of TIME or EVENT passed, by the survey's devices.
 * Zeroed memory with a question is ready; it costs a comparison an event. */
struct mt_watch {
    const struct mt_question *question; /* NULL = none */
    bool passed;
    uint64_t event, t_ns; /* the last event by then */
    int32_t phase;        /* innermost, of the thread of that event */
    struct mt_bytes *now;
    uint32_t device_count;
    uint16_t last_thread;
};

/* Before the survey sees the event. State that the trace begins with is never
 * told by halves: what is asked for before the first event is what was there. */
enum mt_status mt_watch_event(struct mt_watch *watch, const struct mt_survey *survey,
                              const struct mt_event *event) MT_MUST_USE;
/* After the last one. */
enum mt_status mt_watch_finish(struct mt_watch *watch, const struct mt_survey *survey) MT_MUST_USE;
void mt_watch_release(struct mt_watch *watch);

/* Between the readings: the instant on device number `slot` of the survey, or
 * why there is none. */
void mt_question_resolve(const struct mt_watch *watch, struct mt_survey *survey, uint32_t slot,
                         struct mt_answer *answer);

/* After them: the rows, from the snapshot of that instant. */
enum mt_status mt_question_answer(const struct mt_question *question,
                                  struct mt_attribution *attribution,
                                  const struct mt_snapshot *snapshot,
                                  struct mt_answer *answer) MT_MUST_USE;

#endif
