/* Compares random changes of rows with the definition of a mosaic: a column shows all rows at its
 * fullest instant, including its initial state; and checks its bounds. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "dice.h"
#include "mosaic.h"
#include "util.h"

#define ROWS   40
#define EVENTS 600
#define PLACES 4000 /* of the axis, at most */

/* All rows after each event, and where on the axis it was. */
struct history {
    struct mt_mosaic_row states[EVENTS + 1][ROWS];
    uint64_t allocated[EVENTS + 1], place[EVENTS + 1];
    uint32_t events;
    uint64_t length;
};

/* A change that leaves no sum below zero. */
static struct mt_mosaic_change random_change(const struct mt_mosaic_row *rows)
{
    struct mt_mosaic_change change = {.row = (uint32_t)linear_below(ROWS),
                                      .role = (uint8_t)linear_below(MT_ROLE_COUNT + 1),
                                      .bytes = 1 + (int64_t)linear_below(400)};
    const struct mt_mosaic_row *row = &rows[change.row];
    uint64_t there = change.role == MT_ROLE_COUNT ? row->reserved : row->role_bytes[change.role];

    if (linear_below(2) && there)
        change.bytes = -(int64_t)(1 + linear_below(there));
    return change;
}

static void apply(struct mt_mosaic_row *row, const struct mt_mosaic_change *change)
{
    if (change->role == MT_ROLE_COUNT) {
        row->reserved += (uint64_t)change->bytes;
        return;
    }
    row->covered += (uint64_t)change->bytes;
    row->role_bytes[change->role] += (uint64_t)change->bytes;
}

static uint64_t covered(const struct mt_mosaic_row *rows)
{
    uint64_t sum = 0;

    for (int i = 0; i < ROWS; i++)
        sum += rows[i].covered;
    return sum;
}

/* Plays a history into the mosaic, and notes it. */
static void play(struct history *history, struct mt_mosaic_rows *rows, struct mt_mosaic *mosaic)
{
    uint64_t place = 0;

    memset(history->states[0], 0, sizeof history->states[0]);
    history->allocated[0] = history->place[0] = 0;
    for (uint32_t event = 1; event <= history->events; event++) {
        struct mt_mosaic_column now = {.event = event, .t_ns = event};

        place = mt_min_u64(place + (linear_below(3) ? linear_below(3) : linear_below(60)),
                           history->length - 1);
        mt_mosaic_advance(mosaic, place);
        for (uint64_t changes = linear_below(3); changes; changes--) {
            struct mt_mosaic_change change = random_change(rows->rows);

            apply(&rows->rows[change.row], &change);
            mt_mosaic_change(mosaic, &change);
        }
        memcpy(history->states[event], rows->rows, sizeof history->states[event]);
        history->allocated[event] = now.allocated = covered(rows->rows);
        history->place[event] = place;
        mt_mosaic_state(mosaic, &now);
    }
}

/* The event after which a column of this many events was fullest. */
static uint32_t fullest(const struct history *history, uint32_t column, uint32_t columns)
{
    double width = (double)history->length / columns;
    uint32_t best = 0, event = 1;

    while (event <= history->events && (double)history->place[event] < width * column - 1e-9)
        best = event++; /* the state that it begins with */
    if (!best && event <= history->events && (double)history->place[event] < width * (column + 1))
        best = event; /* nothing was before it */
    for (; event <= history->events &&
           (column + 1 == columns || (double)history->place[event] < width * (column + 1) - 1e-9);
         event++)
        if (history->allocated[event] > history->allocated[best])
            best = event;
    return best;
}

static struct mt_mosaic_cell cell_at(const struct mt_mosaic_run *runs, const uint32_t *first_run,
                                     uint32_t row, uint32_t column)
{
    struct mt_mosaic_cell nothing = {0, 0, 0};

    for (uint32_t i = first_run[row]; i < first_run[row + 1]; i++) {
        assert_int_equal(runs[i].row, row);
        assert_true(runs[i].begin < runs[i].end);
        assert_true(i == first_run[row] || runs[i - 1].end <= runs[i].begin);
        if (runs[i].begin <= column && column < runs[i].end)
            return runs[i].cell;
    }
    return nothing;
}

