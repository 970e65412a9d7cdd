/* Parts of a report as JSON that several documents share. */
#ifndef MT_CLI_REPORT_JSON_H
#define MT_CLI_REPORT_JSON_H

#include <stdint.h>

#include "card_use.h"
#include "json.h"
#include "module_table.h"
#include "report.h"

/* Returns the path of the phase; NULL outside of any phase. */
const char *mt_json_path_of(const struct mt_report *report, int32_t phase);

/* Adds the number of a step, or null for MT_NO_STEP. */
void mt_json_step(struct mt_json *json, const char *key, int64_t step);

/* Adds an object with the members requested, allocated, active, and reserved. */
void mt_json_bytes(struct mt_json *json, const char *key, const struct mt_bytes *bytes);

/* Adds "card": the memory of a card that the run needs; null if `use` is NULL. */
void mt_json_card(struct mt_json *json, const struct mt_card_use *use);

/* Adds "peak_orders": the range of the peaks of a dry run, or null. */
void mt_json_peak_orders(struct mt_json *json, const struct mt_peak_orders *orders);

/* Adds "peak_roles": the bytes of each role at the allocated peak. Omits roles of 0 bytes. */
void mt_json_peak_roles(struct mt_json *json, const uint64_t role_bytes[MT_ROLE_COUNT]);

/* Begin and end a row of a table. A row is on one line, even in an indented document. */
void mt_json_row_begin(struct mt_json *json);
void mt_json_row_end(struct mt_json *json);

/* Adds "stack": the labels of its frames, outermost first. Unless `all` of the writer is set, adds
 * only the innermost frames: at most MT_JSON_FRAMES with at most MT_JSON_STACK_BYTES of labels. */
void mt_json_stack(struct mt_json *json, struct mt_arena *arena, const struct mt_report *report,
                   uint32_t stack);

/* Adds "dry_run": the simulated device. */
void mt_json_dry_run(struct mt_json *json, const struct mt_dry_run *dry_run);

/* Adds "input": a description of the trace. */
void mt_json_input(struct mt_json *json, const struct mt_report *report);

/* Adds the communicator that NCCL reported to a JSON document. */

/* Adds members to the open object. "id" is a string, "0xa4ca2addf5eba5", as in NCCL's log, because
 * people compare ids of different ranks, and many JSON readers would round a number of this size.
 * An argument of 0 means unknown and becomes null. */
void mt_json_communicator(struct mt_json *json, uint64_t id, uint64_t rank, uint64_t ranks,
                          uint64_t registered_peak_bytes);

/* The table of modules as JSON. */

/* Adds "kind", "path", "layer", and "roles", which has the bytes of each role that occurs. */
void mt_json_module(struct mt_json *json, const struct mt_module_row *row);

/* Adds "modules" of a device, which is null if the device has none. */
void mt_json_modules(struct mt_json *json, const struct mt_modules *modules);

#endif
