/* The gates of a dry run, which every process that used the device has to keep. */
#ifndef MT_CLI_DRY_RUN_GATES_H
#define MT_CLI_DRY_RUN_GATES_H

#include "dry_run_result.h"

/* Checks the gates of answer->gate_run with `told`, whose source and report these are. If they do
 * not fail there, analyzes the other traces until one fails. The worst results stay in
 * answer->gate_run, and *failing is that trace if it is not `told`, else NULL. A run that may need
 * more than was measured passes no gate: what does not fail is then "not evaluated". Exit code,
 * without that of a failed gate; what is wrong was said. */
int mt_dry_run_check_gates(const struct mt_dry_run_answer *answer,
                           const struct mt_dry_run_trace *told, struct mt_source *source,
                           const struct mt_report *report, const struct mt_dry_run_trace **failing);

#endif
