/* The effect of each phase on memory: net change and peak. With a column for the time between
 * phases, the net changes add up to that of the window. */
#include "flamechart_layout.h"

#include <string.h>

#include "icicle.h"
#include "units.h"
#include "util.h"

enum { MAX_NAMES = 32 };

#define MIN_COLUMN  100.0
#define BEST_COLUMN 150.0

/* Phases with the same name. */
struct column {
    const char *name;
    uint32_t count;
    int64_t net;
    uint64_t peak;
    bool has_peak;
};

struct table {
    struct column columns[MAX_NAMES];
    uint32_t count;
    int64_t net; /* sum over all columns */
};

/* Returns true for a phase directly below the step, or for an outermost phase if there is no step.
 * Phases that the framework inserted do not count. */
static bool is_outermost(const struct mt_report *report, const struct mt_flamechart *chart,
                         const struct mt_phase *phase)
{
    int32_t around = mt_shown_phase(report->phases, report->phase_count, phase->parent);

    if (chart->phase != MT_NO_PHASE)
        return around == chart->phase;
    return around == MT_NO_PHASE || report->phases[around].is_step;
}

/* Returns true if all effects of the phase are in the window. The window of a whole run extends
 * from the first to the last allocation or free, so this holds even for phases that begin before or
 * end after the window. */
static bool is_inside(const struct mt_flamechart *chart, const struct mt_phase *phase)
{
    if (chart->step == MT_NO_STEP && chart->phase == MT_NO_PHASE)
        return phase->begin_event <= chart->end_event && phase->end_event >= chart->begin_event;
    return phase->begin_event >= chart->begin_event && phase->end_event <= chart->end_event;
}

static bool is_listed(const struct mt_flame_layout *layout, const struct mt_phase *phase)
{
    const struct mt_flamechart *chart = layout->chart;
    bool surrounds =
        phase->begin_event <= chart->begin_event && phase->end_event >= chart->end_event;

    return !phase->is_step && !phase->is_plumbing && !surrounds && is_inside(chart, phase) &&
           is_outermost(layout->report, chart, phase);
}

/* Returns the column of a name. The last column takes all names beyond the limit. */
static struct column *column_of(struct table *table, const char *name)
{
    for (uint32_t i = 0; i < table->count; i++)
        if (!strcmp(table->columns[i].name, name))
            return &table->columns[i];
    if (table->count == MAX_NAMES) {
        table->columns[MAX_NAMES - 1].name = "others";
        return &table->columns[MAX_NAMES - 1];
    }
    table->columns[table->count].name = name;
    return &table->columns[table->count++];
}

static int64_t net_of(const struct mt_phase_use *use)
{
    return (int64_t)(use->exit.allocated - use->enter.allocated);
}

/* Collects the phases. Phases of other threads that overlap with earlier ones are skipped, because
 * their net changes would count twice. */
static void collect(const struct mt_flame_layout *layout, struct table *table)
{
    const struct mt_report *report = layout->report;
    uint64_t until = 0;

    memset(table, 0, sizeof *table);
    for (uint32_t i = 0; layout->device->phase_uses && i < report->phase_count; i++) {
        const struct mt_phase *phase = &report->phases[i];
        const struct mt_phase_use *use = &layout->device->phase_uses[i];
        struct column *column;

        if (!is_listed(layout, phase) || phase->begin_event < until)
            continue;
        until = phase->end_event;
        column = column_of(table, phase->name);
        column->count++;
        column->net += net_of(use);
        column->peak = mt_max_u64(column->peak, use->peak.allocated);
        column->has_peak = true;
        table->net += net_of(use);
    }
}

/* Adds the rightmost columns: the time between phases, and the whole window. */
static void add_totals(const struct mt_flame_layout *layout, struct table *table, uint32_t room)
{
    const struct mt_flamechart *chart = layout->chart;
    int64_t net = (int64_t)(chart->exit_allocated - chart->enter_allocated);
    bool has_rest = net != table->net;
    uint32_t wanted = room - 1 - has_rest;

    while (table->count > wanted) { /* merges the last two columns */
        struct column *last = &table->columns[table->count - 2], *gone = last + 1;

        last->name = "others";
        last->count += gone->count;
        last->net += gone->net;
        last->peak = mt_max_u64(last->peak, gone->peak);
        table->count--;
    }
    if (has_rest)
        table->columns[table->count++] =
            (struct column){.name = "between", .count = 1, .net = net - table->net};
    table->columns[table->count++] =
        (struct column){.name = chart->phase != MT_NO_PHASE ? "whole phase"
                                : chart->step == MT_NO_STEP ? "whole run"
                                                            : "whole step",
                        .count = 1,
                        .net = net,
                        .peak = chart->peak_allocated,
                        .has_peak = true};
}

uint32_t mt_flame_table_columns(const struct mt_flame_layout *layout)
{
    struct table table;

    collect(layout, &table);
    return table.count;
}

static void draw_column(const struct mt_flame_layout *layout, const struct column *column, double x,
                        double y, double width)
{
    struct mt_drawing *drawing = layout->drawing;
    const struct mt_paint swatch = {.fill = mt_flame_color(layout, column->net), .radius = 2};
    char text[MT_UNITS_TEXT], count[MT_UNITS_TEXT];
    const char *name = column->name;

    if (column->count > 1)
        name = mt_arena_printf(&drawing->arena, "%s × %s", column->name,
                               mt_format_count(count, column->count));
    mt_chart_frame_text(drawing, x, y,
                        mt_text_fit(drawing, name ? name : "", 13, MT_SEMIBOLD, width - 8, false),
                        13, MT_SEMIBOLD, MT_COLOR_TEXT, MT_ANCHOR_START, "phase-name");
    mt_draw_rect(drawing, x, y + 10, 10, 10, &swatch, NULL, "swatch");
    mt_chart_frame_text(drawing, x + 15, y + 20, mt_format_change(text, column->net), 13,
                        MT_SEMIBOLD, MT_COLOR_TEXT, MT_ANCHOR_START, "phase-net");
    if (column->has_peak)
        mt_chart_frame_text(drawing, x, y + 40, mt_format_bytes(text, column->peak), 13, MT_REGULAR,
                            MT_COLOR_TEXT, MT_ANCHOR_START, "phase-peak");
}

void mt_flame_draw_table(const struct mt_flame_layout *layout, double y)
{
    static const char *const headings[] = {"phase", "net", "peak"};
    uint32_t room = (uint32_t)(layout->plot.width / MIN_COLUMN);
    struct table table;
    double width;

    room = room < 3 ? 3 : room > MAX_NAMES ? MAX_NAMES : room;
    collect(layout, &table);
    add_totals(layout, &table, room);
    width = layout->plot.width / table.count;
    width = width < BEST_COLUMN ? width : BEST_COLUMN;
    for (size_t i = 0; i < MT_ARRAY_LEN(headings); i++)
        mt_chart_frame_text(layout->drawing, MT_MARGIN, y + 20 * (double)i, headings[i], 13,
                            MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_START, "heading");
    for (uint32_t i = 0; i < table.count; i++)
        draw_column(layout, &table.columns[i], layout->plot.x + i * width, y, width);
}
