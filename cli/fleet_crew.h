/* Processes several traces in parallel, with progress. */
#ifndef MT_CLI_FLEET_CREW_H
#define MT_CLI_FLEET_CREW_H

#include "cli.h"

/* How much of an item is done, 0 to 1. Both are NULL on a thread that shows nothing. */
struct mt_fleet_share {
    void (*show)(void *context, double share);
    void *context;
};

/* Processes one item. Called from threads, so it prints nothing and writes only to data of the
 * item. */
typedef enum mt_status mt_fleet_item(void *context, uint32_t index,
                                     const struct mt_fleet_share *share);

struct mt_fleet_crew {
    uint32_t count, threads;
    const char *what;             /* for the progress: "tuning 2 traces" */
    struct mt_progress *progress; /* started */
    mt_fleet_item *run;
    void *context;
};

/* Runs the items 0 to count - 1, in this order, until one fails; items that other threads have
 * started are finished. The result does not depend on `threads`. *failed is the first item that
 * failed. */
enum mt_status mt_fleet_crew_run(const struct mt_fleet_crew *crew, uint32_t *failed) MT_MUST_USE;

#endif
