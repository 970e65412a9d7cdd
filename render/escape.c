#include "escape.h"

#include <string.h>

#include "glyphs.h"

void mt_add_xml(struct mt_buf *out, const char *text)
{
    uint32_t c;

    while ((c = mt_utf8_next(&text))) {
        switch (c) {
        case '&': mt_buf_add_text(out, "&amp;"); break;
        case '<': mt_buf_add_text(out, "&lt;"); break;
        case '>': mt_buf_add_text(out, "&gt;"); break;
        case '"': mt_buf_add_text(out, "&quot;"); break;
        default:
            if ((c < 0x20 && c != '\n' && c != '\t') || c == 0xFFFE || c == 0xFFFF)
                c = 0xFFFD;
            mt_buf_add_utf8(out, c);
        }
    }
}

void mt_add_script_string(struct mt_buf *out, const char *text, size_t columns)
{
    uint32_t c;

    mt_buf_add_char(out, '"');
    for (size_t i = 0; (c = mt_utf8_next(&text)); i++) {
        if (i == columns) {
            mt_buf_add_text(out, "\xE2\x80\xA6");
            break;
        }
        if (c < 0x20 || c == 0x7f || c == '<' || c == '>' || c == '&' || c == 0x2028 || c == 0x2029)
            mt_buf_printf(out, "\\u%04x", (unsigned)c);
        else if (c == '"' || c == '\\')
            mt_buf_printf(out, "\\%c", (char)c);
        else
            mt_buf_add_utf8(out, c);
    }
    mt_buf_add_char(out, '"');
}

/* Characters that change the direction of what follows, or that nobody sees. */
static bool is_deceptive(uint32_t c)
{
    return (c >= 0x200b && c <= 0x200f) || (c >= 0x202a && c <= 0x202e) ||
           (c >= 0x2060 && c <= 0x2069) || c == 0xfeff;
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

void mt_add_markdown(struct mt_buf *out, const char *text, size_t columns)
{
    const char *next = text;
    uint32_t c, before = 0;

    for (size_t i = 0; (c = mt_utf8_next(&next)); i++, before = c) {
        if (i == columns) {
            mt_buf_add_text(out, "...");
            return;
        }
        if (c < 0x20 || c == 0x7f || (c >= 0x80 && c < 0xa0) || is_deceptive(c))
            mt_buf_add_char(out, c == '\n' || c == '\t' ? ' ' : '?');
        else if (is_harmless(c, before, (unsigned char)*next))
            mt_buf_add_utf8(out, c);
        else
            mt_buf_printf(out, c == '@' || c == '#' ? "&#%u;&#8203;" : "&#%u;", (unsigned)c);
    }
}
