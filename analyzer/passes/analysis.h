/* State of an analysis. Passes fill it; models and findings read it. */
#ifndef MT_ANALYZER_ANALYSIS_H
#define MT_ANALYZER_ANALYSIS_H

#include <stdbool.h>
#include <stdint.h>

#include "analyze_options.h"
#include "attributed.h"
#include "driver_ledger.h"
#include "live_blocks.h"
#include "replay.h"
#include "report.h"
#include "source.h"
#include "survey.h"

struct mt_analysis;

/* The pass `wanted`: chooses instants for a closer look, and changes that need an explanation.
 * Their number is bounded. */

#define MT_INSTANT_NOTHING UINT64_MAX /* from_event: an empty device */

/* The instants of one device. */
struct mt_instants {
    struct mt_instant instants[96];
    uint32_t instant_count;
    struct mt_explanation explanations[40];
    uint64_t from_events[40], to_events[40]; /* of the explanations */
    uint32_t explanation_count;
};

/* Sets *is_main to an array in the arena with an entry per phase: whether it is one of the parts
 * that a step (or the program) consists of. These are the outermost ranges that a user named,
 * without steps and their parents; if there are none, those of the framework. */
void mt_main_phases(struct mt_arena *arena, const struct mt_phases *phases, bool **is_main);

void mt_instants_choose(struct mt_instants *chosen, const struct mt_survey *survey,
                        struct mt_survey_device *device, const bool *is_main);

/* A question about one instant: the matching event on each device, the replay's counters there, and
 * the answer from both passes. */

/* The instant of TIME or EVENT, by the survey's devices. Zeroed memory with a question is ready;
 * costs one comparison per event, and one per device for each event within half_ns. */
struct mt_watch {
    const struct mt_question *question; /* NULL = none */
    bool passed;
    uint64_t event, t_ns;      /* the last event up to now */
    int32_t phase;             /* innermost, for the thread of that event */
    struct mt_instant *chosen; /* the highest so far */
    uint32_t device_count;     /* of `chosen` */
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

/* The unused memory at that instant, by segment. `pins` has all segments, with `all`. If these do
 * not sum to the replay's bytes, the answer has one row. */
void mt_question_free_uses(struct mt_arena *arena, const struct mt_source *source,
                           const struct mt_pins *pins, struct mt_answer *answer);

/* Accounts for passes over the source and their cost. One entry of the log is charged at any time.
 * A part enters at its start and leaves at its end:
 *
 *     outer = mt_readings_enter(&analysis->readings, "finding growth");
 *     ...
 *     mt_readings_leave(&analysis->readings, outer);
 *
 * The charges are the source's own counts, so every pass is counted. */

struct mt_readings {
    const struct mt_source *source;
    struct mt_pass_log *log;
    uint32_t charged;                          /* index in the log */
    uint64_t start_readings, start_events;     /* of the source, when the log began */
    uint64_t readings, events, time_ns;        /* of the source and the clock: charged up to here */
    uint64_t outside_readings, outside_events; /* charged to no entry */
};

/* `log` is empty. Source and log are borrowed. */
void mt_readings_begin(struct mt_readings *readings, const struct mt_source *source,
                       struct mt_pass_log *log);

/* `name` must live as long as the log. Equal names share one entry. Returns the argument of
 * mt_readings_leave. */
uint32_t mt_readings_enter(struct mt_readings *readings, const char *name);
void mt_readings_leave(struct mt_readings *readings, uint32_t outer);

/* For the current entry. */
void mt_readings_hold(struct mt_readings *readings, uint64_t memory_bytes);

/* Checks that the log accounts for all passes and events of the source. */
bool mt_readings_is_sound(const struct mt_readings *readings, const char **why);

/* Another pass over the source of an analysis, charged to the current pass. */

/* Reads from the start to the end, or until `on_event` returns MT_END. */
enum mt_status mt_read_again_events(struct mt_analysis *analysis, void *self,
                                    enum mt_status (*on_event)(void *self,
                                                               struct mt_event *event)) MT_MUST_USE;

/* mt_replay_run from the start, without an observer. */
enum mt_status mt_read_again_replay(struct mt_analysis *analysis,
                                    const struct mt_replay_options *options,
                                    struct mt_replay_summary *summary) MT_MUST_USE;

#define MT_MAX_TRIALS 4

/* A replay under other settings that shares the pass over live blocks. Not for the recorded policy:
 * see mt_replay_run_together. */
struct mt_trial {
    const char *policy; /* borrowed for the whole analysis */
    uint64_t limit_bytes;
    uint64_t most_reserved_bytes[MT_MAX_DEVICES]; /* see struct mt_replay_options */
    struct mt_replay_summary *summary;            /* after it */
};

/* The memory that each device needs under a policy (needs.h). */
struct mt_policy_needs {
    const char *policy;                 /* NULL: the recorded one; borrowed */
    struct mt_need *of[MT_MAX_DEVICES]; /* NULL: unknown; in the arena of the report */
    struct mt_policy_needs *next;
};

struct mt_analysis {
    struct mt_source *source;
    const struct mt_analyze_options *options;
    const char *activity; /* of the current passes, for the progress */
    struct mt_report *report;
    struct mt_replay_summary *summary;
    struct mt_survey survey;
    struct mt_live_blocks holders;
    struct mt_trial trials[MT_MAX_TRIALS];
    uint32_t trial_count;
    struct mt_policy_needs *needs; /* of the requested policies; in the report's arena */
    struct mt_readings readings;
    struct mt_attribution attribution;
    struct mt_driver_ledger ledger;
    struct mt_watch watch;
    struct mt_answer *answers;    /* parallel to the survey's devices, if there is a question */
    struct mt_instants *instants; /* parallel to the survey's devices */
    uint32_t *order;              /* report device -> survey device */
    bool *is_main;
    struct mt_error *error;
};

#endif
