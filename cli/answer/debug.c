#include "debug.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "io.h"
#include "text_table.h"
#include "util.h"

#define VARIABLE "MEMTRACE_DEBUG"

static const char *const topics[MT_DEBUG_TOPICS] = {[MT_DEBUG_PASSES] = "passes"};

/* Returns the next word of a comma-separated list and moves *list after it; NULL at the end. */
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
    mt_message(VARIABLE ": unknown topic '%.*s' (known: %s)", (int)mt_min_u64(length, 80), word,
               names.data);
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

static void add_row(struct mt_table *table, const struct mt_pass_cost *cost)
{
    MT_CELLS(table, MT_TEXT(cost->name), MT_COUNT(cost->readings), MT_COUNT(cost->events),
             MT_TIME(0, cost->time_ns),
             cost->memory_bytes ? MT_BYTES(cost->memory_bytes) : MT_TEXT("-"));
}

/* Memory is not summed: the passes do not hold all of it at the same time. */
static struct mt_pass_cost sum_of(const struct mt_pass_log *log)
{
    struct mt_pass_cost sum = {.name = "total"};

    for (uint32_t i = 0; i < log->count; i++) {
        sum.readings += log->costs[i].readings;
        sum.events += log->costs[i].events;
        sum.time_ns += log->costs[i].time_ns;
    }
    return sum;
}

void mt_debug_passes(const struct mt_report *report)
{
    const struct mt_pass_cost sum = sum_of(&report->passes);
    struct mt_table table;
    struct mt_buf out = {0};

    if (!mt_debug_has(MT_DEBUG_PASSES))
        return;
    mt_table_begin(&table, "pass|#readings|#events|#time|#memory");
    for (uint32_t i = 0; i < report->passes.count; i++)
        add_row(&table, &report->passes.costs[i]);
    add_row(&table, &sum);
    mt_text_table_add(&out, &table, 0, mt_plain_style());
    mt_message("passes of '%s'", report->path);
    (void)!mt_io_write(STDERR_FILENO, out.data, out.length);
    mt_buf_release(&out);
}
