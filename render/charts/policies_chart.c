/* Compares settings of an allocator: the memory that each reserves for the same requests, and the
 * smallest limit under which it succeeds. */
#include "policies_chart.h"

#include "policies_layout.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "paragraph.h"
#include "units.h"
#include "util.h"

#define HEAD          46.0 /* room for the names of lines and of columns */
#define AXIS_HEIGHT   34.0
#define PITCH         66.0
#define MIN_PITCH     34.0
#define MAX_PITCH     84.0
#define LEGEND_HEIGHT 30.0
#define FINDING_SIZE  13.5
#define FINDING_PITCH 20.0

static const char *title_of(struct mt_drawing *drawing, const struct mt_policy_table *table)
{
    const char *title = mt_arena_printf(
        &drawing->arena, "%s \xE2\x80\x94 the same requests under %u setting%s",
        mt_chart_frame_short(drawing, table->name && *table->name ? table->name : "trace", 120),
        (unsigned)table->row_count, table->row_count == 1 ? "" : "s");

    return title;
}

static bool any_depends_on_memory(const struct mt_policy_table *table)
{
    uint32_t i;

    for (i = 0; i < table->row_count; i++)
        if (table->rows[i].depends_on_memory)
            return true;
    return false;
}

static const char *requests_of(struct mt_drawing *drawing, const struct mt_policy_table *table)
{
    char n[MT_UNITS_TEXT];
    const char *text;

    if (table->starts_in_middle)
        return "starts in the middle: memory allocated before is taken as recorded";
    text = mt_arena_printf(&drawing->arena, "%s requests",
                           mt_format_count(n, mt_policy_row_requests(&table->rows[0])));
    return text;
}

static const char *facts_of(struct mt_drawing *drawing, const struct mt_policy_table *table)
{
    char n[2][MT_UNITS_TEXT];
    const char *facts = mt_arena_printf(
        &drawing->arena,
        "device %u \xC2\xB7 %s \xC2\xB7 lower bound for any allocator = peak of the live "
        "requested bytes = %s (%s B)",
        (unsigned)table->device, requests_of(drawing, table),
        mt_format_bytes(n[0], table->bound_bytes), mt_format_count(n[1], table->bound_bytes));

    return facts;
}

static const char footnote[] =
    "replays of the recorded requests without a limit \xC2\xB7 smallest limit: in whole MiB, for "
    "all address orders (line: from the best order) \xC2\xB7 * some limit in between differs "
    "\xC2\xB7 ~ approximate";

static double draw_sample(struct mt_drawing *drawing, double x, double y,
                          const struct mt_paint *paint, const char *text)
{
    double width = 1.05 * mt_text_width(text, 12.5, MT_REGULAR);

    if (x + 19 + width > drawing->width - MT_MARGIN)
        return x;
    mt_draw_rect(drawing, x, y - 11, 13, 13, paint, NULL, "swatch");
    mt_chart_frame_text(drawing, x + 19, y, text, 12.5, MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_START,
                        "legend");
    return x + 19 + width + 20;
}

static void draw_diamond_sample(struct mt_drawing *drawing, double x, double y)
{
    const struct mt_paint paint = {
        .fill = MT_COLOR_BACKGROUND, .stroke = MT_COLOR_TEXT, .stroke_width = 1.8};
    const struct mt_point points[4] = {
        {x + 6, y - 12}, {x + 12, y - 4.5}, {x + 6, y + 3}, {x, y - 4.5}};
    const char *text = "smallest limit that works";

    if (x + 19 + 1.05 * mt_text_width(text, 12.5, MT_REGULAR) > drawing->width - MT_MARGIN)
        return;
    mt_draw_path(drawing, points, 4, true, false, &paint, NULL, "swatch");
    mt_chart_frame_text(drawing, x + 19, y, text, 12.5, MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_START,
                        "legend");
}

static double draw_legend(struct mt_drawing *drawing, double y)
{
    const struct mt_paint requested = {.fill = MT_COLOR_LEVEL, .radius = 2.5};
    const struct mt_paint rounding = {.fill = MT_COLOR_LEVEL_RANGE, .radius = 2.5};
    const struct mt_paint cached = {.fill = MT_COLOR_UNUSED, .hatched = true, .radius = 2.5};
    double x = MT_MARGIN;

    x = draw_sample(drawing, x, y, &requested, "requested by the program");
    x = draw_sample(drawing, x, y, &rounding, "rounding and unsplit tails");
    x = draw_sample(drawing, x, y, &cached, "cached");
    draw_diamond_sample(drawing, x, y);
    return y + LEGEND_HEIGHT - 12;
}

static struct mt_paragraph finding_words(double width)
{
    return (struct mt_paragraph){.x = MT_MARGIN + 64,
                                 .width = width - 2 * MT_MARGIN - 64,
                                 .size = FINDING_SIZE,
                                 .pitch = FINDING_PITCH,
                                 .color = MT_COLOR_TEXT,
                                 .role = "finding"};
}

static const char *caveat_of(const struct mt_policy_table *table)
{
    return any_depends_on_memory(table)
               ? "The run reached its memory limit: with more memory, it may make other requests."
               : "";
}

