/* The sums by column and by row of the chart of sizes and lifetimes, and the legend. */
#include "scatter_layout.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "units.h"
#include "util.h"

#define ROW 22.0

static struct mt_lifetime_sum sum_of(const struct mt_scatter_layout *layout, uint32_t first_row,
                                     uint32_t rows, uint32_t first_column, uint32_t columns)
{
    struct mt_lifetime_sum sum = {0, 0};
    uint32_t row, column;

    for (row = first_row; row < first_row + rows; row++) {
        for (column = first_column; column < first_column + columns; column++) {
            sum.blocks += mt_scatter_at(layout, row, column)->blocks;
            sum.bytes += mt_scatter_at(layout, row, column)->bytes;
        }
    }
    return sum;
}

static struct mt_lifetime_sum sum_of_column(const struct mt_scatter_layout *layout, uint32_t column)
{
    return sum_of(layout, 0, layout->rows + 1, column, 1);
}

static struct mt_lifetime_sum sum_of_row(const struct mt_scatter_layout *layout, uint32_t row)
{
    return sum_of(layout, row, 1, 0, layout->columns);
}

static const char *sum_title(struct mt_drawing *drawing, struct mt_lifetime_sum sum)
{
    char n[2][MT_UNITS_TEXT];

    return mt_arena_printf(&drawing->arena, "%s B in %s block%s", mt_format_count(n[0], sum.bytes),
                           mt_format_count(n[1], sum.blocks), sum.blocks == 1 ? "" : "s");
}

static void draw_above(struct mt_drawing *drawing, const struct mt_scatter_layout *layout)
{
    const struct mt_box *box = &layout->above;
    const struct mt_paint paint = {.fill = MT_COLOR_LEVEL_RANGE};
    char text[MT_UNITS_TEXT + 40], bytes[MT_UNITS_TEXT];
    uint64_t most = 1;
    uint32_t i;

    for (i = 0; i < layout->columns; i++)
        most = mt_max_u64(most, sum_of_column(layout, i).bytes);
    for (i = 0; i < layout->columns; i++) {
        struct mt_lifetime_sum sum = sum_of_column(layout, i);
        double height = box->height * ((double)sum.bytes / (double)most);

        if (sum.blocks)
            mt_draw_rect(drawing, box->x + i * layout->cell_width, box->y + box->height - height,
                         layout->cell_width - 1, height, &paint, sum_title(drawing, sum),
                         "by-size");
    }
    snprintf(text, sizeof text, "bytes by size, at most %s", mt_format_bytes(bytes, most));
    mt_chart_frame_text(drawing, box->x, box->y - 6,
                        mt_text_fit(drawing, text, 12.5, MT_REGULAR, box->width, false), 12.5,
                        MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_START, "heading");
}

static void draw_beside(struct mt_drawing *drawing, const struct mt_scatter_layout *layout)
{
    const struct mt_box *box = &layout->beside;
    const struct mt_paint paint = {.fill = MT_COLOR_LEVEL_RANGE};
    uint64_t most = 1;
    uint32_t i;

    for (i = 0; i <= layout->rows; i++)
        most = mt_max_u64(most, sum_of_row(layout, i).blocks);
    for (i = 0; i <= layout->rows; i++) {
        struct mt_lifetime_sum sum = sum_of_row(layout, i);
        double width = box->width * ((double)sum.blocks / (double)most);

        if (sum.blocks)
            mt_draw_rect(drawing, box->x, mt_scatter_row_y(layout, i), width,
                         layout->cell_height - 1, &paint, sum_title(drawing, sum), "by-life");
    }
    mt_chart_frame_text(
        drawing, box->x, box->y + box->height + 38,
        mt_text_fit(drawing, "blocks by lifetime", 12.5, MT_REGULAR, fmax(box->width, 120), false),
        12.5, MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_START, "heading");
}

