/* The list of the traces of a run: each process that starts one appends its
 * absolute path as a line. It lies in the folder of the traces while the
 * command runs. */
#ifndef MT_RECORD_MANIFEST_H
#define MT_RECORD_MANIFEST_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "arena.h"
#include "status.h"

/* Makes an empty one in `folder` (ends in /); its path to `path`. *lock is the
 * caller's: as long as it is open, processes that end leave their tapes to the
 * caller; then they complete their traces themselves. */
enum mt_status mt_manifest_new(const char *folder, char path[PATH_MAX], int *lock,
                               struct mt_error *error) MT_MUST_USE;

/* The paths in it, each once, in order; in the arena, NULL at the end. Lines
 * that are not an absolute path are passed over. MT_ERR_IO if it is gone. */
enum mt_status mt_manifest_read(const char *path, struct mt_arena *arena, char ***traces,
                                size_t *count, struct mt_error *error) MT_MUST_USE;

#endif
