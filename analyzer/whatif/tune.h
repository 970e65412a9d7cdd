/* Tune: the options of PyTorch's caching allocator under which a trace needs the least memory.
 * Options are tried by replay, never estimated: first a grid, then refinements of the settings that
 * no other beats. */
#ifndef MT_ANALYZER_TUNE_H
#define MT_ANALYZER_TUNE_H

#include <stdbool.h>

#include "source.h"

#define MT_TUNE_CONF_BYTES 160
#define MT_MAX_TUNE_FRONT  24

struct mt_tune_options {
    uint64_t limit_bytes; /* memory for the allocator, 0 = no limit */
    bool fits;            /* also search the smallest limit of the rows (fit.h) */
    void (*progress)(void *context, double share); /* may be NULL */
    void *context;
};

/* One setting. With several devices the peak is the largest of a device, and calls are summed. */
struct mt_tune_row {
    char conf[MT_TUNE_CONF_BYTES]; /* as PYTORCH_CUDA_ALLOC_CONF spells it; "" = defaults */
    /* Whether every request that the run was granted is served; under a limit in every order of
     * addresses (replay.h), as in `fit`. */
    bool serves;
    uint64_t reserved_peak_bytes;
    uint64_t
        reserved_high_bytes; /* the highest over all orders of addresses, for the current and the
                                best setting, and for the front under a limit; 0 = not tried */
    uint64_t device_allocs, device_frees; /* calls of the driver: each stalls the device */
    uint64_t retries;                     /* flushes of the cache */
    uint64_t fit_bytes;    /* the safe value (fit.h, high_bytes); 0 = not searched, or none */
    uint64_t address_ties; /* see replay_result.h */
};

struct mt_tune_summary {
    struct mt_tune_row current; /* the run's own setting */
    /* No other setting has both a smaller peak and fewer calls of the driver; by peak. With a
     * limit: only those that serve, and fewer calls count first. */
    struct mt_tune_row front[MT_MAX_TUNE_FRONT];
    size_t front_count;
    size_t best;       /* of the front: smallest peak (with a limit: fewest calls), then
                          the fewest options; MT_TUNE_CURRENT if nothing beats the run's own */
    size_t tried;      /* settings */
    uint64_t run_ooms; /* requests that were refused in the run: `serves` does not count them */
    uint16_t devices;
    bool is_not_pytorch; /* no request goes to PyTorch's allocator: nothing was tried */
};
#define MT_TUNE_CURRENT SIZE_MAX

/* Makes dozens of passes over the source, from the start. MT_ERR_UNSUPPORTED if the trace has no
 * requests to an allocator like PyTorch's, or if the run's setting cannot be simulated. */
enum mt_status mt_tune_run(struct mt_source *source, const struct mt_tune_options *options,
                           struct mt_tune_summary *summary, struct mt_error *error) MT_MUST_USE;

#endif
