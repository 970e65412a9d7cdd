/* A new file with a hidden name beside its target. When it is complete, a rename puts it in place.
 * The name is `.memtrace-`, 16 hexadecimal digits, `.tmp`. An open file is locked (flock), so that
 * a cleaner can distinguish it from one that a killed process left behind. A list of such files
 * lets a signal handler remove them before the program ends.
 *
 *     struct mt_temporary file;
 *     if (mt_temporary_open(&file, target, 0600, list, &error) == MT_OK) {
 *         ...write to file.fd...
 *         if (!mt_temporary_rename(&file, target))
 *             ...errno...
 *         mt_temporary_discard(&file);    // closes; removes what was not renamed
 *     } */
#ifndef MT_BASE_TEMPORARY_FILE_H
#define MT_BASE_TEMPORARY_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "status.h"

/* The temporary files that currently exist, so that a signal handler can remove them before the
 * program ends. Lock-free: threads may add and take while a handler runs. */
enum { MT_MAX_UNFINISHED = 32 };

/* Zeroed memory is an empty list. */
struct mt_unfinished {
    _Atomic(char *) paths[MT_MAX_UNFINISHED];
    _Atomic(const char *) folder;
    _Atomic(pid_t) folder_owner; /* the process that made it */
    _Atomic(bool) handled;       /* mt_unfinished_unlink was called */
};

/* Lends `path` to the list until mt_unfinished_take. A full list ignores it: the file
 * then survives a fatal signal, with no other effect. */
void mt_unfinished_add(struct mt_unfinished *list, char *path);

/* Returns true if the caller owns the path again. Returns false if a signal handler is removing the
 * file and the process is about to end: do not free the path then. */
bool mt_unfinished_take(struct mt_unfinished *list, char *path);

/* Sets the temporary folder of this process, which contains only files; NULL: none. Borrows
 * `path`. */
void mt_unfinished_folder_set(struct mt_unfinished *list, const char *path);

/* Removes the files in a folder. Async-signal-safe. */
void mt_folder_empty(int fd);

/* Removes every file of the list, and the folder. Async-signal-safe. */
void mt_unfinished_unlink(struct mt_unfinished *list);

/* Empties the list of a forked process: the files belong to its parent. */
void mt_unfinished_forget(struct mt_unfinished *list);

struct mt_temporary {
    int fd;     /* for writing; do not close it; -1: closed */
    char *path; /* PRIVATE; from malloc; NULL: no file, or already renamed */
    struct mt_unfinished *list;
};

#define MT_TEMPORARY_NONE ((struct mt_temporary){.fd = -1})

/* Creates an empty file for reading and writing in the folder of `target`, which must exist. The
 * file stays in `list` (borrowed, may be NULL) until it is renamed or discarded. On failure the
 * result is MT_TEMPORARY_NONE. */
enum mt_status mt_temporary_open(struct mt_temporary *file, const char *target, mode_t mode,
                                 struct mt_unfinished *list, struct mt_error *error) MT_MUST_USE;

/* Closes the file before the rename, for callers that must know whether the last bytes were
 * written. Returns false and sets errno on failure. */
bool mt_temporary_close(struct mt_temporary *file);

/* Renames the file to `target`. The descriptor stays open. Returns false and sets errno on
 * failure. */
bool mt_temporary_rename(struct mt_temporary *file, const char *target);

/* Closes the file, and removes it if it was not renamed. Accepts MT_TEMPORARY_NONE and zeroed
 * memory with fd -1. */
void mt_temporary_discard(struct mt_temporary *file);

/* Returns the path of temporary file `number` in the folder of `target`, from malloc; NULL: out of
 * memory. Does not create it. */
char *mt_temporary_path(const char *target, uint64_t number);

/* Returns whether `name`, without folders, is the name of a temporary file. */
bool mt_temporary_file_is_name(const char *name);

/* Returns the length of the folder part of a path including its slash; 0 if there is none. */
size_t mt_folder_length(const char *path);

/* Synchronizes the folder of `path`, which makes a rename durable. Returns false and sets errno on
 * failure. */
bool mt_synchronize_folder_of(const char *path);

#endif
