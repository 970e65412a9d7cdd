/* The answer about a job, as text and as a document memtrace.fleet/1. */
#ifndef MT_CLI_FLEET_OUTPUT_H
#define MT_CLI_FLEET_OUTPUT_H

#include "fleet_gates.h"
#include "job_settings.h"

struct mt_fleet_answer {
    const struct mt_job_report *report;
    struct mt_fleet_gates *gates;           /* after the check; may have no rules */
    struct mt_arena *arena;                 /* for texts */
    bool all;                               /* no limits on the lengths of lists */
    const struct mt_job_settings *settings; /* result of --tune; NULL: not requested */
};

void mt_fleet_text(struct mt_buf *out, const struct mt_fleet_answer *answer,
                   const struct mt_style *style);
void mt_fleet_json(struct mt_buf *out, const struct mt_fleet_answer *answer);

/* Members that memtrace.fleet/1 and memtrace.fleet-diff/1 have: the job and its number of ranks,
 * "missing_ranks", and "outcomes". */
void mt_fleet_json_world(struct mt_json *json, const struct mt_job_report *report);
void mt_fleet_json_missing(struct mt_json *json, const struct mt_job_report *report);
void mt_fleet_json_outcomes(struct mt_json *json, const struct mt_job_report *report);

#endif
