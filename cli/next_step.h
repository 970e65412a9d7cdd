/* Proposes the next command. Paths are words of a shell (base/shell_word.h), so a line can be
 * copied as it is. Everything goes to standard error. */
#ifndef MT_CLI_NEXT_STEP_H
#define MT_CLI_NEXT_STEP_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "trace_end.h"

/* Returns the path without the current folder in front; borrowed. */
const char *mt_short_path(const char *path);

enum { MT_NEXT_TRACES = 8 };

/* Collects the traces of a recording that can be analyzed. Zeroed memory holds none. */
struct mt_next_step {
    const char *paths[MT_NEXT_TRACES]; /* borrowed: the first ones */
    size_t count;
    const char *folder; /* contains exactly these traces and ends in "/"; NULL = no such folder */
};
void mt_next_step_note(struct mt_next_step *next, const struct mt_trace_end *end);

/* Appends "memtrace: next: memtrace analyze run.trace.zst", for several traces a command of
 * `fleet`; nothing if there is no trace. */
void mt_add_next_step(struct mt_buf *out, const struct mt_next_step *next);

/* Prints "memtrace: WHY: memtrace COMMAND PATH", for a path that is an argument of the user. */
void mt_say_command(const char *why, const char *command, const char *path);

/* Appends what to do first, one command a line. `folder` is searched for recordings. */
void mt_add_first_steps(struct mt_buf *out, const char *folder);

#endif
