/* A wide cell is written when it closes. A narrow one waits with the surrounding cell: the next
 * narrow neighbor joins it, until the two are wide, or a wide neighbor or a gap follows. Cells that
 * wait inside a narrow cell move with it. So merged cells of two corresponding rows differ by at
 * most a few bins at their edges, and the number of cells is always O(bins * rows). */
#include "cell_nest.h"

#include "process_memory.h"
#include "symbols.h"
#include "util.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_CELLS = 256 };

struct mt_cell_chunk {
    struct mt_cell_chunk *next;
    uint32_t count;
    struct mt_cell cells[CHUNK_CELLS];
};

void mt_cell_nest_init(struct mt_cell_nest *nest, struct mt_arena *arena, uint64_t bin_ns,
                       uint64_t bin_events)
{
    struct mt_cell *waiting =
        mt_arena_array(arena, (size_t)(MT_NEST_ROWS + 1) * MT_NEST_ROWS, sizeof *waiting);

    memset(nest, 0, sizeof *nest);
    nest->arena = arena;
    nest->bin_ns = bin_ns;
    nest->bin_events = bin_events;
    for (size_t i = 0; i <= MT_NEST_ROWS; i++)
        nest->open[i].waiting = waiting + i * MT_NEST_ROWS;
}

static void emit(struct mt_cell_nest *nest, const struct mt_cell *cell)
{
    struct mt_cell_chunk *chunk = nest->chunks;

    if (!chunk || chunk->count == CHUNK_CELLS) {
        chunk = mt_arena_alloc(nest->arena, sizeof *chunk);
        chunk->next = nest->chunks;
        nest->chunks = chunk;
    }
    chunk->cells[chunk->count++] = *cell;
    nest->cell_count++;
}

static uint32_t lowest_row(uint32_t rows)
{
    return (uint32_t)__builtin_ctz(rows);
}

/* Writes the cells that wait in the open cell at `depth`. Cells that wait further out precede them
 * and must not grow across them, so they go first. */
static void flush(struct mt_cell_nest *nest, uint32_t depth)
{
    for (uint32_t i = 0; i <= depth; i++) {
        struct mt_open_cell *open = &nest->open[i];

        for (; open->waiting_rows; open->waiting_rows &= open->waiting_rows - 1) {
            emit(nest, &open->waiting[lowest_row(open->waiting_rows)]);
        }
    }
}

static bool is_narrow(const struct mt_cell_nest *nest, const struct mt_cell *from,
                      const struct mt_cell *to)
{
    return to->end_t_ns - from->begin_t_ns < nest->bin_ns &&
           to->end_event - from->begin_event < nest->bin_events;
}

static bool is_gap(const struct mt_cell_nest *nest, const struct mt_cell *left,
                   const struct mt_cell *right)
{
    return right->begin_t_ns - left->end_t_ns >= nest->bin_ns ||
           right->begin_event - left->end_event >= nest->bin_events;
}

/* Adds a narrow cell to what waits in its row of `around`. */
static void join(struct mt_open_cell *around, const struct mt_cell *cell)
{
    struct mt_cell *into = &around->waiting[cell->row];

    if (!(around->waiting_rows >> cell->row & 1)) {
        *into = *cell;
        around->waiting_rows |= 1u << cell->row;
        return;
    }
    if (into->kind != cell->kind || into->frame != cell->frame)
        into->frame = MT_NO_ID;
    if (into->kind != cell->kind)
        into->kind = MT_CELL_FRAME;
    into->merged += cell->merged;
    into->end_t_ns = cell->end_t_ns;
    into->end_event = cell->end_event;
    into->net_bytes += cell->net_bytes;
    into->peak_allocated = mt_max_u64(into->peak_allocated, cell->peak_allocated);
}

/* The narrow cell that was closed last, and the cells waiting in it, now wait in the surrounding
 * one. */
static void wait_in(struct mt_cell_nest *nest, struct mt_open_cell *around,
                    struct mt_open_cell *inner)
{
    const struct mt_cell *waiting = &around->waiting[inner->cell.row];

    if (around->waiting_rows >> inner->cell.row & 1 && is_gap(nest, waiting, &inner->cell)) {
        flush(nest, nest->open_count);
    }
    join(around, &inner->cell);
    for (; inner->waiting_rows; inner->waiting_rows &= inner->waiting_rows - 1)
        join(around, &inner->waiting[lowest_row(inner->waiting_rows)]);
    if (!is_narrow(nest, waiting, waiting))
        flush(nest, nest->open_count);
}

void mt_cell_nest_open(struct mt_cell_nest *nest, const struct mt_cell *cell)
{
    struct mt_open_cell *open = &nest->open[++nest->open_count];

    open->cell = *cell;
    open->cell.merged = 1;
    open->cell.net_bytes = 0;
}

void mt_cell_nest_change(struct mt_cell_nest *nest, int64_t delta, uint64_t allocated_after)
{
    struct mt_cell *cell = &nest->open[nest->open_count].cell;

    cell->net_bytes += delta;
    cell->peak_allocated = mt_max_u64(cell->peak_allocated, allocated_after);
}

void mt_cell_nest_close(struct mt_cell_nest *nest, uint64_t t_ns, uint64_t event)
{
    struct mt_open_cell *inner = &nest->open[nest->open_count--];
    struct mt_open_cell *around = &nest->open[nest->open_count];
    struct mt_cell *cell = &inner->cell;

    cell->end_t_ns = t_ns;
    cell->end_event = event;
    around->cell.net_bytes += cell->net_bytes;
    around->cell.peak_allocated = mt_max_u64(around->cell.peak_allocated, cell->peak_allocated);
    if (is_narrow(nest, cell, cell)) {
        wait_in(nest, around, inner);
        return;
    }
    flush(nest, nest->open_count);
    emit(nest, cell);
    flush(nest, nest->open_count + 1);
}

static int compare_cells(const void *a, const void *b)
{
    const struct mt_cell *left = a, *right = b;

    if (left->row != right->row)
        return left->row < right->row ? -1 : 1;
    if (left->begin_event != right->begin_event)
        return left->begin_event < right->begin_event ? -1 : 1;
    if (left->end_event != right->end_event)
        return left->end_event < right->end_event ? -1 : 1;
    return left->begin_t_ns < right->begin_t_ns ? -1 : left->begin_t_ns > right->begin_t_ns;
}

void mt_cell_nest_finish(struct mt_cell_nest *nest, struct mt_cell **cells, uint32_t *count)
{
    uint32_t filled = 0;

    flush(nest, 0);
    *cells = mt_arena_array(nest->arena, nest->cell_count, sizeof **cells);
    for (struct mt_cell_chunk *chunk = nest->chunks; chunk; chunk = chunk->next) {
        memcpy(*cells + filled, chunk->cells, chunk->count * sizeof **cells);
        filled += chunk->count;
    }
    if (filled)
        qsort(*cells, filled, sizeof **cells, compare_cells);
    *count = filled;
}
