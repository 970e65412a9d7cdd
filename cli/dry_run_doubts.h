/* Reasons why an answer of a dry run is incomplete: a command that failed, processes whose traces
 * are missing, processes that ran without the simulated device or without the Python part. */
#ifndef MT_CLI_DRY_RUN_DOUBTS_H
#define MT_CLI_DRY_RUN_DOUBTS_H

#include "dry_run_result.h"
#include "json.h"

/* Returns one clause that explains why more memory than the measured peak may be needed; NULL: no
 * reason. */
const char *mt_dry_run_lower_bound(const struct mt_dry_run_answer *answer);

/* Returns true if processes are missing from the answer, or ran without the simulated device,
 * with another PyTorch, or without the Python part: the peaks may differ. */
bool mt_dry_run_has_doubts(const struct mt_dry_run_answer *answer);

/* Appends a line for each doubt; nothing if there is none. With `is_out_of_memory`, omits how the
 * command ended, which is printed elsewhere. */
void mt_add_dry_run_doubts(struct mt_buf *out, const struct mt_dry_run_answer *answer,
                           bool is_out_of_memory);

/* Appends why no recorded process used the device, and what to do. */
void mt_add_dry_run_nothing(struct mt_buf *out, const struct mt_dry_run_answer *answer);

/* Adds the members "python" and "processes". */
void mt_json_dry_run_doubts(struct mt_json *json, const struct mt_dry_run_answer *answer);

#endif
