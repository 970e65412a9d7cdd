/* Reasons why the answer of a dry run is incomplete, or why its peaks may differ from those of a
 * real run: a command that failed, processes whose traces are missing or that ran without the
 * simulated device or without the Python part, made-up data, timing. */
#ifndef MT_CLI_DRY_RUN_DOUBTS_H
#define MT_CLI_DRY_RUN_DOUBTS_H

#include "dry_run_result.h"
#include "json.h"

/* Returns a clause that explains why the run may need more memory than the measured peak. NULL:
 * there is no reason. */
const char *mt_dry_run_lower_bound(const struct mt_dry_run_answer *answer);

/* Returns true if the peaks may be wrong because processes are missing from the answer, or because
 * processes ran without the simulated device, without the Python part, or with another PyTorch. */
bool mt_dry_run_has_doubts(const struct mt_dry_run_answer *answer);

/* Appends a line for each doubt. If `is_out_of_memory` is set, omits how the command ended, because
 * the answer already contains it. */
void mt_dry_run_add_doubts(struct mt_buf *out, const struct mt_dry_run_answer *answer,
                           bool is_out_of_memory);

/* Appends why no recorded process used the device, and a remedy. */
void mt_dry_run_add_nothing(struct mt_buf *out, const struct mt_dry_run_answer *answer);

/* Adds the members "python" and "processes". */
void mt_json_dry_run_doubts(struct mt_json *json, const struct mt_dry_run_answer *answer);

#endif
