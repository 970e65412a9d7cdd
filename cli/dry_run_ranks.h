/* memtrace dry-run --ranks: runs selected ranks of a distributed job in isolation, as a sweep over
 * ranks. */
#ifndef MT_CLI_DRY_RUN_RANKS_H
#define MT_CLI_DRY_RUN_RANKS_H

#include "rank.h"
#include "simulated_run.h"
#include "sweep_worker.h"

struct mt_rank_request {
    const char *ranks; /* --ranks; NULL = not given */
    uint64_t world;    /* --world; 0 = from the options of torchrun */
};

/* Sets the runs of the plan, and ranks[i] for run i. If each->devices is 0, sets it to the number
 * of ranks of a node. Returns -1 or an exit code; errors were printed. Release the plan in any
 * case. */
int mt_rank_plan_make(struct mt_sweep_plan *plan, const struct mt_rank_request *arguments,
                      struct mt_simulated_run *each, struct mt_rank ranks[MT_MAX_RANKS]);

/* Prints the full answer for the process that has the largest reserved peak of all ranks, after the
 * table. Returns an exit code; that of the rank is in its result. */
int mt_report_worst_rank(const struct mt_sweep_request *request);

#endif
