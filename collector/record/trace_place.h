/* Where the traces of a run go: what -o means, and whether it can be written,
 * before the command starts. */
#ifndef MT_RECORD_TRACE_PLACE_H
#define MT_RECORD_TRACE_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "status.h"

#define MT_TRACE_SUFFIX ".trace.zst"

struct mt_trace_place {
    char folder[PATH_MAX]; /* absolute, ends in / */
    char name[256];        /* of the file; empty: the collector names HOST-PID[-rankN] */
    unsigned made_folders; /* by us: `folder`, and those around it */
    bool named_by_process; /* `name` is a stem, -PID.trace.zst is to follow */
};

/* `output`: what -o says (NULL: a file in the current folder with the name of
 * the command: train-12345.trace.zst for `python train.py`). A folder if it is
 * one, or ends in / (then it is made, with those that lead to it); else a file.
 * Checks that files of `room_bytes` can be made there, and that a file that would
 * be replaced is a trace. MT_ERR_OUTPUT and the reason if not. */
enum mt_status mt_trace_place_prepare(struct mt_trace_place *place, const char *output,
                                      char *const *command, uint64_t room_bytes,
                                      struct mt_error *error) MT_MUST_USE;

/* Removes the trace that the new one replaces. To call when the command is
 * about to start. */
void mt_trace_place_clear(const struct mt_trace_place *place);

/* Removes the folders that were made, if nothing came into them. */
void mt_trace_place_leave(const struct mt_trace_place *place);

/* What the collector gets as MEMTRACE_OUTPUT when the command's process is
 * `root`; false if it would be too long. */
bool mt_trace_place_output(const struct mt_trace_place *place, pid_t root, char output[PATH_MAX]);

/* The word that stands for a command in the name of a file: "train" for
 * `python -u train.py`, "pkg.main" for `python -m pkg.main`, "app" for
 * `./build/app`. Only letters, digits, and ._- */
void mt_command_word(char *const *command, char *word, size_t capacity);

#endif
