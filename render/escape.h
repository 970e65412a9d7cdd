/* Escapes text from a trace for documents, so that it cannot become markup. Characters that
 * foreign_text.h hides are written as its escapes. */
#ifndef MT_RENDER_ESCAPE_H
#define MT_RENDER_ESCAPE_H

#include <stddef.h>

#include "buf.h"

/* Within XML, also in attributes; line ends and tabs stay. */
void mt_add_xml(struct mt_buf *out, const char *text);

/* The same, and escapes line ends and tabs as well. */
void mt_add_xml_line(struct mt_buf *out, const char *text);

/* Appends a JSON string with its quotes that is also safe within an HTML script: it cannot end
 * the string or the script. A text of more than `columns` characters is cut and ends with an
 * ellipsis. */
void mt_add_script_string(struct mt_buf *out, const char *text, size_t columns);

/* Escapes text for a line or a table cell of GitHub's and GitLab's Markdown: it cannot become
 * markup, HTML, a link, a mention or a reference. Line ends and tabs become a space; a text of
 * more than `columns` characters is cut. */
void mt_add_markdown(struct mt_buf *out, const char *text, size_t columns);

#endif
