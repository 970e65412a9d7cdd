/* Results of dry runs that earlier commands of this user left in the cache folder (safe_path.h).
 * Shards of a plan share it: what one has run, the others have.
 *
 * A result belongs to everything that is known to decide it: the words of the command and of the
 * launcher's rank, the environment, the card, the libraries and packages of the program's Python,
 * this memtrace, and the names, sizes and times of the program's files. Files that a program reads
 * from elsewhere, such as data, are not looked at. */
#ifndef MT_CLI_PLAN_CACHE_H
#define MT_CLI_PLAN_CACHE_H

#include "sha256.h"
#include "simulated_run.h"
#include "sweep_plan.h"

struct mt_plan_cache {
    int fd;                /* the folder of the results; -1: the cache is off */
    const char *why_off;   /* a clause; NULL: it is on, or was not opened */
    struct mt_sha256 base; /* what all runs share */
};

/* Opens the cache. `settings` are those that all runs share; `site` is what the check of a run
 * found; NULL: the environment has simulated libraries. */
void mt_plan_cache_open(struct mt_plan_cache *cache, const struct mt_run_settings *settings,
                        const struct mt_simulated_site *site);

/* Fills the result of a run and returns true if there is one that can be trusted. */
bool mt_plan_cache_read(const struct mt_plan_cache *cache, char *const *command,
                        struct mt_sweep_run *run);

/* Keeps the result of a run, if it finished or ran out of memory. */
void mt_plan_cache_write(const struct mt_plan_cache *cache, char *const *command,
                         const struct mt_sweep_run *run);

/* Removes the oldest results if there are too many, and closes the folder. */
void mt_plan_cache_close(struct mt_plan_cache *cache);

#endif
