/* Compares settings of an allocator: the memory that each reserves for the same requests, and the
 * smallest limit under which it succeeds. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cell_label.h"
#include "chart.h"
#include "chart_frame.h"
#include "policies_chart.h"
#include "policy_table.h"
#include "units.h"
#include "util.h"

/* Shared by the parts of the chart of allocators: the axis, the rows, and the marks. */

struct policies_layout {
    const struct mt_policy_table *table;
    struct mt_box plot; /* the area of the bars of all rows */
    double pitch;       /* height of a row */
    double label_width; /* left of the plot */
    double columns[3]; /* right edges of the columns: peak reserved, multiple of the bound, smallest
                          limit */
    uint32_t rows;     /* number of rows that fit */
    uint64_t top;      /* bytes at the right edge of the plot */
};

static inline double policies_x(const struct policies_layout *layout, uint64_t bytes)
{
    return layout->plot.x + layout->plot.width * ((double)bytes / (double)layout->top);
}

/* Rows, axis and lines of the chart of allocators. */

#define BAR         28.0 /* maximum height */
#define NAME_PITCH  15.0
#define THREE_LINES 54.0 /* in rows of at least this height, a name may take two lines */
#define ENDS        16   /* maximum number of names above the plot */
#define FAR_TIMES   2.0  /* a policy that needs this multiple of the bound is bad */

static void policies_draw_axis(struct mt_drawing *drawing, const struct policies_layout *layout)
{
    static const char *const heads[3][2] = {{"peak reserved", "reserved"},
                                            {"\xC3\x97 bound", "\xC3\x97 bound"},
                                            {"smallest limit", "limit"}};
    const struct mt_paint grid = {.stroke = MT_COLOR_GRID};
    double bottom = layout->plot.y + layout->plot.height, free_from = 0;
    struct mt_ticks ticks;

    mt_byte_ticks(&ticks, layout->top, layout->top,
                  (size_t)fmin(fmax(layout->plot.width / 90, 2), 7));
    for (size_t i = 0; i < ticks.count; i++) {
        double x = policies_x(layout, ticks.ticks[i].value);
        double half = 0.525 * mt_text_width(ticks.ticks[i].label, MT_SIZE_AXIS, MT_REGULAR);

        mt_draw_line(drawing, x, layout->plot.y, x, bottom, &grid);
        if (x - half < free_from)
            continue;
        mt_chart_frame_text(drawing, x, bottom + 20, ticks.ticks[i].label, MT_SIZE_AXIS, MT_REGULAR,
                            MT_COLOR_MUTED, MT_ANCHOR_MIDDLE, "tick-x");
        free_from = x + half + 6;
    }
    for (size_t i = 0; i < 3; i++)
        mt_chart_frame_text(drawing, layout->columns[i], layout->plot.y - 14,
                            heads[i][drawing->width < MT_NARROW_WIDTH], MT_SIZE_SMALL, MT_REGULAR,
                            MT_COLOR_MUTED, MT_ANCHOR_END, "column");
}

