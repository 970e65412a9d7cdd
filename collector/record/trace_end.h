/* Completes a trace after its process has ended: merges its tape if one is left, records in the
 * header how the process ended, resolves addresses to names, redacts the trace on request, and
 * reads its totals. */
#ifndef MT_RECORD_TRACE_END_H
#define MT_RECORD_TRACE_END_H

#include "finalize.h"
#include "process_end.h"
#include "recover.h"
#include "redaction.h"
#include "trace_summary.h"

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
