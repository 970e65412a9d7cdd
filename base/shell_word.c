#include "shell_word.h"

#include <string.h>

#include "foreign_text.h"

static bool all_shown(const char *text)
{
    struct mt_foreign_text foreign = mt_foreign_text(text, strlen(text));
    struct mt_foreign_char c;

    while (mt_foreign_next(&foreign, &c))
        if (!c.is_shown)
            return false;
    return true;
}

const char *mt_shell_word(struct mt_arena *arena, const char *text)
{
    static const char bare[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-=:,";
    const char *folder = *text == '-' && text[1] ? "./" : ""; /* "-x" is no option, "-" is input */

    if (strchr(text, '\'') || !all_shown(text))
        return NULL;
    if (*text && !text[strspn(text, bare)])
        return mt_arena_printf(arena, "%s%s", folder, text);
    return mt_arena_printf(arena, "'%s%s'", folder, text);
}
