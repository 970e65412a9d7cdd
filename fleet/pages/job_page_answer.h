/* The first screen of the page of a job: the verdict, the gates, and a card for each answer. */
#ifndef MT_RENDER_JOB_PAGE_ANSWER_H
#define MT_RENDER_JOB_PAGE_ANSWER_H

#include "buf.h"
#include "job_document.h"

/* Appends the verdict of the gates: "FAIL: 1 of 3 gates". Without gates, appends the first sentence
 * of the text answer. The caller escapes the text. */
void mt_job_page_add_verdict(struct mt_buf *out, const struct mt_job_document *document);

void mt_job_page_add_title(struct mt_buf *out, const struct mt_job_report *report,
                           const char *name);
void mt_job_page_add_answer(struct mt_buf *out, const struct mt_job_document *document);

#endif
