/* Messages about recorded traces: of record when the command has ended, and of recover. */
#ifndef MT_CLI_RECORD_OUTPUT_H
#define MT_CLI_RECORD_OUTPUT_H

#include "buf.h"
#include "json.h"
#include "trace_end.h"

/* Prints one line, or a few if something is lost or missing, each with the prefix `before`.
 * `only_faults` leaves out successes. */
void mt_add_trace_end(struct mt_buf *out, const struct mt_trace_end *end, const char *before,
                      bool only_faults);

/* For several traces: the first that can be analyzed, and their number. Zeroed = none. */
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
