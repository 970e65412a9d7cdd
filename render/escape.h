/* Text from a trace within documents: whatever it says, it stays text. */
#ifndef MT_RENDER_ESCAPE_H
#define MT_RENDER_ESCAPE_H

#include <stddef.h>

#include "buf.h"

/* Within XML, attributes too: escaped, valid UTF-8, without characters that XML
 * forbids. */
void mt_add_xml(struct mt_buf *out, const char *text);

/* As a string of JSON, with its quotes, that may stand within a script of HTML: it
 * ends neither. Valid UTF-8; of what is longer than `columns` characters an
 * ellipsis is left. */
void mt_add_script_string(struct mt_buf *out, const char *text, size_t columns);

/* Within a line or a cell of a table of GitHub's and GitLab's Markdown: no
 * markup, HTML, link, mention or reference comes of it. Control characters and
 * those that turn the direction of text become '?', ends of lines a space; what
 * is longer than `columns` characters is cut. */
void mt_add_markdown(struct mt_buf *out, const char *text, size_t columns);

#endif
