/* Bytes of ASCII, the same in every locale; how texts begin and end. */
#ifndef MT_BASE_ASCII_H
#define MT_BASE_ASCII_H

#include <stdbool.h>
#include <string.h>

static inline bool mt_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool mt_is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static inline bool mt_is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static inline bool mt_is_letter(char c)
{
    return mt_is_lower(c) || mt_is_upper(c);
}

static inline bool mt_is_alnum(char c)
{
    return mt_is_letter(c) || mt_is_digit(c);
}

static inline bool mt_is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static inline char mt_lower(char c)
{
    return mt_is_upper(c) ? (char)(c - 'A' + 'a') : c;
}

/* Returns the value of a hexadecimal digit; -1: it is none. */
static inline int mt_hex_digit(char c)
{
    if (mt_is_digit(c))
        return c - '0';
    c = mt_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static inline bool mt_begins_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

static inline bool mt_ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);

    return length >= end_length && memcmp(text + length - end_length, end, end_length) == 0;
}

/* Returns the part of a path after its last slash. */
static inline const char *mt_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

#endif
