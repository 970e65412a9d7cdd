/* What the columns of rows mean: those of memtrace, and of other programs. */
#ifndef MT_COLLECTOR_ROWS_DIALECTS_H
#define MT_COLLECTOR_ROWS_DIALECTS_H

#include "rows_values.h"

/* What a cell means. A file has some of them; the cells of others are empty. */
enum mt_row_column {
    MT_ROW_OP,
    MT_ROW_ADDR,
    MT_ROW_BYTES,
    MT_ROW_BLOCK_BYTES,
    MT_ROW_T_NS,
    MT_ROW_T_US,
    MT_ROW_T_S,
    MT_ROW_STREAM,
    MT_ROW_DEVICE,
    MT_ROW_POOL,
    MT_ROW_HEAP,
    MT_ROW_THREAD,
    MT_ROW_THREAD_NAME,
    MT_ROW_NAME,
    MT_ROW_STACK,      /* enum mt_row_stack_form */
    MT_ROW_FLAGS,      /* separated by '|' */
    MT_ROW_SEQ,        /* of `memtrace dump`, whose threads have numbers of a trace */
    MT_ROW_CLOCK,      /* of RMM: a time of day, or seconds */
    MT_ROW_PROCESS,    /* only the first one is read */
    MT_ROW_ATTRIBUTES, /* of msMemScope: {key:value,...} */
    MT_ROW_LAST_TEXT = MT_ROW_ATTRIBUTES,
    MT_ROW_FRAMES, /* lists of JSON */
    MT_ROW_OUTERMOST,
    MT_ROW_COLUMNS
};

/* Borrowed until the next row. */
struct mt_row {
    struct mt_row_cell cells[MT_ROW_COLUMNS];
    bool may_be_cut; /* the file ends before the end of its line */
    uint64_t offset; /* in the decoded file */
    uint64_t line;   /* the first line is 1 */
};

/* A way of writing rows: the names of its columns, and how its words become those of memtrace. */
struct mt_row_dialect {
    const char *framework; /* NULL: unknown */
    const char *heap;      /* of events whose heap is not named */
    const char *source;    /* MT_SOURCES_... */
    const struct mt_row_name {
        const char *name;
        enum mt_row_column column;
    } * names;
    size_t name_count, required_count; /* the first ones are required */
    /* Changes the cells of a row into those of memtrace. Returns NULL, MT_ROW_LEFT_OUT, or a
     * constant reason why the row cannot be read. NULL: they are memtrace's. */
    const char *(*translate)(struct mt_row *row);
    const char *missing;  /* lines for the fact not_recorded; may be NULL */
    const char *left_out; /* what rows with MT_ROW_LEFT_OUT are */
};

extern const char MT_ROW_LEFT_OUT[];

/* Returns the dialect that has all these columns, or NULL; then memtrace's own is meant. */
const struct mt_row_dialect *mt_row_dialect_find(const struct mt_row_cell *names, size_t count);

/* memtrace's own rows. */
extern const struct mt_row_dialect mt_row_dialect_own;

/* Returns the meaning of a column's name, or -1. */
int mt_row_column_find(const struct mt_row_dialect *dialect, struct mt_row_cell name);

#endif
