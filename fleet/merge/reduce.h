/* Unites the sets of many processes in process 0, over a binomial tree: in round k, a process whose
 * number is an odd multiple of 2^k sends all its records to the process 2^k below, and is done. The
 * union of sets does not depend on their order, so the number of processes does not change the
 * result. */
#ifndef MT_FLEET_REDUCE_H
#define MT_FLEET_REDUCE_H

#include "exchange.h"
#include "gather.h"

/* On success, *set and *failures of process 0 have the records and the failures of all processes,
 * sorted by file. The other processes keep the sets that they sent. All processes must see the same
 * paths in `gather`. A process that had an error (`status`; MT_OK = none) must also call this
 * function, because others wait for it. Its files then count as failed with that status. The files
 * of a process also count as failed if its message cannot be read, or if it saw other paths.
 * MT_ERR_UNSUPPORTED (too many paths): another process may still wait for this one. */
enum mt_status mt_reduce(const struct mt_exchange *exchange, const struct mt_gather *gather,
                         enum mt_status status, struct mt_rank_set *set,
                         struct mt_gather_failures *failures, struct mt_error *error) MT_MUST_USE;

#endif
