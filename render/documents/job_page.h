/* A job as one page: what text says, charts, tables, and the course of single ranks, which a script
 * shows. It loads nothing, works without scripts except for single ranks, and has less than
 * MT_JOB_PAGE_BYTES however many ranks there are: what does not fit is named. */
#ifndef MT_RENDER_JOB_PAGE_H
#define MT_RENDER_JOB_PAGE_H

#include "buf.h"
#include "job_document.h"

#define MT_JOB_PAGE_BYTES 4000000

enum mt_status mt_add_job_page(struct mt_buf *out, const struct mt_job_document *document,
                               struct mt_error *error) MT_MUST_USE;

#endif
