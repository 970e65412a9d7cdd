/* The second run of a command whose peaks depend on timing: PyTorch frees some memory when it
 * notices that the device is done with it (struct mt_undecided). The first run frees it late, the
 * second as early as possible. */
#ifndef MT_CLI_SWEEP_EARLY_H
#define MT_CLI_SWEEP_EARLY_H

#include "json.h"
#include "simulated_run.h"
#include "sweep.h"

/* No file of another run has this suffix: a value has no "~" in it. */
#define MT_EARLY_SUFFIX "~early.trace.zst"

/* Completes `second`, which has the command, the rank and the name of a trace, runs it, fills
 * result->early and removes its files. Call it in the process of the run, if something
 * is undecided. What the command prints is lost. */
void mt_sweep_run_early(struct mt_simulated_run *second, const struct mt_common *common,
                        struct mt_sweep_result *result);

/* Appends a table of the runs whose peaks depend on timing, if there are any. */
void mt_sweep_add_timing(struct mt_buf *out, const struct mt_sweep *sweep);

/* Adds the member "depended_on_timing". */
void mt_json_sweep_timing(struct mt_json *json, const struct mt_sweep_result *result);

#endif
