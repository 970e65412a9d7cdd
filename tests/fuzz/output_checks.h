/* What has to hold for everything that memtrace writes, whatever names a trace
 * has: checks for fuzz targets. */
#ifndef MT_TESTS_OUTPUT_CHECKS_H
#define MT_TESTS_OUTPUT_CHECKS_H

#include "fuzz.h"

/* Length of the UTF-8 sequence at `at`, 0 if there is none: overlong forms, surrogates
 * and cut ones. Not the program's own decoder. */
static inline size_t utf8_sequence(const unsigned char *at, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = *at < 0x80 ? 1 : *at < 0xC0 ? 0 : *at < 0xE0 ? 2 : *at < 0xF0 ? 3 : 4;

    *code = length == 1 ? *at : *at & (0xFFu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xC0) != 0x80)
            return 0;
        *code = *code << 6 | (at[i] & 0x3F);
    }
    return *code < least[length] || *code > 0x10FFFF || (*code >= 0xD800 && *code < 0xE000)
               ? 0
               : length;
}

/* A control character, one that changes the direction of text, or one that ends a line. */
static inline bool is_deceptive(uint32_t c)
{
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x200E || c == 0x200F ||
           (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

/* Valid UTF-8 without such characters, except the end of a line. */
static inline bool is_clean_text(const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + length;

    while (at < end) {
        uint32_t code;
        size_t bytes = utf8_sequence(at, &code);
        if (!bytes || (is_deceptive(code) && code != '\n'))
            return false;
        at += bytes;
    }
    return true;
}

/* One JSON value; returns what is behind it, NULL if it is malformed. Containers
 * are counted, not nested in calls. */
static inline const char *json_scalar(const char *at)
{
    if (*at == '"') {
        for (at++; *at && *at != '"'; at++) {
            if ((unsigned char)*at < 0x20)
                return NULL;
            if (*at == '\\' && !strchr("\"\\/bfnrtu", *++at))
                return NULL;
            if (!*at)
                return NULL;
        }
        return *at ? at + 1 : NULL;
    }
    if (!strncmp(at, "true", 4) || !strncmp(at, "null", 4))
        return at + 4;
    if (!strncmp(at, "false", 5))
        return at + 5;
    at += *at == '-';
    return *at >= '0' && *at <= '9' ? at + strspn(at, "0123456789.eE+-") : NULL;
}

static inline bool is_json(const char *at)
{
    char open[64];
    size_t depth = 0;
    bool wants_value = true;

    for (at += strspn(at, " \n"); *at; at += strspn(at, " \n")) {
        if (wants_value && (*at == '{' || *at == '[')) {
            if (depth == sizeof open)
                return false;
            open[depth++] = *at;
            at += 1 + strspn(at + 1, " \n");
            if (*at != '}' && *at != ']') {
                if (open[depth - 1] == '{' &&
                    (*at != '"' || !(at = json_scalar(at)) || *at++ != ':'))
                    return false;
                continue;
            }
        } else if (wants_value) {
            at = json_scalar(at);
            if (!at)
                return false;
            wants_value = false;
            continue;
        }
        wants_value = false;
        if (*at == ',' && depth) {
            at += 1 + strspn(at + 1, " \n");
            if (open[depth - 1] == '{' && (*at != '"' || !(at = json_scalar(at)) || *at++ != ':'))
                return false;
            wants_value = true;
        } else if (depth && *at == (open[depth - 1] == '{' ? '}' : ']')) {
            depth--;
            at++;
        } else {
            return false;
        }
    }
    return !wants_value && !depth;
}

/* Escaped text of an XML element or attribute: no markup, only known entities. */
static inline bool is_xml_text(const char *at)
{
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;"};

    for (; *at; at++) {
        size_t i = 0;
        if (*at == '<' || *at == '>' || *at == '"')
            return false;
        if (*at != '&')
            continue;
        while (i < 4 && strncmp(at, entities[i], strlen(entities[i])) != 0)
            i++;
        if (i == 4)
            return false;
    }
    return true;
}

#endif
