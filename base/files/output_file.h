/* Every result reaches the file system through this module. The bytes go to a temporary file beside
 * the target (temporary_file.h); only when all of them are written and checked does a rename put
 * them under the target's name. After any failure the target is unchanged and the temporary file is
 * removed. Targets that a rename cannot replace (standard output, pipes, devices) are written
 * directly. struct mt_output_rules decides what may be replaced.
 *
 *     struct mt_output output;
 *     if (mt_output_open(&output, path, &rules, &error) == MT_OK) {
 *         mt_output_add(&output, bytes, length);          // as often as you like
 *         status = mt_output_finish(&output, &error);     // the first failure of all, if any
 *     } */
#ifndef MT_BASE_OUTPUT_FILE_H
#define MT_BASE_OUTPUT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "buf.h"
#include "status.h"
#include "temporary_file.h"

/* Decides whether a path may be written, and which file it leads to. These rules keep results from
 * destroying other files:
 *
 * - A file that the command reads is never written, whatever its other names are.
 * - A file that exists is replaced only if it is empty, if `is_own` recognizes it, or with
 *    `force`. A file without write permission is replaced only with `force`.
 * - A symbolic link is followed to its destination only if the destination could be replaced
 *    without `force` and the link belongs to this user or to root. Otherwise it is refused; with
 *    `force` the link itself is replaced and its destination stays as it is.
 * - "-", /dev/stdout, /dev/stderr, /dev/fd/N, pipes and devices are written directly. */

struct mt_output_rules {
    bool force;
    bool is_private;  /* a new file has mode 0600; otherwise 0666 less the umask */
    bool is_durable;  /* synchronized to disk before it is finished: for results that cannot be
                         reproduced */
    const char *kind; /* for messages: "a trace that 'memtrace import' wrote"; NULL: "a result" */
    /* Returns whether this is the start of a file of the kind to be written. NULL: never. */
    bool (*is_own)(const void *start, size_t length);
    const char *const *inputs; /* paths that the command reads; "-" is standard input */
    size_t input_count;
    struct mt_unfinished *unfinished; /* where temporary files are listed; NULL: nowhere */
};

struct mt_output_target {
    char *path;      /* the name to create or replace, from malloc; NULL: write to fd */
    int fd;          /* for targets written directly, the caller closes it; otherwise -1 */
    mode_t mode;     /* of the new file */
    bool keeps_mode; /* mode is that of the replaced file: exact, regardless of the umask */
};

/* Applies the rules without opening anything, for commands that would otherwise fail only after
 * minutes of work. MT_OK is no guarantee. */
enum mt_status mt_output_check(const char *path, const struct mt_output_rules *rules,
                               struct mt_error *error) MT_MUST_USE;

struct mt_output {
    int fd;         /* for callers that write themselves, before any mt_output_add */
    uint64_t bytes; /* passed to mt_output_add */
    /* PRIVATE */
    const char *path;
    const struct mt_output_rules *rules;
    struct mt_output_target target;
    struct mt_temporary temporary; /* path NULL: written directly */
    struct mt_buf pending;
    struct mt_error failure; /* the first one; status MT_OK = none */
};

/* Creates missing folders of the target. `path` and `rules` are borrowed until the output is
 * finished or abandoned. On failure there is nothing to release. */
enum mt_status mt_output_open(struct mt_output *output, const char *path,
                              const struct mt_output_rules *rules,
                              struct mt_error *error) MT_MUST_USE;

/* Appends to a buffer, and writes it when it is full. Returns false after the first failure, whose
 * status mt_output_finish returns. */
bool mt_output_add(struct mt_output *output, const void *bytes, size_t length);

/* Discards what was written so far. Returns false after a failure, and if the target is written
 * directly: output to a pipe cannot be taken back. */
bool mt_output_restart(struct mt_output *output);

/* Returns the current name of a file that is renamed later, for libraries that open by name; NULL:
 * the target is written directly. Lives until the output is finished or abandoned. */
const char *mt_output_path(const struct mt_output *output);

/* Renames the file to its target, or removes it. Returns the first failure since mt_output_open. */
enum mt_status mt_output_finish(struct mt_output *output, struct mt_error *error) MT_MUST_USE;

/* Removes what was written; the target is unchanged. Does nothing after mt_output_finish and on
 * zeroed memory with fd -1. */
void mt_output_abandon(struct mt_output *output);

/* Writes a whole file. */
enum mt_status mt_output_write(const char *path, const struct mt_output_rules *rules,
                               const void *bytes, size_t length,
                               struct mt_error *error) MT_MUST_USE;

/* Creates a folder and its parents, like mkdir -p. An existing folder is fine. */
enum mt_status mt_output_file_make_folders(const char *path, struct mt_error *error) MT_MUST_USE;

#endif
