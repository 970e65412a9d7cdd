/* Tables of Markdown, one row at a time. The caller, which limits the page, counts omitted rows.
 * Texts are escaped, so they cannot become markup. */
#ifndef MT_RENDER_MARKDOWN_TABLE_H
#define MT_RENDER_MARKDOWN_TABLE_H

#include "table.h"

void mt_add_markdown_head(struct mt_buf *out, const struct mt_table *table);
void mt_add_markdown_row(struct mt_buf *out, const struct mt_table *table, size_t row);

/* Text that is code: sites, names of rules. */
void mt_add_markdown_code(struct mt_buf *out, const char *text);

/* A comment that readers do not see: "<!-- PROGRAM:NAME -->". A CI job finds its own comment by
 * it. Only letters and digits of the name are used. */
void mt_add_markdown_marker(struct mt_buf *out, const char *program, const char *name);

#define MT_MARKDOWN_NAME     120 /* characters of a name, at most */
#define MT_MARKDOWN_SENTENCE 700

#endif
