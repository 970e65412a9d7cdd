/* CSV (RFC 4180, also with tabs) as rows of cells. */
#ifndef MT_COLLECTOR_ROWS_CSV_H
#define MT_COLLECTOR_ROWS_CSV_H

#include "buf.h"
#include "feed.h"
#include "rows_values.h"

#define MT_ROW_MAX_CELLS 256

/* The part of a file that is in memory: about twice the longest row, which has at most
 * MT_ROW_MAX_BYTES. */
struct mt_row_window {
    struct mt_feed *feed;
    struct mt_buf bytes;
    size_t at;       /* of the next row */
    uint64_t before; /* bytes of the file before `bytes` */
    uint64_t line;   /* of the next row */
    bool ended;
    struct mt_error failure; /* MT_ERR_FORMAT: of the compression; the file ends there */
};

/* Reads more: the next row begins at bytes.data afterwards. At the end of the file sets `ended`. */
enum mt_status mt_row_window_more(struct mt_row_window *window, struct mt_error *error) MT_MUST_USE;

/* Leaves out the line at `at`, however long it is. */
enum mt_status mt_row_window_skip_line(struct mt_row_window *window,
                                       struct mt_error *error) MT_MUST_USE;

/* A row of CSV. */
struct mt_csv_row {
    struct mt_row_cell cells[MT_ROW_MAX_CELLS];
    size_t count;
    uint64_t offset, line;
    const char *why; /* the row cannot be read: a constant reason */
    bool is_cut;     /* the file ends before the end of the line */
};

/* Reads the next row. Returns MT_OK (also if there is a reason `why`), MT_END, or an error of the
 * file. */
enum mt_status mt_csv_next(struct mt_row_window *window, char separator, struct mt_csv_row *row,
                           struct mt_error *error) MT_MUST_USE;

#endif
