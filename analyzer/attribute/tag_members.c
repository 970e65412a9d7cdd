#include "tag_members.h"

#include <string.h>

/* Returns the end of the object that begins at a brace, or NULL if it has none. */
static const char *end_of_object(const char *at)
{
    size_t depth = 0;
    bool quoted = false;

    for (; *at; at++)
        if (quoted && *at == '\\' && at[1])
            at++;
        else if (*at == '"')
            quoted = !quoted;
        else if (!quoted && (*at == '{' || *at == '['))
            depth++;
        else if (!quoted && (*at == '}' || *at == ']') && --depth == 0)
            return at + 1;
    return NULL;
}

/* Texts of one block are joined by "; ". Sets *at to the next one that begins at or after it. */
static bool skip_to_text(const char **at)
{
    const char *separator = strstr(*at, "; ");

    *at = separator ? separator + 2 : *at + strlen(*at);
    return separator != NULL;
}

bool mt_tag_next_object(const char **text, struct mt_settings *object)
{
    bool more = **text != '\0';

    while (more) {
        const char *begin = *text, *end = *begin == '{' ? end_of_object(begin) : NULL;

        if (*begin == '{' && !end) { /* the rest is inside of it */
            *text += strlen(*text);
            return false;
        }
        if (end)
            *text = end;
        more = skip_to_text(text);
        if (!end || (*end && strncmp(end, "; ", 2) != 0))
            continue;
        if (mt_settings_parse_members(begin, (size_t)(end - begin), object, NULL) == MT_OK)
            return true;
        mt_settings_release(object);
    }
    return false;
}

static const char *find_member(struct mt_arena *arena, const char *tag, const char *member)
{
    struct mt_settings object;
    const char *value = NULL;

    while (mt_tag_next_object(&tag, &object)) {
        const struct mt_setting *found = mt_settings_find(&object, member);

        if (found)
            value = *found->text ? mt_arena_text(arena, found->text, strlen(found->text)) : "\"\"";
        mt_settings_release(&object);
    }
    return value;
}

const char *mt_tag_group(struct mt_arena *arena, const struct mt_symbols *symbols, uint32_t tag,
                         const char *member)
{
    const char *text = tag == MT_NO_ID ? NULL : mt_symbols_text(symbols, tag);

    if (text && member)
        text = find_member(arena, text, member);
    if (text)
        return text;
    return member ? mt_arena_printf(arena, "no tag.%s", member) : "no tag";
}
