/* Suggests the next command on standard error. Paths are quoted for a shell
 * (base/text/foreign_text.h), so a user can copy the whole line. */
#ifndef MT_CLI_NEXT_STEP_H
#define MT_CLI_NEXT_STEP_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "trace_end.h"

/* Returns the path without the current folder at its beginning. Borrows `path`. */
const char *mt_short_path(const char *path);

/* Returns the path, or "./diff" for "diff", which is a command of `fleet`; borrowed. */
const char *mt_fleet_path(const char *path);

enum { MT_NEXT_TRACES = 8 };

/* Collects the traces of a recording that can be analyzed. Zeroed memory holds none. */
struct mt_next_step {
    const char *paths[MT_NEXT_TRACES]; /* the first ones, borrowed */
    size_t count;
    /* a folder that contains exactly these traces, ending in "/"; NULL = none */
    const char *folder;
};
void mt_next_step_note(struct mt_next_step *next, const struct mt_trace_end *end);

/* Appends "memtrace: next: memtrace analyze run.trace.zst". For several traces, the command is
 * `memtrace fleet` if the build has it. Appends nothing if there is no trace. */
void mt_next_step_add(struct mt_buf *out, const struct mt_next_step *next);

/* Prints "memtrace: WHY: memtrace COMMAND PATH", where the path is an argument of the user. */
void mt_next_step_print(const char *why, const char *command, const char *path);

/* Appends first commands for a new user, one per line. Searches `folder` for recordings. */
void mt_next_step_add_first(struct mt_buf *out, const char *folder, bool has_dry_run);

#endif
