/* A job as Markdown, for the summary of a CI job or a comment on a merge request. */
#ifndef MT_RENDER_JOB_SUMMARY_MD_H
#define MT_RENDER_JOB_SUMMARY_MD_H

#include "buf.h"
#include "job_document.h"

/* Limit of the summary, as MT_SUMMARY_BYTES of summary_md.h. The summary counts rows that do not
 * fit. */
#define MT_JOB_SUMMARY_BYTES 60000

/* Appends the summary. The first line is the verdict. */
void mt_job_summary_add(struct mt_buf *out, const struct mt_job_document *document);

#endif
