/* Processes several traces in parallel and shows progress. */
#ifndef MT_CLI_WORKER_POOL_H
#define MT_CLI_WORKER_POOL_H

#include "cli.h"
#include "screen.h"

/* Shows which share of an item is done, from 0 to 1. Both members are NULL on a thread that shows
 * no progress. */
struct mt_fleet_share {
    void (*show)(void *context, double share);
    void *context;
};

/* Processes one item. Several threads call it, so it must not print, and may write only to data of
 * the item. */
typedef enum mt_status mt_fleet_item(void *context, uint32_t index,
                                     const struct mt_fleet_share *share);

struct mt_worker_pool {
    uint32_t count, threads;
    const char *what;             /* text of the progress: "tuning 2 traces" */
    struct mt_progress *progress; /* started */
    mt_fleet_item *run;
    void *context;
};

/* Starts the items 0 to count - 1 in this order until one fails. Items that other threads have
 * started are still finished. Sets *failed to the first item that failed. The result does not
 * depend on `threads`. */
enum mt_status mt_worker_pool_run(const struct mt_worker_pool *pool, uint32_t *failed) MT_MUST_USE;

#endif
