/* PRIVATE to fleet_tune.c: the traces that are replayed, and the results of the replays. */
#ifndef MT_CLI_FLEET_TUNE_REPLAYS_H
#define MT_CLI_FLEET_TUNE_REPLAYS_H

#include "cli.h"
#include "job_settings.h"
#include "progress.h"
#include "setting_trial.h"

/* A trace that is replayed. It is from one process, which may use several devices. */
struct mt_tuned_trace {
    const char *path;
    const struct mt_rank_record *record; /* record of one of the devices */
    bool is_tuned, is_done;              /* is_done: the fields from `status` to `before` are set */
    enum mt_status status;               /* not MT_OK: the trace cannot be replayed */
    struct mt_error error;
    struct mt_tune_summary *tune; /* if is_tuned */
    struct mt_setting_trial before;
    struct mt_setting_trial *trials; /* one for each setting */
    bool *is_own;                    /* one for each setting: it was found by tuning this trace */
    uint64_t readings;
};

struct mt_tune_work {
    const struct mt_job_report *report;
    uint64_t jobs; /* traces in parallel; 0 = the number of processors */
    struct mt_job_settings *settings;
    struct mt_tuned_trace **traces; /* in the order of the plan */
    uint32_t trace_count;
    const char **confs;
    uint32_t setting_count;
    bool *is_listed; /* one for each setting: its limit is searched on all traces */
    struct mt_progress progress;
};

/* The functions below print the error that ends the work and return enum mt_exit. */

/* Processes each trace that is not done. Checks that it is the trace of its record, tunes it if
 * is_tuned is set, and finds the memory that the recorded run needs. If a trace cannot be replayed,
 * sets its `status` and prints nothing. */
int mt_tune_traces(struct mt_tune_work *work);

/* Replays each trace with each setting. */
int mt_tune_replay_settings(struct mt_tune_work *work);

/* Searches the smallest limits of the settings in is_listed on every trace, and of the settings in
 * is_own on their trace. */
int mt_tune_search_limits(struct mt_tune_work *work);

#endif
