#include "job_frame.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "foreign_text.h"
#include "units.h"

#define DASH     " \xE2\x80\x94 "
#define MAX_NAME 200 /* maximum bytes of a foreign name */
#define MAX_AXIS 24  /* maximum bytes of the name of an axis in the facts */

static const char *text_of(const char *text)
{
    return text ? text : "";
}

const char *mt_job_frame_name(struct mt_drawing *drawing, const char *name)
{
    struct mt_buf escaped = {0};

    mt_buf_add_printable_text(&escaped, mt_chart_frame_short(drawing, name, MAX_NAME));
    return mt_job_frame_take(drawing, &escaped);
}

void mt_job_frame_add(struct mt_buf *line, const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (line->length)
        mt_buf_add_text(line, MT_JOB_DOT);
    mt_buf_add_text(line, text);
}

const char *mt_job_frame_take(struct mt_drawing *drawing, struct mt_buf *line)
{
    const char *copy = mt_arena_text(&drawing->arena, line->data ? line->data : "", line->length);

    mt_buf_release(line);
    return text_of(copy);
}

const char *mt_job_frame_fit(struct mt_drawing *drawing, const char *text, double width)
{
    size_t end = strlen(text);
    const char *parts = text;

    while (parts && mt_text_room(parts, MT_SIZE_SMALL, MT_REGULAR) > width) {
        while (end && strncmp(text + end, MT_JOB_DOT, strlen(MT_JOB_DOT)) != 0)
            end--;
        if (!end)
            return mt_text_fit(drawing, parts, MT_SIZE_SMALL, MT_REGULAR, width, false);
        parts = mt_arena_text(&drawing->arena, text, end);
        end--;
    }
    return text_of(parts);
}

const char *mt_job_frame_title(struct mt_drawing *drawing, const struct mt_job_report *report,
                               const char *chart)
{
    const char *job = *report->job ? report->job : "job";

    return text_of(
        mt_arena_printf(&drawing->arena, "%s" DASH "%s", mt_job_frame_name(drawing, job), chart));
}

static void add_count(struct mt_buf *facts, uint64_t count, const char *one, const char *many)
{
    char n[MT_UNITS_TEXT];

    if (count)
        mt_job_frame_add(facts, "%s %s", mt_format_count(n, count), count == 1 ? one : many);
}

static void add_ranks(struct mt_buf *facts, const struct mt_job_report *report)
{
    char n[2][MT_UNITS_TEXT];

    if (report->missing_count)
        mt_job_frame_add(facts, "%s of %s%s ranks", mt_format_count(n[0], report->seen_count),
                         report->world_is_known ? "" : "at least ",
                         mt_format_count(n[1], report->world));
    else if (report->seen_count)
        add_count(facts, report->seen_count, "rank", "ranks");
    if (report->row_count != report->seen_count)
        add_count(facts, report->row_count, "device of a process", "devices of processes");
    if (report->host_count > 1)
        add_count(facts, report->host_count, "host", "hosts");
}

static const char *device_name(const struct mt_job_report *report)
{
    const char *name = report->row_count ? report->rows[0].record->device_name : "";

    for (uint32_t i = 1; i < report->row_count; i++)
        if (strcmp(report->rows[i].record->device_name, name) != 0)
            return "several kinds of devices";
    return name;
}

static void add_axes(struct mt_buf *facts, struct mt_drawing *drawing,
                     const struct mt_job_report *report)
{
    for (uint32_t i = 0; i < report->axis_count; i++) {
        const char *name = mt_chart_frame_short(
            drawing, mt_job_frame_name(drawing, report->axes[i].name), MAX_AXIS);

        mt_buf_printf(facts, "%s%s:%u", i ? ", " : MT_JOB_DOT, name,
                      (unsigned)report->axes[i].size);
    }
}

const char *mt_job_frame_facts(struct mt_drawing *drawing, const struct mt_job_report *report)
{
    const char *device = mt_job_frame_name(drawing, device_name(report));
    struct mt_buf facts = {0};

    add_ranks(&facts, report);
    if (*device)
        mt_job_frame_add(&facts, "%s", device);
    add_axes(&facts, drawing, report);
    add_count(&facts, report->missing_count, "rank missing", "ranks missing");
    add_count(&facts, report->outcome_counts[MT_OUTCOME_OOM], "ran out of memory",
              "ran out of memory");
    add_count(&facts, report->incomplete_count, "recording incomplete", "recordings incomplete");
    add_count(&facts, report->planned_count, "dry run", "dry runs");
    return mt_job_frame_take(drawing, &facts);
}

