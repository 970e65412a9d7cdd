/* Tables as Markdown, one row at a time. The caller limits the size of the document and counts the
 * rows that it omits. Texts are escaped, so they cannot become markup. */
#ifndef MT_RENDER_MARKDOWN_TABLE_H
#define MT_RENDER_MARKDOWN_TABLE_H

#include "table.h"

void mt_markdown_add_head(struct mt_buf *out, const struct mt_table *table);
void mt_markdown_add_row(struct mt_buf *out, const struct mt_table *table, size_t row);

/* Appends text as code: sites, names of rules. */
void mt_markdown_add_code(struct mt_buf *out, const char *text);

/* Appends an invisible marker, "<!-- PROGRAM:NAME -->", with the letters and digits of `name`. A CI
 * job finds its own comment on a pull request by the marker. */
void mt_markdown_add_marker(struct mt_buf *out, const char *program, const char *name);

#define MT_MARKDOWN_NAME     120 /* maximum number of characters of a name */
#define MT_MARKDOWN_SENTENCE 700

#endif
