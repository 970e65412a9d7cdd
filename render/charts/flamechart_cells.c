/* Cells of the flame chart: their names, and how a cell or a crowd is drawn. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cell_label.h"
#include "flamechart_layout.h"
#include "flamechart_model.h"
#include "icicle.h"
#include "report_query.h"
#include "site.h"
#include "sorted.h"
#include "time_axis.h"
#include "units.h"
#include "util.h"

/* Several cells that are drawn as one. `cell` is their sum. */
struct crowd {
    struct mt_cell cell;
    uint32_t cells;
    double right;
    enum mt_color color;           /* color of the first cell */
    bool same_function, same_file; /* all frames have the same function, or the same file */
};

#define MIN_CELL 0.4 /* pixels; narrower cells get this width */

enum mt_color mt_flame_color(const struct mt_flame_layout *layout, int64_t net)
{
    double share =
        layout->largest_net ? (double)mt_magnitude(net) / (double)layout->largest_net : 0;
    int distance = (int)lround(8 * pow(fmin(share, 1), 0.6));

    return (enum mt_color)((int)MT_COLOR_CHANGE_0 + 8 + (net < 0 ? -distance : distance));
}

static const char *no_stack_name(const struct mt_flame_layout *layout, const struct mt_cell *cell)
{
    return mt_phase_is_backward(layout->report->phases, layout->report->phase_count, cell->phase)
               ? "autograd engine"
               : "no stack recorded";
}

static const char *phase_name(const struct mt_flame_layout *layout, const struct mt_cell *cell)
{
    if (cell->phase < 0 || (uint32_t)cell->phase >= layout->report->phase_count)
        return "";
    const struct mt_phase *phase = &layout->report->phases[cell->phase];
    if (cell->kind == MT_CELL_STEP && phase->step != MT_NO_STEP)
        return mt_chart_frame_where(layout->drawing, layout->report, cell->phase, phase->step);
    return phase->name;
}

/* Returns the complete name of a cell for users. */
static const char *full_name(const struct mt_flame_layout *layout, const struct mt_cell *cell)
{
    switch (cell->kind) {
    case MT_CELL_STEP:
    case MT_CELL_PHASE: return cell->merged > 1 ? "phases" : phase_name(layout, cell);
    case MT_CELL_NO_STACK: return no_stack_name(layout, cell);
    case MT_CELL_FRAME: break;
    }
    if (cell->frame == MT_NO_ID)
        return "calls";
    return mt_frame_label(&layout->drawing->arena, layout->report->symbols, cell->frame);
}

static const char *span_text(const struct mt_flame_layout *layout, const struct mt_cell *cell)
{
    char begin[MT_UNITS_TEXT], length[MT_UNITS_TEXT];

    if (!mt_report_has_times(layout->report))
        return mt_arena_printf(&layout->drawing->arena, "from event %s",
                               mt_format_count(begin, cell->begin_event));
    return mt_arena_printf(&layout->drawing->arena, "%s from %s",
                           mt_format_duration(length, cell->end_t_ns - cell->begin_t_ns),
                           mt_format_duration(begin, cell->begin_t_ns - layout->zero_t_ns));
}

static const char *cell_title(const struct mt_flame_layout *layout, const struct mt_cell *cell,
                              const char *name)
{
    char net[MT_UNITS_TEXT], peak[MT_UNITS_TEXT], count[MT_UNITS_TEXT];
    bool counted = cell->merged > 1;

    return mt_arena_printf(&layout->drawing->arena, "%s%s%s: net %s, peak %s, %s",
                           counted ? mt_format_count(count, cell->merged) : "",
                           counted ? " × " : "", name, mt_format_change(net, cell->net_bytes),
                           mt_format_bytes(peak, cell->peak_allocated), span_text(layout, cell));
}

/* Return the x of the edges of a cell. */
static double flame_left(const struct mt_flame_layout *layout, const struct mt_cell *cell)
{
    return mt_time_axis_x(&layout->axis, cell->begin_t_ns, cell->begin_event);
}

static double flame_right(const struct mt_flame_layout *layout, const struct mt_cell *cell)
{
    return mt_time_axis_x(&layout->axis, cell->end_t_ns, cell->end_event);
}

