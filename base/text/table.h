/* A table of columns and rows of typed cells. Fill it, then pass it to a writer: text_table.h for
 * terminals, document_tables.h, or document_tables.h. All writers format numbers the same way.
 *
 *     mt_table_begin(&table, "#bytes|#share|~site");
 *     MT_CELLS(&table, MT_BYTES(use->bytes), MT_SHARE(use->bytes, all), MT_SITE(use->site));
 *     mt_text_table_add(out, &table, 2, style); */
#ifndef MT_BASE_TABLE_H
#define MT_BASE_TABLE_H

#include "arena.h"
#include "buf.h"
#include "util.h"

#define MT_TABLE_COLUMNS 100

/* Alignment, and which columns shrink first if a line is too long. */
enum mt_column_kind {
    MT_NUMBER, /* "#": right-aligned, never shortened */
    MT_WORDS,  /* shortened last */
    MT_NAME,   /* "~": shortened first */
    MT_KEY     /* "!": never shortened; put on its own line if necessary */
};

struct mt_table_column {
    const char *title;
    enum mt_column_kind kind;
};

enum mt_cell_type {
    MT_TABLE_TEXT,
    MT_TABLE_SENTENCE, /* text that is shortened later than a name */
    MT_TABLE_SITE,     /* code: sites, rules */
    MT_TABLE_COUNT,    /* this kind and all below are numbers */
    MT_TABLE_INTEGER,  /* an identifier: digits without commas */
    MT_TABLE_BYTES,
    MT_TABLE_CHANGE, /* of bytes */
    MT_TABLE_SHARE,
    MT_TABLE_TIME
};

struct mt_table_cell {
    enum mt_cell_type type;
    const char *text;
    uint64_t number; /* CHANGE, INTEGER: an int64_t */
    uint64_t whole; /* SHARE: the whole; CHANGE: also print the change as a share of this, unless it
                       is 0 */
};

#define MT_CELL(...)           ((struct mt_table_cell){__VA_ARGS__})
#define MT_TEXT(text)          MT_CELL(MT_TABLE_TEXT, text, 0, 0)
#define MT_SENTENCE(text)      MT_CELL(MT_TABLE_SENTENCE, text, 0, 0)
#define MT_SITE(text)          MT_CELL(MT_TABLE_SITE, text, 0, 0)
#define MT_COUNT(count)        MT_CELL(MT_TABLE_COUNT, NULL, count, 0)
#define MT_INTEGER(number)     MT_CELL(MT_TABLE_INTEGER, NULL, (uint64_t)(number), 0)
#define MT_BYTES(bytes)        MT_CELL(MT_TABLE_BYTES, NULL, bytes, 0)
#define MT_CHANGE(bytes)       MT_CELL(MT_TABLE_CHANGE, NULL, (uint64_t)(bytes), 0)
#define MT_CHANGE_OF(from, to) MT_CELL(MT_TABLE_CHANGE, NULL, (to) - (from), from)
#define MT_SHARE(part, whole)  MT_CELL(MT_TABLE_SHARE, NULL, part, whole)
/* 0 if the end precedes the start, as in damaged traces. */
#define MT_TIME(begin_ns, end_ns) MT_CELL(MT_TABLE_TIME, NULL, mt_sub_or_0_u64(end_ns, begin_ns), 0)

struct mt_table {
    struct mt_table_column columns[MT_TABLE_COLUMNS];
    size_t column_count, cell_count, capacity;
    struct mt_table_cell *cells; /* row after row */
    struct mt_arena texts;
    bool failed; /* the host had no memory: cells are missing */
};

/* Empties the table without releasing it, and adds columns: their titles are separated by '|', and
 * the first character of a title may give its kind (enum mt_column_kind). Titles must be constants
 * of the program, never foreign text: writers do not escape them. */
void mt_table_begin(struct mt_table *table, const char *titles);
/* Adds more columns. */
void mt_table_columns(struct mt_table *table, const char *titles);
/* Adds a column with a title from elsewhere. Only the writer for terminals escapes it. */
void mt_table_column(struct mt_table *table, const char *title, size_t length,
                     enum mt_column_kind kind);

/* Adds cells in order, and copies their texts. If a text is NULL, because its allocation failed,
 * sets `failed`. */
void mt_table_add(struct mt_table *table, const struct mt_table_cell *cells, size_t count);
#define MT_CELLS(table, ...)                                                                       \
    mt_table_add(table, (const struct mt_table_cell[]){__VA_ARGS__},                               \
                 MT_ARRAY_LEN(((const struct mt_table_cell[]){__VA_ARGS__})))
/* Adds empty cells. */
void mt_table_skip(struct mt_table *table, size_t count);
void mt_table_release(struct mt_table *table);

size_t mt_table_rows(const struct mt_table *table);
bool mt_cell_is_number(const struct mt_table_cell *cell);
/* Formats a numeric cell for people. */
void mt_add_number(struct mt_buf *out, const struct mt_table_cell *cell);

#endif
