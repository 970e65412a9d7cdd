/* Tables of documents, as HTML and as Markdown. A cell of HTML with a number has the exact value in
 * the attribute data-v, so that a script can sort the rows. */
#ifndef MT_RENDER_DOCUMENT_TABLES_H
#define MT_RENDER_DOCUMENT_TABLES_H

#include "table.h"

struct mt_html_table {
    const char *kind; /* class of the element */
    const char *name; /* prefix of the id, before the number of the device */
    unsigned device;
    uint64_t omitted; /* number of rows that are not in the table */
};

/* Writes the table and releases it. */
void mt_html_table_add(struct mt_buf *out, struct mt_table *table,
                       const struct mt_html_table *html);

enum { MT_PAGE_NAME_BYTES = 240 };

/* Appends text of a trace, escaped and shortened, so that a long name does not enlarge the page. */
void mt_page_add_name(struct mt_buf *out, const char *name);

/* Appends a command or a setting as <code>. It is not shortened, because readers copy it. On a
 * narrow screen, lines break between words, and in a word after '=' and ','. report.js uses the
 * same rule. */
void mt_page_add_command(struct mt_buf *out, const char *command);

/* Tables as Markdown, one row at a time. The caller limits the size of the document and counts the
 * rows that it omits. Texts are escaped, so they cannot become markup. */

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
