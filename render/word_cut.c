#include "word_cut.h"

#include <stdbool.h>
#include <string.h>

#include "units.h"

#define MAX_LOST_SHARE 3 /* cut within a word if whole words would lose more than a third */

static bool begins_number(const char *word)
{
    word += strspn(word, "(+~<");
    return *word >= '0' && *word <= '9';
}

static size_t word_begin(const char *text, size_t at)
{
    while (at && text[at - 1] != ' ')
        at--;
    return at;
}

/* Moves a cut in a number to the beginning of the number, because a truncated number is a different
 * number, and a number without its unit is meaningless. */
static size_t cut_before_number(const char *text, size_t head)
{
    size_t word = text[head] == ' ' ? head + strspn(text + head, " ") : word_begin(text, head);
    size_t before = word;

    if (!text[head])
        return head;
    if (word < head && begins_number(text + word))
        return word;
    while (before && text[before - 1] == ' ')
        before--;
    before = word_begin(text, before);
    return before < word && begins_number(text + before) && mt_unit_length(text + word) ? before
                                                                                        : head;
}

static bool is_mark(char c)
{
    return c && strchr(" ._/:,;-+=<>()[]", c);
}

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

/* Returns true if a word ends or begins between two characters. */
static bool is_between_words(const char *text, size_t at)
{
    return !at || !text[at] || is_mark(text[at]) || is_mark(text[at - 1]) ||
           (is_lower(text[at - 1]) && is_upper(text[at]));
}

/* Removes marks before the cut: "Layer" instead of "Layer." */
static size_t without_marks(const char *text, size_t head)
{
    size_t at = head;

    while (at && is_mark(text[at - 1]) && !strchr(")]>", text[at - 1]))
        at--;
    return at ? at : head;
}

size_t mt_cut_head(const char *text, size_t head)
{
    size_t whole = cut_before_number(text, head), at = whole;

    while (!is_between_words(text, at))
        at--;
    at = at ? without_marks(text, at) : at;
    if (whole - at > whole / MAX_LOST_SHARE || begins_number(text + word_begin(text, at)))
        return whole;
    return at;
}

const char *mt_cut_tail(const char *text, const char *tail)
{
    size_t begin = (size_t)(tail - text), most = strlen(tail) / MAX_LOST_SHARE, at = begin;

    while (!is_between_words(text, at) || (text[at] && strchr("._:,;-+=>)]", text[at])))
        at++;
    return at - begin <= most && text[at] ? text + at : tail;
}
