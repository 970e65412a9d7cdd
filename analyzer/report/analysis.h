/* What is at hand between the two readings of a trace; for analyze.c and
 * the fill_*.c alone. */
#ifndef MT_ANALYZER_ANALYSIS_H
#define MT_ANALYZER_ANALYSIS_H

#include "attribution.h"
#include "driver_ledger.h"
#include "plan.h"
#include "question.h"

/* A replay that goes along with the second reading, which decodes the trace anyhow. */
struct mt_trial {
    const char *policy; /* NULL = none is wanted */
    uint64_t limit_bytes;
    uint64_t most_reserved_bytes[MT_MAX_DEVICES]; /* see struct mt_replay_options */
    struct mt_replay_summary *summary;            /* after it */
};

struct mt_analysis {
    struct mt_source *source;
    const struct mt_analyze_options *options;
    struct mt_report *report;
    struct mt_replay_summary *summary;
    struct mt_survey survey;
    struct mt_holders holders;
    struct mt_trial trial;
    struct mt_attribution attribution;
    struct mt_driver_ledger ledger;
    struct mt_watch watch;
    struct mt_answer *answers; /* parallel to the survey's devices, if there is a question */
    struct mt_plan *plans;     /* parallel to the survey's devices */
    uint32_t *order;           /* report device -> survey device */
    bool *is_main;
    struct mt_error *error;
};

/* Snapshots in the order of holders: by event, then device. */
int mt_snapshot_order(const void *a, const void *b);

/* What the first reading tells: phases, and of devices the replay, peaks and steps.
 * Before the second reading, whose models and findings need them. */
enum mt_status mt_fill_facts(struct mt_analysis *analysis) MT_MUST_USE;
/* What is beside the framework's heap, after the devices. */
enum mt_status mt_fill_driver(struct mt_analysis *analysis) MT_MUST_USE;
/* What would have helped the devices on which the run died, by replays, of traces
 * that are not too long for some hundred of them. Reads the source from its start. */
enum mt_status mt_fill_oom_answers(struct mt_analysis *analysis) MT_MUST_USE;
/* What the second reading tells, after it. */
enum mt_status mt_fill_report(struct mt_analysis *analysis) MT_MUST_USE;

#endif
