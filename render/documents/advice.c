#include "advice.h"

#include <string.h>

static size_t name_length(const char *text)
{
    return strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
}

/* Up to the blank, without what ends a part of a sentence. */
static size_t value_length(const char *text)
{
    size_t length = strcspn(text, " \t\r\n");

    while (length && strchr(",.;:()", text[length - 1]))
        length--;
    return length;
}

/* Where the first setting begins, and its length; at the end of the text there is none. */
static const char *find_setting(const char *text, size_t *length)
{
    size_t name, value;

    for (*length = 0; *text; text += name ? name : 1) {
        name = name_length(text);
        value = name && text[name] == '=' ? value_length(text + name + 1) : 0;
        if (!value)
            continue;
        *length = name + 1 + value;
        break;
    }
    return text;
}

bool mt_advice_next(const char **rest, struct mt_advice_part *part)
{
    const char *text = *rest, *setting;
    size_t length;

    if (!*text)
        return false;
    setting = find_setting(text, &length);
    part->is_setting = setting == text;
    if (!part->is_setting)
        length = (size_t)(setting - text);
    mt_buf_reset(&part->text);
    mt_buf_add(&part->text, text, length);
    *rest = text + length;
    return true;
}