static struct mt_cell_box box_of(const struct mt_flame_layout *layout, const struct mt_cell *cell,
                                 int32_t row)
{
    double left = flame_left(layout, cell), width = flame_right(layout, cell) - left;
    struct mt_cell_box box = {.x = left,
                              .y = layout->rows_top + MT_FLAME_PITCH * row,
                              .width = fmax(width - (width > 2.5 ? 1 : 0), MIN_CELL),
                              .height = MT_FLAME_PITCH - 2,
                              .fill = mt_flame_color(layout, cell->net_bytes)};

    return box;
}

static const char *const cell_roles[] = {"cell:step", "cell:phase", "cell:frame", "cell:no-stack"};

static void draw_box(const struct mt_flame_layout *layout, const struct mt_cell_box *box,
                     const char *title, const char *role)
{
    struct mt_paint paint = {.fill = box->fill, .radius = box->width > 6 ? 2 : 0};

    mt_draw_rect(layout->drawing, box->x, box->y, box->width, box->height, &paint, title, role);
}

/* Returns the widest part of a box between folds of the axis. Text is drawn there. */
static struct mt_cell_box text_part(const struct mt_flame_layout *layout,
                                    const struct mt_cell_box *box)
{
    struct mt_cell_box best = *box;

    best.width = 0;
    for (uint32_t i = 0; i < mt_time_axis_spans(&layout->axis); i++) {
        double left = fmax(box->x, mt_time_axis_span_left(&layout->axis, i));
        double right = fmin(box->x + box->width, mt_time_axis_span_right(&layout->axis, i));

        if (right - left > best.width) {
            best.x = left;
            best.width = right - left;
        }
    }
    return best;
}

/* Returns "forward  peak 3.11 GiB" if that fits, else the name. */
static const char *phase_text(const struct mt_flame_layout *layout, const struct mt_cell *cell,
                              double room)
{
    const char *name = full_name(layout, cell);
    char peak[MT_UNITS_TEXT];
    const char *text = mt_arena_printf(&layout->drawing->arena, "%s  peak %s", name,
                                       mt_format_bytes(peak, cell->peak_allocated));

    if (1.06 * mt_text_width(text, MT_CELL_TEXT, MT_REGULAR) <= room)
        return text;
    text = mt_phase_short_name(name);
    if (text && 1.06 * mt_text_width(name, MT_CELL_TEXT, MT_REGULAR) > room)
        return text;
    return name;
}

static const char *cell_text(const struct mt_flame_layout *layout, const struct mt_cell *cell,
                             double room)
{
    if (cell->kind == MT_CELL_FRAME && cell->frame != MT_NO_ID)
        return mt_cell_frame_text(layout->drawing, layout->report->symbols, cell->frame, room);
    if (cell->kind == MT_CELL_PHASE)
        return phase_text(layout, cell, room);
    return full_name(layout, cell);
}

static void draw_cell(const struct mt_flame_layout *layout, const struct mt_cell *cell, int32_t row)
{
    struct mt_cell_box box = box_of(layout, cell, row), part = text_part(layout, &box);
    char net[MT_UNITS_TEXT];

    draw_box(layout, &box, cell_title(layout, cell, full_name(layout, cell)),
             cell_roles[cell->kind]);
    mt_cell_write(layout->drawing, &part, cell_text(layout, cell, mt_cell_room(&part)),
                  mt_format_change(net, cell->net_bytes));
}

static const struct mt_frame *frame_of(const struct mt_flame_layout *layout,
                                       const struct mt_cell *cell)
{
    const struct mt_symbols *symbols = layout->report->symbols;

    return cell->kind == MT_CELL_FRAME && cell->frame < symbols->frame_count
               ? &symbols->frames[cell->frame]
               : NULL;
}

static void crowd_begin(const struct mt_flame_layout *layout, struct crowd *crowd,
                        const struct mt_cell *cell)
{
    crowd->cell = *cell;
    crowd->cells = 1;
    crowd->right = flame_right(layout, cell);
    crowd->color = mt_flame_color(layout, cell->net_bytes);
    crowd->same_function = crowd->same_file = frame_of(layout, cell) != NULL;
}

