#include "debug.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "util.h"

#define VARIABLE "MEMTRACE_DEBUG"

static const char *const topics[MT_DEBUG_TOPICS] = {[MT_DEBUG_PASSES] = "passes"};

/* The next word of a list with commas, NULL = no more. *list moves behind it. */
static const char *next_word(const char **list, size_t *length)
{
    const char *word = *list + strspn(*list, ",");

    *length = strcspn(word, ",");
    *list = word + *length;
    return *length ? word : NULL;
}

static bool is_topic(const char *word, size_t length, const char *topic)
{
    return strlen(topic) == length && strncmp(word, topic, length) == 0;
}

bool mt_debug_has(enum mt_debug_topic topic)
{
    const char *list = getenv(VARIABLE), *word;
    size_t length;

    while (list && (word = next_word(&list, &length)))
        if (is_topic(word, length, topics[topic]))
            return true;
    return false;
}

static void say_unknown(const char *word, size_t length)
{
    struct mt_buf names = {0};

    for (size_t i = 0; i < MT_DEBUG_TOPICS; i++)
        mt_buf_printf(&names, "%s%s", i ? ", " : "", topics[i]);
    mt_say(VARIABLE ": unknown topic '%.*s' (known: %s)", (int)mt_min_u64(length, 80), word,
           names.failed ? "" : names.data);
    mt_buf_release(&names);
}

void mt_debug_check(void)
{
    const char *list = getenv(VARIABLE), *word;
    size_t length;

    while (list && (word = next_word(&list, &length))) {
        bool is_known = false;

        for (size_t i = 0; i < MT_DEBUG_TOPICS; i++)
            is_known |= is_topic(word, length, topics[i]);
        if (!is_known)
            say_unknown(word, length);
    }
}
