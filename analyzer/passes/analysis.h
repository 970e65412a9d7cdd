/* State of an analysis. Passes fill it; models and findings read it. */
#ifndef MT_ANALYZER_ANALYSIS_H
#define MT_ANALYZER_ANALYSIS_H

#include "analyze_options.h"
#include "attributed.h"
#include "driver_ledger.h"
#include "instants.h"
#include "live_blocks.h"
#include "question_watch.h"
#include "readings.h"

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