static void crowd_join(const struct mt_flame_layout *layout, struct crowd *crowd,
                       const struct mt_cell *cell)
{
    const struct mt_frame *a = frame_of(layout, &crowd->cell), *b = frame_of(layout, cell);
    struct mt_cell *sum = &crowd->cell;

    crowd->same_function &= a && b && a->function == b->function;
    crowd->same_file &= a && b && a->file == b->file;
    if (sum->kind != cell->kind)
        sum->kind = MT_CELL_FRAME;
    sum->merged += cell->merged;
    sum->net_bytes += cell->net_bytes;
    sum->peak_allocated = mt_max_u64(sum->peak_allocated, cell->peak_allocated);
    sum->end_t_ns = cell->end_t_ns;
    sum->end_event = cell->end_event;
    crowd->cells++;
    crowd->right = flame_right(layout, cell);
}

static const char *plural_name(const struct mt_flame_layout *layout, const struct mt_cell *cell)
{
    switch (cell->kind) {
    case MT_CELL_STEP: return "steps";
    case MT_CELL_PHASE: return "phases";
    case MT_CELL_NO_STACK: return no_stack_name(layout, cell);
    case MT_CELL_FRAME: break;
    }
    return "calls";
}

/* Returns the name of a crowd: "150 × forward train.py", "50 × forward", or "150 calls". */
static const char *crowd_name(const struct mt_flame_layout *layout, const struct crowd *crowd,
                              bool with_file)
{
    struct mt_arena *arena = &layout->drawing->arena;
    const struct mt_frame *frame = frame_of(layout, &crowd->cell);

    if (!frame || !crowd->same_function || !crowd->same_file)
        return plural_name(layout, &crowd->cell);
    const char *function = mt_frame_function(arena, layout->report->symbols, crowd->cell.frame);
    const char *place = mt_frame_position(arena, layout->report->symbols, crowd->cell.frame);
    if (!with_file || !*place)
        return function;
    return mt_arena_printf(arena, "%s %.*s", function, (int)strcspn(place, ":"), place);
}

/* Returns as much of the name of a crowd as fits, but at least "150 calls". */
static const char *crowd_text(const struct mt_flame_layout *layout, const struct crowd *crowd,
                              double room)
{
    struct mt_arena *arena = &layout->drawing->arena;
    bool named = crowd->same_function && crowd->same_file;
    char count[MT_UNITS_TEXT];
    const char *tries[3];

    if (crowd->cell.kind == MT_CELL_NO_STACK)
        return no_stack_name(layout, &crowd->cell);
    mt_format_count(count, crowd->cell.merged);
    tries[0] = mt_arena_printf(arena, "%s %s%s", count, named ? "× " : "",
                               crowd_name(layout, crowd, true));
    tries[1] = mt_arena_printf(arena, "%s %s%s", count, named ? "× " : "",
                               crowd_name(layout, crowd, false));
    tries[2] = mt_arena_printf(arena, "%s %s", count, plural_name(layout, &crowd->cell));
    for (size_t i = 0; i < MT_ARRAY_LEN(tries); i++)
        if (tries[i] && 1.06 * mt_text_width(tries[i], MT_CELL_TEXT, MT_REGULAR) <= room)
            return tries[i];
    return "";
}

/* Draws the crowd, or a plain cell if the crowd contains only one. The crowd is empty
 * afterwards. */
static void crowd_draw(struct mt_flame_layout *layout, struct crowd *crowd, int32_t row)
{
    char net[MT_UNITS_TEXT];

    if (crowd->cells == 1)
        draw_cell(layout, &crowd->cell, row);
    if (crowd->cells > 1) {
        layout->merged_calls += crowd->cell.merged;
        struct mt_cell_box box = box_of(layout, &crowd->cell, row);
        draw_box(layout, &box, cell_title(layout, &crowd->cell, crowd_name(layout, crowd, true)),
                 "cell:crowd");
        struct mt_cell_box part = text_part(layout, &box);
        mt_cell_write(layout->drawing, &part, crowd_text(layout, crowd, mt_cell_room(&part)),
                      mt_format_change(net, crowd->cell.net_bytes));
    }
    crowd->cells = 0;
}

/* Rows of the flame chart. Cells with room for a word are drawn separately. Adjacent narrower cells
 * with similar colors are drawn as a crowd: one cell with the number of calls. A crowd does not
 * cross an edge of the row above it. */

