/* A report and its gates as Markdown, for the summary of a CI job or a comment on a pull request.
 * It is self-contained: no picture, no link. */
#ifndef MT_RENDER_SUMMARY_MD_H
#define MT_RENDER_SUMMARY_MD_H

#include "buf.h"
#include "gate_result.h"

/* Limit of the summary. GitHub accepts comments of up to 65,536 characters. The summary counts rows
 * that do not fit. */
#define MT_SUMMARY_BYTES 60000

/* Appends the summary. The first line is the verdict. `gates` and `base` may be NULL. */
void mt_summary_md_add(struct mt_buf *out, const struct mt_report *report,
                       const struct mt_gates *gates, const struct mt_baseline *base);

#endif
