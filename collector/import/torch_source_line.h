/* A line of a traceback as Python prints it:   File "model.py", line 12, in forward */
#ifndef MT_COLLECTOR_TORCH_SOURCE_LINE_H
#define MT_COLLECTOR_TORCH_SOURCE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Borrowed from the text, not NUL-terminated. */
struct mt_source_line {
    const char *file, *function;
    size_t file_length, function_length;
    uint32_t line;
};

/* Finds the last such line of a text, which is the innermost call. Returns false if there is
 * none. */
bool mt_source_line_last(const char *text, struct mt_source_line *found);

#endif
