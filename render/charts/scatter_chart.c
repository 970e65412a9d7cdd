/* The sizes and lifetimes of blocks. The chart shows churn and its effect on the pools. */
#include "scatter_layout.h"
#include "report_query.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "units.h"
#include "util.h"

#define SIDE_WIDTH      196.0
#define BESIDE_WIDTH    92.0
#define ABOVE_HEIGHT    64.0
#define BAND            20.0 /* room above the plot for the names of the lines */
#define AXIS_HEIGHT     44.0
#define END_GAP         8.0 /* distance between freed blocks and blocks that were never freed */
#define LEGEND_HEIGHT   24.0
#define STANDARD_HEIGHT 680.0
#define MIN_PLOT        90.0
#define MIN_CELL        6.0
#define MAX_CELL_WIDE   24.0
#define MAX_CELL_HIGH   20.0

enum { MAX_CELLS = 1500, CROWD = 1000 };

static const char *percent_of(char text[MT_UNITS_TEXT], uint64_t part, uint64_t whole)
{
    return mt_format_percent(text, whole ? (double)part / (double)whole : 0);
}

static double draw_tiles(struct mt_drawing *drawing, const struct mt_lifetimes *lifetimes, double y)
{
    const struct mt_lifetime_sum *all = &lifetimes->all;
    char n[8][MT_UNITS_TEXT], notes[4][MT_UNITS_TEXT + 24];
    struct mt_tile tiles[4] = {
        {"Blocks", mt_format_count(n[0], all->blocks), notes[0], MT_COLOR_TEXT, NULL},
        {"At most 1 MiB", percent_of(n[1], lifetimes->small.blocks, all->blocks), notes[1],
         MT_COLOR_FAINT, NULL},
        {"Lived less than 1 ms", percent_of(n[2], lifetimes->brief.blocks, all->blocks), notes[2],
         mt_role_color(MT_ROLE_TEMPORARIES), NULL},
        {"Never freed", mt_format_count(n[3], lifetimes->until_end.blocks), notes[3],
         mt_role_color(MT_ROLE_PARAMETERS), NULL}};

    snprintf(notes[0], sizeof notes[0], "%s in total", mt_format_bytes(n[4], all->bytes));
    snprintf(notes[1], sizeof notes[1], "%s of the bytes",
             percent_of(n[5], lifetimes->small.bytes, all->bytes));
    snprintf(notes[2], sizeof notes[2], "%s of churn",
             mt_format_bytes(n[6], lifetimes->brief.bytes));
    snprintf(notes[3], sizeof notes[3], "%s", mt_format_bytes(n[7], lifetimes->until_end.bytes));
    return mt_chart_frame_tiles(drawing, y, tiles, 4);
}

/* Return the column or row of a cell. All very small sizes are in one column, because most
 * allocators round up to 256 or 512 B. All very short times are in one row, because few clocks
 * resolve times below 1 us. */
static uint32_t column_of(const struct mt_lifetime_cell *cell)
{
    return cell->size > MT_SCATTER_MIN_SIZE ? cell->size : MT_SCATTER_MIN_SIZE;
}

static uint32_t row_of(const struct mt_lifetime_cell *cell)
{
    return cell->life > MT_SCATTER_MIN_LIFE ? cell->life : MT_SCATTER_MIN_LIFE;
}

/* Sets the ranges of rows and columns of the model that have blocks, in coarse units. */
static void set_ranges(struct mt_scatter_layout *layout, uint32_t coarse)
{
    const struct mt_lifetimes *lifetimes = layout->lifetimes;
    uint32_t i, columns[2] = {UINT32_MAX, 0}, rows[2] = {UINT32_MAX, 0};

    for (i = 0; i < lifetimes->cell_count; i++) {
        const struct mt_lifetime_cell *cell = &lifetimes->cells[i];

        columns[0] = column_of(cell) < columns[0] ? column_of(cell) : columns[0];
        columns[1] = column_of(cell) > columns[1] ? column_of(cell) : columns[1];
        if (cell->life == MT_LIFE_UNTIL_END)
            continue;
        rows[0] = row_of(cell) < rows[0] ? row_of(cell) : rows[0];
        rows[1] = row_of(cell) > rows[1] ? row_of(cell) : rows[1];
    }
    if (rows[0] > rows[1]) /* nothing was freed */
        rows[0] = rows[1] = MT_LIVES_PER_DECADE * 6;
    layout->coarse = coarse;
    layout->first_column = columns[0] / coarse;
    layout->columns = columns[1] / coarse - layout->first_column + 1;
    layout->first_row = rows[0] / coarse;
    layout->rows = rows[1] / coarse - layout->first_row + 1;
}

