/* Texts that charts of a job share. They are in the drawing's arena and never NULL: if memory
 * runs out they are "" and the drawing has failed. */
#ifndef MT_RENDER_JOB_CHART_WORDS_H
#define MT_RENDER_JOB_CHART_WORDS_H

#include "draw.h"
#include "job_report.h"

/* A printable name from a file, cut after `most` bytes, so that a long name cannot make a picture
 * huge. */
const char *mt_job_words_name(struct mt_drawing *drawing, const char *name, size_t most);

/* "rank 3", like mt_job_row_name. */
const char *mt_job_words_row(struct mt_drawing *drawing, const struct mt_job_report *report,
                             uint32_t row);

/* "rank" if each row is a rank of its own, else "device". */
const char *mt_job_words_unit(const struct mt_job_report *report);

/* "10.5 GiB (11,274,289,152 B)", "512 B" */
const char *mt_job_words_bytes(struct mt_drawing *drawing, unsigned __int128 bytes);

/* Title, accessible text and metadata: "slurm:77 — <chart>". Returns the title. */
const char *mt_job_words_describe(struct mt_drawing *drawing, const struct mt_job_report *report,
                                  const char *chart, const char *description);

/* A picture that has nothing to show. */
void mt_job_words_nothing(struct mt_drawing *drawing, const char *title, const char *text,
                          const char *reason);

#endif
