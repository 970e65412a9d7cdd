/* Cells, axes and lines of the chart of sizes and lifetimes. */
#include "scatter_layout.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "units.h"
#include "util.h"

#define TEXT_SIZE MT_SIZE_AXIS

/* The functions below return the bounds of a coarse column or row, as a size or a time. */
static double column_from(const struct mt_scatter_layout *layout, uint32_t column)
{
    uint32_t first = (layout->first_column + column) * layout->coarse;

    return first > MT_SCATTER_MIN_SIZE ? mt_size_edge(first - 1) : 0;
}

static double column_to(const struct mt_scatter_layout *layout, uint32_t column)
{
    uint32_t last = (layout->first_column + column + 1) * layout->coarse - 1;

    return mt_size_edge(last < MT_SIZE_COLUMNS ? last : MT_SIZE_COLUMNS - 1);
}

static uint64_t row_from(const struct mt_scatter_layout *layout, uint32_t row)
{
    uint32_t first = (layout->first_row + row) * layout->coarse;

    return first > MT_SCATTER_MIN_LIFE ? (uint64_t)ceil(mt_life_edge(first)) : 0;
}

static uint64_t row_to(const struct mt_scatter_layout *layout, uint32_t row)
{
    uint32_t next = (layout->first_row + row + 1) * layout->coarse;

    return next < MT_LIFE_UNTIL_END ? (uint64_t)fmin(ceil(mt_life_edge(next)), 1.8e19) : UINT64_MAX;
}

/* Returns the x of a size, on a logarithmic axis. */
static double x_of(const struct mt_scatter_layout *layout, double bytes)
{
    double column = MT_SIZES_PER_DOUBLING * log2(bytes) + 1;

    return layout->plot.x + (column / layout->coarse - layout->first_column) * layout->cell_width;
}

static double y_of(const struct mt_scatter_layout *layout, uint32_t model_row)
{
    double row = (double)model_row / layout->coarse - layout->first_row;

    return layout->plot.y + layout->plot.height - row * layout->cell_height;
}

static const char *life_words(struct mt_drawing *drawing, const struct mt_scatter_layout *layout,
                              uint32_t row)
{
    char from[MT_UNITS_TEXT], to[MT_UNITS_TEXT];

    if (row == layout->rows)
        return "never freed";
    if (!row_from(layout, row))
        return mt_arena_printf(&drawing->arena, "lived less than %s",
                               mt_format_duration(to, row_to(layout, row)));
    return mt_arena_printf(&drawing->arena, "lived %s to %s",
                           mt_format_duration(from, row_from(layout, row)),
                           mt_format_duration(to, row_to(layout, row)));
}

static const char *cell_title(struct mt_drawing *drawing, const struct mt_scatter_layout *layout,
                              uint32_t row, uint32_t column)
{
    const struct mt_scatter_cell *cell = mt_scatter_at(layout, row, column);
    enum mt_role role = mt_scatter_main_role(cell);
    const char *life = life_words(drawing, layout, row);
    char n[5][MT_UNITS_TEXT];

    return mt_arena_printf(
        &drawing->arena, "%s to %s, %s: %s block%s, %s B; %s %s",
        mt_format_bytes(n[0], (uint64_t)floor(column_from(layout, column)) + 1),
        mt_format_bytes(n[1], (uint64_t)fmin(column_to(layout, column), 1.8e19)), life ? life : "",
        mt_format_count(n[2], cell->blocks), cell->blocks == 1 ? "" : "s",
        mt_format_count(n[3], cell->bytes), mt_role_name(role),
        mt_format_percent(n[4],
                          cell->bytes ? (double)cell->role_bytes[role] / (double)cell->bytes : 1));
}

