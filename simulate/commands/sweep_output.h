/* Writes the results of a sweep. */
#ifndef MT_CLI_SWEEP_OUTPUT_H
#define MT_CLI_SWEEP_OUTPUT_H

#include "json.h"
#include "sweep.h"
#include "sweep_plan.h"

/* Appends tables of peaks, roles and cards, and the cost of each increment of a value. */
void mt_sweep_add_text(struct mt_buf *out, const struct mt_sweep *sweep);

/* Appends a document "memtrace.sweep/1". It has the names of traces and logs only if `has_files` is
 * set. */
void mt_sweep_add_json(struct mt_buf *out, struct mt_sweep_plan *plan, bool has_files);

/* The metrics for which the output has a slope, in the order of the output. */
struct mt_sweep_metric {
    const char *words, *key;
    uint64_t (*bytes_of)(const struct mt_sweep_result *result);
};
enum { MT_SWEEP_METRICS = 2 };

#endif