double mt_job_frame_begin(struct mt_drawing *drawing, const struct mt_job_report *report,
                          const struct mt_job_chart_options *options, double height, const char *id,
                          const char *chart)
{
    const char *title, *facts;

    mt_drawing_init(drawing, mt_chart_frame_width(options->width),
                    mt_chart_frame_height(options->height, height), id);
    title = mt_job_frame_title(drawing, report, chart);
    facts = mt_job_frame_facts(drawing, report);
    mt_drawing_describe(drawing, title, facts);
    mt_drawing_metadata(drawing, "Software", "memtrace");
    mt_drawing_metadata(drawing, "memtrace:schema", "memtrace.picture/1");
    return mt_chart_frame_header(drawing, title, facts);
}

const char *mt_job_frame_row(struct mt_drawing *drawing, const struct mt_job_report *report,
                             uint32_t row)
{
    const char *name = mt_job_row_name(&drawing->arena, report, row);

    return mt_job_frame_name(drawing, text_of(name));
}

/* The ranks of a gap within a group are not always consecutive. */
const char *mt_job_frame_gap(struct mt_drawing *drawing, const struct mt_job_slot *slot)
{
    bool is_whole = (uint32_t)slot->last - (uint32_t)slot->rank + 1 == slot->count;
    char n[MT_UNITS_TEXT];
    const char *text;

    if (slot->count == 1)
        text = mt_arena_printf(&drawing->arena, "rank %d: missing", (int)slot->rank);
    else
        text = mt_arena_printf(&drawing->arena, "%s%sranks %s%d to %d: missing",
                               is_whole ? "" : mt_format_count(n, slot->count), is_whole ? "" : " ",
                               is_whole ? "" : "from ", (int)slot->rank, (int)slot->last);
    return text_of(text);
}

const char *mt_job_frame_group(struct mt_drawing *drawing, const struct mt_job_order *order,
                               uint32_t group)
{
    uint32_t coordinate = order->groups[group].coordinate;
    const char *name;

    if (!order->axis)
        return "";
    if (coordinate == MT_NO_ROW)
        return "unplaced";
    name = mt_job_frame_name(drawing, order->axis->name);
    return text_of(mt_arena_printf(&drawing->arena, "%s %u", name, (unsigned)coordinate));
}

static bool group_fits(const char *text, double width)
{
    return mt_text_room(text, MT_SIZE_SMALL, MT_SEMIBOLD) <= width;
}

const char *mt_job_frame_fit_group(struct mt_drawing *drawing, const struct mt_job_order *order,
                                   uint32_t group, double width)
{
    const char *name = mt_job_frame_group(drawing, order, group);
    uint32_t coordinate = order->groups[group].coordinate;
    const char *number = "?";

    if (group_fits(name, width))
        return name;
    if (coordinate != MT_NO_ROW)
        number = text_of(mt_arena_printf(&drawing->arena, "%u", (unsigned)coordinate));
    return group_fits(number, width) ? number : "";
}

/* Returns the cause of the difference, if it has a name. */
static const char *outlier_words(const struct mt_job_outlier *outlier)
{
    switch (outlier->cause) {
    case MT_OUTLIER_GROWTH: return ", growth";
    case MT_OUTLIER_LIBRARY: return ", outside the allocator";
    case MT_OUTLIER_UNUSED: return ", reserved and unused";
    case MT_OUTLIER_SITE: break;
    }
    return "";
}

const char *mt_job_frame_outlier(struct mt_drawing *drawing, const struct mt_job_outlier *outlier)
{
    char n[MT_UNITS_TEXT];
    const char *sign = outlier->is_less ? "\xE2\x88\x92" : "+";

    return text_of(mt_arena_printf(&drawing->arena, "%s%s%s", sign,
                                   mt_format_bytes(n, outlier->bytes), outlier_words(outlier)));
}

const char *mt_job_frame_bytes(struct mt_drawing *drawing, uint64_t bytes)
{
    char n[MT_UNITS_TEXT];

    mt_format_bytes(n, bytes);
    return text_of(mt_arena_text(&drawing->arena, n, strlen(n)));
}
