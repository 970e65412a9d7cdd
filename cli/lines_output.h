/* Prints a table of lines, as text or as JSON. */
#ifndef MT_CLI_LINES_OUTPUT_H
#define MT_CLI_LINES_OUTPUT_H

#include "cli.h"
#include "line_table.h"
#include "source_text.h"

struct mt_lines_answer {
    const char *path;
    const struct mt_symbols *symbols;
    const struct mt_line_table *table;
    /* Only functions of this name; NULL = those that the next fields select. */
    const char *function;
    uint64_t device;                 /* or MT_LINES_EVERY_DEVICE */
    bool own;                        /* only the user's own code */
    bool with_libraries;             /* also library functions that have no sites */
    bool all;                        /* --json: without limits */
    struct mt_source_files *sources; /* NULL = no text of lines */
};
#define MT_LINES_EVERY_DEVICE UINT64_MAX

/* Returns true if the answer includes the device or the function. */
bool mt_lines_shows_device(const struct mt_lines_answer *answer,
                           const struct mt_line_device *device);
bool mt_lines_shows(const struct mt_lines_answer *answer, const struct mt_line_function *function);

void mt_lines_text(struct mt_buf *out, const struct mt_lines_answer *answer);

/* "memtrace.lines/1" */
void mt_lines_json(struct mt_buf *out, const struct mt_lines_answer *answer);

#endif
