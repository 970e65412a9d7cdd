/* Messages about recorded traces: from `record`, after the command has ended, and from
 * `recover`. */
#ifndef MT_CLI_RECORD_OUTPUT_H
#define MT_CLI_RECORD_OUTPUT_H

#include "buf.h"
#include "json.h"
#include "trace_end.h"

/* Prints one line, or a few if something is lost or missing, each with the prefix `before`.
 * `only_faults` leaves out successes. */
void mt_add_trace_end(struct mt_buf *out, const struct mt_trace_end *end, const char *before,
                      bool only_faults);

/* Collects the traces that can be analyzed: the first one, and their number. Zeroed memory holds
 * none. */
struct mt_next_step {
    const char *path; /* borrowed */
    size_t count;
};
void mt_next_step_note(struct mt_next_step *next, const struct mt_trace_end *end);
/* Prints "memtrace: next: memtrace analyze run.trace.zst"; nothing if there is no such trace. */
void mt_add_next_step(struct mt_buf *out, const struct mt_next_step *next);

/* An object of the array `traces`. */
void mt_json_trace_end(struct mt_json *json, const struct mt_trace_end *end);

#endif