static void check(const struct history *history, const struct mt_mosaic *mosaic,
                  const struct mt_mosaic_run *runs, const uint32_t *first_run)
{
    for (uint32_t column = 0; column < mosaic->column_count; column++) {
        uint32_t event = fullest(history, column, mosaic->column_count);

        if (mosaic->columns[column].allocated != history->allocated[event])
            fail_msg("column %u of %u holds %llu bytes, not %llu", column, mosaic->column_count,
                     (unsigned long long)mosaic->columns[column].allocated,
                     (unsigned long long)history->allocated[event]);
        event = (uint32_t)mosaic->columns[column].event;
        for (uint32_t row = 0; row < ROWS; row++) {
            struct mt_mosaic_cell is = cell_at(runs, first_run, row, column);
            struct mt_mosaic_cell want =
                mt_mosaic_cell_of(&history->states[event][row], mosaic->rows->bytes_per_row);

            if (is.covered != want.covered || is.reserved != want.reserved ||
                (want.covered && is.role != want.role))
                fail_msg("row %u, column %u: not as after event %u", row, column, event);
        }
    }
}

static void one_round(struct history *history)
{
    struct mt_mosaic_row *state = calloc(ROWS, sizeof *state);
    struct mt_mosaic_rows rows = {state, ROWS, ROWS, 1 + linear_below(4000)};
    struct mt_arena arena = {0};
    struct mt_mosaic mosaic;
    struct mt_mosaic_run *runs;
    uint32_t *first_run;

    history->events = 1 + (uint32_t)linear_below(EVENTS);
    history->length = 1 + linear_below(PLACES);
    mt_mosaic_init(&mosaic, &rows, history->length,
                   1 + (uint32_t)linear_below(linear_below(2) ? 9 : 300));
    if (linear_below(2))
        mosaic.most_log = 1 + linear_below(6);
    if (linear_below(2))
        mosaic.most_runs = 1 + linear_below(60);
    play(history, &rows, &mosaic);
    mt_mosaic_finish(&mosaic, &arena, &runs, &first_run);
    check(history, &mosaic, runs, first_run);
    mt_mosaic_release(&mosaic);
    mt_arena_release(&arena);
    free(state);
}

TEST(columns_show_their_fullest_instant)
{
    static struct history history;

    for (uint64_t round = 0; round < 400; round++) {
        random_state = 20261120 + round;
        one_round(&history);
    }
}

/* Columns in which every row changes: runs stay within their bound, by joining. */
TEST(runs_are_bounded)
{
    struct mt_mosaic_row *content = calloc(64, sizeof *content);
    struct mt_mosaic_rows rows = {content, 64, 64, 1000};
    struct mt_arena arena = {0};
    struct mt_mosaic mosaic;
    struct mt_mosaic_run *runs;
    uint32_t *first_run;

    mt_mosaic_init(&mosaic, &rows, 4096, 4096);
    mosaic.most_runs = 5000;
    for (uint64_t i = 0; i < 4096; i++) {
        struct mt_mosaic_column now = {i, i, 1000 + i % 7, 0};

        mt_mosaic_advance(&mosaic, i);
        for (uint32_t row = 0; row < 64; row++) {
            struct mt_mosaic_change change = {row, 0, i % 2 ? 7 : -7};

            change.bytes = i ? change.bytes : 500;
            apply(&content[row], &change);
            mt_mosaic_change(&mosaic, &change);
        }
        mt_mosaic_state(&mosaic, &now);
        assert_true(mosaic.run_count <= 5000 + 2 * 64);
    }
    mt_mosaic_finish(&mosaic, &arena, &runs, &first_run);
    assert_true(mosaic.column_count < 4096 && mosaic.column_count >= 32);
    mt_mosaic_release(&mosaic);
    mt_arena_release(&arena);
    free(content);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
