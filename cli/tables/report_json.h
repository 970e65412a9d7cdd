/* Parts of a report as JSON that several documents share. */
#ifndef MT_CLI_REPORT_JSON_H
#define MT_CLI_REPORT_JSON_H

#include "json.h"
#include "report.h"

/* Returns the path of the phase; NULL outside of any phase. */
const char *mt_json_path_of(const struct mt_report *report, int32_t phase);

/* Adds the number of a step, or null for MT_NO_STEP. */
void mt_json_step(struct mt_json *json, const char *key, int64_t step);

/* Adds an object with the members requested, allocated, active, and reserved. */
void mt_json_bytes(struct mt_json *json, const char *key, const struct mt_bytes *bytes);

/* Adds "peak_orders": the range of the peaks of a dry run, or null. */
void mt_json_peak_orders(struct mt_json *json, const struct mt_peak_orders *orders);

/* Adds "peak_roles": the bytes of each role at the allocated peak. Omits roles of 0 bytes. */
void mt_json_peak_roles(struct mt_json *json, const uint64_t role_bytes[MT_ROLE_COUNT]);

/* Begin and end a row of a table. A row is on one line, even in an indented document. */
void mt_json_row_begin(struct mt_json *json);
void mt_json_row_end(struct mt_json *json);

/* Adds "stack": the labels of its frames, outermost first. Unless `all` of the writer is set, adds
 * only the innermost frames: at most MT_JSON_FRAMES with at most MT_JSON_STACK_BYTES of labels. */
enum { MT_JSON_FRAMES = 128, MT_JSON_STACK_BYTES = 32 * 1024 };
void mt_json_stack(struct mt_json *json, struct mt_arena *arena, const struct mt_report *report,
                   uint32_t stack);

/* Adds "dry_run": the simulated device. */
void mt_json_dry_run(struct mt_json *json, const struct mt_dry_run *dry_run);

/* Adds "input": a description of the trace. */
void mt_json_input(struct mt_json *json, const struct mt_report *report);

#endif
