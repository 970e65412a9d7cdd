/* The sets of many processes into that of process 0, over a binomial tree: in round k, a process
 * whose number is an odd multiple of 2^k hands all that it has to the one 2^k below, and is done.
 * Sets unite in any order to the same set, so the number of processes does not change the result.
 */
#ifndef MT_FLEET_REDUCE_H
#define MT_FLEET_REDUCE_H

#include "exchange.h"
#include "gather.h"

/* On success process 0 has the records and failures of all, by file; the others still have what
 * they gave away. All processes have to see the same paths in `gather`. A process that had an error
 * of its own (`status`, MT_OK = none) must call this as well: the others wait for it. Its
 * files then count as failed with that status, and so do the files of a process whose message
 * cannot be read or that saw other paths. MT_ERR_MEMORY: a process may still wait for this one. */
enum mt_status mt_reduce(const struct mt_exchange *exchange, const struct mt_gather *gather,
                         enum mt_status status, struct mt_rank_set *set,
                         struct mt_gather_failures *failures, struct mt_error *error) MT_MUST_USE;

#endif
