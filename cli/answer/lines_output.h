/* Writes a table of lines as text or as JSON. */
#ifndef MT_CLI_LINES_OUTPUT_H
#define MT_CLI_LINES_OUTPUT_H

#include "cli.h"
#include "line_table.h"
#include "source_text.h"

struct mt_lines_answer {
    const char *path;
    const struct mt_symbols *symbols;
    const struct mt_line_table *table;
    /* Selects functions of this name; NULL = the next fields select functions. */
    const char *function;
    uint64_t device;                 /* or MT_LINES_EVERY_DEVICE */
    bool own;                        /* selects only the user's own code */
    bool with_libraries;             /* also selects library functions without sites */
    bool all;                        /* no limits in JSON (--all) */
    struct mt_source_files *sources; /* for the source text of lines; NULL = without text */
};
#define MT_LINES_EVERY_DEVICE UINT64_MAX

/* Return true if the answer includes the device, or the function. */
bool mt_lines_shows_device(const struct mt_lines_answer *answer,
                           const struct mt_line_device *device);
bool mt_lines_shows(const struct mt_lines_answer *answer, const struct mt_line_function *function);

void mt_lines_text(struct mt_buf *out, const struct mt_lines_answer *answer);

/* Appends a document "memtrace.lines/1". */
void mt_lines_json(struct mt_buf *out, const struct mt_lines_answer *answer);

#endif
