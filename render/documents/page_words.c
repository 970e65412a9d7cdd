#include "page_words.h"

#include <stdbool.h>
#include <string.h>

#include "escape.h"
#include "html_table.h"
#include "units.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Returns true for a character of a name or a number. */
static bool goes_on(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Returns the length of a number with its unit at `text`; 0 = there is none. */
static size_t quantity_length(const char *text)
{
    size_t number = strspn(text, "0123456789.,"), unit;

    if (!is_digit(*text) || text[number] != ' ')
        return 0;
    unit = mt_unit_length(text + number + 1);
    return unit ? number + 1 + unit : 0;
}

static void add_piece(struct mt_buf *out, struct mt_buf *piece, const char *text, size_t length)
{
    mt_buf_reset(piece);
    mt_buf_add(piece, text, length);
    mt_add_xml(out, piece->data ? piece->data : "");
}

void mt_add_page_words(struct mt_buf *out, const char *words)
{
    struct mt_buf piece = {0};
    size_t length;

    if (strlen(words) > MT_PAGE_NAME_BYTES) {
        mt_add_page_name(out, words);
        return;
    }
    while (*words) {
        length = quantity_length(words);
        if (length) {
            mt_buf_add_text(out, "<span class=\"quantity\">");
            add_piece(out, &piece, words, length);
            mt_buf_add_text(out, "</span>");
            words += length;
        }
        for (length = *words != '\0';
             words[length] && (goes_on(words[length - 1]) || !is_digit(words[length]));)
            length++;
        add_piece(out, &piece, words, length);
        words += length;
    }
    mt_buf_release(&piece);
}
