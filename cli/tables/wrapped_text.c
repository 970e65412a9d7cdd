#include "wrapped_text.h"

#include <stdarg.h>
#include <string.h>

#include "text_width.h"
#include "units.h"

void mt_add_blanks(struct mt_buf *out, size_t count)
{
    for (; count; count--)
        mt_buf_add_char(out, ' ');
}

/* Returns true for a unit, also with punctuation after it: "GiB", "GiB),". */
static bool is_unit(const char *word, size_t length)
{
    while (length && strchr(").,;:", word[length - 1]))
        length--;
    return mt_is_unit(word, length);
}

/* Returns the length of a word, including the next word if that is the unit of a number. A line
 * never breaks within this length. */
static size_t unbroken_length(const char *text)
{
    size_t length = strcspn(text, " "), next;

    if (!length || text[length - 1] < '0' || text[length - 1] > '9' || text[length] != ' ')
        return length;
    next = strcspn(text + length + 1, " ");
    return is_unit(text + length + 1, next) ? length + 1 + next : length;
}

void mt_add_wrapped(struct mt_buf *out, const char *text, size_t column, size_t indent)
{
    size_t screen = mt_stdout_screen().columns;
    size_t most = screen < MT_TEXT_COLUMNS ? screen : MT_TEXT_COLUMNS;
    struct mt_buf safe = {0};
    bool first = true;
    const char *at;

    mt_buf_add_printable_text(&safe, text);
    for (at = safe.data; at && *at; at += *at == ' ') {
        size_t length = unbroken_length(at), columns = mt_text_columns(at, length);

        if (!first && column + 1 + columns > most) {
            mt_buf_add_char(out, '\n');
            mt_add_blanks(out, indent);
            column = indent;
        } else if (!first) {
            mt_buf_add_char(out, ' ');
            column++;
        }
        mt_buf_add(out, at, length);
        column += columns;
        at += length;
        first = false;
    }
    mt_buf_release(&safe);
}

void mt_add_note(struct mt_buf *out, size_t indent, const char *format, ...)
{
    struct mt_buf text = {0};
    va_list args;

    va_start(args, format);
    mt_buf_vprintf(&text, format, args);
    va_end(args);
    mt_add_blanks(out, indent);
    if (text.data)
        mt_add_wrapped(out, text.data, indent, indent);
    mt_buf_add_char(out, '\n');
    mt_buf_release(&text);
}
