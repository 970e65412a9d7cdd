/* The output of a dry run after its command has ended. */
#ifndef MT_CLI_DRY_RUN_ANSWER_H
#define MT_CLI_DRY_RUN_ANSWER_H

#include "dry_run_result.h"
#include "json.h"
#include "report.h"

/* Analyzes the trace that decides what a card must have (one that ended with out of memory comes
 * first, then the largest reserved peak) and prints the answer. Returns the exit code of the
 * whole command. */
int mt_report_dry_run_answer(const struct mt_dry_run_answer *answer);

/* Appends the line for a device that has less than `least_bytes`, the memory that CUDA itself
 * takes. */
void mt_add_hopeless_text(struct mt_buf *out, const struct mt_dry_run_answer *answer,
                          uint64_t least_bytes);

/* Prints the answer if the command cannot run because the device has less than `least_bytes`.
 * Returns MT_EXIT_BUDGET, or the exit code of a failed output. */
int mt_report_hopeless_dry_run(const struct mt_dry_run_answer *answer, uint64_t least_bytes);

/* The functions below are for commands with several dry runs. */

/* Returns the trace that decides what a card must have; NULL: no process used the device. */
const struct mt_dry_run_trace *mt_dry_run_worst_trace(const struct mt_dry_run_answer *answer);

/* Returns true if the run ended with a request that the device could not serve. */
bool mt_dry_run_ran_out(const struct mt_report *report);

/* Returns the exit code of the whole command. Call it after the gates; `report` is NULL without a
 * trace. */
int mt_dry_run_exit_code(const struct mt_dry_run_answer *answer, const struct mt_report *report);

/* Adds the member "simulated". */
void mt_json_simulated(struct mt_json *json, const struct mt_card *card, uint64_t devices,
                       uint64_t memory_bytes);

#endif
