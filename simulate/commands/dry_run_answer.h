/* Prints the answer of a dry run after its command has ended. */
#ifndef MT_CLI_DRY_RUN_ANSWER_H
#define MT_CLI_DRY_RUN_ANSWER_H

#include "dry_run_result.h"
#include "json.h"
#include "report.h"

/* Analyzes the trace that determines how much memory a card must have, and prints the answer. That
 * is a trace that ended with an out-of-memory error, otherwise the trace with the largest reserved
 * peak. Returns the exit code of the whole command. */
int mt_report_dry_run_answer(const struct mt_dry_run_answer *answer);

/* Appends a line for a device that has less than `least_bytes`, which is the memory that CUDA
 * itself needs. */
void mt_dry_run_add_too_small(struct mt_buf *out, const struct mt_dry_run_answer *answer,
                              uint64_t least_bytes);

/* Prints the answer for a command that cannot run because the device has less than `least_bytes`.
 * Returns MT_EXIT_BUDGET, or the exit code of a failed output. */
int mt_dry_run_print_too_small(const struct mt_dry_run_answer *answer, uint64_t least_bytes);

/* Commands with several dry runs also use the functions below. */

/* Returns the trace that determines how much memory a card must have. NULL: no process used the
 * device. */
const struct mt_dry_run_trace *mt_dry_run_worst_trace(const struct mt_dry_run_answer *answer);

/* Returns the exit code of the whole command. Call it after the gates are checked. `report` is NULL
 * if there is no trace. */
int mt_dry_run_exit_code(const struct mt_dry_run_answer *answer, const struct mt_report *report);

/* Adds the member "simulated". */
void mt_json_simulated(struct mt_json *json, const struct mt_card *card, uint64_t devices,
                       uint64_t memory_bytes);

#endif
