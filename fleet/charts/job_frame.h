/* The parts around the data of charts of a job, based on chart_frame.h. Texts are in the drawing's
 * arena. Names of jobs, axes and traces are foreign, so they are made printable and shortened. */
#ifndef MT_RENDER_JOB_FRAME_H
#define MT_RENDER_JOB_FRAME_H

#include "buf.h"
#include "chart_frame.h"
#include "job_chart.h"
#include "job_order.h"

#define MT_JOB_DOT " \xC2\xB7 "

/* Makes a name from a file printable and cuts it to at most 200 bytes. */
const char *mt_job_frame_name(struct mt_drawing *drawing, const char *name);

/* Returns "slurm:1234 — reserved peak by rank". */
const char *mt_job_frame_title(struct mt_drawing *drawing, const struct mt_job_report *report,
                               const char *chart);
/* Returns facts about the job: "1,021 of 1,024 ranks · 128 hosts · NVIDIA H200 · pp:8, dp:16, tp:8
 * · 3 ranks missing · ...". */
const char *mt_job_frame_facts(struct mt_drawing *drawing, const struct mt_job_report *report);

/* Starts a drawing: sets its id, description and metadata, and draws title and facts. Returns the y
 * below the facts. */
double mt_job_frame_begin(struct mt_drawing *drawing, const struct mt_job_report *report,
                          const struct mt_job_chart_options *options, double height, const char *id,
                          const char *chart);
/* Returns the name of a row, shortened for a label: "rank 3", "rank 3, device 1", or the name of a
 * trace. */
const char *mt_job_frame_row(struct mt_drawing *drawing, const struct mt_job_report *report,
                             uint32_t row);
/* Returns the text for a gap: "rank 3: missing", "ranks 3 to 7: missing", "5 ranks from 3 to 19:
 * missing". */
const char *mt_job_frame_gap(struct mt_drawing *drawing, const struct mt_job_slot *slot);
/* Returns the name of a group: "pp 3". The name is "unplaced" if the position of the ranks on the
 * axis is not known, and "" if there is no axis. */
const char *mt_job_frame_group(struct mt_drawing *drawing, const struct mt_job_order *order,
                               uint32_t group);
/* Like mt_job_frame_group, but fits into `width` as small semibold text. If the name is too wide,
 * returns only its number; if that is too wide, returns "". */
const char *mt_job_frame_fit_group(struct mt_drawing *drawing, const struct mt_job_order *order,
                                   uint32_t group, double width);
/* Returns how a row differs from its replicas: "+1.25 GiB, growth". */
const char *mt_job_frame_outlier(struct mt_drawing *drawing, const struct mt_job_outlier *outlier);

/* Returns "12.5 GiB". */
const char *mt_job_frame_bytes(struct mt_drawing *drawing, uint64_t bytes);

/* Returns the first parts of a text whose parts are separated by dots, as many as fit into `width`.
 * If the first part does not fit, cuts it between words. */
const char *mt_job_frame_fit(struct mt_drawing *drawing, const char *text, double width);

/* Adds a part to a line whose parts are separated by dots. */
void mt_job_frame_add(struct mt_buf *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Returns the line as text in the drawing's arena, and releases the buffer. */
const char *mt_job_frame_take(struct mt_drawing *drawing, struct mt_buf *line);

#endif
