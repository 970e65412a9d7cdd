/* A report and its gates as Markdown, for the summary of a CI job or a comment on a pull request.
 * It is self-contained: no picture, no link. */
#ifndef MT_RENDER_SUMMARY_MD_H
#define MT_RENDER_SUMMARY_MD_H

#include "buf.h"
#include "gate_check.h"

/* GitHub accepts comments of 65,536 characters. Rows that do not fit are only counted. */
#define MT_SUMMARY_BYTES 60000

/* The first line is the verdict. gates, base: NULL = none. */
void mt_add_summary_md(struct mt_buf *out, const struct mt_report *report,
                       const struct mt_gates *gates, const struct mt_baseline *base);

#endif
