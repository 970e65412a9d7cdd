/* The map. A row of pixels combines the rows of the model that overlap with its bytes. A column of
 * pixels shows the fullest of the columns of the model in it. Equal neighbors become one
 * rectangle. */
#include "address.h"

#include <math.h>
#include <string.h>

#include "theme.h"

#define FULL         65535.0
#define FREE         0xFE /* reserved, without blocks */
#define WHITE        0xFF
#define CELLS        8000 /* limit for DEFAULT_AREA pixels; a cell takes about 15 bytes of SVG */
#define DEFAULT_AREA 900e3
#define MAX_CELLS    400000
#define MIN_BORDER   3.0 /* pixels; lower segments get no line */

double mt_address_y(const struct mt_address_layout *layout, uint64_t bytes)
{
    return layout->plot.y + layout->plot.height * (1 - (double)bytes / (double)layout->top);
}

void mt_address_stack_places(struct mt_address_layout *layout)
{
    const struct mt_address *address = layout->address;

    layout->begins = mt_arena_array(&layout->drawing->arena, (size_t)address->place_count + 1,
                                    sizeof *layout->begins);
    for (uint32_t i = 0; i < address->place_count; i++) {
        layout->begins[i] = layout->bytes;
        layout->bytes += address->places[i].bytes;
    }
}

/* Returns the fullest column of the model whose middle is in [from, to), where 0..1 is the whole
 * axis. If there is none, returns the column that contains the middle of the range. */
static uint32_t fullest(const struct mt_address_axis *model, double from, double to)
{
    double count = model->column_count;
    double first = ceil(from * count - 0.5), end = ceil(to * count - 0.5);

    if (end <= first) {
        first = floor((from + to) / 2 * count);
        end = first + 1;
    }
    first = fmin(fmax(first, 0), count - 1);
    end = fmin(fmax(end, first + 1), count);
    uint32_t best = (uint32_t)first;
    for (uint32_t i = best + 1; i < (uint32_t)end; i++)
        if (model->columns[i].allocated > model->columns[best].allocated)
            best = i;
    return best;
}

/* Returns the position of a pixel on the axis, 0..1. A pixel in a fold has the position of the edge
 * after the fold. */
static double position(const struct mt_address_layout *layout, double x)
{
    const struct mt_timeline *timeline = layout->axis.timeline;
    uint32_t spans = mt_time_axis_spans(&layout->axis);

    if (layout->axis.by_event)
        return (x - layout->axis.left) / layout->axis.width;
    for (uint32_t i = spans; i > 0; i--) {
        double left = mt_time_axis_span_left(&layout->axis, i - 1);
        double right = mt_time_axis_span_right(&layout->axis, i - 1), from, to;

        if (x < left && i > 1)
            continue;
        from = mt_timeline_position(timeline, timeline->spans[i - 1].begin_t_ns);
        to = mt_timeline_position(timeline, timeline->spans[i - 1].end_t_ns);
        return right > left ? from + (to - from) * fmin(fmax((x - left) / (right - left), 0), 1)
                            : from;
    }
    return 0;
}

/* Bytes that one column of the model has in the range of a row of pixels. */
struct sum {
    float reserved, covered, of_role[MT_ROLE_COUNT];
};

/* A row of the model in a row of pixels. */
struct part {
    uint32_t row;
    double bytes;
};

struct painter {
    struct mt_address_layout *layout;
    uint32_t width, height; /* size of the grid */
    uint32_t *columns;      /* for each column of the grid: column of the model */
    struct part *parts;     /* of this row */
    uint32_t part_count;
    /* Columns of the model between two starts are equal in this row. */
    uint64_t *marks; /* one bit for each column: whether it is a start */
    uint32_t *starts, start_count;
    uint32_t *numbers; /* for each start: its place in `starts` */
    struct sum *sums;  /* for each start */
    uint8_t *row;      /* values of this row */
    uint32_t *open;    /* for each column of the grid: 1 + the rectangle that may grow there */
    struct mt_grid_cell *cells;
    uint8_t *values; /* one for each cell */
    uint32_t count, capacity;
    uint32_t place; /* the place in which the row begins */
};

static void mark(struct painter *painter, uint32_t column)
{
    painter->marks[column / 64] |= UINT64_C(1) << column % 64;
}

static void add_part(struct painter *painter, uint32_t row, double share)
{
    const struct mt_address_axis *model = painter->layout->model;

    for (uint32_t i = model->first_run[row]; i < model->first_run[row + 1]; i++) {
        mark(painter, model->runs[i].begin);
        mark(painter, model->runs[i].end);
    }
    painter->parts[painter->part_count++] =
        (struct part){row, share * (double)painter->layout->address->bytes_per_row / FULL};
}

