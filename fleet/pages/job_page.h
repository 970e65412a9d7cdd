/* A job as one page: the text answer, charts, tables, and the memory of single ranks over time. The
 * page loads nothing. It needs scripts only to show single ranks. It has less than
 * MT_JOB_PAGE_BYTES for any number of ranks, and names what it omits. */
#ifndef MT_RENDER_JOB_PAGE_H
#define MT_RENDER_JOB_PAGE_H

#include "buf.h"
#include "job_document.h"

void mt_job_page_add(struct mt_buf *out, const struct mt_job_document *document);

/* The first screen of the page of a job: the verdict, the gates, and a card for each answer. */

/* Appends the verdict of the gates: "FAIL: 1 of 3 gates". Without gates, appends the first sentence
 * of the text answer. The caller escapes the text. */
void mt_job_page_add_verdict(struct mt_buf *out, const struct mt_job_document *document);

#endif
