/* The parts around the data of charts of a job, based on chart_frame.h. Texts are in the drawing's
 * arena. Names of jobs, axes and traces are foreign, so they are made printable and shortened. */
#ifndef MT_RENDER_JOB_FRAME_H
#define MT_RENDER_JOB_FRAME_H

#include "buf.h"
#include "chart_frame.h"
#include "job_chart.h"
#include "job_order.h"

/* Returns a name from a file, made printable, and cut after `most` bytes so that a long name cannot
 * make a picture huge. */
const char *mt_job_words_name(struct mt_drawing *drawing, const char *name, size_t most);

/* Returns mt_job_row_name, made printable: "rank 3". */
const char *mt_job_words_row(struct mt_drawing *drawing, const struct mt_job_report *report,
                             uint32_t row);

/* Returns "rank" if each row is a different rank, otherwise "device". */
const char *mt_job_words_unit(const struct mt_job_report *report);

/* Returns "10.5 GiB (11,274,289,152 B)" or "512 B". */
const char *mt_job_words_bytes(struct mt_drawing *drawing, unsigned __int128 bytes);

/* Sets the title, the accessible text and the metadata of the drawing. Returns the title: "slurm:77
 * — <chart>". */
const char *mt_job_words_describe(struct mt_drawing *drawing, const struct mt_job_report *report,
                                  const char *chart, const char *description);

/* Draws a picture that explains why there is no data. */
void mt_job_words_nothing(struct mt_drawing *drawing, const char *title, const char *text,
                          const char *reason);

/* Like mt_job_words_name, with at most 200 bytes. */
const char *mt_job_frame_name(struct mt_drawing *drawing, const char *name);

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

/* Like job_frame_group, but fits into `width` as small semibold text. If the name is too wide,
 * returns only its number; if that is too wide, returns "". */
const char *mt_job_frame_fit_group(struct mt_drawing *drawing, const struct mt_job_order *order,
                                   uint32_t group, double width);

/* Returns "12.5 GiB". */
const char *mt_job_frame_bytes(struct mt_drawing *drawing, uint64_t bytes);

/* Returns the first parts of a text whose parts are separated by dots, as many as fit into `width`.
 * If the first part does not fit, cuts it between words. */
const char *mt_job_frame_fit(struct mt_drawing *drawing, const char *text, double width);

/* Adds a part to a line whose parts are separated by dots. */
void mt_job_frame_add(struct mt_buf *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Chooses the ranks of a job that a chart labels, and the text of each label. The most important
 * come first. */

#define MT_JOB_LABELS 24

struct mt_job_label {
    uint32_t row;                   /* MT_NO_ROW: the label is for a gap */
    const struct mt_job_slot *slot; /* the gap; NULL for a row */
    const char *words;              /* the remarks about the row */
    bool is_outlier;
};

struct mt_job_labels {
    struct mt_job_label labels[MT_JOB_LABELS];
    uint32_t count;
    uint32_t left_out; /* outliers without a label */
};

/* Adds a remark about a row to its label. If the row has no label, adds one if there is room. */
void mt_job_labels_add(struct mt_drawing *drawing, struct mt_job_labels *labels, uint32_t row,
                       const char *words);
void mt_job_labels_add_death(struct mt_drawing *drawing, const struct mt_job_report *report,
                             struct mt_job_labels *labels);

/* Adds labels for the outliers with the largest differences. */
void mt_job_labels_add_outliers(struct mt_drawing *drawing, const struct mt_job_report *report,
                                struct mt_job_labels *labels);

/* Adds labels for the widest gaps. */
void mt_job_labels_add_gaps(const struct mt_job_order *order, struct mt_job_labels *labels);

/* Returns "rank 3: 12.5 GiB · largest", or "rank 3: largest" without bytes. */
const char *mt_job_label_text(struct mt_drawing *drawing, const struct mt_job_report *report,
                              const struct mt_job_label *label, bool with_bytes);

/* Returns the lane of the row, or the lane of a gap if that lane has nothing else; NULL = there is
 * none. */
const struct mt_job_lane *mt_job_label_lane(const struct mt_job_order *order,
                                            const struct mt_job_lanes *lanes,
                                            const struct mt_job_label *label);

/* Returns true if the row of the label ran out of memory. Returns false for a gap. */
bool mt_job_label_is_death(const struct mt_job_report *report, const struct mt_job_label *label);

#endif
