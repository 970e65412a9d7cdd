/* The beginning of a page. */
#ifndef MT_RENDER_PAGE_HEAD_H
#define MT_RENDER_PAGE_HEAD_H

#include "buf.h"
#include "page_policy.h"
#include "report.h"

/* Appends the page up to its <meta> elements, which include the policy. The policy must be
 * complete. */
void mt_add_page_start(struct mt_buf *out, const struct mt_page_policy *policy);
struct mt_page_head {
    const char *program; /* beginning of the title: "memtrace"; must not be foreign text */
    const char *name;    /* name of the run */
    const char *css;     /* page_assets.h */
};
/* Appends the rest of the head, up to <body>: the title, and the style sheet, which defines the
 * colors of charts as variables. Adds the hash of the sheet to the policy. */
void mt_add_page_head(struct mt_buf *out, const struct mt_page_head *head,
                      struct mt_page_policy *policy);
/* Appends the heading of the page: the name of the run, and facts. */
void mt_add_page_title(struct mt_buf *out, const struct mt_report *report);

#endif
