/* Shared by the parts of the text: words for places and times, and lines. */
#include "analyze_output.h"
#include "report_query.h"
#include "text_table.h"
#include "units.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *mt_reporter_format(const struct mt_reporter *reporter, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return mt_arena_text(reporter->arena, text, strlen(text));
}

const char *mt_reporter_where(const struct mt_reporter *reporter, int32_t phase, int64_t step)
{
    return mt_phase_where(reporter->arena, reporter->report->phases, phase, step);
}

const char *mt_reporter_in(const struct mt_reporter *reporter, int32_t phase, int64_t step)
{
    const char *where = mt_reporter_where(reporter, phase, step);

    if (reporter->report->phase_count == 0)
        return "";
    if (phase == MT_NO_PHASE && step == MT_NO_STEP)
        return where;
    return mt_reporter_format(reporter, "in %s", where);
}

const char *mt_reporter_in_phase(const struct mt_reporter *reporter, int32_t phase)
{
    return mt_reporter_in(reporter, phase,
                          phase == MT_NO_PHASE ? MT_NO_STEP : reporter->report->phases[phase].step);
}

const char *mt_reporter_when(const struct mt_reporter *reporter, uint64_t t_ns)
{
    uint64_t begin = reporter->report->first_t_ns;
    char text[MT_UNITS_TEXT];

    return mt_reporter_format(reporter, "%s",
                              mt_format_duration(text, t_ns > begin ? t_ns - begin : 0));
}

void mt_reporter_device_title(const struct mt_reporter *reporter)
{
    const struct mt_device_report *device = reporter->device;

    mt_buf_printf(reporter->out, "\n%sDevice %u", reporter->style->bold, (unsigned)device->device);
    if (device->name) {
        mt_buf_add_text(reporter->out, ": ");
        mt_buf_add_printable_text(reporter->out, device->name);
    }
    mt_buf_printf(reporter->out, "%s\n", reporter->style->reset);
}

const char *mt_reporter_at(const struct mt_reporter *reporter, uint64_t t_ns, uint64_t event)
{
    char number[MT_UNITS_TEXT];

    if (mt_report_has_times(reporter->report))
        return mt_reporter_when(reporter, t_ns);
    return mt_reporter_format(reporter, "event %s", mt_format_count(number, event));
}

const char *mt_reporter_birth(const struct mt_reporter *reporter,
                              const struct mt_contribution *part, int64_t spoken_of)
{
    if (!*part->phase)
        return "no phase";
    if (part->step == MT_NO_STEP || part->step == spoken_of)
        return part->phase;
    if (!strcmp(part->phase, "step"))
        return mt_reporter_format(reporter, "step %lld", (long long)part->step);
    return mt_reporter_format(reporter, "%s (step %lld)", part->phase, (long long)part->step);
}

void mt_reporter_heading(const struct mt_reporter *reporter, const char *text)
{
    mt_buf_printf(reporter->out, "\n%s%s%s\n", reporter->style->bold, text, reporter->style->reset);
}

void mt_reporter_line(const struct mt_reporter *reporter, size_t indent, const char *text)
{
    mt_buf_add_blanks(reporter->out, indent);
    mt_text_table_add_wrapped(reporter->out, text, indent, indent + 2);
    mt_buf_add_char(reporter->out, '\n');
}

void mt_reporter_headline(const struct mt_reporter *reporter, struct mt_buf *line)
{
    mt_buf_add_text(reporter->out, reporter->style->bold);
    if (line->data)
        mt_reporter_line(reporter, 0, line->data);
    mt_buf_add_text(reporter->out, reporter->style->reset);
    mt_buf_release(line);
}

/* Column of the next character. The line before it is ASCII. */
static size_t column_of(const struct mt_buf *out)
{
    size_t column = 0;

    while (column < out->length && out->data[out->length - 1 - column] != '\n')
        column++;
    return column;
}

/* "25 steps in 2 loops: 5 at bench.py:10, 20 at bench.py:16" */
static void add_loops(const struct mt_reporter *reporter, size_t indent)
{
    enum { MOST = 4 };
    const struct mt_report *report = reporter->report;
    struct mt_buf line = {0};
    uint32_t others = 0;

    if (report->loop_count < 2)
        return;
    mt_buf_printf(&line, "%lld steps in %u loops: ", (long long)report->step_count,
                  report->loop_count);
    for (uint32_t i = 0; i < report->loop_count; i++)
        if (i < MOST)
            mt_buf_printf(&line, "%s%u at %s", i ? ", " : "", report->loops[i].steps,
                          report->loops[i].name);
        else
            others += report->loops[i].steps;
    if (others)
        mt_buf_printf(&line, ", %u in others", others);
    mt_reporter_line(reporter, indent, line.data ? line.data : "");
    mt_buf_release(&line);
}

void mt_reporter_title(const struct mt_reporter *reporter, size_t indent, const char *more)
{
    const struct mt_report *report = reporter->report;
    char events[MT_UNITS_TEXT], span[MT_UNITS_TEXT];
    struct mt_buf line = {0};
    uint64_t count = 0;

    for (uint32_t i = 0; i < report->device_count; i++)
        count += report->devices[i].events;
    mt_buf_printf(&line, "%s: ", *report->name ? report->name : "trace");
    if (report->is_dry_run) {
        mt_buf_add_text(&line, "dry run on a ");
        mt_header_add_simulated_card(&line, &report->dry_run);
        mt_buf_add_text(&line, ", ");
    } else if (report->device_count == 1 && report->devices[0].name)
        mt_buf_printf(&line, "%s, ", report->devices[0].name);
    if (report->device_count > 1)
        mt_buf_printf(&line, "%u devices, ", report->device_count);
    if (report->framework)
        mt_buf_printf(&line, "%s, ", report->framework);
    if (report->options && *report->options)
        mt_buf_printf(&line, "%s, ", report->options);
    if (report->what_if)
        mt_buf_printf(&line, "SIMULATED with %s, ", report->policy);
    mt_buf_printf(&line, "%s", mt_format_counted(events, count, "memory event"));
    if (report->step_count)
        mt_buf_printf(&line, ", %lld step%s", (long long)report->step_count,
                      report->step_count == 1 ? "" : "s");
    if (mt_report_has_times(report))
        mt_buf_printf(&line, " in %s",
                      mt_format_duration(span, report->last_t_ns - report->first_t_ns));
    mt_buf_add_text(&line, more);
    if (line.data) {
        mt_buf_printf(reporter->out, "%*s", (int)indent, "");
        mt_text_table_add_wrapped(reporter->out, line.data, column_of(reporter->out), indent + 2);
        mt_buf_add_char(reporter->out, '\n');
    }
    mt_buf_release(&line);
    add_loops(reporter, indent);
}
