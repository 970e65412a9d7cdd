/* The rows always have the current state, but a column shows its fullest instant. So changes since
 * that instant are logged, and undone for the affected rows when the column closes. A log that
 * grows too long is closed early: the cells of the instant are computed and kept, at the cost of
 * the log so far. */
#include "mosaic.h"

#include "grow.h"
#include "process_memory.h"
#include "util.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define UNIT 65535.0

static uint16_t share_of(uint64_t bytes, uint64_t bytes_per_row)
{
    double share = (double)bytes / (double)bytes_per_row * UNIT;
    uint32_t units = (uint32_t)fmin(fmax(floor(share + 0.5), 1), UNIT);

    return bytes ? (uint16_t)units : 0;
}

struct mt_mosaic_cell mt_mosaic_cell_of(const struct mt_mosaic_row *row, uint64_t bytes_per_row)
{
    struct mt_mosaic_cell cell = {share_of(row->covered, bytes_per_row),
                                  share_of(row->reserved, bytes_per_row), 0};
    uint64_t most = 0;

    for (unsigned role = 0; role < MT_ROLE_COUNT && row->covered; role++)
        if (row->role_bytes[role] > most) {
            most = row->role_bytes[role];
            cell.role = (uint8_t)role;
        }
    return cell;
}

static bool equal(const struct mt_mosaic_cell *a, const struct mt_mosaic_cell *b)
{
    return a->covered == b->covered && a->reserved == b->reserved && a->role == b->role;
}

static void apply(struct mt_mosaic_row *row, const struct mt_mosaic_change *change, bool undo)
{
    uint64_t bytes = undo ? 0 - (uint64_t)change->bytes : (uint64_t)change->bytes;

    if (change->role == MT_ROLE_COUNT) {
        row->reserved += bytes;
        return;
    }
    row->covered += bytes;
    row->role_bytes[change->role] += bytes;
}

static void set_column_end(struct mt_mosaic *mosaic)
{
    double next = (double)mosaic->at + 1;

    mosaic->column_end =
        mosaic->at + 1 >= mosaic->column_count
            ? UINT64_MAX
            : (uint64_t)ceil(next * ((double)mosaic->length / (double)mosaic->column_count));
}

void mt_mosaic_init(struct mt_mosaic *mosaic, const struct mt_mosaic_rows *rows, uint64_t length,
                    uint32_t columns)
{
    memset(mosaic, 0, sizeof *mosaic);
    mosaic->rows = rows;
    mosaic->most_runs = MT_MOSAIC_RUNS;
    mosaic->most_log = MT_MOSAIC_LOG;
    for (mosaic->column_count = 1; mosaic->column_count < columns && mosaic->column_count < 32768;)
        mosaic->column_count *= 2;
    mosaic->length = mt_max_u64(length, 1);
    mosaic->columns = mt_memory_zeroed(mosaic->column_count, sizeof *mosaic->columns);
    mosaic->picks = mt_memory_zeroed(mosaic->column_count / 2 + 1, sizeof *mosaic->picks);
    set_column_end(mosaic);
}

static void add_run(struct mt_mosaic *mosaic, uint32_t row, uint32_t end)
{
    const struct mt_mosaic_track *track = &mosaic->tracks[row];

    if (track->since == end || (!track->cell.reserved && !track->cell.covered))
        return;
    mt_grow_to(&mosaic->runs, &mosaic->run_capacity, mosaic->run_count + 1, sizeof *mosaic->runs);
    mosaic->runs[mosaic->run_count++] =
        (struct mt_mosaic_run){(uint16_t)row, track->since, (uint16_t)end, track->cell};
}

/* From the open column the row has this cell. */
static void set_cell(struct mt_mosaic *mosaic, uint32_t row, const struct mt_mosaic_cell *cell)
{
    struct mt_mosaic_track *track = &mosaic->tracks[row];

    if (equal(&track->cell, cell))
        return;
    add_run(mosaic, row, mosaic->at);
    track->cell = *cell;
    track->since = (uint16_t)mosaic->at;
}

static void mark(struct mt_mosaic *mosaic, uint32_t row)
{
    if (row >= mosaic->track_count) {
        mt_grow_to(&mosaic->tracks, &mosaic->track_capacity, row + 1u, sizeof *mosaic->tracks);
        memset(mosaic->tracks + mosaic->track_count, 0,
               (row + 1 - mosaic->track_count) * sizeof *mosaic->tracks);
        mosaic->track_count = row + 1;
    }
    if (mosaic->tracks[row].is_changed)
        return;
    mt_grow_to(&mosaic->changed, &mosaic->changed_capacity, mosaic->changed_count + 1,
               sizeof *mosaic->changed);
    mosaic->changed[mosaic->changed_count++] = row;
    mosaic->tracks[row].is_changed = true;
}

/* Cells at the fullest instant: the current state with the logged changes undone. */
static void freeze(struct mt_mosaic *mosaic)
{
    struct mt_mosaic_row *rows = mosaic->rows->rows;

    for (size_t i = mosaic->log_count; i > 0; i--)
        apply(&rows[mosaic->log[i - 1].row], &mosaic->log[i - 1], true);
    for (size_t i = 0; i < mosaic->changed_count; i++)
        mosaic->tracks[mosaic->changed[i]].frozen =
            mt_mosaic_cell_of(&rows[mosaic->changed[i]], mosaic->rows->bytes_per_row);
    for (size_t i = 0; i < mosaic->log_count; i++)
        apply(&rows[mosaic->log[i].row], &mosaic->log[i], false);
}

