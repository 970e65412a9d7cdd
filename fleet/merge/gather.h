/* Reads many files into one set of records, with the threads of one process. The set does not
 * depend on the number of threads or on which thread read which file. */
#ifndef MT_FLEET_GATHER_H
#define MT_FLEET_GATHER_H

#include "exchange.h"
#include "rank_set.h"

/* A file that could not be read. It added nothing to the set. */
struct mt_gather_failure {
    uint32_t file; /* index into the paths */
    enum mt_status status;
    char text[240];
};

struct mt_gather_failures {
    struct mt_gather_failure *list; /* by file */
    uint32_t count;
    size_t capacity;
};

struct mt_gather {
    const char *const *paths;
    uint32_t path_count;
    /* Only every `share_count`-th path is read, starting with path number `share`. Each MPI process
     * or shard has its own `share`. With share 0 and share_count 1, all paths are read. */
    uint32_t share, share_count;
    uint32_t threads; /* at least 1 */
    /* Adds the records of the file to an empty set. Several threads call it at the same time. */
    enum mt_status (*load)(void *context, const char *path, struct mt_rank_set *set,
                           struct mt_error *error);
    /* Called after each file by the thread that read it; may be NULL. */
    void (*tell_read)(void *context);
    void *context;
};

/* Adds the records of the files to *set, and the files that could not be read to *failures,
 * sorted by file. An unreadable file is not an error. */
void mt_gather_files(const struct mt_gather *gather, struct mt_rank_set *set,
                     struct mt_gather_failures *failures);

void mt_gather_failures_release(struct mt_gather_failures *failures);

/* Unites the sets of many processes in process 0, over a binomial tree: in round k, a process whose
 * number is an odd multiple of 2^k sends all its records to the process 2^k below, and is done. The
 * union of sets does not depend on their order, so the number of processes does not change the
 * result. */

/* On success, *set and *failures of process 0 have the records and the failures of all processes,
 * sorted by file. The other processes keep the sets that they sent. All processes must see the same
 * paths in `gather`. The files of a process count as failed if its message cannot be read, or if it
 * saw other paths. */
enum mt_status mt_reduce(const struct mt_exchange *exchange, const struct mt_gather *gather,
                         struct mt_rank_set *set, struct mt_gather_failures *failures,
                         struct mt_error *error) MT_MUST_USE;

#endif
