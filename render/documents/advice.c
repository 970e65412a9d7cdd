#include "advice.h"

#include <string.h>

static size_t name_length(const char *text)
{
    return strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
}

/* Returns the length up to a blank, without the punctuation at the end. */
static size_t value_length(const char *text)
{
    size_t length = strcspn(text, " \t\r\n");

    while (length && strchr(",.;:()", text[length - 1]))
        length--;
    return length;
}

static bool begins_with(const char *text, const char *word)
{
    return strncmp(text, word, strlen(word)) == 0;
}

/* Returns the length of the setting at the beginning of `text`: "NAME=VALUE", "export NAME=VALUE",
 * or "unset NAME"; 0 = there is none. */
static size_t setting_length(const char *text)
{
    size_t before = begins_with(text, "export ") ? strlen("export ") : 0, name, value;

    if (begins_with(text, "unset ") && text[6] >= 'A' && text[6] <= 'Z')
        return strlen("unset ") + name_length(text + 6);
    name = name_length(text + before);
    value = name && text[before + name] == '=' ? value_length(text + before + name + 1) : 0;
    return value ? before + name + 1 + value : 0;
}

/* Returns the first setting and sets *length. Returns the end of the text if there is none. */
static const char *find_setting(const char *text, size_t *length)
{
    for (*length = 0; *text; text += name_length(text) ? name_length(text) : 1) {
        *length = setting_length(text);
        if (*length)
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
