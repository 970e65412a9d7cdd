/* How report.html begins. */
#ifndef MT_RENDER_PAGE_HEAD_H
#define MT_RENDER_PAGE_HEAD_H

#include "buf.h"
#include "report.h"

/* Up to <body>: what the page may load (nothing), and its style, with the colours of
 * charts as variables. */
void mt_add_page_head(struct mt_buf *out, const struct mt_report *report);
/* The name of the run, and facts. */
void mt_add_page_title(struct mt_buf *out, const struct mt_report *report);

#endif
