/* Text from elsewhere made safe: to show, and as words of a command line that a person copies. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "arena.h"
#include "ascii.h"
#include "buf.h"
#include "foreign_text.h"
#include "util.h"

/* zsh expands a word that begins with "=". */
static bool is_bare(const char *text)
{
    static const char bare[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-=:,";

    return *text && *text != '=' && !text[strspn(text, bare)];
}

static void add_quoted(struct mt_buf *out, const char *before, const char *text)
{
    mt_buf_add_char(out, '\'');
    mt_buf_add_text(out, before);
    for (; *text; text++)
        if (*text == '\'')
            mt_buf_add_text(out, "'\\''");
        else
            mt_buf_add_char(out, *text);
    mt_buf_add_char(out, '\'');
}

/* An octal escape ends after three digits, whatever follows. */
static void add_octal(struct mt_buf *out, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        mt_buf_printf(out, "\\%03o", (unsigned)(unsigned char)bytes[i]);
}

static void add_escaped(struct mt_buf *out, const char *before, const char *text)
{
    struct mt_foreign_text foreign = mt_foreign_text(text, strlen(text));
    struct mt_foreign_char c;

    mt_buf_add_text(out, "$'");
    mt_buf_add_text(out, before);
    while (mt_foreign_next(&foreign, &c))
        if (!c.is_shown || strchr("'\\!", *c.bytes))
            add_octal(out, c.bytes, c.length);
        else
            mt_buf_add(out, c.bytes, c.length);
    mt_buf_add_char(out, '\'');
}

static void add_word(struct mt_buf *out, const char *before, const char *text)
{
    if (!mt_foreign_is_shown(text)) {
        add_escaped(out, before, text);
    } else if (is_bare(text)) {
        mt_buf_add_text(out, before);
        mt_buf_add_text(out, text);
    } else {
        add_quoted(out, before, text);
    }
}

void mt_buf_add_shell_value(struct mt_buf *out, const char *text)
{
    add_word(out, "", text);
}

void mt_buf_add_shell_words(struct mt_buf *out, const char *const *words)
{
    for (size_t i = 0; words[i]; i++)
        add_word(out, i ? " " : "", words[i]);
}

void mt_buf_add_shell_path(struct mt_buf *out, const char *path)
{
    add_word(out, *path == '-' && path[1] ? "./" : "", path);
}

static const char *in_arena(struct mt_arena *arena, const char *text,
                            void (*add)(struct mt_buf *out, const char *text))
{
    struct mt_buf out = {0};
    const char *word = NULL;

    add(&out, text);
    if (!out.failed)
        word = mt_arena_text(arena, out.data, out.length);
    mt_buf_release(&out);
    return word;
}

const char *mt_shell_value(struct mt_arena *arena, const char *text)
{
    return in_arena(arena, text, mt_buf_add_shell_value);
}

const char *mt_shell_path(struct mt_arena *arena, const char *path)
{
    return in_arena(arena, path, mt_buf_add_shell_path);
}

/* Returns the number of bytes that follow a lead byte, and sets the bits that it carries; -1 if the
 * byte cannot begin a character. */
static int utf8_tail(unsigned char lead, uint32_t *bits)
{
    if (lead < 0x80) {
        *bits = lead;
        return 0;
    }
    if (lead >= 0xC0 && lead < 0xE0) {
        *bits = lead & 0x1F;
        return 1;
    }
    if (lead >= 0xE0 && lead < 0xF0) {
        *bits = lead & 0x0F;
        return 2;
    }
    *bits = lead & 0x07;
    return lead >= 0xF0 && lead < 0xF8 ? 3 : -1;
}

size_t mt_utf8_read(const char *at, size_t left, uint32_t *code)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    uint32_t c;
    int tail = utf8_tail((unsigned char)*at, &c);

    if (tail < 0)
        return 0;
    for (int i = 1; i <= tail; i++) {
        if ((size_t)i >= left || ((unsigned char)at[i] & 0xC0) != 0x80)
            return 0;
        c = c << 6 | ((unsigned char)at[i] & 0x3Fu);
    }
    if (c < least[tail] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
        return 0;
    *code = c;
    return (size_t)tail + 1;
}

/* Unicode 15: Cf, Zl, Zp and Default_Ignorable_Code_Point above Latin-1, without U+FE00..U+FE0F;
 * U+FDD0..U+FDEF are noncharacters. Sorted. */
static const struct {
    uint32_t first, last;
} hidden[] = {
    {0xAD, 0xAD},       {0x34F, 0x34F},     {0x600, 0x605},     {0x61C, 0x61C},
    {0x6DD, 0x6DD},     {0x70F, 0x70F},     {0x890, 0x891},     {0x8E2, 0x8E2},
    {0x115F, 0x1160},   {0x17B4, 0x17B5},   {0x180B, 0x180F},   {0x200B, 0x200F},
    {0x2028, 0x202E},   {0x2060, 0x206F},   {0x3164, 0x3164},   {0xFDD0, 0xFDEF},
    {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0},   {0xFFF0, 0xFFFB},   {0x110BD, 0x110BD},
    {0x110CD, 0x110CD}, {0x13430, 0x1343F}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A},
    {0xE0000, 0xE0FFF},
};

