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

/* An object of the array `traces`. */
void mt_json_trace_end(struct mt_json *json, const struct mt_trace_end *end);

#endif
