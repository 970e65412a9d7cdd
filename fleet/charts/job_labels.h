/* Chooses the ranks of a job that a chart labels, and the text of each label. The most important
 * come first. */
#ifndef MT_RENDER_JOB_LABELS_H
#define MT_RENDER_JOB_LABELS_H

#include "job_frame.h"

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

/* Returns true if the row of the label ran out of memory. Returns false for a gap. */
bool mt_job_label_is_death(const struct mt_job_report *report, const struct mt_job_label *label);

#endif
