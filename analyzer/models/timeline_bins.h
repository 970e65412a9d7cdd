/* The parts of a timeline: its bins, and the time shown. */
#ifndef MT_ANALYZER_TIMELINE_BINS_H
#define MT_ANALYZER_TIMELINE_BINS_H

#include <stdint.h>

#include "role.h"

struct mt_bin {
    uint64_t t_ns, event;               /* of the instant */
    uint64_t role_bytes[MT_ROLE_COUNT]; /* sum = allocated */
    uint64_t allocated, requested;
    uint64_t reserved_max;  /* in the bin */
    uint64_t allocated_min; /* in the bin */
};

/* Drawn time, in order; between two spans is a folded gap. */
struct mt_span {
    uint64_t begin_t_ns, end_t_ns;
};

struct mt_timeline {
    struct mt_bin *time_bins, *event_bins;
    uint32_t bin_count;
    struct mt_span *spans;
    uint32_t span_count;
    uint64_t busy_ns; /* sum of spans */
    uint64_t first_event, last_event;
    const struct mt_layers *layers; /* NULL: by role, as in the bins */
};

#endif
