#include "debug_passes.h"

#include <unistd.h>

#include "cli.h"
#include "debug.h"
#include "io.h"
#include "text_table.h"
#include "units.h"

static void add_row(struct mt_text_table *table, const struct mt_pass_cost *cost)
{
    char text[MT_UNITS_TEXT];

    mt_table_cell(table, cost->name);
    mt_table_cell(table, mt_format_count(text, cost->readings));
    mt_table_cell(table, mt_format_count(text, cost->events));
    mt_table_cell(table, mt_format_duration(text, cost->time_ns));
    mt_table_cell(table, cost->memory_bytes ? mt_format_bytes(text, cost->memory_bytes) : "-");
}

/* Memory has no sum: not all of it is held at the same time. */
static struct mt_pass_cost sum_of(const struct mt_pass_log *log)
{
    struct mt_pass_cost sum = {.name = "in all"};

    for (uint32_t i = 0; i < log->count; i++) {
        sum.readings += log->costs[i].readings;
        sum.events += log->costs[i].events;
        sum.time_ns += log->costs[i].time_ns;
    }
    return sum;
}

void mt_debug_passes(const struct mt_report *report)
{
    static const struct mt_text_column columns[] = {
        {"pass", false, false}, {"readings", true, false}, {"events", true, false},
        {"time", true, false},  {"memory", true, false},   {NULL, false, false},
    };
    const struct mt_pass_cost sum = sum_of(&report->passes);
    struct mt_text_table table;
    struct mt_buf out = {0};

    if (!mt_debug_has(MT_DEBUG_PASSES))
        return;
    mt_table_begin(&table, columns, 0);
    for (uint32_t i = 0; i < report->passes.count; i++)
        add_row(&table, &report->passes.costs[i]);
    add_row(&table, &sum);
    mt_table_end(&table, &out, "", "");
    mt_say("passes of '%s'", report->path);
    if (!out.failed)
        (void)!mt_io_write(STDERR_FILENO, out.data, out.length);
    mt_buf_release(&out);
}
