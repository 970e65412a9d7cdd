/* Prints the answer of a dry run after its command has ended. */
#ifndef MT_CLI_DRY_RUN_ANSWER_H
#define MT_CLI_DRY_RUN_ANSWER_H

#include "dry_run_measure.h"
#include "json.h"
#include "report.h"

/* Checks the gates, and prints the answer from what mt_dry_run_measure found. Returns the exit code
 * of the whole command. */
int mt_dry_run_print_answer(const struct mt_dry_run_answer *answer,
                            const struct mt_dry_run_measured *measured);

/* Appends a line for a device that has less than `least_bytes`, which is the memory that CUDA
 * itself needs. */
void mt_dry_run_add_too_small(struct mt_buf *out, const struct mt_dry_run_answer *answer,
                              uint64_t least_bytes);

/* Prints the answer for a command that cannot run because the device has less than `least_bytes`.
 * Returns MT_EXIT_BUDGET, or the exit code of a failed output. */
int mt_dry_run_print_too_small(const struct mt_dry_run_answer *answer, uint64_t least_bytes);

/* Adds the member "simulated". */
void mt_json_simulated(struct mt_json *json, const struct mt_card *card, uint64_t devices,
                       uint64_t memory_bytes);

#endif