static bool is_hidden(uint32_t code)
{
    if (code < 0xA0)
        return code < 0x20 || code >= 0x7F;
    if (code == MT_NOT_UTF8 || (code & 0xFFFE) == 0xFFFE)
        return true;
    for (size_t i = 0; i < MT_ARRAY_LEN(hidden) && hidden[i].first <= code; i++)
        if (code <= hidden[i].last)
            return true;
    return false;
}

static bool is_word(char c)
{
    return mt_is_alnum(c) || c == '-' || c == '_';
}

/* Returns whether the text continues as "[" or "word[". After "##" this is a command of GitHub,
 * Azure Pipelines or TeamCity. A text that ends here counts, because other text may follow it. */
static bool opens_command(const char *at, const char *end)
{
    while (at < end && is_word(*at))
        at++;
    return at == end || *at == '[';
}

static bool begins_command(const struct mt_foreign_text *text)
{
    const char *at = text->at;

    if (*at == '#' && text->before == '#')
        return opens_command(at + 1, text->end);
    /* GitHub ignores all white space of Unicode before a command. Only visible ASCII is known to be
     * none. */
    return *at == ':' && text->end - at > 1 && at[1] == ':' &&
           (text->before <= ' ' || text->before > '~');
}

struct mt_foreign_text mt_foreign_text(const char *text, size_t length)
{
    return (struct mt_foreign_text){text, text + length, 0};
}

bool mt_foreign_next(struct mt_foreign_text *text, struct mt_foreign_char *character)
{
    if (text->at == text->end)
        return false;
    character->code = MT_NOT_UTF8;
    size_t length = mt_utf8_read(text->at, (size_t)(text->end - text->at), &character->code);
    character->bytes = text->at;
    character->length = length ? length : 1;
    character->is_shown = !is_hidden(character->code) && !begins_command(text);
    text->at += character->length;
    text->before = text->at[-1];
    return true;
}

size_t mt_foreign_skip_plain(struct mt_foreign_text *text)
{
    const char *begin = text->at;

    while (text->at < text->end && (is_word(*text->at) || *text->at == '.' || *text->at == '/'))
        text->at++;
    if (text->at > begin)
        text->before = text->at[-1];
    return (size_t)(text->at - begin);
}

size_t mt_foreign_escape(const struct mt_foreign_char *character, char escape[MT_FOREIGN_ESCAPE])
{
    uint32_t code = character->code;
    int length;

    if (code == MT_NOT_UTF8)
        code = (unsigned char)*character->bytes;
    if (character->code == MT_NOT_UTF8 || code < 0x80)
        length = snprintf(escape, MT_FOREIGN_ESCAPE, "\\x%02x", (unsigned)code);
    else if (code < 0x10000)
        length = snprintf(escape, MT_FOREIGN_ESCAPE, "\\u%04x", (unsigned)code);
    else
        length = snprintf(escape, MT_FOREIGN_ESCAPE, "\\U%08x", (unsigned)code);
    return (size_t)length;
}

void mt_buf_add_printable(struct mt_buf *out, const char *text, size_t length)
{
    struct mt_foreign_text foreign = mt_foreign_text(text, length);
    struct mt_foreign_char c;
    char escape[MT_FOREIGN_ESCAPE];

    while (foreign.at < foreign.end) {
        text = foreign.at;
        mt_buf_add(out, text, mt_foreign_skip_plain(&foreign));
        if (!mt_foreign_next(&foreign, &c))
            return;
        if (c.is_shown)
            mt_buf_add(out, c.bytes, c.length);
        else
            mt_buf_add(out, escape, mt_foreign_escape(&c, escape));
    }
}

void mt_buf_add_valid_utf8(struct mt_buf *out, const char *text, size_t length)
{
    for (size_t at = 0; at < length;) {
        uint32_t code;
        size_t bytes = mt_utf8_read(text + at, length - at, &code);

        if (bytes && text[at])
            mt_buf_add(out, text + at, bytes);
        else
            mt_buf_printf(out, "\\x%02x", (unsigned)(unsigned char)text[at]);
        at += bytes ? bytes : 1;
    }
}

void mt_buf_add_printable_text(struct mt_buf *out, const char *text)
{
    if (text)
        mt_buf_add_printable(out, text, strlen(text));
    else
        out->failed = true;
}

bool mt_foreign_is_shown(const char *text)
{
    struct mt_foreign_text foreign = mt_foreign_text(text, strlen(text));
    struct mt_foreign_char c;

    while (mt_foreign_next(&foreign, &c))
        if (!c.is_shown)
            return false;
    return true;
}
