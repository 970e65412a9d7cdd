/* What is done with a trace when its process has ended: its tape is folded in if there
 * still is one, its header says how the process ended, addresses become names, what identifies
 * somebody is replaced if that was asked for, and its numbers are read. */
#ifndef MT_RECORD_TRACE_END_H
#define MT_RECORD_TRACE_END_H

#include "finalize.h"
#include "process_end.h"
#include "recover.h"
#include "redaction.h"
#include "trace_summary.h"

enum mt_trace_state {
    MT_TRACE_WHOLE,      /* its process closed it */
    MT_TRACE_RECOVERED,  /* its process could not; what it left is in the trace now */
    MT_TRACE_INCOMPLETE, /* it can be read, but is damaged or has no end; see error */
    MT_TRACE_RUNNING,    /* its process still runs: nothing was done */
    MT_TRACE_FAILED      /* see error; what is there was left as it is */
};

struct mt_trace_end {
    const char *path; /* borrowed */
    enum mt_trace_state state;
    struct mt_recovery recovery; /* has_tape: what the tape said, whatever came of it */
    struct mt_finalize_result native;
    struct mt_error native_error;    /* status MT_OK: names were resolved as far as possible */
    struct mt_error redaction_error; /* status MT_OK: redacted, or nobody asked for it */
    struct mt_trace_summary summary; /* WHOLE, RECOVERED, INCOMPLETE */
    struct mt_error error;           /* INCOMPLETE, FAILED */
};

/* Is all that was asked for in the trace: whole or recovered, no event lost, and no source says
 * that there is something it could not record (`not_recorded`)? A source that records less of each
 * event says so in other facts of the header, such as `sizes_rounded`. */
bool mt_trace_end_is_complete(const struct mt_trace_end *end);

struct mt_trace_end_options {
    unsigned patience_ms;                 /* for a process that still runs, to end */
    const struct mt_redaction *redaction; /* NULL: nothing is redacted */
    struct mt_unfinished *unfinished;     /* lists files while they are written; may be NULL */
    const struct mt_process_end *process; /* how one of the processes ended; may be NULL */
    bool timed_out;                       /* all that had not ended were ended */
};

/* Whatever fails, the trace stays readable and holds what it held before. Cost:
 * reading the trace once; writing it again for a tape, for native frames and for the
 * redaction. */
void mt_trace_end(struct mt_trace_end *end, const char *path,
                  const struct mt_trace_end_options *options);

#endif