/* Adds the rows of a place that overlap with bytes [low, high) of the picture. */
static void add_place(struct painter *painter, uint32_t index, double low, double high)
{
    const struct mt_address_range *place = &painter->layout->address->places[index];
    double place_begin = (double)painter->layout->begins[index];
    double per_row = (double)painter->layout->address->bytes_per_row;
    double from = fmax(low - place_begin, 0);
    double to = fmin(high - place_begin, (double)place->bytes);

    for (uint32_t i = (uint32_t)(from / per_row); i < place->row_count; i++) {
        double begin = i * per_row, end = fmin(begin + per_row, (double)place->bytes);
        double shared = fmin(end, to) - fmax(begin, from);

        if (begin >= to)
            break;
        if (shared > 0)
            add_part(painter, place->rows[i], shared / (end - begin));
    }
}

static void list_starts(struct painter *painter)
{
    uint32_t column_count = painter->layout->model->column_count;

    mark(painter, 0);
    mark(painter, column_count);
    painter->start_count = 0;
    for (uint32_t word = 0; word <= column_count / 64; word++)
        for (uint64_t bits = painter->marks[word]; bits; bits &= bits - 1) {
            uint32_t column = 64 * word + (uint32_t)__builtin_ctzll(bits);

            painter->numbers[column] = painter->start_count;
            painter->starts[painter->start_count++] = column;
        }
    painter->start_count--; /* the last one is the end */
    memset(painter->marks, 0, (column_count / 64 + 1) * sizeof *painter->marks);
}

static void sum_part(struct painter *painter, const struct part *part)
{
    const struct mt_address_axis *model = painter->layout->model;

    for (uint32_t i = model->first_run[part->row]; i < model->first_run[part->row + 1]; i++) {
        const struct mt_mosaic_run *run = &model->runs[i];
        float reserved = (float)(part->bytes * run->cell.reserved);
        float covered = (float)(part->bytes * run->cell.covered);

        for (uint32_t at = painter->numbers[run->begin]; painter->starts[at] < run->end; at++) {
            painter->sums[at].reserved += reserved;
            painter->sums[at].covered += covered;
            painter->sums[at].of_role[run->cell.role] += covered;
        }
    }
}

static uint8_t value_of(const struct sum *sum, double bytes)
{
    unsigned best = 0, tint;

    if (sum->covered <= 0)
        return sum->reserved >= 0.5 * bytes ? FREE : WHITE;
    for (unsigned role = 1; role < MT_ROLE_COUNT; role++)
        if (sum->of_role[role] > sum->of_role[best])
            best = role;
    tint = (unsigned)fmin(fmax(floor((double)sum->covered / bytes * (MT_TINTS - 1) + 0.5), 1),
                          MT_TINTS - 1);
    return (uint8_t)(best * MT_TINTS + tint);
}

/* Fills row `y` of the grid, counted from the upper edge. */
static void fill_row(struct painter *painter, uint32_t y)
{
    struct mt_address_layout *layout = painter->layout;
    double per_pixel = (double)layout->top / painter->height;
    double low = per_pixel * (painter->height - 1 - y), high = low + per_pixel;
    uint32_t i = painter->place;

    painter->part_count = 0;
    while (i > 0 && (double)layout->begins[i] > low)
        i--;
    painter->place = i;
    for (; i < layout->address->place_count && (double)layout->begins[i] < high; i++)
        add_place(painter, i, low, high);
    list_starts(painter);
    memset(painter->sums, 0, painter->start_count * sizeof *painter->sums);
    for (i = 0; i < painter->part_count; i++)
        sum_part(painter, &painter->parts[i]);
    for (uint32_t x = 0, at = 0, known = UINT32_MAX; x < painter->width; x++) {
        if (painter->columns[x] < painter->starts[at])
            at = 0;
        while (painter->columns[x] >= painter->starts[at + 1])
            at++;
        painter->row[x] =
            at == known ? painter->row[x - 1] : value_of(&painter->sums[at], per_pixel);
        known = at;
    }
}

/* Adds a run of equal pixels: extends the rectangle above it, or begins a new one. */
static void add_cell(struct painter *painter, uint32_t x, uint32_t width, uint32_t y)
{
    uint32_t above = painter->open[x];
    struct mt_grid_cell *cell = above ? &painter->cells[above - 1] : NULL;

    if (cell && cell->x == x && cell->width == width && cell->y + (uint32_t)cell->height == y &&
        painter->values[above - 1] == painter->row[x]) {
        cell->height++;
        return;
    }
    if (painter->count == painter->capacity) {
        painter->count++; /* the caller sees that there are too many */
        return;
    }
    painter->cells[painter->count] =
        (struct mt_grid_cell){(uint16_t)x, (uint16_t)y, (uint16_t)width, 1};
    painter->values[painter->count++] = painter->row[x];
    painter->open[x] = painter->count;
}

/* Returns false if there are more rectangles than fit. */
static bool paint(struct painter *painter)
{
    uint32_t place_count = painter->layout->address->place_count;

    painter->count = 0;
    painter->place = place_count ? place_count - 1 : 0;
    memset(painter->open, 0, painter->width * sizeof *painter->open);
    for (uint32_t y = 0; y < painter->height; y++) {
        fill_row(painter, y);
        for (uint32_t x = 0, end; x < painter->width; x = end) {
            for (end = x + 1; end < painter->width && painter->row[end] == painter->row[x]; end++)
                ;
            if (painter->row[x] != WHITE)
                add_cell(painter, x, end - x, y);
            if (painter->count > painter->capacity)
                return false;
        }
    }
    return true;
}