static double finding_height(struct mt_drawing *drawing, const struct mt_policy_table *table,
                             double width)
{
    struct mt_paragraph paragraph = finding_words(width);

    return FINDING_PITCH * (mt_paragraph_lines(drawing, &paragraph, table->finding[0]) +
                            mt_paragraph_lines(drawing, &paragraph, table->finding[1]) +
                            mt_paragraph_lines(drawing, &paragraph, caveat_of(table)));
}

static void draw_finding(struct mt_drawing *drawing, const struct mt_policy_table *table, double y)
{
    struct mt_paragraph paragraph = finding_words(drawing->width);

    mt_chart_frame_text(drawing, MT_MARGIN, y, "Finding", FINDING_SIZE, MT_SEMIBOLD, MT_COLOR_TEXT,
                        MT_ANCHOR_START, "heading");
    y = mt_paragraph_draw(drawing, &paragraph, y, table->finding[0]);
    y = mt_paragraph_draw(drawing, &paragraph, y, table->finding[1]);
    mt_paragraph_draw(drawing, &paragraph, y, caveat_of(table));
}

/* Returns the width of the longest name, within bounds. */
static double label_width(struct mt_drawing *drawing, const struct mt_policy_table *table)
{
    double most = 0;

    if (drawing->width < 700)
        return 120;
    for (uint32_t i = 0; i < table->row_count; i++)
        most = fmax(most, mt_policies_label_width(drawing, &table->rows[i]));
    return round(fmin(fmax(most, drawing->width * 0.2), drawing->width * 0.28));
}

static void place_columns(struct mt_drawing *drawing, struct mt_policies_layout *layout)
{
    bool narrow = drawing->width < MT_NARROW_WIDTH;
    double pitch = narrow ? 76 : 104, right = drawing->width - MT_MARGIN;

    layout->columns[2] = right;
    layout->columns[1] = right - pitch;
    layout->columns[0] = layout->columns[1] - (narrow ? 62 : 82);
    layout->label_width = label_width(drawing, layout->table);
    layout->plot.x = MT_MARGIN + layout->label_width + 12;
    layout->plot.width = layout->columns[0] - pitch - layout->plot.x;
}

static void set_top(struct mt_policies_layout *layout)
{
    uint64_t most = 1;
    uint32_t i;

    for (i = 0; i < layout->table->row_count; i++) {
        most = mt_max_u64(most, layout->table->rows[i].reserved_peak_bytes);
        most = mt_max_u64(most, layout->table->rows[i].fit_bytes);
    }
    layout->top = (uint64_t)fmin((double)most * 1.06, 1.8e19);
}

/* Places all parts. A low picture omits small print first, then the finding, then rows at the end
 * of the list. */
static void place(struct mt_drawing *drawing, struct mt_policies_layout *layout, double y)
{
    const struct mt_policy_table *table = layout->table;
    double bottom = drawing->height - 10, least = HEAD + AXIS_HEIGHT + 2 * MIN_PITCH, finding;

    place_columns(drawing, layout);
    set_top(layout);
    if (bottom - y - 40 - least >= 0)
        bottom = mt_chart_frame_footnote(drawing, footnote) - 8;
    if (bottom - y - LEGEND_HEIGHT - least >= 0)
        y = draw_legend(drawing, y + 12);
    finding = finding_height(drawing, table, drawing->width) + 12;
    if (bottom - y - finding - least >= 0) {
        draw_finding(drawing, table, bottom - finding + FINDING_PITCH);
        bottom -= finding;
    }
    layout->plot.y = y + HEAD;
    layout->plot.height = bottom - AXIS_HEIGHT - layout->plot.y;
    layout->rows = table->row_count;
    if (layout->plot.height / layout->rows < MIN_PITCH)
        layout->rows = (uint32_t)fmax(floor(layout->plot.height / MIN_PITCH), 1);
    layout->pitch = fmin(floor(layout->plot.height / layout->rows), MAX_PITCH);
    layout->plot.height = layout->pitch * layout->rows;
}

static double standard_height(struct mt_drawing *drawing, const struct mt_policy_table *table,
                              double width)
{
    return 84 + LEGEND_HEIGHT + HEAD + table->row_count * PITCH + AXIS_HEIGHT +
           finding_height(drawing, table, width) + 12 + 58;
}

void mt_policies_draw(const struct mt_policy_table *table, const struct mt_chart_options *options,
                      struct mt_drawing *drawing)
{
    struct mt_policies_layout layout = {.table = table};
    double width = mt_chart_frame_width(options->width);
    const char *title;

    mt_drawing_init(drawing, width, mt_chart_frame_height(options->height, 600), "policies");
    drawing->height =
        mt_chart_frame_height(options->height, standard_height(drawing, table, width));
    title = title_of(drawing, table);
    mt_drawing_describe(drawing, title, table->finding[0]);
    mt_drawing_metadata(drawing, "Software", "memtrace");
    mt_drawing_metadata(drawing, "memtrace:schema", "memtrace.picture/1");
    place(drawing, &layout, mt_chart_frame_header(drawing, title, facts_of(drawing, table)));
    mt_policies_draw_axis(drawing, &layout);
    mt_policies_draw_rows(drawing, &layout);
    mt_policies_draw_marks(drawing, &layout);
}
