/* The results of a sweep as text, JSON and a picture. */
#ifndef MT_CLI_SWEEP_OUTPUT_H
#define MT_CLI_SWEEP_OUTPUT_H

#include "chart.h"
#include "json.h"
#include "sweep_plan.h"

/* Appends tables of peaks, roles and cards, and the cost of each increment of a value. */
void mt_sweep_add_text(struct mt_buf *out, const struct mt_sweep *sweep);

/* Appends a document "memtrace.sweep/1". It has the names of traces and logs only if `has_files` is
 * set. */
void mt_sweep_add_json(struct mt_buf *out, struct mt_sweep_plan *plan, bool has_files);

/* Parts of these answers that a plan shares: why numbers may differ from those of real runs, and a
 * run as an object. */
void mt_sweep_add_doubts(struct mt_buf *out, const struct mt_sweep *sweep);
void mt_json_sweep_run(struct mt_json *json, struct mt_sweep_plan *plan,
                       const struct mt_sweep_run *run, bool has_files);

/* Draws how much memory each value of a sweep needs, like draw of struct mt_chart (chart.h). */
void mt_sweep_draw(const struct mt_sweep *sweep, const struct mt_chart_options *options,
                   struct mt_drawing *drawing);

#endif
