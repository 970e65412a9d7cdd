/* One setting of PyTorch's allocator on one trace: the need of each device under it. The same
 * numbers as in `memtrace replay -p pytorch:CONF` and `memtrace fit -p pytorch:CONF`. */
#ifndef MT_ANALYZER_SETTING_TRIAL_H
#define MT_ANALYZER_SETTING_TRIAL_H

#include <stdbool.h>

#include "replay_result.h"
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

#endif
