/* One setting of PyTorch's allocator on one trace: the need of each device under it. The same
 * numbers as in `memtrace replay -p pytorch:CONF` and `memtrace fit -p pytorch:CONF`. */
#ifndef MT_ANALYZER_SETTING_TRIAL_H
#define MT_ANALYZER_SETTING_TRIAL_H

#include <stdbool.h>

#include "cli.h"
#include "replay_result.h"
#include "screen.h"
#include "source.h"
#include "tune.h"

struct mt_setting_device {
    uint16_t device;
    /* from mt_setting_replay */
    uint64_t peak_bytes;   /* reserved; without a limit, except the run's own */
    uint64_t driver_calls; /* allocations and frees */
    /* from mt_setting_search */
    bool serves;          /* some limit serves the run */
    bool is_exact;        /* the rules of the setting are known, and memory reserved at the start
                             of the trace does not bound the need */
    uint64_t limit_bytes; /* the smallest that serves in every order of addresses */
    uint64_t need_bytes;  /* of the allocator at this limit (mt_fit_need_bytes) */
};

/* By device, ascending as in a replay. */
struct mt_setting_trial {
    uint16_t device_count;
    struct mt_setting_device devices[MT_MAX_DEVICES];
};

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

/* Replays the source, from its start, under `conf` as PYTORCH_CUDA_ALLOC_CONF spells it, "" for the
 * defaults, NULL for the options of the run. MT_ERR_UNSUPPORTED: the trace has no requests to an
 * allocator like PyTorch's, or the options of the run cannot be simulated. */
enum mt_status mt_setting_replay(struct mt_source *source, const char *conf,
                                 struct mt_setting_trial *trial,
                                 struct mt_error *error) MT_MUST_USE;

/* Searches for the smallest limit for each device of a trial that mt_setting_replay filled, as
 * mt_fit_run (fit.h). */
enum mt_status mt_setting_search(struct mt_source *source, const char *conf,
                                 struct mt_setting_trial *trial,
                                 struct mt_error *error) MT_MUST_USE;

const struct mt_setting_device *mt_setting_device_of(const struct mt_setting_trial *trial,
                                                     uint16_t device); /* NULL: not in the trace */

/* Processes several traces in parallel and shows progress. */

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
