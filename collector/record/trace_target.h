/* Interprets -o, the output of a run, and checks before the command starts that it can be
 * written. From then until mt_trace_target_leave, the name of a file belongs to this run
 * (own_file.h). */
#ifndef MT_RECORD_TRACE_TARGET_H
#define MT_RECORD_TRACE_TARGET_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "own_file.h"
#include "status.h"

#define MT_TRACE_SUFFIX ".trace.zst"

struct mt_trace_target {
    char folder[PATH_MAX]; /* absolute, ends in / */
    char name[256];        /* of the file; empty: the collector names HOST-PID[-rankN] */
    unsigned made_folders; /* number of folders that were created: `folder` and its parents */
    bool named_by_process; /* `name` is a stem; the process appends -PID.trace.zst */
    bool is_renamed;       /* another run has the name that was requested */
    char path[PATH_MAX];   /* `folder` and `name`, if -o names a file */
    /* PRIVATE */
    struct mt_trace_claim claim;
    struct stat old; /* of the file that is replaced */
    bool has_old;
};

struct mt_trace_target_request {
    /* The value of -o (NULL: a file in the current folder with the name of the command:
     * train-12345.trace.zst for `python train.py`). It is a folder if it exists as one or ends in /
     * (then it is created, with its parents); otherwise a file. */
    const char *output;
    char *const *command;
    uint64_t room_bytes; /* files of this size must fit */
    uint64_t began_ns;   /* Unix time: a trace that was written later belongs to another run */
    bool is_simulated;   /* the environment of memtrace does not have the rank of the command */
    struct mt_unfinished *unfinished; /* lists the claim; may be NULL */
};

/* Checks that files can be written to the place, and that a file that would be replaced is a trace.
 * Otherwise returns MT_ERR_OUTPUT with the reason.
 *
 * A file gets the rank in its name if a launcher has started several processes: run-rank3.trace.zst
 * for run.trace.zst. If another run has this name now, it gets the first number that is free:
 * run-2.trace.zst. */
enum mt_status mt_trace_target_prepare(struct mt_trace_target *place,
                                       const struct mt_trace_target_request *request,
                                       struct mt_error *error) MT_MUST_USE;

/* Removes the trace that the new one replaces. Call it right before the command starts. */
void mt_trace_target_clear(const struct mt_trace_target *place);

/* Gives the name back. Removes the folders that were created, if they are still empty. Accepts
 * zeroed memory, and a place that could not be prepared. */
void mt_trace_target_leave(struct mt_trace_target *place);

/* Sets the value of MEMTRACE_OUTPUT for a command whose process is `root`; false if it would be
 * too long. */
bool mt_trace_target_output(const struct mt_trace_target *place, pid_t root, char output[PATH_MAX]);

/* Sets `word` to the name of a command in file names: "train" for `python -u train.py`, "pkg.main"
 * for `python -m pkg.main`, "app" for `./build/app`. It has only letters, digits, and ._- */
void mt_command_word(char *const *command, char *word, size_t capacity);

#endif