static const char *exact_words(struct mt_drawing *drawing, const struct mt_policy_row *row)
{
    char n[7][MT_UNITS_TEXT], limit[160], more[120] = "", doubt[200] = "";

    if (row->fit.fits && row->fit.low_bytes < row->fit.high_bytes)
        snprintf(limit, sizeof limit,
                 "smallest limit %s B for all %u address orders, %s B for the best",
                 mt_format_count(n[3], row->fit.high_bytes), (unsigned)row->fit.order_count,
                 mt_format_count(n[6], row->fit.low_bytes));
    else if (row->fit.fits)
        snprintf(limit, sizeof limit, "smallest limit %s B",
                 mt_format_count(n[3], row->fit.high_bytes));
    else
        snprintf(limit, sizeof limit, "no limit that was tried works");
    if (row->fit.smaller_fit_bytes || row->fit.larger_fail_bytes)
        snprintf(more, sizeof more, "; limits in between differ: %s B %s",
                 mt_format_count(n[4], row->fit.smaller_fit_bytes ? row->fit.smaller_fit_bytes
                                                                  : row->fit.larger_fail_bytes),
                 row->fit.smaller_fit_bytes ? "would also work" : "would not work");
    if (!row->fit.policy_exact)
        snprintf(doubt, sizeof doubt, "; approximate%s%.150s", row->fit.policy_doubt ? ": " : "",
                 row->fit.policy_doubt ? row->fit.policy_doubt : "");
    return mt_arena_printf(
        &drawing->arena,
        "%s, %s: at their peaks requested %s B, allocated %s B, reserved %s B; %s%s%s%s",
        mt_chart_frame_short(drawing, row->policy, 200),
        row->is_measured ? "as the run did" : "replayed",
        mt_format_count(n[0], row->fit.requested_peak_bytes),
        mt_format_count(n[1], row->fit.allocated_peak_bytes),
        mt_format_count(n[2], row->fit.reserved_peak_bytes), limit, more, doubt,
        row->fit.address_ties ? "; the driver's addresses decide between equal free blocks" : "");
}

/* Returns the label of a row. Omits the name of PyTorch's allocator before its options, because
 * options are long and most rows have them. */
static const char *label_of(const struct mt_policy_row *row)
{
    if (strcmp(row->policy, "pytorch") == 0)
        return "no options";
    return strncmp(row->policy, "pytorch:", 8) == 0 ? row->policy + 8 : row->policy;
}

static const char *note_of(struct mt_drawing *drawing, const struct mt_policy_row *row)
{
    return mt_arena_printf(&drawing->arena, "%s%s%s", row->what,
                           row->is_measured ? ", measured" : "",
                           row->fit.policy_exact ? "" : ", approximate");
}

/* Returns the width in pixels that the name of a row needs. */
static double policies_label_width(struct mt_drawing *drawing, const struct mt_policy_row *row)
{
    return mt_text_room(mt_chart_frame_short(drawing, label_of(row), 200), MT_SIZE_BODY,
                        MT_SEMIBOLD);
}

/* Returns the number of bytes up to the last comma before which everything fits; 0 = there is
 * none. */
static size_t first_options(struct mt_drawing *drawing, const char *text, double width)
{
    const char *at = text;
    size_t best = 0;

    while ((at = strchr(at, ',')) != NULL) {
        const char *part = mt_arena_text(&drawing->arena, text, (size_t)(++at - text));

        if (mt_text_room(part, MT_SIZE_BODY, MT_SEMIBOLD) > width)
            break;
        best = (size_t)(at - text);
    }
    return best;
}

static void draw_name_line(struct mt_drawing *drawing, double right, double y, const char *text,
                           double width)
{
    mt_chart_frame_text(drawing, right, y,
                        mt_text_fit(drawing, text, MT_SIZE_BODY, MT_SEMIBOLD, width, true),
                        MT_SIZE_BODY, MT_SEMIBOLD, MT_COLOR_TEXT, MT_ANCHOR_END, "policy");
}

/* Draws a label. Many options take two lines if there is room. */
static void draw_label(struct mt_drawing *drawing, const struct policies_layout *layout,
                       const struct mt_policy_row *row, double middle)
{
    double right = layout->plot.x - 12, width = layout->label_width;
    const char *text = mt_chart_frame_short(drawing, label_of(row), 200), *first = NULL;
    size_t length = 0;

    if (mt_text_room(text, MT_SIZE_BODY, MT_SEMIBOLD) > width && layout->pitch >= THREE_LINES)
        length = first_options(drawing, text, width);
    if (length)
        first = mt_arena_text(&drawing->arena, text, length);
    if (first) {
        draw_name_line(drawing, right, middle - 2 - NAME_PITCH / 2, first, width);
        text += length;
        middle += NAME_PITCH / 2;
    }
    draw_name_line(drawing, right, middle - 2, text, width);
    mt_chart_frame_text(
        drawing, right, middle + 13.5,
        mt_text_fit(drawing, note_of(drawing, row), MT_SIZE_SMALL, MT_REGULAR, width, false),
        MT_SIZE_SMALL, MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_END, "policy-note");
}

