/* Writes the results of gates, and a baseline. */
#ifndef MT_CLI_GATE_OUTPUT_H
#define MT_CLI_GATE_OUTPUT_H

#include "cli.h"
#include "gate_result.h"
#include "json.h"

/* Appends the verdict in the first line, then a paragraph for each rule. */
void mt_gates_add_text(struct mt_buf *out, const struct mt_gates *gates,
                       const struct mt_style *style);
/* Adds "verdict" and "gates". Adds nothing if `gates` is NULL. */
void mt_json_gates(struct mt_json *json, const struct mt_gates *gates);
/* Appends a document "memtrace.baseline/1". */
void mt_baseline_add_json(struct mt_buf *out, const struct mt_baseline *baseline);

#endif
