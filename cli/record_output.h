/* What is said of recorded traces: by record when the command has ended, by
 * recover. */
#ifndef MT_CLI_RECORD_OUTPUT_H
#define MT_CLI_RECORD_OUTPUT_H

#include "buf.h"
#include "json.h"
#include "trace_end.h"

/* One line, or a few if something is lost or missing; `before` stands at the
 * beginning of each. With `only_faults` what went well is left out. */
void mt_add_trace_end(struct mt_buf *out, const struct mt_trace_end *end, const char *before,
                      bool only_faults);

/* An object of the array `traces`. */
void mt_json_trace_end(struct mt_json *json, const struct mt_trace_end *end);

#endif
