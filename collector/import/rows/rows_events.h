/* Rows of cells become the events of a trace. */
#ifndef MT_COLLECTOR_ROWS_EVENTS_H
#define MT_COLLECTOR_ROWS_EVENTS_H

#include "made_trace.h"
#include "rows_dialects.h"

enum { MT_ROW_FEW_THREADS = 1024 };

/* Ids of symbols by what a cell says, with a letter for its kind. */
struct mt_row_labels {
    struct mt_strings texts;
    uint32_t *ids; /* MT_NO_ID: the table of symbols is full */
    size_t capacity;
    struct mt_buf key;
};

/* The events of a file so far, and what is known about it. Zeroed memory is ready, except that
 * made was started (made_trace.h), heap is MT_NO_ID and dialect is set. */
struct mt_rows {
    const struct mt_row_dialect *dialect;
    bool has[MT_ROW_COLUMNS]; /* columns of the file */
    struct mt_made_trace made;
    struct mt_buf unused;    /* lines for the fact not_used */
    struct mt_error failure; /* of the compression: the file ends there */
    uint64_t rows_read, left_out, frees_unknown, times_back, refusals;
    uint64_t untimed;         /* before the first row that has a time */
    uint64_t other_processes; /* rows of processes that are not read */
    uint64_t process;         /* the one that is read, if has_process */
    bool has_time_of_day, has_unknown_key, has_process;
    /* PRIVATE */
    struct mt_row_labels labels;
    struct mt_map live; /* address -> 0 */
    uint32_t heap;      /* of events that do not name one; MT_NO_ID before the first */
    bool thread_is_used[MT_ROW_FEW_THREADS];
    bool past_initial;
    bool names_devices, names_heaps; /* of allocations: then frees have to */
    uint64_t days_ns, last_clock_ns, last_t_ns;
};

void mt_rows_release(struct mt_rows *rows);

/* Adds the event of a row. `cells` may be changed. */
enum mt_status mt_rows_take(struct mt_rows *rows, struct mt_row *row,
                            struct mt_error *error) MT_MUST_USE;

/* Counts a row that cannot be read. */
void mt_rows_skip(struct mt_rows *rows, const struct mt_row *row, const char *why);

/* The file ends within the row at `offset`. */
void mt_rows_cut(struct mt_rows *rows, uint64_t offset);

/* Whether the file has a column of times. */
bool mt_rows_have_times(const struct mt_rows *rows);

#endif
