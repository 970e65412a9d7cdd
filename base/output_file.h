/* The one way in which a result reaches the file system. The bytes go to a temporary file beside
 * the target (temporary_file.h); only when all of them are written and checked does a rename put
 * them under the target's name. Whatever fails, the target is what it was before, and the
 * temporary file is removed. What cannot be replaced by a rename (standard output, pipes, devices)
 * is written through. output_target.h has the rules about what may be replaced.
 *
 *     struct mt_output output;
 *     if (mt_output_open(&output, path, &rules, &error) == MT_OK) {
 *         mt_output_add(&output, bytes, length);          // as often as you like
 *         status = mt_output_finish(&output, &error);     // the first failure of all, if any
 *     }
 */
#ifndef MT_BASE_OUTPUT_FILE_H
#define MT_BASE_OUTPUT_FILE_H

#include <stdint.h>

#include "buf.h"
#include "output_target.h"
#include "temporary_file.h"

struct mt_output {
    int fd;         /* for callers that write themselves, before any mt_output_add */
    uint64_t bytes; /* that mt_output_add took */
    /* PRIVATE */
    const char *path;
    const struct mt_output_rules *rules;
    struct mt_output_target target;
    struct mt_temporary temporary; /* path NULL: written through */
    struct mt_buf pending;
    struct mt_error failure; /* the first one; status MT_OK = none */
};

/* Missing folders of the target are made. `path` and `rules` are borrowed until the output is
 * finished or abandoned. On failure there is nothing to release. */
enum mt_status mt_output_open(struct mt_output *output, const char *path,
                              const struct mt_output_rules *rules,
                              struct mt_error *error) MT_MUST_USE;

/* Buffered. false: something failed before or now; mt_output_finish says what. */
bool mt_output_add(struct mt_output *output, const void *bytes, size_t length);

/* Forgets what was written so far; false: it has gone through a pipe already, or failed. */
bool mt_output_restart(struct mt_output *output);

/* Puts the file under its name, or removes it. The first failure since mt_output_open. */
enum mt_status mt_output_finish(struct mt_output *output, struct mt_error *error) MT_MUST_USE;

/* Removes what was written; the target stays as it was. After mt_output_finish, and on zeroed
 * memory with fd -1, this does nothing. */
void mt_output_abandon(struct mt_output *output);

/* A whole file at once. */
enum mt_status mt_output_write(const char *path, const struct mt_output_rules *rules,
                               const void *bytes, size_t length,
                               struct mt_error *error) MT_MUST_USE;

/* Makes a folder and those above it, as mkdir -p does. One that exists is fine. */
enum mt_status mt_make_folders(const char *path, struct mt_error *error) MT_MUST_USE;

#endif
