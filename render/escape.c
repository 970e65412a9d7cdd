#include "escape.h"

#include <string.h>

#include "foreign_text.h"

static void add_escape(struct mt_buf *out, const struct mt_foreign_char *c)
{
    char escape[MT_FOREIGN_ESCAPE];

    mt_buf_add(out, escape, mt_foreign_escape(c, escape));
}

static void add_xml(struct mt_buf *out, const char *text, bool keep_lines)
{
    struct mt_foreign_text foreign = mt_foreign_text(text, strlen(text));
    struct mt_foreign_char c;

    while (mt_foreign_next(&foreign, &c)) {
        switch (c.code) {
        case '&': mt_buf_add_text(out, "&amp;"); continue;
        case '<': mt_buf_add_text(out, "&lt;"); continue;
        case '>': mt_buf_add_text(out, "&gt;"); continue;
        case '"': mt_buf_add_text(out, "&quot;"); continue;
        default: break;
        }
        if (c.is_shown || (keep_lines && (c.code == '\n' || c.code == '\t')))
            mt_buf_add(out, c.bytes, c.length);
        else
            add_escape(out, &c);
    }
}

void mt_escape_add_xml(struct mt_buf *out, const char *text)
{
    add_xml(out, text, true);
}

void mt_escape_add_xml_line(struct mt_buf *out, const char *text)
{
    add_xml(out, text, false);
}

/* An escape of foreign_text.h is a part of the string itself, because scripts insert the string
 * into the page. */
void mt_escape_add_script_string(struct mt_buf *out, const char *text, size_t columns)
{
    struct mt_foreign_text foreign = mt_foreign_text(text, strlen(text));
    struct mt_foreign_char c;

    mt_buf_add_char(out, '"');
    for (size_t i = 0; mt_foreign_next(&foreign, &c); i++) {
        if (i == columns) {
            mt_buf_add_text(out, "\xE2\x80\xA6");
            break;
        }
        if (c.code == '<' || c.code == '>' || c.code == '&' || c.code == '\n' || c.code == '\t')
            mt_buf_printf(out, "\\u%04x", (unsigned)c.code);
        else if (c.code == '"' || c.code == '\\')
            mt_buf_printf(out, "\\%c", (char)c.code);
        else if (c.is_shown)
            mt_buf_add(out, c.bytes, c.length);
        else {
            mt_buf_add_char(out, '\\');
            add_escape(out, &c);
        }
    }
    mt_buf_add_char(out, '"');
}

static bool is_harmless(uint32_t c, uint32_t before, uint32_t next)
{
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80)
        return true;
    if (c == '.')
        return before != 'w' && before != 'W'; /* www. */
    if (c == ':')
        return next != '/'; /* https:// */
    return strchr(" ,;%()/+-=?'", (int)c) != NULL;
}

static void add_entity(struct mt_buf *out, uint32_t c)
{
    mt_buf_printf(out, c == '@' || c == '#' ? "&#%u;&#8203;" : "&#%u;", (unsigned)c);
}

static uint32_t byte_at(const struct mt_foreign_text *text)
{
    return text->at < text->end ? (unsigned char)*text->at : 0;
}

void mt_escape_add_markdown(struct mt_buf *out, const char *text, size_t columns)
{
    struct mt_foreign_text foreign = mt_foreign_text(text, strlen(text));
    struct mt_foreign_char c;
    char escape[MT_FOREIGN_ESCAPE];
    uint32_t before = 0;

    for (size_t i = 0; mt_foreign_next(&foreign, &c); i++, before = c.code) {
        if (i == columns) {
            mt_buf_add_text(out, "...");
            return;
        }
        if (c.code == '\n' || c.code == '\t') {
            mt_buf_add_char(out, ' ');
        } else if (c.is_shown && is_harmless(c.code, before, byte_at(&foreign))) {
            mt_buf_add(out, c.bytes, c.length);
        } else if (c.is_shown || c.code == '#' || c.code == ':') {
            add_entity(out, c.code);
        } else {
            mt_foreign_escape(&c, escape);
            mt_buf_printf(out, "&#92;%s", escape + 1);
        }
    }
}

void mt_add_xml_attribute(struct mt_buf *out, const char *name, const char *value)
{
    mt_buf_printf(out, " %s=\"", name);
    mt_escape_add_xml_line(out, value);
    mt_buf_add_char(out, '"');
}
