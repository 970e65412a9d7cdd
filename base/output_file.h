/* Every result reaches the file system through this module. The bytes go to a temporary file beside
 * the target (temporary_file.h); only when all of them are written and checked does a rename put
 * them under the target's name. After any failure the target is unchanged and the temporary file is
 * removed. Targets that a rename cannot replace (standard output, pipes, devices) are written
 * directly. output_target.h has the rules about what may be replaced.
 *
 *     struct mt_output output;
 *     if (mt_output_open(&output, path, &rules, &error) == MT_OK) {
 *         mt_output_add(&output, bytes, length);          // as often as you like
 *         status = mt_output_finish(&output, &error);     // the first failure of all, if any
 *     } */
#ifndef MT_BASE_OUTPUT_FILE_H
#define MT_BASE_OUTPUT_FILE_H

#include <stdint.h>

#include "buf.h"
#include "output_target.h"
#include "temporary_file.h"

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
enum mt_status mt_make_folders(const char *path, struct mt_error *error) MT_MUST_USE;

#endif
