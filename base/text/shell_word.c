#include "shell_word.h"

#include <string.h>

#include "foreign_text.h"

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
