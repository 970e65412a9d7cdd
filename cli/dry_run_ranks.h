/* memtrace dry-run --ranks: some ranks of a distributed run, each without the others, as a sweep
 * over ranks. */
#ifndef MT_CLI_DRY_RUN_RANKS_H
#define MT_CLI_DRY_RUN_RANKS_H

#include "rank.h"
#include "simulated_run.h"
#include "sweep_worker.h"

struct mt_rank_wish {
    const char *ranks; /* --ranks; NULL = a run of its own */
    uint64_t world;    /* --world; 0 = what torchrun says */
};

/* The runs, and ranks[i] of run i. Sets `each` to as many devices as a node has ranks, if it names
 * none. -1 or an exit code; what is wrong was said. Release the plan in any case. */
int mt_rank_plan_make(struct mt_sweep_plan *plan, const struct mt_rank_wish *wish,
                      struct mt_simulated_run *each, struct mt_rank ranks[MT_MAX_RANKS]);

/* After the table: the full answer about the rank with the largest reserved peak, of the process
 * that has it. An exit code; what the rank's own was stands in its result. */
int mt_tell_worst_rank(const struct mt_sweep_request *request);

#endif
