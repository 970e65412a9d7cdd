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
#ifndef MT_BASE_OUTPUT_TARGET_H
#define MT_BASE_OUTPUT_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "status.h"
#include "temporary_file.h"

/* `is_own` sees at most this much of the start of a file. */
#define MT_OUTPUT_START_BYTES ((size_t)64 * 1024)

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

/* Applies the rules and opens targets that are written directly. MT_ERR_USAGE: the path is an
 * input; MT_ERR_OUTPUT: the rules or the system refuse it. Reads at most MT_OUTPUT_START_BYTES. */
enum mt_status mt_output_target_find(const char *path, const struct mt_output_rules *rules,
                                     struct mt_output_target *target,
                                     struct mt_error *error) MT_MUST_USE;

/* Applies the rules again before the rename, because minutes may have passed. MT_OK: `path` still
 * leads to target->path. */
enum mt_status mt_output_target_recheck(const char *path, const struct mt_output_rules *rules,
                                        const struct mt_output_target *target,
                                        struct mt_error *error) MT_MUST_USE;

/* Applies the rules without opening anything, for commands that would otherwise fail only after
 * minutes of work. MT_OK is no guarantee. */
enum mt_status mt_output_check(const char *path, const struct mt_output_rules *rules,
                               struct mt_error *error) MT_MUST_USE;

#endif
