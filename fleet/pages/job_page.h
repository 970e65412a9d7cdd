/* A job as one page: the text answer, charts, tables, and the memory of single ranks over time. The
 * page loads nothing. It needs scripts only to show single ranks. It has less than
 * MT_JOB_PAGE_BYTES for any number of ranks, and names what it omits. */
#ifndef MT_RENDER_JOB_PAGE_H
#define MT_RENDER_JOB_PAGE_H

#include "buf.h"
#include "job_document.h"

#define MT_JOB_PAGE_BYTES 4000000

void mt_job_page_add(struct mt_buf *out, const struct mt_job_document *document);

#endif
