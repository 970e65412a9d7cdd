#include "lifetimes_model.h"

#include <math.h>
#include <stdlib.h>

#include "util.h"

#define NO_CELL 0 /* the index has position + 1 */

struct mt_lifetimes_builder {
    struct mt_arena *arena;
    struct mt_lifetimes *lifetimes;
    uint32_t *index; /* by row and column: position in cells + 1 */
    uint32_t capacity;
};

/* 2^(k/3) and 10^(k/5): constants, so that no library's rounding moves an edge. */
static const double thirds[MT_SIZES_PER_DOUBLING] = {1, 1.2599210498948732, 1.5874010519681994};
static const double fifths[MT_LIVES_PER_DECADE] = {1, 1.5848931924611136, 2.51188643150958,
                                                   3.9810717055349722, 6.309573444801933};
static const double powers[] = {1,    1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,
                                1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19};

double mt_size_edge(uint32_t column)
{
    return ldexp(thirds[column % MT_SIZES_PER_DOUBLING], (int)(column / MT_SIZES_PER_DOUBLING));
}

double mt_life_edge(uint32_t row)
{
    return fifths[row % MT_LIVES_PER_DECADE] * powers[row / MT_LIVES_PER_DECADE];
}

uint32_t mt_size_column(uint64_t bytes)
{
    uint32_t column;

    if (bytes <= 1)
        return 0;
    column = MT_SIZES_PER_DOUBLING * mt_log2_floor(bytes);
    while (column + 1 < MT_SIZE_COLUMNS && (double)bytes > mt_size_edge(column))
        column++;
    return column;
}

uint32_t mt_life_row(uint64_t ns)
{
    /* 5 log10(2) = 1.50515: at most the row that it belongs to */
    uint32_t row = ns ? mt_log2_floor(ns) * 1505 / 1000 : 0;

    while (row + 1 < MT_LIFE_UNTIL_END && (double)ns >= mt_life_edge(row + 1))
        row++;
    return row;
}

void mt_lifetimes_builder_new(struct mt_arena *arena, struct mt_lifetimes_builder **builder)
{
    struct mt_lifetimes_builder *made = mt_arena_alloc(arena, sizeof *made);

    made->arena = arena;
    made->lifetimes = mt_arena_alloc(arena, sizeof *made->lifetimes);
    made->index =
        mt_arena_array(arena, (size_t)MT_LIFE_ROWS * MT_SIZE_COLUMNS, sizeof *made->index);
    *builder = made;
}

/* Cells are in the arena: a larger array leaves the smaller ones behind, which together are
 * smaller. */
static void make_room(struct mt_lifetimes_builder *builder)
{
    struct mt_lifetimes *lifetimes = builder->lifetimes;
    uint32_t capacity = builder->capacity ? 2 * builder->capacity : 64, i;
    struct mt_lifetime_cell *bigger;

    if (lifetimes->cell_count < builder->capacity)
        return;
    bigger = mt_arena_array(builder->arena, capacity, sizeof *bigger);
    for (i = 0; i < lifetimes->cell_count; i++)
        bigger[i] = lifetimes->cells[i];
    lifetimes->cells = bigger;
    builder->capacity = capacity;
}

static void count(struct mt_lifetime_sum *sum, uint64_t bytes)
{
    sum->blocks++;
    sum->bytes += bytes;
}

static void count_all(struct mt_lifetimes *lifetimes, const struct mt_lifetime *life)
{
    count(&lifetimes->all, life->bytes);
    if (life->bytes <= MT_LIFETIMES_SMALL)
        count(&lifetimes->small, life->bytes);
    if (!life->ended)
        count(&lifetimes->until_end, life->bytes);
    else if (life->ns < MT_LIFETIMES_BRIEF_NS && !life->is_older)
        count(&lifetimes->brief, life->bytes);
    if (life->is_older)
        count(&lifetimes->older, life->bytes);
    lifetimes->largest_bytes = mt_max_u64(lifetimes->largest_bytes, life->bytes);
}

void mt_lifetimes_builder_add(struct mt_lifetimes_builder *builder, const struct mt_lifetime *life)
{
    struct mt_lifetimes *lifetimes = builder->lifetimes;
    uint32_t column = mt_size_column(life->bytes);
    uint32_t row = life->ended ? mt_life_row(life->ns) : MT_LIFE_UNTIL_END;
    uint32_t *place = &builder->index[(size_t)row * MT_SIZE_COLUMNS + column];
    struct mt_lifetime_cell *cell;

    if (*place == NO_CELL) {
        make_room(builder);
        lifetimes->cells[lifetimes->cell_count] =
            (struct mt_lifetime_cell){.size = (uint16_t)column, .life = (uint16_t)row};
        *place = ++lifetimes->cell_count;
    }
    cell = &lifetimes->cells[*place - 1];
    cell->blocks++;
    cell->bytes += life->bytes;
    cell->role_bytes[life->role] += life->bytes;
    count_all(lifetimes, life);
}

static int by_place(const void *a, const void *b)
{
    const struct mt_lifetime_cell *x = a, *y = b;

    return x->life != y->life ? (int)x->life - (int)y->life : (int)x->size - (int)y->size;
}

struct mt_lifetimes *mt_lifetimes_builder_finish(struct mt_lifetimes_builder *builder)
{
    struct mt_lifetimes *lifetimes = builder->lifetimes;

    if (lifetimes->cell_count)
        qsort(lifetimes->cells, lifetimes->cell_count, sizeof *lifetimes->cells, by_place);
    return lifetimes;
}