static void draw_value(struct mt_drawing *drawing, const struct policies_layout *layout, int column,
                       double middle, const char *text, enum mt_color color)
{
    mt_chart_frame_text(drawing, layout->columns[column], middle + 5, text, MT_SIZE_BODY,
                        column == 1 ? MT_REGULAR : MT_SEMIBOLD, color, MT_ANCHOR_END, "value");
}

static void draw_values(struct mt_drawing *drawing, const struct policies_layout *layout,
                        const struct mt_policy_row *row, double middle)
{
    const char *about = row->fit.policy_exact ? "" : "~";
    uint64_t bound = layout->table->bound_bytes;
    double times = bound ? (double)row->fit.reserved_peak_bytes / (double)bound : 0;
    bool is_best = row->fit.reserved_peak_bytes == layout->table->rows[0].fit.reserved_peak_bytes;
    char n[MT_UNITS_TEXT], text[MT_UNITS_TEXT + 8];

    snprintf(text, sizeof text, "%s%s", about, mt_format_bytes(n, row->fit.reserved_peak_bytes));
    draw_value(drawing, layout, 0, middle, text, is_best ? MT_COLOR_GOOD : MT_COLOR_TEXT);
    if (bound) {
        uint64_t hundredths = (uint64_t)fmin(times * 100 + 0.5, 1e15);

        snprintf(text, sizeof text, "%s.%02u", mt_format_count(n, hundredths / 100),
                 (unsigned)(hundredths % 100));
        draw_value(drawing, layout, 1, middle, text,
                   times >= FAR_TIMES ? MT_COLOR_BAD : MT_COLOR_TEXT);
    }
    if (row->fit.fits)
        snprintf(text, sizeof text, "%s%s%s", about, mt_format_bytes(n, row->fit.high_bytes),
                 row->fit.smaller_fit_bytes || row->fit.larger_fail_bytes ? "*" : "");
    else
        snprintf(text, sizeof text, "none");
    draw_value(drawing, layout, 2, middle, text, MT_COLOR_TEXT);
}

static void draw_part(struct mt_drawing *drawing, const struct policies_layout *layout,
                      uint64_t from, uint64_t to, double y, double height,
                      const struct mt_paint *paint, const char *role)
{
    double left = policies_x(layout, from), right = policies_x(layout, to);

    if (to > from)
        mt_draw_rect(drawing, left, y, right - left, height, paint, NULL, role);
}

/* Writes the size of cached memory into a long bar. */
static void draw_cached_words(struct mt_drawing *drawing, const struct policies_layout *layout,
                              const struct mt_policy_row *row, double middle)
{
    const struct mt_text_style style = {.size = 12.5,
                                        .weight = MT_SEMIBOLD,
                                        .anchor = MT_ANCHOR_MIDDLE,
                                        .color = MT_COLOR_TEXT,
                                        .halo = true};
    double left = policies_x(layout, row->fit.allocated_peak_bytes);
    double right = policies_x(layout, row->fit.reserved_peak_bytes);
    char n[MT_UNITS_TEXT], text[MT_UNITS_TEXT + 16];

    if (row->fit.fits)
        left = fmax(left, fmin(policies_x(layout, row->fit.high_bytes) + 10, right));
    if (row->fit.reserved_peak_bytes <= row->fit.allocated_peak_bytes)
        return;
    snprintf(text, sizeof text, "%s cached",
             mt_format_bytes(n, row->fit.reserved_peak_bytes - row->fit.allocated_peak_bytes));
    if (right - left > 1.05 * mt_text_width(text, 12.5, MT_SEMIBOLD) + 24)
        mt_draw_text(drawing, (left + right) / 2, middle + 4.5, text, &style, "cached-words");
}