void mt_mosaic_change(struct mt_mosaic *mosaic, const struct mt_mosaic_change *change)
{
    mark(mosaic, change->row);
    if (mosaic->is_frozen)
        return;
    mt_grow_to(&mosaic->log, &mosaic->log_capacity, mosaic->log_count + 1, sizeof *mosaic->log);
    mosaic->log[mosaic->log_count++] = *change;
    if (mosaic->log_count < mosaic->most_log)
        return;
    freeze(mosaic);
    mosaic->is_frozen = true;
    mosaic->log_count = 0;
}

void mt_mosaic_state(struct mt_mosaic *mosaic, const struct mt_mosaic_column *state)
{
    struct mt_mosaic_column *column = &mosaic->columns[mosaic->at];

    mosaic->now = *state;
    if (state->allocated <= column->allocated && mosaic->started)
        return;
    mosaic->started = true;
    *column = *state;
    mosaic->log_count = 0;
    mosaic->is_frozen = false;
}

/* A boundary after columns were joined: one inside a pair moves to the side of the column that
 * stayed. */
static uint16_t joined(const struct mt_mosaic *mosaic, uint16_t column)
{
    return (uint16_t)(column / 2 + (column % 2 && !mosaic->picks[column / 2]));
}

/* Joins pairs of columns: the fuller one of each stays. Only at even positions. */
static void halve(struct mt_mosaic *mosaic)
{
    size_t kept = 0;

    for (uint32_t k = 0; k < mosaic->at / 2; k++) {
        const struct mt_mosaic_column *pair = &mosaic->columns[2 * (size_t)k];

        mosaic->picks[k] = pair[1].allocated > pair[0].allocated;
        mosaic->columns[k] = pair[mosaic->picks[k]];
    }
    for (size_t i = 0; i < mosaic->run_count; i++) {
        struct mt_mosaic_run run = mosaic->runs[i];

        run.begin = joined(mosaic, run.begin);
        run.end = joined(mosaic, run.end);
        if (run.begin < run.end)
            mosaic->runs[kept++] = run;
    }
    for (uint32_t i = 0; i < mosaic->track_count; i++)
        mosaic->tracks[i].since = joined(mosaic, mosaic->tracks[i].since);
    mosaic->run_count = kept;
    mosaic->at /= 2;
    mosaic->column_count /= 2;
}

/* Changes after the fullest instant are changes of the next column. */
static void carry_marks(struct mt_mosaic *mosaic)
{
    if (mosaic->is_frozen) {
        /* it is no longer known which */
        mosaic->is_frozen = false;
        return;
    }
    for (size_t i = 0; i < mosaic->changed_count; i++)
        mosaic->tracks[mosaic->changed[i]].is_changed = false;
    mosaic->changed_count = 0;
    for (size_t i = 0; i < mosaic->log_count; i++)
        mark(mosaic, mosaic->log[i].row);
    mosaic->log_count = 0;
}

static void close_column(struct mt_mosaic *mosaic)
{
    if (!mosaic->is_frozen)
        freeze(mosaic);
    /* The cells of those that changed after the freeze are their current ones. */
    for (size_t i = 0; i < mosaic->changed_count; i++)
        set_cell(mosaic, mosaic->changed[i], &mosaic->tracks[mosaic->changed[i]].frozen);
    carry_marks(mosaic);
}

void mt_mosaic_advance(struct mt_mosaic *mosaic, uint64_t place)
{
    while (place >= mosaic->column_end) {
        close_column(mosaic);
        mosaic->at++;
        if (mosaic->at % 2 == 0 && mosaic->run_count >= mosaic->most_runs &&
            mosaic->column_count > 1)
            halve(mosaic);
        mosaic->columns[mosaic->at] = mosaic->now;
        set_column_end(mosaic);
    }
}

/* They are sorted within a row. */
static void sort_runs(const struct mt_mosaic *mosaic, struct mt_arena *arena,
                      struct mt_mosaic_run **runs, uint32_t **first_run)
{
    size_t rows = mosaic->rows->count;
    uint32_t *first = mt_arena_array(arena, rows + 2, sizeof *first);
    struct mt_mosaic_run *sorted = mt_arena_array(arena, mosaic->run_count + 1, sizeof *sorted);

    for (size_t i = 0; i < mosaic->run_count; i++)
        first[mosaic->runs[i].row + 2u]++;
    for (size_t row = 2; row < rows + 2; row++)
        first[row] += first[row - 1];
    for (size_t i = 0; i < mosaic->run_count; i++)
        sorted[first[mosaic->runs[i].row + 1u]++] = mosaic->runs[i];
    *runs = sorted;
    *first_run = first;
}

void mt_mosaic_finish(struct mt_mosaic *mosaic, struct mt_arena *arena, struct mt_mosaic_run **runs,
                      uint32_t **first_run)
{
    mt_mosaic_advance(mosaic, mosaic->length - 1);
    while (mosaic->at + 1 < mosaic->column_count)
        mt_mosaic_advance(mosaic, mosaic->column_end);
    close_column(mosaic);
    for (uint32_t row = 0; row < mosaic->track_count; row++)
        add_run(mosaic, row, mosaic->column_count);
    sort_runs(mosaic, arena, runs, first_run);
}

void mt_mosaic_release(struct mt_mosaic *mosaic)
{
    free(mosaic->columns);
    free(mosaic->picks);
    free(mosaic->runs);
    free(mosaic->tracks);
    free(mosaic->changed);
    free(mosaic->log);
    memset(mosaic, 0, sizeof *mosaic);
}