enum { MAX_CELLS = 220 };

#define MIN_WORD 26.0 /* pixels; a narrower cell has no word */

static bool is_left_out(const struct mt_flamechart *chart, const struct mt_cell *cell)
{
    return cell->kind == MT_CELL_FRAME && cell->row < chart->frame_row + chart->common_rows;
}

/* Cells without a stack are in the row of the first visible frames. */
static uint32_t row_of(const struct mt_flamechart *chart, const struct mt_cell *cell)
{
    return cell->kind == MT_CELL_NO_STACK ? chart->frame_row + chart->common_rows : cell->row;
}

void mt_flame_layout_rows(struct mt_flame_layout *layout)
{
    const struct mt_flamechart *chart = layout->chart;
    uint32_t rows = chart->row_count + chart->common_rows + 1;

    layout->rows = mt_arena_array(&layout->drawing->arena, rows, sizeof *layout->rows);
    for (uint32_t i = 0; i < chart->cell_count; i++)
        if (!is_left_out(chart, &chart->cells[i])) {
            layout->rows[row_of(chart, &chart->cells[i])] = 1;
            layout->largest_net =
                mt_max_u64(layout->largest_net, mt_magnitude(chart->cells[i].net_bytes));
        }
    for (uint32_t row = 0; row < rows; row++)
        layout->rows[row] = layout->rows[row] ? (int32_t)layout->row_count++ : -1;
}

/* The x of both ends of all cells that are drawn so far, ascending. */
struct edges {
    double *x;
    size_t count, capacity;
};

static void add_edge(struct edges *edges, double x)
{
    if (edges->count < edges->capacity)
        edges->x[edges->count++] = x;
}

static int compare_doubles(const void *a, const void *b)
{
    const double *left = a, *right = b;

    return *left < *right ? -1 : *left > *right;
}

/* Returns true if there is an edge between two neighbors. O(log n). */
static bool edge_between(const struct edges *edges, size_t count, double left, double right)
{
    size_t low = 0;

    MT_BISECT(low, count, middle, edges->x[middle] < left - 0.01);
    return low < count && edges->x[low] <= right + 0.01;
}

/* Rules for drawing cells separately or merging them. All sizes are in pixels. */
struct row_rules {
    double word;  /* narrower calls join crowds */
    double phase; /* narrower steps and phases join crowds */
    double gap;   /* a crowd continues across smaller gaps */
    double most;  /* maximum width of a crowd */
    bool any_color;
};

static bool joins(const struct mt_flame_layout *layout, const struct crowd *crowd,
                  const struct mt_cell *cell, const struct edges *edges, size_t edge_count,
                  const struct row_rules *rules)
{
    double left = flame_left(layout, cell), right = flame_right(layout, cell);
    int apart = (int)mt_flame_color(layout, cell->net_bytes) - (int)crowd->color;

    return crowd->cells && left - crowd->right < rules->gap &&
           right - flame_left(layout, &crowd->cell) <= rules->most &&
           (rules->any_color || abs(apart) <= 1) &&
           !edge_between(edges, edge_count, crowd->right, left);
}

/* Ends the crowd and draws it, unless `row` is -1. Returns the number of cells, 0 or 1. */
static uint32_t end_crowd(struct mt_flame_layout *layout, struct crowd *crowd, struct edges *edges,
                          int32_t row)
{
    if (!crowd->cells)
        return 0;
    add_edge(edges, flame_left(layout, &crowd->cell));
    add_edge(edges, crowd->right);
    if (row >= 0)
        crowd_draw(layout, crowd, row);
    crowd->cells = 0;
    return 1;
}

/* Cells of one row of the picture, from left to right. */
struct row_cells {
    const struct mt_cell **cells;
    uint32_t count;
};

MT_DEFINE_POINTER_ORDER(compare_begins, struct mt_cell, MT_ASCENDING(begin_event) || MT_BY_PLACE)

