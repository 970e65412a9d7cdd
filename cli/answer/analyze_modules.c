/* Memory by module of the model. */
#include "analyze_output.h"
#include "foreign_text.h"
#include "report_rows.h"
#include "text_table.h"
#include "units.h"
#include "util.h"

#include <string.h>

/* Limit for each kind. JSON has the remaining layers of a large model. */
enum { MAX_MODULES = 32 };
/* Limits of the line in the answer. Parts below 1/WORTH_OF_PEAK of the peak are omitted. */
enum { MAX_PARTS = 3, MAX_PART_TEXT = 80, WORTH_OF_PEAK = 20 };

void mt_report_modules(const struct mt_reporter *reporter)
{
    const struct mt_modules *modules = reporter->device->modules;
    struct mt_table table;

    for (uint32_t row = 0; row < modules->layer_count;) {
        const char *group = mt_module_group_text(reporter->arena, modules, &row);

        mt_reporter_line(reporter, 2, group);
    }
    mt_table_begin(&table, MT_MODULE_TITLES);
    mt_add_module_rows(&table, modules, MAX_MODULES);
    mt_add_text_table(reporter->out, &table, 2, reporter->style);
}

void mt_report_peak_modules(const struct mt_reporter *reporter)
{
    if (!reporter->detail->whole || !mt_modules_tell(reporter->device->modules))
        return;
    mt_reporter_heading(reporter, "At the allocated peak, by module");
    mt_report_modules(reporter);
}

static void add_part(const struct mt_reporter *reporter, struct mt_buf *line,
                     const struct mt_module_part *part)
{
    const double peak = (double)reporter->device->allocated_peak.bytes;
    const char *text = mt_module_part_text(reporter->arena, reporter->device->modules, part);
    char bytes[MT_UNITS_TEXT], share[MT_UNITS_TEXT];
    size_t length = text ? strlen(text) : 0;

    mt_buf_printf(line, "%s (%s) in ", mt_format_bytes(bytes, part->bytes),
                  mt_format_percent(share, (double)part->bytes / peak));
    mt_buf_add_printable(line, text ? text : "", length > MAX_PART_TEXT ? MAX_PART_TEXT : length);
    mt_buf_add_text(line, length > MAX_PART_TEXT ? "..." : "");
}

void mt_report_largest_modules(const struct mt_reporter *reporter)
{
    struct mt_module_part parts[MAX_PARTS];
    const uint32_t most = (uint32_t)mt_min_u64(reporter->detail->modules, MAX_PARTS);
    uint32_t count = mt_largest_module_parts(reporter->device->modules, parts, most);
    const uint64_t worth = reporter->device->allocated_peak.bytes / WORTH_OF_PEAK;
    struct mt_buf line = {0};

    while (count && parts[count - 1].bytes < worth)
        count--;
    mt_buf_add_text(&line, "by module: ");
    for (uint32_t i = 0; i < count; i++) {
        mt_buf_add_text(&line, i ? "; " : "");
        add_part(reporter, &line, &parts[i]);
    }
    if (count && line.data)
        mt_reporter_line(reporter, 2, line.data);
    mt_buf_release(&line);
}
