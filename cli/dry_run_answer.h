/* What a dry run prints when its command has ended. */
#ifndef MT_CLI_DRY_RUN_ANSWER_H
#define MT_CLI_DRY_RUN_ANSWER_H

#include "cards.h"
#include "dry_run_notes.h"
#include "gate_run.h"
#include "json.h"
#include "report.h"

/* A trace that the run left. */
struct mt_dry_run_trace {
    char *path;
    uint64_t reserved_peak_bytes;
};

struct mt_dry_run_answer {
    const struct mt_card *card;
    uint64_t devices, memory_bytes; /* of each */
    bool has_limit;                 /* memory_bytes was asked for */
    int exit_status;                /* the command's */
    bool timed_out;
    const struct mt_dry_run_notes *notes;
    const struct mt_dry_run_trace *traces;
    size_t trace_count;
    struct mt_common *common;
    struct mt_gate_options *gates;
    struct mt_gate_run *gate_run;
};

/* Analyzes the trace with the largest reserved peak and prints the answer; the exit code of the
 * whole command. */
int mt_tell_dry_run_answer(const struct mt_dry_run_answer *answer);

/* Parts of it, for commands that run several. */

/* The one that decides what a card must have; NULL: no process used the device. */
const struct mt_dry_run_trace *mt_dry_run_worst_trace(const struct mt_dry_run_answer *answer);

/* Did it die of a request that the device could not serve? */
bool mt_dry_run_ran_out(const struct mt_report *report);

/* Of the whole command. The gates were checked; `report` is NULL without a trace. */
int mt_dry_run_exit_code(const struct mt_dry_run_answer *answer, const struct mt_report *report);

/* "simulated", and "peak_roles" without roles of 0 bytes. */
void mt_json_simulated(struct mt_json *json, const struct mt_card *card, uint64_t devices,
                       uint64_t memory_bytes);
void mt_json_peak_roles(struct mt_json *json, const uint64_t role_bytes[MT_ROLE_COUNT]);

#endif
