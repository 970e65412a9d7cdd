/* The first screen of the page of a job: the verdict, gates, and one card for each answer. */
#ifndef MT_RENDER_JOB_PAGE_ANSWER_H
#define MT_RENDER_JOB_PAGE_ANSWER_H

#include "buf.h"
#include "job_document.h"

/* Appends the verdict of the gates, "FAIL: 1 of 3 rules", or without gates the first sentence of
 * the text. The caller escapes it. */
void mt_add_job_verdict(struct mt_buf *out, const struct mt_job_document *document);

void mt_add_job_page_title(struct mt_buf *out, const struct mt_job_report *report,
                           const char *name);
void mt_add_job_page_answer(struct mt_buf *out, const struct mt_job_document *document);

#endif