/* Sets *low and *high to the logarithms of the bytes of the emptiest and the fullest cell. */
static void strength_range(const struct mt_scatter_layout *layout, double *low, double *high)
{
    size_t i, count = (size_t)(layout->rows + 1) * layout->columns;

    *low = HUGE_VAL;
    *high = 0;
    for (i = 0; i < count; i++) {
        if (!layout->cells[i].blocks)
            continue;
        *low = fmin(*low, log2((double)layout->cells[i].bytes + 1));
        *high = fmax(*high, log2((double)layout->cells[i].bytes + 1));
    }
}

static void draw_cells(struct mt_drawing *drawing, const struct mt_scatter_layout *layout)
{
    double low, high;
    uint32_t row, column;

    strength_range(layout, &low, &high);
    for (row = 0; row <= layout->rows; row++) {
        for (column = 0; column < layout->columns; column++) {
            const struct mt_scatter_cell *cell = mt_scatter_at(layout, row, column);
            struct mt_paint paint = {.fill = mt_role_color(mt_scatter_main_role(cell))};
            double strength = (log2((double)cell->bytes + 1) - low) / fmax(high - low, 1e-9);

            if (!cell->blocks)
                continue;
            /* only a few levels of strength, for fewer colors and no false precision */
            paint.opacity = high > low ? 0.28 + 0.72 * round(strength * 8) / 8 : 1;
            mt_draw_rect(drawing, layout->plot.x + column * layout->cell_width,
                         mt_scatter_row_y(layout, row), layout->cell_width - 1,
                         layout->cell_height - 1, &paint, cell_title(drawing, layout, row, column),
                         "cell");
        }
    }
}

/* Writes the label of a power of two: "512 B", "2 KiB". */
static void size_label(char text[MT_UNITS_TEXT], uint32_t exponent)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

    snprintf(text, MT_UNITS_TEXT, "%u %s", 1u << exponent % 10, units[exponent / 10]);
}

/* Draws the axis with labels at every second power of two: 512 B, 2 KiB, 8 KiB, ... */
static void draw_size_axis(struct mt_drawing *drawing, const struct mt_scatter_layout *layout)
{
    const struct mt_paint grid = {.stroke = MT_COLOR_GRID};
    double bottom = layout->plot.y + layout->plot.height, free_from = layout->plot.x - 40;
    double right = layout->plot.x + layout->plot.width;
    double step = 2.0 * MT_SIZES_PER_DOUBLING / layout->coarse * layout->cell_width;
    uint32_t exponent, every = 2;
    char text[MT_UNITS_TEXT];

    for (; step * every / 2 < 58; every *= 2)
        ;
    for (exponent = 1; exponent < 64; exponent += 2) {
        double x = x_of(layout, ldexp(1, (int)exponent)), half;

        if (x < layout->plot.x - 0.5 || x > right + 0.5)
            continue;
        mt_draw_line(drawing, x, layout->end_y, x, bottom, &grid);
        size_label(text, exponent);
        half = 0.525 * mt_text_width(text, TEXT_SIZE, MT_REGULAR);
        if ((exponent - 1) % every || x - half < free_from)
            continue;
        mt_chart_frame_text(drawing, x, bottom + 18, text, TEXT_SIZE, MT_REGULAR, MT_COLOR_MUTED,
                            MT_ANCHOR_MIDDLE, "tick-x");
        free_from = x + half + 8;
    }
    mt_chart_frame_text(drawing, layout->plot.x + layout->plot.width / 2, bottom + 38, "size",
                        TEXT_SIZE, MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_MIDDLE, "axis-name");
}

