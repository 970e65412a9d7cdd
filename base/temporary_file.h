/* A new file that lies under a hidden name beside its target until it is complete; then a rename
 * puts it in place. The name is `.memtrace-`, 16 hexadecimal digits, `.tmp`. As long as the file is
 * open it is locked (flock), so that a cleaner can tell it from one that a killed process left. A
 * list of such files lets a signal handler remove them before the program dies.
 *
 *     struct mt_temporary file;
 *     if (mt_temporary_open(&file, target, 0600, list, &error) == MT_OK) {
 *         ...write to file.fd...
 *         if (!mt_temporary_rename(&file, target))
 *             ...errno...
 *         mt_temporary_discard(&file);    // closes; removes what was not renamed
 *     }
 */
#ifndef MT_BASE_TEMPORARY_FILE_H
#define MT_BASE_TEMPORARY_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "status.h"

/* The temporary files that exist right now, for a signal handler that removes them before the
 * program dies. Lock-free: threads may add and take while a handler runs. */
enum { MT_MAX_UNFINISHED = 32 };

/* Zeroed memory is an empty list. */
struct mt_unfinished {
    _Atomic(char *) paths[MT_MAX_UNFINISHED];
    _Atomic(bool) handled; /* mt_unfinished_unlink was called */
};

/* Lends `path` (from malloc) to the list until it is taken back. A full list ignores it: the file
 * then survives a fatal signal, nothing else changes. */
void mt_unfinished_add(struct mt_unfinished *list, char *path);

/* true: the path is the caller's again, to be freed. false: a signal handler removes the file and
 * the process is about to end; do not free the path. */
bool mt_unfinished_take(struct mt_unfinished *list, char *path);

/* Unlinks every file of the list. Async-signal-safe. */
void mt_unfinished_unlink(struct mt_unfinished *list);

struct mt_temporary {
    int fd;     /* to write to, not to close; -1: closed */
    char *path; /* PRIVATE; from malloc; NULL: there is no file, or it was renamed */
    struct mt_unfinished *list;
};

#define MT_TEMPORARY_NONE ((struct mt_temporary){.fd = -1})

/* Makes an empty file, to be read and written, in the folder of `target`, which must exist. The
 * file is in `list` (borrowed, may be NULL) until it is renamed or discarded. On failure the
 * result is MT_TEMPORARY_NONE. */
enum mt_status mt_temporary_open(struct mt_temporary *file, const char *target, mode_t mode,
                                 struct mt_unfinished *list, struct mt_error *error) MT_MUST_USE;

/* Before the rename, for those who must know that the last bytes were taken; false: errno. */
bool mt_temporary_close(struct mt_temporary *file);

/* Puts the file in the place of `target`. The descriptor stays open. false: errno. */
bool mt_temporary_rename(struct mt_temporary *file, const char *target);

/* Closes the file, and removes it if it was not renamed. MT_TEMPORARY_NONE and zeroed memory with
 * fd -1 are fine. */
void mt_temporary_discard(struct mt_temporary *file);

/* Is `name`, without folders, that of a temporary file? */
bool mt_is_temporary_name(const char *name);

/* Length of the folder part of a path with its slash; 0: there is none. */
size_t mt_folder_length(const char *path);

/* A rename is on the disk once its folder is: synchronizes the folder that `path` lies in. false:
 * errno says why. */
bool mt_synchronize_folder_of(const char *path);

#endif
