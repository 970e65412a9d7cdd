/* Tables of Markdown, a row at a time: the caller, which limits the page, counts omitted rows.
 * Whatever texts say, they stay text. */
#ifndef MT_RENDER_MARKDOWN_TABLE_H
#define MT_RENDER_MARKDOWN_TABLE_H

#include "table.h"

void mt_add_markdown_head(struct mt_buf *out, const struct mt_table *table);
void mt_add_markdown_row(struct mt_buf *out, const struct mt_table *table, size_t row);

/* Text that is code: sites, names of rules. */
void mt_add_markdown_code(struct mt_buf *out, const char *text);

/* A comment that a reader does not see: "<!-- PROGRAM:NAME -->". By it a CI job finds its own
 * comment again. Of the name it has letters and digits. */
void mt_add_markdown_marker(struct mt_buf *out, const char *program, const char *name);

#define MT_MARKDOWN_NAME     120 /* characters of a name, at most */
#define MT_MARKDOWN_SENTENCE 700

#endif
