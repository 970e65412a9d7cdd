/* Completes a trace after its process has ended: merges its tape if one is left, records in the
 * header how the process ended, resolves addresses to names, redacts the trace on request, and
 * reads its totals. */
#ifndef MT_RECORD_TRACE_END_H
#define MT_RECORD_TRACE_END_H

#include <stdbool.h>
#include <stdint.h>

#include "finalize.h"
#include "process_end.h"
#include "recover.h"
#include "redaction.h"

/* The numbers that are printed about a trace when its recording ends. */

struct mt_trace_summary {
    uint64_t events, bytes;
    uint64_t begin_ns, end_ns; /* of the first and the last event */
    uint64_t process_id;
    int32_t rank; /* -1 = not known */
    /* The time that a ring keeps (0: no ring), when its recording began, and how many
     * events were left out before the first one. */
    uint64_t ring_ns, ring_began_t_ns, ring_left_out;
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

enum mt_trace_state {
    MT_TRACE_WHOLE,      /* its process closed it */
    MT_TRACE_RECOVERED,  /* its process did not close it; its tape has been added */
    MT_TRACE_INCOMPLETE, /* it can be read, but is damaged or has no end; see error */
    MT_TRACE_RUNNING,    /* its process still runs, so nothing was done */
    MT_TRACE_FAILED      /* see error; the files were left as they are */
};

struct mt_trace_end {
    const char *path; /* borrowed */
    enum mt_trace_state state;
    struct mt_recovery recovery; /* valid if has_tape is set, even if the recovery failed */
    bool has_trace;              /* the trace exists at the end, or that cannot be determined */
    bool has_tape;               /* a tape is beside the trace at the end */
    bool is_idle;                /* RUNNING: the recording of its process has not begun */
    bool has_process;            /* options->process is set: `record` saw the process end */
    struct mt_finalize_result native;
    struct mt_error native_error;    /* status MT_OK: names were resolved as far as possible */
    struct mt_error redaction_error; /* status MT_OK: redacted, or no redaction was requested */
    struct mt_trace_summary summary; /* WHOLE, RECOVERED, INCOMPLETE */
    struct mt_error error;           /* INCOMPLETE, FAILED */
};

/* Returns true if the trace is whole or recovered, lost no event, and no source reports
 * something that it could not record (`not_recorded`). A source that records less about each
 * event reports that in other header facts, such as `sizes_rounded`. */
bool mt_trace_end_is_complete(const struct mt_trace_end *end);

/* Returns true if `record` saw the process end and the trace is gone, or cannot be read and no tape
 * is left. False if only memory ran out. */
bool mt_trace_end_is_lost(const struct mt_trace_end *end);

struct mt_trace_end_options {
    unsigned patience_ms;                 /* how long to wait for a process that still runs */
    const struct mt_redaction *redaction; /* NULL: nothing is redacted */
    struct mt_unfinished *unfinished;     /* lists files while they are written; may be NULL */
    const struct mt_process_end *process; /* how one of the processes ended; may be NULL */
    bool timed_out; /* the command exceeded its timeout, and its processes were ended */
};

/* If a step fails, the trace stays readable and keeps its contents. Reads the trace once; rewrites
 * it once each for a tape, for native frames and for the redaction. */
void mt_trace_end(struct mt_trace_end *end, const char *path,
                  const struct mt_trace_end_options *options);

#endif