static void draw_bar(struct mt_drawing *drawing, const struct policies_layout *layout,
                     const struct mt_policy_row *row, double middle)
{
    const struct mt_paint requested = {.fill = MT_COLOR_LEVEL};
    const struct mt_paint rounding = {.fill = MT_COLOR_LEVEL_RANGE};
    const struct mt_paint cached = {.fill = MT_COLOR_UNUSED, .hatched = true};
    const struct mt_paint outline = {.stroke = MT_COLOR_TEXT, .stroke_width = 1};
    double height = fmin(BAR, layout->pitch - 10), y = middle - height / 2;
    uint64_t allocated = mt_min_u64(row->fit.allocated_peak_bytes, row->fit.reserved_peak_bytes);
    uint64_t asked = mt_min_u64(row->fit.requested_peak_bytes, allocated);

    draw_part(drawing, layout, 0, asked, y, height, &requested, "requested");
    draw_part(drawing, layout, asked, allocated, y, height, &rounding, "rounding");
    draw_part(drawing, layout, allocated, row->fit.reserved_peak_bytes, y, height, &cached,
              "cached");
    mt_draw_rect(drawing, layout->plot.x, y,
                 policies_x(layout, row->fit.reserved_peak_bytes) - layout->plot.x, height,
                 &outline, NULL, "bar");
}

/* Draws a line from the smallest limit in the best order of addresses to the diamond. */
static void draw_range(struct mt_drawing *drawing, double left, double right, double middle)
{
    const struct mt_paint line = {.stroke = MT_COLOR_TEXT, .stroke_width = 1.8};

    const struct mt_point points[2] = {{left, middle}, {right, middle}};

    mt_draw_path(drawing, points, 2, false, false, &line, NULL, "range");
    mt_draw_line(drawing, left, middle - 5, left, middle + 5, &line);
}

static void draw_diamond(struct mt_drawing *drawing, const struct policies_layout *layout,
                         const struct mt_policy_row *row, double middle)
{
    const struct mt_paint paint = {
        .fill = MT_COLOR_BACKGROUND, .stroke = MT_COLOR_TEXT, .stroke_width = 1.8};
    double x = policies_x(layout, row->fit.high_bytes);
    const struct mt_point points[4] = {
        {x, middle - 9.5}, {x + 7, middle}, {x, middle + 9.5}, {x - 7, middle}};
    char n[MT_UNITS_TEXT];
    const char *title = mt_arena_printf(&drawing->arena, "smallest limit: %s B",
                                        mt_format_count(n, row->fit.high_bytes));

    if (row->fit.fits && row->fit.low_bytes && row->fit.low_bytes < row->fit.high_bytes)
        draw_range(drawing, policies_x(layout, row->fit.low_bytes), x, middle);
    if (row->fit.fits)
        mt_draw_path(drawing, points, 4, true, false, &paint, title, "diamond");
}

static void draw_row(struct mt_drawing *drawing, const struct policies_layout *layout,
                     uint32_t index)
{
    const struct mt_policy_row *row = &layout->table->rows[index];
    const struct mt_paint panel = {.fill = MT_COLOR_PANEL, .radius = 6};
    double y = layout->plot.y + index * layout->pitch, middle = y + layout->pitch / 2;

    mt_draw_group_begin(drawing, exact_words(drawing, row), "row");
    if (index % 2 == 0)
        mt_draw_rect(drawing, 12, y + 1, drawing->width - 24, layout->pitch - 2, &panel, NULL,
                     NULL);
    draw_bar(drawing, layout, row, middle);
    draw_cached_words(drawing, layout, row, middle);
    draw_label(drawing, layout, row, middle);
    draw_values(drawing, layout, row, middle);
    mt_draw_group_end(drawing);
}

static void policies_draw_rows(struct mt_drawing *drawing, const struct policies_layout *layout)
{
    for (uint32_t i = 0; i < layout->rows; i++)
        draw_row(drawing, layout, i);
    if (layout->rows < layout->table->row_count)
        mt_chart_frame_text(drawing, MT_MARGIN, layout->plot.y + layout->plot.height + 20,
                            mt_arena_printf(&drawing->arena, "+ %u more",
                                            (unsigned)(layout->table->row_count - layout->rows)),
                            MT_SIZE_SMALL, MT_REGULAR, MT_COLOR_FAINT, MT_ANCHOR_START, "rest");
}

