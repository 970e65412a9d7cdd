/* Nested intervals of time as they open and close, with the changes of memory in each. Narrow ones
 * are merged with their neighbors, so their number depends only on the resolution
 * (flamechart_model.h defines a cell). */
#ifndef MT_ANALYZER_CELL_NEST_H
#define MT_ANALYZER_CELL_NEST_H

#include "arena.h"
#include "flamechart_cell.h"
#include "status.h"

/* Rows of cells; an inner cell is in a larger row than the surrounding one. */
#define MT_NEST_ROWS 31 /* <= 32: rows are bits of a mask */

struct mt_open_cell {
    struct mt_cell cell;
    /* By row: narrow cells inside this one that wait for more of their kind. Deeper ones are inside
     * the shallower ones. */
    struct mt_cell *waiting;
    uint32_t waiting_rows; /* bit r: a cell waits in row r */
};

struct mt_cell_chunk;

struct mt_cell_nest {
    struct mt_arena *arena;
    uint64_t bin_ns, bin_events;                /* narrow: below both */
    struct mt_open_cell open[MT_NEST_ROWS + 1]; /* [0] surrounds all and is not a cell */
    uint32_t open_count;                        /* without [0] */
    struct mt_cell_chunk *chunks;
    uint32_t cell_count;
};

void mt_cell_nest_init(struct mt_cell_nest *nest, struct mt_arena *arena, uint64_t bin_ns,
                       uint64_t bin_events);

/* Opens a cell inside the innermost open one: kind, row, phase, frame, begin_* and peak_allocated
 * (the level at its start) as given. */
void mt_cell_nest_open(struct mt_cell_nest *nest, const struct mt_cell *cell);

/* Records a change of memory in the innermost cell. O(1). */
void mt_cell_nest_change(struct mt_cell_nest *nest, int64_t delta, uint64_t allocated_after);

/* Closes the innermost cell. */
void mt_cell_nest_close(struct mt_cell_nest *nest, uint64_t t_ns, uint64_t event);

/* All cells by row, then start; none may be open. */
void mt_cell_nest_finish(struct mt_cell_nest *nest, struct mt_cell **cells, uint32_t *count);

#endif
