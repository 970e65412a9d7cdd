/* The numbers that are printed about a trace when its recording ends. */
#ifndef MT_RECORD_TRACE_SUMMARY_H
#define MT_RECORD_TRACE_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

#include "source.h"

struct mt_trace_summary {
    uint64_t events, bytes;
    uint64_t begin_ns, end_ns; /* of the first and the last event */
    uint64_t process_id;
    int32_t rank; /* -1 = not known */
    /* Peaks, each at its own instant. `..._known`: the trace has such events. */
    bool device_known, reserved_known, blocks_known;
    uint64_t device_peak_bytes;   /* device memory that the program took from the driver */
    uint64_t reserved_peak_bytes; /* PyTorch's segments */
    uint64_t blocks_peak_bytes;   /* PyTorch's blocks, in requested bytes unless blocks_rounded */
    bool blocks_rounded;          /* blocks_peak_bytes counts allocated bytes */
    bool died_of_oom; /* nothing was allocated on a device after PyTorch's last OOM there */
    bool xla_requests_missing; /* XLA ran modules, but its requests are not in the trace: its own
                                  arena served them */
    uint64_t dropped, damaged; /* events lost while recording; damaged frames and invalid events */
    struct mt_lost_text {
        uint64_t events;
        char why[96]; /* the reason that the recorder gave; may be "" */
    } lost[4];        /* `dropped` by reason; the last entry is the sum of all further reasons */
    size_t lost_count;
    bool closed; /* it has an end record and an index */
    char sources[128];
    char not_recorded[1024]; /* what was requested but could not be recorded, as lines */
};

/* Reads the trace at `path` to its end. Memory grows with the blocks that are alive at once; >= 5
 * million events/s. */
enum mt_status mt_trace_summarize(const char *path, struct mt_trace_summary *summary,
                                  struct mt_error *error) MT_MUST_USE;

#endif