static void make_painter(struct mt_address_layout *layout, struct painter *painter)
{
    struct mt_arena *arena = &layout->drawing->arena;
    size_t width = (size_t)ceil(layout->plot.width * 2) + 1;
    size_t columns = (size_t)layout->model->column_count + 1;
    double area = layout->plot.width * layout->plot.height;

    painter->layout = layout;
    painter->capacity = (uint32_t)fmin(fmax(CELLS, CELLS * area / DEFAULT_AREA), MAX_CELLS);
    painter->columns = mt_arena_array(arena, width, sizeof *painter->columns);
    painter->row = mt_arena_array(arena, width, sizeof *painter->row);
    painter->open = mt_arena_array(arena, width, sizeof *painter->open);
    painter->parts =
        mt_arena_array(arena, (size_t)layout->address->row_count + 1, sizeof *painter->parts);
    painter->marks = mt_arena_array(arena, columns / 64 + 1, sizeof *painter->marks);
    memset(painter->marks, 0, (columns / 64 + 1) * sizeof *painter->marks);
    painter->starts = mt_arena_array(arena, columns, sizeof *painter->starts);
    painter->numbers = mt_arena_array(arena, columns, sizeof *painter->numbers);
    painter->sums = mt_arena_array(arena, columns, sizeof *painter->sums);
    painter->cells = mt_arena_array(arena, painter->capacity, sizeof *painter->cells);
    painter->values = mt_arena_array(arena, painter->capacity, sizeof *painter->values);
}

static void set_grid(struct painter *painter)
{
    struct mt_address_layout *layout = painter->layout;

    painter->width = (uint32_t)fmax(1, floor(layout->plot.width / layout->unit));
    painter->height = (uint32_t)fmax(1, floor(layout->plot.height / layout->unit));
    for (uint32_t x = 0; x < painter->width; x++) {
        double left = layout->plot.x + layout->plot.width * x / painter->width;

        painter->columns[x] = fullest(layout->model, position(layout, left),
                                      position(layout, left + layout->plot.width / painter->width));
    }
}

/* Draws the cells of one value, in their order, as one operation. */
static void draw_value(const struct painter *painter, uint8_t value, struct mt_grid_cell *cells)
{
    const struct mt_address_layout *layout = painter->layout;
    struct mt_grid grid = {layout->plot.x, layout->plot.y, painter->width * layout->unit,
                           painter->height * layout->unit, layout->unit};
    struct mt_paint paint = {.fill = mt_role_color((enum mt_role)(value / MT_TINTS)),
                             .tint = (uint8_t)(value % MT_TINTS + 1)};
    size_t count = 0;

    if (value == FREE)
        paint = (struct mt_paint){.fill = MT_COLOR_UNUSED, .tint = 1};
    for (uint32_t i = 0; i < painter->count; i++)
        if (painter->values[i] == value)
            cells[count++] = painter->cells[i];
    if (count)
        mt_draw_cells(layout->drawing, &grid, cells, count, &paint,
                      value == FREE ? "map:free" : "map");
}

static void draw_values(const struct painter *painter)
{
    struct mt_arena *arena = &painter->layout->drawing->arena;
    uint32_t counts[256] = {0};

    for (uint32_t i = 0; i < painter->count; i++)
        counts[painter->values[i]]++;
    for (unsigned value = 0; value < WHITE; value++) {
        struct mt_grid_cell *cells = NULL;

        if (!counts[value])
            continue;
        cells = mt_arena_array(arena, counts[value], sizeof *cells);
        if (value != FREE)
            painter->layout->roles[value / MT_TINTS] = true;
        draw_value(painter, (uint8_t)value, cells);
    }
}

void mt_address_draw_map(struct mt_address_layout *layout)
{
    struct painter painter = {0};

    make_painter(layout, &painter);
    /* Begins with the device pixels of a picture at scale 2, and makes the grid coarser while there
     * are too many cells. The coarsest grid has fewer cells than the limit. */
    for (layout->unit = 0.5; layout->unit <= MT_ADDRESS_GRID; layout->unit *= 2) {
        set_grid(&painter);
        if (paint(&painter))
            break;
    }
    draw_values(&painter);
}

void mt_address_draw_borders(const struct mt_address_layout *layout)
{
    const struct mt_paint line = {.stroke = MT_COLOR_BACKGROUND, .stroke_width = 0.5};

    for (uint32_t i = 1; i < layout->address->place_count; i++) {
        double y = mt_address_y(layout, layout->begins[i]);
        double below = mt_address_y(layout, layout->begins[i - 1]) - y;
        double above =
            y - mt_address_y(layout, layout->begins[i] + layout->address->places[i].bytes);

        if (fmin(below, above) >= MIN_BORDER)
            mt_draw_line(layout->drawing, layout->plot.x, y, layout->plot.x + layout->plot.width, y,
                         &line);
    }
}
