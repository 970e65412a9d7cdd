/* memtrace dry-run --ranks: runs selected ranks of a distributed job in isolation. The runs are a
 * sweep over ranks. */
#ifndef MT_CLI_DRY_RUN_RANKS_H
#define MT_CLI_DRY_RUN_RANKS_H

#include "rank.h"
#include "simulated_run.h"
#include "sweep_worker.h"

struct mt_rank_arguments {
    const char *ranks; /* --ranks; NULL = not given */
    uint64_t world;    /* --world; 0 = as in the options of torchrun */
};

/* Makes the runs of the plan, and sets ranks[i] for run i. If each->devices is 0, sets it to the
 * number of ranks of a node. Returns -1, or the exit code after an error message. Release the plan
 * in any case. */
int mt_rank_plan_make(struct mt_sweep_plan *plan, const struct mt_rank_arguments *arguments,
                      struct mt_simulated_run *each, struct mt_rank ranks[MT_MAX_RANKS]);

/* Prints the full answer for the process with the largest reserved peak of all ranks. Call it after
 * the table is printed. Returns an exit code. The exit code of the rank is in its result. */
int mt_report_worst_rank(const struct mt_sweep_request *request);

#endif