/* Names above the plot, which must not overlap. A name without room moves up by a line. */
struct names {
    double left[ENDS], right[ENDS], rise[ENDS];
    size_t count;
};

static bool has_room(const struct names *names, double left, double right, double rise)
{
    for (size_t i = 0; i < names->count; i++)
        if (names->rise[i] >= rise && names->rise[i] <= rise && left < names->right[i] &&
            right > names->left[i])
            return false;
    return names->count < ENDS;
}

/* Draws a name. Returns false if there is no room. */
static bool draw_name(struct mt_drawing *drawing, const struct policies_layout *layout,
                      struct names *names, double x, const char *text, bool is_bound)
{
    enum mt_weight weight = is_bound ? MT_SEMIBOLD : MT_REGULAR;
    double width = 1.05 * mt_text_width(text, MT_SIZE_SMALL, weight);
    double left = x - width / 2,
           most = layout->columns[0] - (drawing->width < MT_NARROW_WIDTH ? 56 : 90), rise = 0;

    left = fmin(fmax(left, MT_MARGIN), most - width);
    if (!has_room(names, left - 6, left + width + 6, rise))
        rise = NAME_PITCH;
    if (!has_room(names, left - 6, left + width + 6, rise))
        return false;
    names->rise[names->count] = rise;
    names->left[names->count] = left - 6;
    names->right[names->count++] = left + width + 6;
    mt_chart_frame_text(drawing, left, layout->plot.y - 14 - rise, text, MT_SIZE_SMALL, weight,
                        is_bound ? MT_COLOR_LIMIT : MT_COLOR_MUTED, MT_ANCHOR_START,
                        is_bound ? "label:bound" : "label:size");
    return true;
}

static void draw_mark(struct mt_drawing *drawing, const struct policies_layout *layout, double x,
                      const struct mt_paint *paint, const char *title, const char *role)
{
    const struct mt_point points[2] = {{x, layout->plot.y - 8},
                                       {x, layout->plot.y + layout->plot.height + 2}};

    mt_draw_path(drawing, points, 2, false, false, paint, title, role);
}

static void draw_sizes(struct mt_drawing *drawing, const struct policies_layout *layout,
                       struct names *names)
{
    const struct mt_paint dashes = {.stroke = MT_COLOR_AXIS, .stroke_width = 1.2, .dashed = true};
    const struct mt_known_size *size = layout->table->sizes;
    char n[MT_UNITS_TEXT];

    for (; size && size->name; size++) {
        double x = policies_x(layout, size->bytes);
        const char *title = mt_arena_printf(&drawing->arena, "%s: %s B", size->name,
                                            mt_format_count(n, size->bytes));

        if (size->bytes > layout->top)
            continue;
        if (draw_name(drawing, layout, names, x, size->name, false))
            draw_mark(drawing, layout, x, &dashes, title, "size");
    }
}

/* Draws vertical lines through all rows, with their names above the plot. */
static void policies_draw_marks(struct mt_drawing *drawing, const struct policies_layout *layout)
{
    const struct mt_paint bound = {.stroke = MT_COLOR_LIMIT, .stroke_width = 1.8};
    const struct mt_policy_table *table = layout->table;
    struct names names = {.count = 0};
    char n[2][MT_UNITS_TEXT], text[MT_UNITS_TEXT + 20];

    snprintf(text, sizeof text, "lower bound %s", mt_format_bytes(n[0], table->bound_bytes));
    draw_name(drawing, layout, &names, policies_x(layout, table->bound_bytes), text, true);
    draw_sizes(drawing, layout, &names);
    draw_mark(drawing, layout, policies_x(layout, table->bound_bytes), &bound,
              mt_arena_printf(&drawing->arena, "lower bound: %s B",
                              mt_format_count(n[1], table->bound_bytes)),
              "bound");
    for (uint32_t i = 0; i < layout->rows; i++)
        draw_diamond(drawing, layout, &table->rows[i], layout->plot.y + (i + 0.5) * layout->pitch);
}

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
    return mt_arena_printf(
        &drawing->arena, "%s \xE2\x80\x94 the same requests under %u setting%s",
        mt_chart_frame_short(drawing, table->name && *table->name ? table->name : "trace", 120),
        (unsigned)table->row_count, table->row_count == 1 ? "" : "s");
}

