/* Changes of a program that a dry run applies on paper: the option --apply, and what the Python
 * part reports about each change (simulate/python/memtrace_dry_run/apply.py). */
#ifndef MT_CLI_APPLIED_H
#define MT_CLI_APPLIED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "buf.h"
#include "cli.h"

struct mt_json;
struct mt_settings;

/* Text to paste into the program. */
struct mt_applied_piece {
    const char *place; /* "at the top of the program" */
    const char *text;  /* lines of Python or of a shell */
};

struct mt_applied_change {
    const char *change;  /* "checkpoint=Block" */
    const char *problem; /* why it changed nothing, or not all that it names; "": none */
    uint64_t calls;      /* of what was changed: modules, optimizers, tensors saved */
    uint64_t copied_bytes;
    bool counts_flops; /* of the program without the change, estimated */
    uint64_t flops, recomputed_flops;
    struct mt_applied_piece *pieces;
    size_t piece_count;
};

/* Zeroed memory holds none. */
struct mt_applied {
    struct mt_arena arena;
    struct mt_applied_change *changes;
    size_t count;
};

/* Checks the changes of --apply, and appends them to `out`, separated by '+'. Returns -1, or the
 * exit code after an error message. */
int mt_applied_read(const struct mt_text_list *options, struct mt_buf *out);

/* Adds the report of one process. Keeps the report with the most calls of each change. */
void mt_applied_note(struct mt_applied *applied, const struct mt_settings *settings);

/* Returns why a change of `requested` ('+' between changes; NULL: none) was not made, or that no
 * process reported it; NULL: all were made. Borrowed from `applied`, or static. */
const char *mt_applied_problem(const struct mt_applied *applied, const char *requested);

/* Appends a line for each change: its calls and what it costs. */
void mt_applied_add_costs(struct mt_buf *out, const struct mt_applied *applied);

/* Appends what to paste into the program. Appends nothing if there is no change. */
void mt_applied_add_patch(struct mt_buf *out, const struct mt_applied *applied);

/* Adds the member "applied". */
void mt_applied_add_json(struct mt_json *json, const struct mt_applied *applied);

void mt_applied_release(struct mt_applied *applied);

#endif
