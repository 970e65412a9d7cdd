/* The rows of an answer from a database: as a table, CSV, JSON or Markdown. */
#ifndef MT_CLI_ANSWER_ROWS_H
#define MT_CLI_ANSWER_ROWS_H

#include "database.h"
#include "json.h"
#include "table.h"

enum mt_rows_form { MT_ROWS_TEXT, MT_ROWS_CSV, MT_ROWS_JSON, MT_ROWS_MARKDOWN };

struct mt_answer_rows {
    enum mt_rows_form form;
    uint64_t max_rows, max_bytes;
    const char *path, *database; /* for JSON; database NULL: a temporary file */
    bool is_terminal;            /* CSV: control characters are escaped */
    /* PRIVATE */
    struct mt_buf out;
    struct mt_json json;
    struct mt_table table;           /* text and Markdown */
    size_t widths[MT_TABLE_COLUMNS]; /* of the table so far, in bytes */
    bool has_number[MT_TABLE_COLUMNS], has_text[MT_TABLE_COLUMNS];
    uint64_t rows, omitted; /* omitted: rows that were counted after a limit */
    bool is_cut_by_bytes;
};

/* For struct mt_database_question; `context` is a struct mt_answer_rows. After a limit is reached,
 * rows are only counted, at most MT_MAX_COUNTED_ROWS. */
enum { MT_MAX_COUNTED_ROWS = 1000000 };
void mt_answer_rows_columns(void *context, const char *const *names, unsigned count);
bool mt_answer_rows_add(void *context, const struct mt_value *values, unsigned count);

/* Prints the answer; returns enum mt_exit. If not `is_counted`, more rows than `omitted` exist. */
int mt_answer_rows_print(struct mt_answer_rows *rows, bool is_counted);
void mt_answer_rows_release(struct mt_answer_rows *rows);

#endif
