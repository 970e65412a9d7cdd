/* Sites by their change, which is a bar to the left or right of a line. */
#include "diff_layout.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "units.h"
#include "util.h"

#define ROW        29.0
#define HEAD       34.0
#define FOOT       26.0
#define BAR_HEIGHT 11.0
#define CHANGE     80.0 /* widths of columns, from the right */
#define NEW        104.0

static const char *title_of(struct mt_drawing *drawing, const struct mt_diff_row *row)
{
    const char *exact = mt_diff_exact(drawing, row);

    return mt_arena_printf(
        &drawing->arena, "%s%s%s%s%s: %s", mt_chart_frame_short(drawing, row->label, 200),
        *row->phase ? ", allocated in " : "", mt_chart_frame_short(drawing, row->phase, 60),
        row->label_a ? ", was " : "",
        row->label_a ? mt_chart_frame_short(drawing, row->label_a, 200) : "", exact ? exact : "");
}

/* Shortens a site such as "forward train.py:47" but keeps its end. */
static const char *fit_label(struct mt_drawing *drawing, const char *label, double width)
{
    return mt_chart_frame_fit_site(drawing, mt_chart_frame_short(drawing, label, 300), MT_SIZE_BODY,
                                   width);
}

struct columns {
    double label_x, label_width, zero_x, side; /* side: width of the largest change, in pixels */
    double change_right, new_right;
};

static struct columns columns_of(const struct mt_diff_layout *layout)
{
    struct columns columns = {.label_x = layout->table_x + 17,
                              .new_right = layout->table_x + layout->table_width};
    const struct mt_diff_rows *rows = &layout->view->device->sites;
    uint64_t up = 0, down = 0;
    double bars = layout->table_width > 600 ? 130 : 90, whole;
    uint32_t i;

    for (i = 0; i < rows->count; i++) {
        if (mt_diff_change(&rows->rows[i]) > 0)
            up = mt_max_u64(up, mt_diff_size(&rows->rows[i]));
        else
            down = mt_max_u64(down, mt_diff_size(&rows->rows[i]));
    }
    whole = fmax((double)up + (double)down, 1);
    columns.change_right = columns.new_right - NEW;
    columns.zero_x = round(columns.change_right - CHANGE - 8 - bars * ((double)up / whole));
    columns.side = bars / whole;
    columns.label_width = columns.zero_x - bars * ((double)down / whole) - 10 - columns.label_x;
    return columns;
}

static const char *new_words(char text[MT_UNITS_TEXT + 8], const struct mt_diff_row *row)
{
    char bytes[MT_UNITS_TEXT];

    if (!row->b_blocks)
        return "gone";
    snprintf(text, MT_UNITS_TEXT + 8, "%s%s", row->a_blocks ? "" : "new \xC2\xB7 ",
             mt_format_bytes(bytes, row->b_bytes));
    return text;
}

static void draw_row(struct mt_drawing *drawing, const struct columns *columns,
                     const struct mt_diff_row *row, double y)
{
    bool grew = row->b_bytes > row->a_bytes;
    struct mt_paint paint = mt_diff_paint(grew ? MT_COLOR_CHANGE_LAST : MT_COLOR_CHANGE_0, grew);
    const struct mt_paint dot = {.fill = mt_role_color(row->role)};
    double width = fmax(columns->side * (double)mt_diff_size(row), 1);
    char change[MT_UNITS_TEXT], text[MT_UNITS_TEXT + 8];

    mt_draw_group_begin(drawing, title_of(drawing, row), "site");
    mt_draw_circle(drawing, columns->label_x - 11, y - 4.5, 4, &dot, NULL, "swatch");
    mt_chart_frame_text(drawing, columns->label_x, y,
                        fit_label(drawing, row->label, columns->label_width), MT_SIZE_BODY,
                        MT_REGULAR, MT_COLOR_TEXT, MT_ANCHOR_START, "site-name");
    mt_draw_rect(drawing, grew ? columns->zero_x : columns->zero_x - width,
                 y - 4.5 - BAR_HEIGHT / 2, width, BAR_HEIGHT, &paint, NULL, "site-bar");
    mt_chart_frame_text(drawing, columns->change_right, y,
                        mt_format_change(change, mt_diff_change(row)), MT_SIZE_BODY, MT_SEMIBOLD,
                        MT_COLOR_TEXT, MT_ANCHOR_END, "site-change");
    mt_chart_frame_text(drawing, columns->new_right, y, new_words(text, row), MT_SIZE_AXIS,
                        MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_END, "site-new");
    mt_draw_group_end(drawing);
}

