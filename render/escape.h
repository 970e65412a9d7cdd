/* Escapes text from a trace for documents, so that it cannot become markup. Characters that
 * foreign_text.h hides are written as its escapes. */
#ifndef MT_RENDER_ESCAPE_H
#define MT_RENDER_ESCAPE_H

#include <stddef.h>

#include "buf.h"

/* Appends text for XML, including attributes. Keeps line ends and tabs. */
void mt_escape_add_xml(struct mt_buf *out, const char *text);

/* Like mt_escape_add_xml, but also escapes line ends and tabs. */
void mt_escape_add_xml_line(struct mt_buf *out, const char *text);

/* Appends ' NAME="VALUE"'. Escapes the value. */
void mt_add_xml_attribute(struct mt_buf *out, const char *name, const char *value);

/* Appends a JSON string with quotes that is safe in an HTML <script> element: the text can end
 * neither the string nor the script. Cuts text after `columns` characters and adds an ellipsis. */
void mt_escape_add_script_string(struct mt_buf *out, const char *text, size_t columns);

/* Appends text for a line or a table cell of GitHub's and GitLab's Markdown. The text cannot become
 * markup, HTML, a link, a mention or a reference. Replaces line ends and tabs with spaces. Cuts
 * text after `columns` characters. */
void mt_escape_add_markdown(struct mt_buf *out, const char *text, size_t columns);

#endif