static uint32_t fill_cells(struct mt_scatter_layout *layout)
{
    const struct mt_lifetimes *lifetimes = layout->lifetimes;
    uint32_t i, role, used = 0;

    memset(layout->cells, 0, (size_t)(layout->rows + 1) * layout->columns * sizeof *layout->cells);
    for (i = 0; i < lifetimes->cell_count; i++) {
        const struct mt_lifetime_cell *from = &lifetimes->cells[i];
        uint32_t column = column_of(from) / layout->coarse - layout->first_column;
        uint32_t row = from->life == MT_LIFE_UNTIL_END
                           ? layout->rows
                           : row_of(from) / layout->coarse - layout->first_row;
        struct mt_scatter_cell *cell = &layout->cells[(size_t)row * layout->columns + column];

        used += !cell->blocks;
        cell->blocks += from->blocks;
        cell->bytes += from->bytes;
        for (role = 0; role < MT_ROLE_COUNT; role++)
            cell->role_bytes[role] += from->role_bytes[role];
    }
    return used;
}

void mt_scatter_fill(struct mt_drawing *drawing, struct mt_scatter_layout *layout,
                     uint32_t most_columns, uint32_t most_rows)
{
    uint32_t coarse;

    set_ranges(layout, 1);
    layout->cells = mt_arena_array(&drawing->arena, (size_t)(layout->rows + 1) * layout->columns,
                                   sizeof *layout->cells);
    for (coarse = 1;; coarse++) {
        set_ranges(layout, coarse);
        if (fill_cells(layout) <= MAX_CELLS && layout->columns <= most_columns &&
            layout->rows <= most_rows)
            return;
    }
}

static const char *footnote(struct mt_drawing *drawing, const struct mt_scatter_layout *layout)
{
    char blocks[MT_UNITS_TEXT];
    const char *text = mt_arena_printf(
        &drawing->arena, "bytes = sum of all requests%s%s%s%s",
        layout->report->roles_inferred ? " \xC2\xB7 roles are inferred" : "",
        layout->lifetimes->older.blocks ? " \xC2\xB7 " : "",
        layout->lifetimes->older.blocks ? mt_format_count(blocks, layout->lifetimes->older.blocks)
                                        : "",
        layout->lifetimes->older.blocks
            ? " blocks are older than the recorded history and lived longer than shown"
            : "");

    return text;
}

/* The right and lower edge of the room for the grid and the sums. */
struct room {
    double top, right, bottom;
};

static struct room place_around(struct mt_drawing *drawing, struct mt_scatter_layout *layout,
                                double y)
{
    bool narrow = drawing->width < MT_NARROW_WIDTH;
    struct room room = {y + 8, drawing->width - MT_MARGIN, drawing->height - 10};
    double least = MIN_PLOT + BAND + AXIS_HEIGHT;

    if (room.bottom - y - 34 - least >= 40)
        room.bottom = mt_chart_frame_footnote(drawing, footnote(drawing, layout)) - 6;
    if (room.bottom - y - 76 - least >= 0)
        room.top = draw_tiles(drawing, layout->lifetimes, y) + 24;
    layout->side_x = room.right - SIDE_WIDTH;
    layout->side_y = room.top + 10;
    layout->side_width = narrow ? 0 : SIDE_WIDTH;
    room.right -= narrow ? 0 : SIDE_WIDTH + 30;
    if (narrow && room.bottom - room.top - least - LEGEND_HEIGHT >= 0) {
        layout->legend_y = room.bottom - 6;
        room.bottom -= LEGEND_HEIGHT;
    }
    if (room.bottom - room.top - least - ABOVE_HEIGHT - 18 >= 60)
        layout->above.height = ABOVE_HEIGHT;
    if (room.right - MT_MARGIN > 600)
        layout->beside.width = BESIDE_WIDTH;
    return room;
}

