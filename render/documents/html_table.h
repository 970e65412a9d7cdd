/* Tables of report.html. A cell with a number has the exact value in the attribute data-v, so that
 * a script can sort the rows. */
#ifndef MT_RENDER_HTML_TABLE_H
#define MT_RENDER_HTML_TABLE_H

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

#endif
