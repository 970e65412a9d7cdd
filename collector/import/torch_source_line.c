#include "torch_source_line.h"

#include <string.h>

static const char begins[] = "File \"", counts[] = "\", line ", names[] = ", in ";

/* Reads at most nine digits. Sets *after to the text after them. */
static bool read_number(const char *at, uint32_t *number, const char **after)
{
    const char *digit = at;

    for (*number = 0; *digit >= '0' && *digit <= '9' && digit - at < 9; digit++)
        *number = *number * 10 + (uint32_t)(*digit - '0');
    *after = digit;
    return digit > at;
}

/* `at` is after the opening quotation mark. */
static bool read_line(const char *at, struct mt_source_line *found)
{
    const char *end = at + strcspn(at, "\n"), *close = at, *after;

    while ((close = memchr(close, '"', (size_t)(end - close))) != NULL &&
           strncmp(close, counts, strlen(counts)) != 0)
        close++;
    if (!close || close == at || !read_number(close + strlen(counts), &found->line, &after) ||
        strncmp(after, names, strlen(names)) != 0)
        return false;
    found->file = at;
    found->file_length = (size_t)(close - at);
    found->function = after + strlen(names);
    found->function_length = strcspn(found->function, "\r\n");
    return found->function_length > 0;
}

bool mt_source_line_last(const char *text, struct mt_source_line *found)
{
    const char *at = text;
    struct mt_source_line line;
    bool any = false;

    while ((at = strstr(at, begins)) != NULL) {
        at += strlen(begins);
        if (read_line(at, &line)) {
            *found = line;
            any = true;
        }
        at += strcspn(at, "\n"); /* one match per line, so the time stays linear */
    }
    return any;
}
