/* Redacts a trace that has ended (redaction.h). */
#ifndef MT_RECORD_REDACT_TRACE_H
#define MT_RECORD_REDACT_TRACE_H

#include "redaction.h"
#include "status.h"
#include "temporary_file.h"

/* Replaces the trace at `path` by a redacted one in one step and keeps its mode. On failure the
 * file stays unchanged, unredacted. A damaged trace is an error, and so is a trace with a tape
 * beside it (MT_ERR_USAGE). A truncated trace stays truncated. `unfinished` (may be NULL) lists the
 * new file while it is written. Reads and writes the trace once. Memory grows with the number of
 * symbols. */
enum mt_status mt_trace_redact(const char *path, const struct mt_redaction *redaction,
                               struct mt_unfinished *unfinished,
                               struct mt_error *error) MT_MUST_USE;

#endif
