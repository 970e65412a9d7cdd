/* Texts that charts of a job share. They are in the drawing's arena and never NULL. */
#ifndef MT_RENDER_JOB_CHART_WORDS_H
#define MT_RENDER_JOB_CHART_WORDS_H

#include "draw.h"
#include "job_report.h"

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

#endif