/* Places all parts. Cells are whole pixels, so that they are not blurred. */
static void place(struct mt_drawing *drawing, struct mt_scatter_layout *layout, double y)
{
    struct room room = place_around(drawing, layout, y);
    double left =
        round(MT_MARGIN + 22 + 1.05 * mt_text_width("never freed", MT_SIZE_AXIS, MT_REGULAR) + 9);
    double top = room.top + (layout->above.height > 0 ? layout->above.height + 18 : 0) + BAND;
    double width = room.right - left - (layout->beside.width > 0 ? layout->beside.width + 12 : 0);
    double height = room.bottom - AXIS_HEIGHT - top;
    double rows_height;

    mt_scatter_fill(drawing, layout, (uint32_t)(width / MIN_CELL),
                    (uint32_t)((height - END_GAP) / MIN_CELL) - 1);
    layout->cell_width = fmin(floor(width / layout->columns), MAX_CELL_WIDE);
    layout->cell_height = fmin(floor((height - END_GAP) / (layout->rows + 1)), MAX_CELL_HIGH);
    rows_height = layout->rows * layout->cell_height;
    layout->end_y = round(room.bottom - AXIS_HEIGHT - rows_height - END_GAP - layout->cell_height);
    layout->plot = (struct mt_box){left, layout->end_y + layout->cell_height + END_GAP,
                                   layout->columns * layout->cell_width, rows_height};
    layout->above.x = left;
    if (layout->above.height > 0) {
        layout->above.y = room.top + 18;
        layout->above.height = layout->end_y - BAND - layout->above.y;
    }
    layout->above.width = layout->plot.width;
    layout->beside.x = left + layout->plot.width + 12;
    layout->beside.y = layout->end_y;
    layout->beside.height = layout->plot.y + layout->plot.height - layout->end_y;
}

static void draw_nothing(struct mt_drawing *drawing, const struct mt_report *report,
                         const struct mt_device_report *device, const char *title)
{
    double y = mt_chart_frame_header(drawing, title, mt_chart_frame_facts(drawing, report, device));

    mt_chart_frame_nothing(drawing, y + 8, "No allocations",
                           "The trace has no block of device memory.");
}

static void draw(struct mt_drawing *drawing, struct mt_scatter_layout *layout, const char *title)
{
    double y = mt_chart_frame_header(drawing, title,
                                     mt_chart_frame_facts(drawing, layout->report, layout->device));

    place(drawing, layout, y);
    mt_scatter_draw_plot(drawing, layout);
    mt_scatter_draw_sums(drawing, layout);
    mt_scatter_draw_legend(drawing, layout);
}

/* Returns true if there are at least CROWD allocations. Their distribution is then more informative
 * than single blocks. */
static bool is_crowd(const struct mt_report *report, const struct mt_device_report *device)
{
    return mt_report_has_times(report) && device && device->allocations >= CROWD;
}

static void draw_chart(const struct mt_report *report, const struct mt_device_report *device,
                       const struct mt_chart_options *options, struct mt_drawing *drawing)
{
    struct mt_scatter_layout layout = {.report = report, .device = device};
    const char *title;

    mt_drawing_init(drawing, mt_chart_frame_width(options->width),
                    mt_chart_frame_height(options->height, STANDARD_HEIGHT), "scatter");
    title = mt_chart_frame_title(drawing, report, device, "size and lifetime of every allocation");
    mt_chart_frame_describe(drawing, report, device, title);
    layout.lifetimes = device ? device->lifetimes : NULL;
    if (layout.lifetimes && layout.lifetimes->cell_count)
        draw(drawing, &layout, title);
    else
        draw_nothing(drawing, report, device, title);
}

const struct mt_chart mt_chart_scatter = {
    .name = "scatter",
    .summary = "size and lifetime of every allocation",
    .models = MT_MODEL_LIFETIMES,
    .called_for = is_crowd,
    .draw = draw_chart,
};
