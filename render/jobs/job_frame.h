/* The parts around the data of charts of a job, on top of chart_frame.h. Texts are in the
 * drawing's arena, and "" if memory runs out. Names of jobs, axes and traces are foreign; results
 * are short and printable. */
#ifndef MT_RENDER_JOB_FRAME_H
#define MT_RENDER_JOB_FRAME_H

#include "buf.h"
#include "chart_frame.h"
#include "job_chart.h"
#include "job_order.h"

#define MT_JOB_DOT " \xC2\xB7 "

/* Escapes a name from a file, so that its width is known, and cuts it to at most 200 bytes. */
const char *mt_job_frame_name(struct mt_drawing *drawing, const char *name);

/* "slurm:1234 — reserved peak by rank" */
const char *mt_job_frame_title(struct mt_drawing *drawing, const struct mt_job_report *report,
                               const char *chart);
/* "1,021 of 1,024 ranks · 128 hosts · NVIDIA H200 · pp:8, dp:16, tp:8 · 3 missing · ..." */
const char *mt_job_frame_facts(struct mt_drawing *drawing, const struct mt_job_report *report);

/* Starts a drawing: name, description, metadata, title and facts. Returns the y below. */
double mt_job_frame_begin(struct mt_drawing *drawing, const struct mt_job_report *report,
                          const struct mt_job_chart_options *options, double height, const char *id,
                          const char *chart);
/* What a chart returns at its end. */
enum mt_status mt_job_frame_end(const struct mt_drawing *drawing, struct mt_error *error);

/* "rank 3", "rank 3, device 1", a trace's name: cut to the length of a label. */
const char *mt_job_frame_row(struct mt_drawing *drawing, const struct mt_job_report *report,
                             uint32_t row);
/* "rank 3: missing", "ranks 3 to 7: missing", "5 ranks from 3 to 19: missing" */
const char *mt_job_frame_gap(struct mt_drawing *drawing, const struct mt_job_slot *slot);
/* "pp 3"; "unplaced": the position of the ranks on the axis is not known. */
const char *mt_job_frame_group(struct mt_drawing *drawing, const struct mt_job_order *order,
                               uint32_t group);
/* Like mt_job_frame_group, for small semibold text of this width: only the number, or "", if it
 * does not fit. */
const char *mt_job_frame_fit_group(struct mt_drawing *drawing, const struct mt_job_order *order,
                                   uint32_t group, double width);
/* How a row differs from its replicas: "+1.25 GiB, growth". */
const char *mt_job_frame_outlier(struct mt_drawing *drawing, const struct mt_job_outlier *outlier);

/* "12.5 GiB" as text of the drawing. */
const char *mt_job_frame_bytes(struct mt_drawing *drawing, uint64_t bytes);

/* Returns as many of the first parts (between dots) of the text as fit. If not even the first
 * part fits, it is cut between words. */
const char *mt_job_frame_fit(struct mt_drawing *drawing, const char *text, double width);

/* Adds a part to a line whose parts are separated by dots. */
void mt_job_frame_add(struct mt_buf *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The line as text of the drawing; releases the buffer. */
const char *mt_job_frame_take(struct mt_drawing *drawing, struct mt_buf *line);

#endif
