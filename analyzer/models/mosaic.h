/* Rows of memory over time, as a picture that grows from left to right. A row has the number of its
 * reserved bytes, and of those covered by blocks of each role. A column shows the state at its
 * fullest instant: the one with the most allocated bytes, which may be the column's start.
 *
 * Bounded: a row is stored as runs of equal columns; once there are MT_MOSAIC_RUNS of them, columns
 * are joined in pairs, and the fuller one stays. An event costs its rows; a column costs the rows
 * that changed in it. */
#ifndef MT_ANALYZER_MOSAIC_H
#define MT_ANALYZER_MOSAIC_H

#include "report.h"

#include <stddef.h>

#define MT_MOSAIC_RUNS (1u << 20)
#define MT_MOSAIC_LOG  (1u << 14) /* changes that are logged one by one */

/* Both in 65535ths of a row's bytes, at least 1 unless it is 0. */
struct mt_mosaic_cell {
    uint16_t covered, reserved;
    uint8_t role; /* of most of the covered bytes */
};

struct mt_mosaic_run {
    uint16_t row, begin, end; /* columns */
    struct mt_mosaic_cell cell;
};

struct mt_mosaic_column {
    uint64_t t_ns, event, allocated, reserved; /* of its instant */
};

/* Current contents of the rows; shared by the mosaics of one device. */
struct mt_mosaic_row {
    uint64_t reserved, covered, role_bytes[MT_ROLE_COUNT];
};
struct mt_mosaic_rows {
    struct mt_mosaic_row *rows;
    uint32_t count;
    size_t capacity;
    uint64_t bytes_per_row;
};

/* PRIVATE to mosaic.c, except the columns; for other bounds, set most_runs and
 * most_log after mt_mosaic_init. */
struct mt_mosaic {
    const struct mt_mosaic_rows *rows;
    struct mt_mosaic_column *columns, now;
    uint32_t column_count, at; /* at: the open one */
    bool started;
    uint8_t *picks;      /* by pair of columns that were joined: the second stayed */
    uint64_t length;     /* of the axis, divided between the columns */
    uint64_t column_end; /* first position after the open column */

    struct mt_mosaic_run *runs; /* as they ended */
    size_t run_count, run_capacity, most_runs;

    struct mt_mosaic_track { /* by row */
        struct mt_mosaic_cell cell, frozen;
        uint16_t since;
        bool is_changed;
    } * tracks;
    uint32_t track_count;
    size_t track_capacity;
    uint32_t *changed; /* rows with a mark */
    size_t changed_count, changed_capacity;
    struct mt_mosaic_change *log; /* since the fullest instant */
    size_t log_count, log_capacity, most_log;
    bool is_frozen; /* the log was too long: the cells of that instant are stored */
};

/* One row's change of bytes; role MT_ROLE_COUNT: of reserved ones. */
struct mt_mosaic_change {
    uint32_t row;
    uint8_t role;
    int64_t bytes;
};

/* Initializes *mosaic, which borrows `rows`. Positions on the axis are 0 to length - 1. `columns`
 * is rounded up to a power of two, at most 32,768. */
void mt_mosaic_init(struct mt_mosaic *mosaic, const struct mt_mosaic_rows *rows, uint64_t length,
                    uint32_t columns);

/* Call it before any change at `place`, which never decreases. */
void mt_mosaic_advance(struct mt_mosaic *mosaic, uint64_t place);
/* A row of `rows` was changed. */
void mt_mosaic_change(struct mt_mosaic *mosaic, const struct mt_mosaic_change *change);
/* After the changes of an event: checks whether this is the fullest instant of the column. */
void mt_mosaic_state(struct mt_mosaic *mosaic, const struct mt_mosaic_column *state);

/* Closes all columns. Copies runs by row and column to the arena; those of row r begin at
 * first_run[r] and end at first_run[r + 1]. Columns without a run are white. */
void mt_mosaic_finish(struct mt_mosaic *mosaic, struct mt_arena *arena, struct mt_mosaic_run **runs,
                      uint32_t **first_run);
void mt_mosaic_release(struct mt_mosaic *mosaic);

/* The cell of a row in this state. */
struct mt_mosaic_cell mt_mosaic_cell_of(const struct mt_mosaic_row *row, uint64_t bytes_per_row);

#endif