static bool any_depends_on_memory(const struct mt_policy_table *table)
{
    for (uint32_t i = 0; i < table->row_count; i++)
        if (mt_fit_depends_on_memory(&table->rows[i].fit))
            return true;
    return false;
}

static const char *requests_of(struct mt_drawing *drawing, const struct mt_policy_table *table)
{
    char n[MT_UNITS_TEXT];

    if (table->starts_in_middle)
        return "starts in the middle: memory allocated before is taken as recorded";
    return mt_arena_printf(
        &drawing->arena, "%s",
        mt_format_counted(n, mt_policy_row_requests(&table->rows[0]), "request"));
}

static const char *facts_of(struct mt_drawing *drawing, const struct mt_policy_table *table)
{
    char n[2][MT_UNITS_TEXT];

    return mt_arena_printf(
        &drawing->arena,
        "device %u \xC2\xB7 %s \xC2\xB7 lower bound for any allocator = peak of the live "
        "requested bytes = %s (%s B)",
        (unsigned)table->device, requests_of(drawing, table),
        mt_format_bytes(n[0], table->bound_bytes), mt_format_count(n[1], table->bound_bytes));
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
        most = fmax(most, policies_label_width(drawing, &table->rows[i]));
    return round(fmin(fmax(most, drawing->width * 0.2), drawing->width * 0.28));
}

static void place_columns(struct mt_drawing *drawing, struct policies_layout *layout)
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

static void set_top(struct policies_layout *layout)
{
    uint64_t most = 1;

    for (uint32_t i = 0; i < layout->table->row_count; i++) {
        most = mt_max_u64(most, layout->table->rows[i].fit.reserved_peak_bytes);
        most = mt_max_u64(most, layout->table->rows[i].fit.high_bytes);
    }
    layout->top = (uint64_t)fmin((double)most * 1.06, 1.8e19);
}

/* Places all parts. A low picture omits small print first, then the finding, then rows at the end
 * of the list. */
static void place(struct mt_drawing *drawing, struct policies_layout *layout, double y)
{
    const struct mt_policy_table *table = layout->table;
    double bottom = drawing->height - 10, least = HEAD + AXIS_HEIGHT + 2 * MIN_PITCH;

    place_columns(drawing, layout);
    set_top(layout);
    if (bottom - y - 40 - least >= 0)
        bottom = mt_chart_frame_footnote(drawing, footnote) - 8;
    if (bottom - y - LEGEND_HEIGHT - least >= 0)
        y = draw_legend(drawing, y + 12);
    double finding = finding_height(drawing, table, drawing->width) + 12;
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
    struct policies_layout layout = {.table = table};
    double width = mt_chart_frame_width(options->width);

    mt_drawing_init(drawing, width, mt_chart_frame_height(options->height, 600), "policies");
    drawing->height =
        mt_chart_frame_height(options->height, standard_height(drawing, table, width));
    const char *title = title_of(drawing, table);
    mt_drawing_describe(drawing, title, table->finding[0]);
    mt_drawing_metadata(drawing, "Software", "memtrace");
    mt_drawing_metadata(drawing, "memtrace:schema", "memtrace.picture/1");
    place(drawing, &layout, mt_chart_frame_header(drawing, title, facts_of(drawing, table)));
    policies_draw_axis(drawing, &layout);
    policies_draw_rows(drawing, &layout);
    policies_draw_marks(drawing, &layout);
}