static void draw_heading(struct mt_drawing *drawing, const struct mt_diff_layout *layout,
                         const struct columns *columns)
{
    double y = layout->table_y + 12;

    mt_chart_frame_text(drawing, layout->table_x, y,
                        layout->changed_sites ? "Call sites that changed" : "No call site changed",
                        14, MT_SEMIBOLD, MT_COLOR_TEXT, MT_ANCHOR_START, "heading");
    if (!layout->changed_sites)
        return;
    mt_chart_frame_text(drawing, columns->change_right, y, "change", MT_SIZE_AXIS, MT_REGULAR,
                        MT_COLOR_MUTED, MT_ANCHOR_END, "heading");
    mt_chart_frame_text(drawing, columns->new_right, y, "now", MT_SIZE_AXIS, MT_REGULAR,
                        MT_COLOR_MUTED, MT_ANCHOR_END, "heading");
}

/* Draws the sum of the sites without a row, and the number of unchanged sites. */
static void draw_rest(struct mt_drawing *drawing, const struct mt_diff_layout *layout,
                      uint32_t shown, double y)
{
    const struct mt_diff_rows *rows = &layout->view->device->sites;
    uint32_t same = rows->count - layout->changed_sites, i;
    char change[MT_UNITS_TEXT], n[2][MT_UNITS_TEXT], text[240] = "";
    int64_t sum = 0;
    size_t length;

    for (i = shown; i < layout->changed_sites; i++)
        sum += mt_diff_change(&rows->rows[i]);
    if (shown < layout->changed_sites)
        snprintf(text, sizeof text, "%s other%s: %s together",
                 mt_format_count(n[0], layout->changed_sites - shown),
                 layout->changed_sites - shown == 1 ? "" : "s", mt_format_change(change, sum));
    length = strlen(text);
    if (same)
        snprintf(text + length, sizeof text - length, "%s%s call site%s unchanged, not listed",
                 length ? " \xC2\xB7 " : "", mt_format_count(n[1], same), same == 1 ? "" : "s");
    mt_chart_frame_text(drawing, layout->table_x, y,
                        mt_text_fit(drawing, text, 12.5, MT_REGULAR, layout->table_width, false),
                        12.5, MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_START, "sites-rest");
}

double mt_diff_table_height(const struct mt_diff_layout *layout)
{
    return HEAD + FOOT + ROW * fmin(layout->changed_sites, 14);
}

void mt_diff_draw_table(struct mt_drawing *drawing, const struct mt_diff_layout *layout)
{
    const struct mt_paint rule = {.stroke = MT_COLOR_GRID}, zero = {.stroke = MT_COLOR_AXIS};
    double y = layout->table_y + HEAD, room = layout->table_bottom - FOOT - y;
    uint32_t most = room > 0 ? (uint32_t)(room / ROW) : 0, i;
    uint32_t shown = layout->changed_sites < most ? layout->changed_sites : most;
    struct columns columns;

    if (layout->table_width <= 0)
        return;
    columns = columns_of(layout);
    draw_heading(drawing, layout, &columns);
    for (i = 0; i < shown; i++, y += ROW) {
        mt_draw_line(drawing, layout->table_x, y - 8, layout->table_x + layout->table_width, y - 8,
                     &rule);
        draw_row(drawing, &columns, &layout->view->device->sites.rows[i], y + 11);
    }
    if (shown)
        mt_draw_line(drawing, columns.zero_x, layout->table_y + HEAD - 4, columns.zero_x, y - 12,
                     &zero);
    draw_rest(drawing, layout, shown, y + 12);
}
