/* Lines of source files, as far as they are there: a trace names files of the
 * machine that it was recorded on. */
#ifndef MT_CLI_SOURCE_TEXT_H
#define MT_CLI_SOURCE_TEXT_H

#include "buf.h"

#include <stdint.h>

/* One file at a time. Zeroed memory is ready. */
struct mt_source_text {
    struct mt_buf content;
    size_t at;     /* where line number `line` begins */
    uint32_t line; /* 0 = nothing is open */
};

/* The file of that path or, if there is none, of that name in the current
 * folder. False if there is neither, or if it is larger than 16 MiB. */
bool mt_source_text_open(struct mt_source_text *text, const char *path);

/* A line without the space around it, in `text` until the next call; *length 0 if
 * there is no such line. Lines are asked for in ascending order. */
const char *mt_source_text_line(struct mt_source_text *text, uint32_t line, size_t *length);

/* The last part of a path. */
const char *mt_source_text_name(const char *path);

void mt_source_text_release(struct mt_source_text *text);

#endif
