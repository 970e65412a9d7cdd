/* Rows of the flame chart. Cells with room for a word stand alone. Neighbours
 * without, if their colours are alike, are drawn as a crowd: one cell that says
 * how many calls of what it is. A crowd does not cross the edge of what is
 * drawn above it. */
#include "flamechart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cell_label.h"
#include "icicle.h"
#include "site.h"
#include "units.h"
#include "util.h"

enum { MAX_CELLS = 220 };

#define LEAST_WORD 26.0 /* pixels of a cell that may hold a word */
#define LEAST_CELL 0.4  /* narrower ones are drawn so wide */

/* ---- which rows ------------------------------------------------------ */

static bool is_left_out(const struct mt_flamechart *chart, const struct mt_cell *cell)
{
    return cell->kind == MT_CELL_FRAME && cell->row < chart->frame_row + chart->common_rows;
}

/* Cells without a stack stand where the first visible frames stand. */
static uint32_t row_of(const struct mt_flamechart *chart, const struct mt_cell *cell)
{
    return cell->kind == MT_CELL_NO_STACK ? chart->frame_row + chart->common_rows : cell->row;
}

static uint64_t magnitude(int64_t value)
{
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

enum mt_status mt_flame_plan_rows(struct mt_flame_plan *plan)
{
    const struct mt_flamechart *chart = plan->chart;
    uint32_t rows = chart->row_count + chart->common_rows + 1;

    plan->rows = mt_arena_array(&plan->drawing->arena, rows, sizeof *plan->rows);
    if (!plan->rows)
        return MT_ERR_MEMORY;
    for (uint32_t i = 0; i < chart->cell_count; i++)
        if (!is_left_out(chart, &chart->cells[i])) {
            plan->rows[row_of(chart, &chart->cells[i])] = 1;
            plan->largest_net = mt_max_u64(plan->largest_net, magnitude(chart->cells[i].net_bytes));
        }
    for (uint32_t row = 0; row < rows; row++)
        plan->rows[row] = plan->rows[row] ? (int32_t)plan->row_count++ : -1;
    return MT_OK;
}

enum mt_color mt_flame_color(const struct mt_flame_plan *plan, int64_t net)
{
    double share = plan->largest_net ? (double)magnitude(net) / (double)plan->largest_net : 0;
    int distance = (int)lround(8 * pow(fmin(share, 1), 0.6));

    return (enum mt_color)((int)MT_COLOR_CHANGE_0 + 8 + (net < 0 ? -distance : distance));
}

/* ---- words ----------------------------------------------------------- */

static const char *no_stack_name(const struct mt_flame_plan *plan, const struct mt_cell *cell)
{
    return mt_phase_is_backward(plan->report->phases, plan->report->phase_count, cell->phase)
               ? "autograd engine"
               : "no stack recorded";
}

static const char *phase_name(const struct mt_flame_plan *plan, const struct mt_cell *cell)
{
    const struct mt_phase *phase;

    if (cell->phase < 0 || (uint32_t)cell->phase >= plan->report->phase_count)
        return "";
    phase = &plan->report->phases[cell->phase];
    if (cell->kind == MT_CELL_STEP && phase->step != MT_NO_STEP)
        return mt_frame_where(plan->drawing, plan->report, cell->phase, phase->step);
    return phase->name;
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

/* As a person would say it in full. */
static const char *full_name(const struct mt_flame_plan *plan, const struct mt_cell *cell)
{
    switch (cell->kind) {
    case MT_CELL_STEP:
    case MT_CELL_PHASE: return cell->merged > 1 ? "phases" : phase_name(plan, cell);
    case MT_CELL_NO_STACK: return no_stack_name(plan, cell);
    case MT_CELL_FRAME: break;
    }
    if (cell->frame == MT_NO_ID)
        return "calls";
    return or_empty(mt_frame_label(&plan->drawing->arena, plan->report->symbols, cell->frame));
}

static const char *span_text(const struct mt_flame_plan *plan, const struct mt_cell *cell)
{
    char begin[MT_UNITS_TEXT], length[MT_UNITS_TEXT];

    return or_empty(
        mt_arena_printf(&plan->drawing->arena, "%s from %s",
                        mt_format_duration(length, cell->end_t_ns - cell->begin_t_ns),
                        mt_format_duration(begin, cell->begin_t_ns - plan->chart->begin_t_ns)));
}

static const char *cell_title(const struct mt_flame_plan *plan, const struct mt_cell *cell,
                              const char *name)
{
    char net[MT_UNITS_TEXT], peak[MT_UNITS_TEXT], count[MT_UNITS_TEXT];
    bool counted = cell->merged > 1;

    return mt_arena_printf(&plan->drawing->arena, "%s%s%s: net %s, peak %s, %s",
                           counted ? mt_format_count(count, cell->merged) : "",
                           counted ? " × " : "", name, mt_format_change(net, cell->net_bytes),
                           mt_format_bytes(peak, cell->peak_allocated), span_text(plan, cell));
}

/* ---- one cell -------------------------------------------------------- */

static double left_of(const struct mt_flame_plan *plan, const struct mt_cell *cell)
{
    return mt_time_axis_x(&plan->axis, cell->begin_t_ns, cell->begin_event);
}

static double right_of(const struct mt_flame_plan *plan, const struct mt_cell *cell)
{
    return mt_time_axis_x(&plan->axis, cell->end_t_ns, cell->end_event);
}

static struct mt_cell_box box_of(const struct mt_flame_plan *plan, const struct mt_cell *cell,
                                 int32_t row)
{
    double left = left_of(plan, cell), width = right_of(plan, cell) - left;
    struct mt_cell_box box = {.x = left,
                              .y = plan->rows_top + MT_FLAME_PITCH * row,
                              .width = fmax(width - (width > 2.5 ? 1 : 0), LEAST_CELL),
                              .height = MT_FLAME_PITCH - 2,
                              .fill = mt_flame_color(plan, cell->net_bytes)};

    return box;
}

static const char *const cell_roles[] = {"cell:step", "cell:phase", "cell:frame", "cell:no-stack"};

static void draw_box(const struct mt_flame_plan *plan, const struct mt_cell_box *box,
                     const char *title, const char *role)
{
    struct mt_paint paint = {.fill = box->fill, .radius = box->width > 6 ? 2 : 0};

    mt_draw_rect(plan->drawing, box->x, box->y, box->width, box->height, &paint, title, role);
}

/* The widest part of a box between folds of the axis: text goes there. */
static struct mt_cell_box text_part(const struct mt_flame_plan *plan, const struct mt_cell_box *box)
{
    struct mt_cell_box best = *box;

    best.width = 0;
    for (uint32_t i = 0; i < mt_time_axis_spans(&plan->axis); i++) {
        double left = fmax(box->x, mt_time_axis_span_left(&plan->axis, i));
        double right = fmin(box->x + box->width, mt_time_axis_span_right(&plan->axis, i));

        if (right - left > best.width) {
            best.x = left;
            best.width = right - left;
        }
    }
    return best;
}

/* "forward  peak 3.11 GiB" if that fits, else the name. */
static const char *phase_text(const struct mt_flame_plan *plan, const struct mt_cell *cell,
                              double room)
{
    const char *name = full_name(plan, cell), *text;
    char peak[MT_UNITS_TEXT];

    text = mt_arena_printf(&plan->drawing->arena, "%s  peak %s", name,
                           mt_format_bytes(peak, cell->peak_allocated));
    if (text && 1.06 * mt_text_width(text, MT_CELL_TEXT, MT_REGULAR) <= room)
        return text;
    text = mt_phase_short_name(name);
    if (text && 1.06 * mt_text_width(name, MT_CELL_TEXT, MT_REGULAR) > room)
        return text;
    return name;
}

static const char *cell_text(const struct mt_flame_plan *plan, const struct mt_cell *cell,
                             double room)
{
    if (cell->kind == MT_CELL_FRAME && cell->frame != MT_NO_ID)
        return mt_cell_frame_text(plan->drawing, plan->report->symbols, cell->frame, room);
    if (cell->kind == MT_CELL_PHASE)
        return phase_text(plan, cell, room);
    return full_name(plan, cell);
}

static void draw_cell(const struct mt_flame_plan *plan, const struct mt_cell *cell, int32_t row)
{
    struct mt_cell_box box = box_of(plan, cell, row), part = text_part(plan, &box);
    char net[MT_UNITS_TEXT];

    draw_box(plan, &box, cell_title(plan, cell, full_name(plan, cell)), cell_roles[cell->kind]);
    mt_cell_write(plan->drawing, &part, cell_text(plan, cell, mt_cell_room(&part)),
                  mt_format_change(net, cell->net_bytes));
}

/* ---- crowds ---------------------------------------------------------- */

/* Several cells as one; `cell` is their sum. */
struct crowd {
    struct mt_cell cell;
    uint32_t cells;
    double right;
    enum mt_color color;           /* of the first */
    bool same_function, same_file; /* of all frames */
};

static const struct mt_frame *frame_of(const struct mt_flame_plan *plan, const struct mt_cell *cell)
{
    const struct mt_symbols *symbols = plan->report->symbols;

    return cell->kind == MT_CELL_FRAME && cell->frame < symbols->frame_count
               ? &symbols->frames[cell->frame]
               : NULL;
}

static void begin_crowd(const struct mt_flame_plan *plan, struct crowd *crowd,
                        const struct mt_cell *cell)
{
    crowd->cell = *cell;
    crowd->cells = 1;
    crowd->right = right_of(plan, cell);
    crowd->color = mt_flame_color(plan, cell->net_bytes);
    crowd->same_function = crowd->same_file = frame_of(plan, cell) != NULL;
}

static void join_crowd(const struct mt_flame_plan *plan, struct crowd *crowd,
                       const struct mt_cell *cell)
{
    const struct mt_frame *a = frame_of(plan, &crowd->cell), *b = frame_of(plan, cell);
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
    crowd->right = right_of(plan, cell);
}

static const char *plural_name(const struct mt_flame_plan *plan, const struct mt_cell *cell)
{
    switch (cell->kind) {
    case MT_CELL_STEP: return "steps";
    case MT_CELL_PHASE: return "phases";
    case MT_CELL_NO_STACK: return no_stack_name(plan, cell);
    case MT_CELL_FRAME: break;
    }
    return "calls";
}

/* "150 × forward train.py", "50 × forward", "150 calls" */
static const char *crowd_name(const struct mt_flame_plan *plan, const struct crowd *crowd,
                              bool with_file)
{
    struct mt_arena *arena = &plan->drawing->arena;
    const struct mt_frame *frame = frame_of(plan, &crowd->cell);
    const char *function, *place;

    if (!frame || !crowd->same_function || !crowd->same_file)
        return plural_name(plan, &crowd->cell);
    function = or_empty(mt_frame_function(arena, plan->report->symbols, crowd->cell.frame));
    place = or_empty(mt_frame_place(arena, plan->report->symbols, crowd->cell.frame));
    if (!with_file || !*place)
        return function;
    return or_empty(mt_arena_printf(arena, "%s %.*s", function, (int)strcspn(place, ":"), place));
}

/* As much of "150 × forward train.py" as fits, at least "150 calls". */
static const char *crowd_text(const struct mt_flame_plan *plan, const struct crowd *crowd,
                              double room)
{
    struct mt_arena *arena = &plan->drawing->arena;
    bool named = crowd->same_function && crowd->same_file;
    char count[MT_UNITS_TEXT];
    const char *tries[3];

    if (crowd->cell.kind == MT_CELL_NO_STACK)
        return no_stack_name(plan, &crowd->cell);
    mt_format_count(count, crowd->cell.merged);
    tries[0] =
        mt_arena_printf(arena, "%s %s%s", count, named ? "× " : "", crowd_name(plan, crowd, true));
    tries[1] =
        mt_arena_printf(arena, "%s %s%s", count, named ? "× " : "", crowd_name(plan, crowd, false));
    tries[2] = mt_arena_printf(arena, "%s %s", count, plural_name(plan, &crowd->cell));
    for (size_t i = 0; i < MT_ARRAY_LEN(tries); i++)
        if (tries[i] && 1.06 * mt_text_width(tries[i], MT_CELL_TEXT, MT_REGULAR) <= room)
            return tries[i];
    return "";
}

static void draw_crowd(struct mt_flame_plan *plan, struct crowd *crowd, int32_t row)
{
    struct mt_cell_box box, part;
    char net[MT_UNITS_TEXT];

    if (crowd->cells == 1)
        draw_cell(plan, &crowd->cell, row);
    if (crowd->cells > 1) {
        plan->merged_calls += crowd->cell.merged;
        box = box_of(plan, &crowd->cell, row);
        draw_box(plan, &box, cell_title(plan, &crowd->cell, crowd_name(plan, crowd, true)),
                 "cell:crowd");
        part = text_part(plan, &box);
        mt_cell_write(plan->drawing, &part, crowd_text(plan, crowd, mt_cell_room(&part)),
                      mt_format_change(net, crowd->cell.net_bytes));
    }
    crowd->cells = 0;
}

/* ---- rows ------------------------------------------------------------ */

/* x of the ends of all that is drawn so far, ascending. */
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

/* Is there an edge between two neighbours? O(log n). */
static bool edge_between(const struct edges *edges, size_t count, double left, double right)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (edges->x[middle] < left - 0.01)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && edges->x[low] <= right + 0.01;
}

/* Which cells stand alone and which join. */
struct row_rules {
    double word;  /* pixels: narrower calls join crowds */
    double phase; /* narrower steps and phases do */
    double gap;   /* crowds reach across smaller gaps */
    bool any_color;
};

static bool joins(const struct mt_flame_plan *plan, const struct crowd *crowd,
                  const struct mt_cell *cell, const struct edges *edges, size_t edge_count,
                  const struct row_rules *rules)
{
    double left = left_of(plan, cell);
    int apart = (int)mt_flame_color(plan, cell->net_bytes) - (int)crowd->color;

    return crowd->cells && left - crowd->right < rules->gap &&
           (rules->any_color || abs(apart) <= 1) &&
           !edge_between(edges, edge_count, crowd->right, left);
}

/* Draws the crowd, unless row is -1. */
static uint32_t end_crowd(struct mt_flame_plan *plan, struct crowd *crowd, struct edges *edges,
                          int32_t row)
{
    if (!crowd->cells)
        return 0;
    add_edge(edges, left_of(plan, &crowd->cell));
    add_edge(edges, crowd->right);
    if (row >= 0)
        draw_crowd(plan, crowd, row);
    crowd->cells = 0;
    return 1;
}

/* Cells of one row of the picture, from left to right. */
struct row_cells {
    const struct mt_cell **cells;
    uint32_t count;
};

static int compare_begins(const void *a, const void *b)
{
    const struct mt_cell *const *left = a, *const *right = b;

    if ((*left)->begin_event != (*right)->begin_event)
        return (*left)->begin_event < (*right)->begin_event ? -1 : 1;
    return *left < *right ? -1 : *left > *right;
}

static void find_row(const struct mt_flame_plan *plan, int32_t row, struct row_cells *found)
{
    const struct mt_flamechart *chart = plan->chart;

    found->count = 0;
    for (uint32_t i = 0; i < chart->cell_count; i++)
        if (!is_left_out(chart, &chart->cells[i]) &&
            plan->rows[row_of(chart, &chart->cells[i])] == row)
            found->cells[found->count++] = &chart->cells[i];
    if (found->count)
        qsort(found->cells, found->count, sizeof *found->cells, compare_begins);
}

static double least_width(const struct mt_cell *cell, const struct row_rules *rules)
{
    switch (cell->kind) {
    case MT_CELL_STEP:
    case MT_CELL_PHASE: return rules->phase;
    case MT_CELL_NO_STACK: return fmax(LEAST_WORD, rules->phase);
    case MT_CELL_FRAME: break;
    }
    return rules->word;
}

/* Draws (or only counts) the cells of one row of the picture. */
static uint32_t pass_row(struct mt_flame_plan *plan, const struct row_cells *cells, int32_t row,
                         struct edges *edges, const struct row_rules *rules)
{
    struct crowd crowd = {.cells = 0};
    size_t above = edges->count;
    uint32_t count = 0;

    for (uint32_t i = 0; i < cells->count; i++) {
        const struct mt_cell *cell = cells->cells[i];
        bool alone = right_of(plan, cell) - left_of(plan, cell) >= least_width(cell, rules);

        if (!alone && joins(plan, &crowd, cell, edges, above, rules)) {
            join_crowd(plan, &crowd, cell);
            continue;
        }
        count += end_crowd(plan, &crowd, edges, row);
        begin_crowd(plan, &crowd, cell);
        if (alone)
            count += end_crowd(plan, &crowd, edges, row);
    }
    count += end_crowd(plan, &crowd, edges, row);
    if (edges->count)
        qsort(edges->x, edges->count, sizeof *edges->x, compare_doubles);
    return count;
}

/* From the finest picture to the coarsest. */
static const struct row_rules stages[] = {
    {LEAST_WORD, 3, 1.5, false}, {LEAST_WORD, 3, 1.5, true}, {40, 4, 3, true},   {60, 6, 6, true},
    {100, 12, 12, true},         {200, 26, 26, true},        {300, 80, 80, true}};

static bool make_room(const struct mt_flame_plan *plan, struct row_cells *cells,
                      struct edges *edges)
{
    edges->count = 0;
    edges->capacity = 2 * (size_t)plan->chart->cell_count;
    edges->x = mt_arena_array(&plan->drawing->arena, edges->capacity, sizeof *edges->x);
    cells->cells =
        mt_arena_array(&plan->drawing->arena, plan->chart->cell_count, sizeof *cells->cells);
    if (!edges->x || !cells->cells)
        plan->drawing->failed = true;
    return edges->x && cells->cells;
}

/* How many rows, from the outermost, hold at most MAX_CELLS cells. */
static uint32_t rows_that_fit(struct mt_flame_plan *plan, struct row_cells *cells,
                              struct edges *edges, const struct row_rules *rules)
{
    uint32_t count = 0, row;

    edges->count = 0;
    for (row = 0; row < plan->row_count; row++) {
        find_row(plan, (int32_t)row, cells);
        count += pass_row(plan, cells, -1, edges, rules);
        if (count > MAX_CELLS)
            break;
    }
    return row;
}

void mt_flame_plan_cells(struct mt_flame_plan *plan)
{
    struct row_cells cells;
    struct edges edges;
    uint32_t rows = 0;

    if (!make_room(plan, &cells, &edges))
        return;
    for (plan->stage = 0; plan->stage < MT_ARRAY_LEN(stages); plan->stage++) {
        rows = rows_that_fit(plan, &cells, &edges, &stages[plan->stage]);
        if (rows == plan->row_count)
            return;
    }
    plan->stage--;
    plan->rows_cut += plan->row_count - rows;
    plan->row_count = rows;
}

void mt_flame_draw_rows(struct mt_flame_plan *plan)
{
    struct row_cells cells;
    struct edges edges;

    if (!make_room(plan, &cells, &edges))
        return;
    for (uint32_t row = 0; row < plan->row_count; row++) {
        find_row(plan, (int32_t)row, &cells);
        pass_row(plan, &cells, (int32_t)row, &edges, &stages[plan->stage]);
    }
}
