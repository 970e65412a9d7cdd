/* Rows of the flame chart. Cells with room for a word are drawn separately. Adjacent narrower cells
 * with similar colors are drawn as a crowd: one cell with the number of calls. A crowd does not
 * cross an edge of the row above it. */
#include "flamechart_layout.h"

#include <math.h>
#include <stdlib.h>

#include "util.h"

enum { MAX_CELLS = 220 };

#define MIN_WORD 26.0 /* pixels; the minimum width of a cell with a word */

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

/* Rules for drawing cells separately or merging them. All sizes are in pixels. */
struct row_rules {
    double word;  /* narrower calls join crowds */
    double phase; /* narrower steps and phases join crowds */
    double gap;   /* a crowd continues across smaller gaps */
    double most;  /* maximum width of a crowd */
    bool any_color;
};

static bool joins(const struct mt_flame_layout *layout, const struct mt_crowd *crowd,
                  const struct mt_cell *cell, const struct edges *edges, size_t edge_count,
                  const struct row_rules *rules)
{
    double left = mt_flame_left(layout, cell), right = mt_flame_right(layout, cell);
    int apart = (int)mt_flame_color(layout, cell->net_bytes) - (int)crowd->color;

    return crowd->cells && left - crowd->right < rules->gap &&
           right - mt_flame_left(layout, &crowd->cell) <= rules->most &&
           (rules->any_color || abs(apart) <= 1) &&
           !edge_between(edges, edge_count, crowd->right, left);
}

/* Ends the crowd and draws it, unless `row` is -1. Returns the number of cells, 0 or 1. */
static uint32_t end_crowd(struct mt_flame_layout *layout, struct mt_crowd *crowd,
                          struct edges *edges, int32_t row)
{
    if (!crowd->cells)
        return 0;
    add_edge(edges, mt_flame_left(layout, &crowd->cell));
    add_edge(edges, crowd->right);
    if (row >= 0)
        mt_crowd_draw(layout, crowd, row);
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
    struct mt_crowd crowd = {.cells = 0};
    size_t above = edges->count;
    uint32_t count = 0;

    for (uint32_t i = 0; i < cells->count; i++) {
        const struct mt_cell *cell = cells->cells[i];
        bool alone =
            mt_flame_right(layout, cell) - mt_flame_left(layout, cell) >= least_width(cell, rules);

        if (!alone && joins(layout, &crowd, cell, edges, above, rules)) {
            mt_crowd_join(layout, &crowd, cell);
            continue;
        }
        count += end_crowd(layout, &crowd, edges, row);
        mt_crowd_begin(layout, &crowd, cell);
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
