/* Tables of report.html. Cells with numbers have the exact number in data-v, by which a script
 * can sort. */
#ifndef MT_RENDER_HTML_TABLE_H
#define MT_RENDER_HTML_TABLE_H

#include "table.h"

struct mt_html_table {
    const char *kind; /* class */
    const char *name; /* prefix of the id; the device follows */
    unsigned device;
    uint64_t omitted; /* rows that are only counted */
};

/* Writes the table and releases it. */
void mt_add_html_table(struct mt_buf *out, struct mt_table *table,
                       const struct mt_html_table *html);

enum { MT_PAGE_NAME_BYTES = 240 };
/* Appends text of a trace, escaped and shortened, so that a long name does not enlarge the page. */
void mt_add_page_name(struct mt_buf *out, const char *name);

/* A command or a setting, as <code>, not shortened because readers copy it. On a narrow screen it
 * breaks between words, and in a word after '=' and ','; report.js uses the same rule. */
void mt_add_page_command(struct mt_buf *out, const char *command);

#endif