void mt_scatter_draw_sums(struct mt_drawing *drawing, const struct mt_scatter_layout *layout)
{
    if (layout->above.height > 0)
        draw_above(drawing, layout);
    if (layout->beside.width > 0)
        draw_beside(drawing, layout);
}

struct total {
    enum mt_role role;
    uint64_t bytes;
};

/* Sorts roles by bytes, largest first. Returns the number of roles that have bytes. */
static size_t totals_of(const struct mt_scatter_layout *layout, struct total totals[MT_ROLE_COUNT])
{
    size_t count = 0, at;
    uint32_t role, i;

    for (role = 0; role < MT_ROLE_COUNT; role++) {
        struct total total = {(enum mt_role)role, 0};

        for (i = 0; i < layout->lifetimes->cell_count; i++)
            total.bytes += layout->lifetimes->cells[i].role_bytes[role];
        if (!total.bytes)
            continue;
        for (at = count++; at && totals[at - 1].bytes < total.bytes; at--)
            totals[at] = totals[at - 1];
        totals[at] = total;
    }
    return count;
}

static void draw_strengths(struct mt_drawing *drawing, double x, double y)
{
    struct mt_paint paint = {.fill = mt_role_color(MT_ROLE_ACTIVATIONS)};
    uint32_t i;

    for (i = 0; i < 5; i++) {
        paint.opacity = 0.28 + 0.72 * i / 4;
        mt_draw_rect(drawing, x + i * 15, y - 11, 13, 13, &paint, NULL, "swatch");
    }
    mt_chart_frame_text(drawing, x + 82, y, "more bytes", MT_SIZE_BODY, MT_REGULAR, MT_COLOR_MUTED,
                        MT_ANCHOR_START, "legend");
}

static void draw_side(struct mt_drawing *drawing, const struct mt_scatter_layout *layout)
{
    struct total totals[MT_ROLE_COUNT];
    size_t count = totals_of(layout, totals), i;
    double x = layout->side_x, y = layout->side_y, right = x + layout->side_width;
    char bytes[MT_UNITS_TEXT];

    mt_chart_frame_text(drawing, x, y, "Main role", 14, MT_SEMIBOLD, MT_COLOR_TEXT, MT_ANCHOR_START,
                        "heading");
    mt_chart_frame_text(drawing, right, y, "all bytes", MT_SIZE_SMALL, MT_REGULAR, MT_COLOR_MUTED,
                        MT_ANCHOR_END, "heading");
    for (i = 0, y += ROW + 2; i < count; i++, y += ROW) {
        const struct mt_paint paint = {.fill = mt_role_color(totals[i].role), .radius = 2.5};

        mt_draw_rect(drawing, x, y - 11, 13, 13, &paint, NULL, "swatch");
        mt_chart_frame_text(drawing, x + 20, y, mt_role_title(totals[i].role), MT_SIZE_BODY,
                            MT_REGULAR, MT_COLOR_TEXT, MT_ANCHOR_START, "legend");
        mt_chart_frame_text(drawing, right, y, mt_format_bytes(bytes, totals[i].bytes),
                            MT_SIZE_BODY, MT_SEMIBOLD, MT_COLOR_TEXT, MT_ANCHOR_END,
                            "legend-value");
    }
    if (y + 14 < drawing->height - 60)
        draw_strengths(drawing, x, y + 8);
}

void mt_scatter_draw_legend(struct mt_drawing *drawing, const struct mt_scatter_layout *layout)
{
    struct mt_swatch swatches[MT_ROLE_COUNT];
    struct total totals[MT_ROLE_COUNT];
    size_t count = totals_of(layout, totals), i;

    if (layout->side_width > 0) {
        draw_side(drawing, layout);
        return;
    }
    if (layout->legend_y <= 0)
        return;
    for (i = 0; i < count; i++)
        swatches[i] =
            (struct mt_swatch){mt_role_title(totals[i].role), mt_role_color(totals[i].role)};
    mt_chart_frame_swatches(drawing, MT_MARGIN, layout->legend_y, drawing->width - MT_MARGIN,
                            swatches, count);
}
