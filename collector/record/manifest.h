/* The list of the traces of a run: each process that starts a trace appends its absolute path as
 * a line. The list is in the folder of the traces while the command runs. */
#ifndef MT_RECORD_MANIFEST_H
#define MT_RECORD_MANIFEST_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "arena.h"
#include "status.h"

/* Creates a list of two lines in `folder` (which ends in /) and sets its `path`. The caller owns
 * *lock. While it is open, processes that end leave their tapes to the caller; afterwards they
 * complete their traces themselves. */
enum mt_status mt_manifest_new(const char *folder, char path[PATH_MAX], int *lock,
                               struct mt_error *error) MT_MUST_USE;

/* Changes the second line of the list that is open as `lock` to MT_MANIFEST_BEGUN, ...
 * (own_file.h). Returns false and sets errno if it cannot be written. */
bool mt_manifest_set_line(int lock, const char *line);

/* Returns the paths in the list, each once, in order, in the arena, with NULL at the end. Skips
 * lines that are not an absolute path. MT_ERR_IO if the list is gone. */
enum mt_status mt_manifest_read(const char *path, struct mt_arena *arena, char ***traces,
                                size_t *count, struct mt_error *error) MT_MUST_USE;

/* Files that a killed memtrace left in a folder of traces: lists of traces and
 * unfinished traces (temporary_file.h). A memtrace that still runs holds a lock on its files. */

/* Removes such files of this user that are not locked. Checks the name, the owner, the kind and
 * the first bytes of each file. Files that cannot be locked or read stay. `folder` ends in /. */
void mt_leftovers_remove(const char *folder);

#endif