static void draw_life_axis(struct mt_drawing *drawing, const struct mt_scatter_layout *layout)
{
    static const char *const labels[] = {
        "1 ns",    "10 ns", "100 ns", "1 \xC2\xB5s", "10 \xC2\xB5s", "100 \xC2\xB5s",
        "1 ms",    "10 ms", "100 ms", "1 s",         "10 s",         "100 s",
        "1,000 s", "3 h",   "28 h",   "12 days",     "116 days"};
    const struct mt_paint grid = {.stroke = MT_COLOR_GRID};
    const struct mt_text_style name = {
        .size = TEXT_SIZE, .color = MT_COLOR_MUTED, .anchor = MT_ANCHOR_MIDDLE, .vertical = true};
    double left = layout->plot.x, right = left + layout->plot.width, last = HUGE_VAL;
    uint32_t i;

    for (i = 0; i < MT_ARRAY_LEN(labels); i++) {
        double y = y_of(layout, i * MT_LIVES_PER_DECADE);

        if (y > layout->plot.y + layout->plot.height + 0.5 || y < layout->plot.y - 0.5)
            continue;
        mt_draw_line(drawing, left, y, right, y, &grid);
        if (last - y < 20 || y - layout->end_y < layout->cell_height / 2 + 16)
            continue;
        /* labels of 10^4 s and more are rounded, because they are not whole hours */
        mt_chart_frame_text(drawing, left - 9, y + 4.5, labels[i], TEXT_SIZE, MT_REGULAR,
                            MT_COLOR_MUTED, MT_ANCHOR_END, "tick-y");
        last = y;
    }
    mt_chart_frame_text(drawing, left - 9, layout->end_y + layout->cell_height / 2 + 4.5,
                        "never freed", TEXT_SIZE, MT_REGULAR, MT_COLOR_TEXT, MT_ANCHOR_END,
                        "tick-end");
    if (layout->plot.height > 70)
        mt_draw_text(drawing, MT_MARGIN + 10, layout->plot.y + layout->plot.height / 2, "lifetime",
                     &name, "axis-name");
}

static void draw_limit(struct mt_drawing *drawing, const struct mt_scatter_layout *layout,
                       uint64_t bytes, const char *text, bool on_left)
{
    const struct mt_paint line = {.stroke = MT_COLOR_LIMIT, .stroke_width = 1.3, .dashed = true};
    double x = bytes ? x_of(layout, (double)bytes) : 0, width, left = layout->plot.x;
    double right = left + layout->plot.width;
    double end = layout->side_width > 0 ? layout->side_x - 8 : drawing->width - MT_MARGIN;
    struct mt_point points[2] = {{x, layout->end_y - 4}, {x, layout->plot.y + layout->plot.height}};

    if (!bytes || x <= left || x >= right)
        return;
    mt_draw_path(drawing, points, 2, false, false, &line, text, "limit");
    width = 1.05 * mt_text_width(text, MT_SIZE_SMALL, MT_REGULAR) + 6;
    if (on_left ? x - width < left - 20 : x + width > end)
        return;
    mt_chart_frame_text(drawing, x + (on_left ? -6 : 6), layout->end_y - 6, text, MT_SIZE_SMALL,
                        MT_REGULAR, MT_COLOR_LIMIT, on_left ? MT_ANCHOR_END : MT_ANCHOR_START,
                        "label:limit");
}

void mt_scatter_draw_plot(struct mt_drawing *drawing, const struct mt_scatter_layout *layout)
{
    const struct mt_paint base = {.stroke = MT_COLOR_AXIS};
    const struct mt_paint row = {.fill = MT_COLOR_PANEL};
    double bottom = layout->plot.y + layout->plot.height;

    mt_draw_rect(drawing, layout->plot.x, layout->end_y, layout->plot.width,
                 layout->cell_height - 1, &row, NULL, "end-row");
    draw_size_axis(drawing, layout);
    draw_life_axis(drawing, layout);
    mt_draw_line(drawing, layout->plot.x, bottom, layout->plot.x + layout->plot.width, bottom,
                 &base);
    draw_cells(drawing, layout);
    draw_limit(drawing, layout, layout->lifetimes->small_pool_bytes,
               "small pool \xE2\x89\xA4 1 MiB", true);
    draw_limit(drawing, layout, layout->lifetimes->own_segment_bytes,
               "own segment \xE2\x89\xA5 10 MiB", false);
}
