/* Text from a trace within documents: whatever it says, it stays text. Characters that
 * foreign_text.h hides are written as its escapes. */
#ifndef MT_RENDER_ESCAPE_H
#define MT_RENDER_ESCAPE_H

#include <stddef.h>

#include "buf.h"

/* Within XML, also in attributes; line ends and tabs stay. */
void mt_add_xml(struct mt_buf *out, const char *text);

/* The same, and escapes line ends and tabs as well. */
void mt_add_xml_line(struct mt_buf *out, const char *text);

/* As a string of JSON, with its quotes, that may stand within a script of HTML: it
 * ends neither. A text of more than `columns` characters is cut and ends with an
 * ellipsis. */
void mt_add_script_string(struct mt_buf *out, const char *text, size_t columns);

/* Within a line or a cell of a table of GitHub's and GitLab's Markdown: no
 * markup, HTML, link, mention or reference comes of it. Line ends and tabs become a
 * space; a text of more than `columns` characters is cut. */
void mt_add_markdown(struct mt_buf *out, const char *text, size_t columns);

#endif
