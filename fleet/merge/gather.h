/* Many files into one set of records, by threads of one process. The set does not depend on the
 * number of threads, nor on which of them read which file. */
#ifndef MT_FLEET_GATHER_H
#define MT_FLEET_GATHER_H

#include "rank_set.h"

/* A file that adds nothing to the set. */
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
    /* Of the paths, every `share_count`-th is read, from number `share` on: a process of MPI, or a
     * shard. 0 and 1: all of them. */
    uint32_t share, share_count;
    uint32_t threads; /* at least 1 */
    /* Adds what the file says to an empty set. Called by several threads at once. */
    enum mt_status (*load)(void *context, const char *path, struct mt_rank_set *set,
                           struct mt_error *error);
    /* Called after each file by the thread that read it; NULL = nobody wants to know. */
    void (*tell_read)(void *context);
    void *context;
};

/* Adds the records of the files to *set, and the files that could not be read to *failures, by
 * file. MT_ERR_MEMORY: both hold some of it. A file that cannot be read is no error of this
 * function; a file for which the host had no memory is. */
enum mt_status mt_gather_files(const struct mt_gather *gather, struct mt_rank_set *set,
                               struct mt_gather_failures *failures) MT_MUST_USE;

enum mt_status mt_gather_failures_add(struct mt_gather_failures *failures,
                                      const struct mt_gather_failure *failure) MT_MUST_USE;
void mt_gather_failures_sort(struct mt_gather_failures *failures);
void mt_gather_failures_release(struct mt_gather_failures *failures);

#endif