static void find_row(const struct mt_flame_layout *layout, int32_t row, struct row_cells *found)
{
    const struct mt_flamechart *chart = layout->chart;

    found->count = 0;
    for (uint32_t i = 0; i < chart->cell_count; i++)
        if (!is_left_out(chart, &chart->cells[i]) &&
            layout->rows[row_of(chart, &chart->cells[i])] == row)
            found->cells[found->count++] = &chart->cells[i];
    if (found->count)
        qsort(found->cells, found->count, sizeof *found->cells, compare_begins);
}

static double least_width(const struct mt_cell *cell, const struct row_rules *rules)
{
    switch (cell->kind) {
    case MT_CELL_STEP:
    case MT_CELL_PHASE: return rules->phase;
    case MT_CELL_NO_STACK: return fmax(MIN_WORD, rules->phase);
    case MT_CELL_FRAME: break;
    }
    return rules->word;
}

/* Draws the cells of one row of the picture, or only counts them if `row` is -1. Returns their
 * number. */
static uint32_t pass_row(struct mt_flame_layout *layout, const struct row_cells *cells, int32_t row,
                         struct edges *edges, const struct row_rules *rules)
{
    struct crowd crowd = {.cells = 0};
    size_t above = edges->count;
    uint32_t count = 0;

    for (uint32_t i = 0; i < cells->count; i++) {
        const struct mt_cell *cell = cells->cells[i];
        bool alone =
            flame_right(layout, cell) - flame_left(layout, cell) >= least_width(cell, rules);

        if (!alone && joins(layout, &crowd, cell, edges, above, rules)) {
            crowd_join(layout, &crowd, cell);
            continue;
        }
        count += end_crowd(layout, &crowd, edges, row);
        crowd_begin(layout, &crowd, cell);
        if (alone)
            count += end_crowd(layout, &crowd, edges, row);
    }
    count += end_crowd(layout, &crowd, edges, row);
    if (edges->count)
        qsort(edges->x, edges->count, sizeof *edges->x, compare_doubles);
    return count;
}

/* Rules from the finest picture to the coarsest. */
static const struct row_rules stages[] = {{MIN_WORD, 3, 1.5, HUGE_VAL, false},
                                          {MIN_WORD, 3, 1.5, HUGE_VAL, true},
                                          {40, 4, 3, 90, true},
                                          {60, 6, 6, 120, true},
                                          {100, 12, 18, 160, true},
                                          {200, 26, 26, 220, true},
                                          {300, 80, 80, 320, true}};

static void make_room(const struct mt_flame_layout *layout, struct row_cells *cells,
                      struct edges *edges)
{
    edges->count = 0;
    edges->capacity = 2 * (size_t)layout->chart->cell_count;
    edges->x = mt_arena_array(&layout->drawing->arena, edges->capacity, sizeof *edges->x);
    cells->cells =
        mt_arena_array(&layout->drawing->arena, layout->chart->cell_count, sizeof *cells->cells);
}

/* Returns the number of outermost rows that have at most MAX_CELLS cells together. */
static uint32_t rows_that_fit(struct mt_flame_layout *layout, struct row_cells *cells,
                              struct edges *edges, const struct row_rules *rules)
{
    uint32_t count = 0, row;

    edges->count = 0;
    for (row = 0; row < layout->row_count; row++) {
        find_row(layout, (int32_t)row, cells);
        count += pass_row(layout, cells, -1, edges, rules);
        if (count > MAX_CELLS)
            break;
    }
    return row;
}

void mt_flame_layout_cells(struct mt_flame_layout *layout)
{
    struct row_cells cells;
    struct edges edges;
    uint32_t rows = 0;

    make_room(layout, &cells, &edges);
    for (layout->stage = 0; layout->stage < MT_ARRAY_LEN(stages); layout->stage++) {
        rows = rows_that_fit(layout, &cells, &edges, &stages[layout->stage]);
        if (rows == layout->row_count)
            return;
    }
    layout->stage--;
    layout->rows_cut += layout->row_count - rows;
    layout->row_count = rows;
}

void mt_flame_draw_rows(struct mt_flame_layout *layout)
{
    struct row_cells cells;
    struct edges edges;

    make_room(layout, &cells, &edges);
    for (uint32_t row = 0; row < layout->row_count; row++) {
        find_row(layout, (int32_t)row, &cells);
        pass_row(layout, &cells, (int32_t)row, &edges, &stages[layout->stage]);
    }
}
