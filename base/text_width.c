#include "text_width.h"

#include <stdbool.h>
#include <stdint.h>

#include "foreign_text.h"
#include "util.h"

struct range {
    uint32_t first, last;
};

static const struct range no_columns[] = {
    {0x0300, 0x036F},   {0x0483, 0x0489},   {0x0591, 0x05BD}, {0x0610, 0x061A}, {0x064B, 0x065F},
    {0x093C, 0x093C},   {0x094D, 0x094D},   {0x0E31, 0x0E31}, {0x0E34, 0x0E3A}, {0x0E47, 0x0E4E},
    {0x1AB0, 0x1ACE},   {0x1DC0, 0x1DFF},   {0x200B, 0x200F}, {0x2060, 0x2060}, {0x20D0, 0x20F0},
    {0x302A, 0x302D},   {0x3099, 0x309A},   {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF},
    {0x1F3FB, 0x1F3FF}, {0xE0100, 0xE01EF},
};

static const struct range two_columns[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x23E9, 0x23EC},   {0x2614, 0x2615},
    {0x2648, 0x2653},   {0x26A1, 0x26A1},   {0x26BD, 0x26BE},   {0x2705, 0x2705},
    {0x270A, 0x270B},   {0x2728, 0x2728},   {0x274C, 0x274C},   {0x2753, 0x2755},
    {0x2757, 0x2757},   {0x2795, 0x2797},   {0x2B1B, 0x2B1C},   {0x2B50, 0x2B50},
    {0x2E80, 0x303E},   {0x3041, 0x3247},   {0x3250, 0x4DBF},   {0x4E00, 0xA4CF},
    {0xA960, 0xA97F},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},
    {0xFF01, 0xFF60},   {0xFFE0, 0xFFE6},   {0x16FE0, 0x18CFF}, {0x1AFF0, 0x1B2FF},
    {0x1F300, 0x1F320}, {0x1F32D, 0x1F335}, {0x1F337, 0x1F37C}, {0x1F37E, 0x1F393},
    {0x1F3A0, 0x1F3CA}, {0x1F400, 0x1F43E}, {0x1F442, 0x1F4FC}, {0x1F4FF, 0x1F53D},
    {0x1F550, 0x1F567}, {0x1F5FB, 0x1F64F}, {0x1F680, 0x1F6C5}, {0x1F6EB, 0x1F6EC},
    {0x1F90C, 0x1F93A}, {0x1F947, 0x1F9FF}, {0x1FA70, 0x1FAFF}, {0x20000, 0x3FFFD},
};

static bool is_in(const struct range *ranges, size_t count, uint32_t letter)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (letter > ranges[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && letter >= ranges[low].first;
}

static size_t columns_of(uint32_t letter)
{
    if (letter < 0x300)
        return 1;
    if (is_in(no_columns, MT_ARRAY_LEN(no_columns), letter))
        return 0;
    return is_in(two_columns, MT_ARRAY_LEN(two_columns), letter) ? 2 : 1;
}

/* Bytes of the character at `text`; a byte that is none stands for itself. length > 0. */
static size_t decode(const char *text, size_t length, uint32_t *letter)
{
    size_t bytes = mt_utf8_read(text, length, letter);

    if (bytes)
        return bytes;
    *letter = (unsigned char)*text;
    return 1;
}

size_t mt_text_columns(const char *text, size_t length)
{
    size_t columns = 0;
    uint32_t letter;

    for (size_t at = 0; at < length;) {
        at += decode(text + at, length - at, &letter);
        columns += columns_of(letter);
    }
    return columns;
}

size_t mt_text_head(const char *text, size_t length, size_t columns)
{
    size_t at = 0;
    uint32_t letter;

    while (at < length) {
        size_t bytes = decode(text + at, length - at, &letter);

        if (columns_of(letter) > columns)
            break;
        columns -= columns_of(letter);
        at += bytes;
    }
    return at;
}

size_t mt_text_tail(const char *text, size_t length, size_t columns)
{
    size_t all = mt_text_columns(text, length), at = 0;
    uint32_t letter;

    while (at < length && all > columns) {
        at += decode(text + at, length - at, &letter);
        all -= columns_of(letter);
    }
    while (at < length) { /* marks belong to a letter that is gone */
        size_t bytes = decode(text + at, length - at, &letter);

        if (!at || columns_of(letter))
            break;
        at += bytes;
    }
    return at;
}
