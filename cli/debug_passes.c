#include "debug_passes.h"

#include <unistd.h>

#include "cli.h"
#include "debug.h"
#include "io.h"
#include "text_table.h"

static void add_row(struct mt_table *table, const struct mt_pass_cost *cost)
{
    MT_CELLS(table, MT_TEXT(cost->name), MT_COUNT(cost->readings), MT_COUNT(cost->events),
             MT_TIME(0, cost->time_ns),
             cost->memory_bytes ? MT_BYTES(cost->memory_bytes) : MT_TEXT("-"));
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
    const struct mt_pass_cost sum = sum_of(&report->passes);
    struct mt_table table;
    struct mt_buf out = {0};

    if (!mt_debug_has(MT_DEBUG_PASSES))
        return;
    mt_table_begin(&table, "pass|#readings|#events|#time|#memory");
    for (uint32_t i = 0; i < report->passes.count; i++)
        add_row(&table, &report->passes.costs[i]);
    add_row(&table, &sum);
    mt_add_text_table(&out, &table, 0, mt_plain_style());
    mt_say("passes of '%s'", report->path);
    if (!out.failed)
        (void)!mt_io_write(STDERR_FILENO, out.data, out.length);
    mt_buf_release(&out);
}
