/* Messages about recorded traces. `record` prints them after the command has ended, and `recover`
 * prints them for each trace. */
#ifndef MT_CLI_RECORD_OUTPUT_H
#define MT_CLI_RECORD_OUTPUT_H

#include "buf.h"
#include "json.h"
#include "trace_end.h"

/* Appends one line, or several lines if something is lost or missing. Each line begins with
 * `before`. `only_faults` omits successes. */
void mt_record_add_trace_end(struct mt_buf *out, const struct mt_trace_end *end, const char *before,
                             bool only_faults);

/* Adds an object to the array `traces`. */
void mt_json_trace_end(struct mt_json *json, const struct mt_trace_end *end);

#endif
