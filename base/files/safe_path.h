/* Paths that lead to the same file whatever other users do: each folder above it, and each link on
 * the way, belongs to this user or to root, and no other user can write to it. */
#ifndef MT_SAFE_PATH_H
#define MT_SAFE_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "status.h"

/* Walks from folder to folder and follows links itself, so that a path that changes meanwhile does
 * not matter. Returns a descriptor (O_PATH) of what is at the end. Its own owner and mode are not
 * checked: call mt_safe_is_closed. Returns -1 with the reason in *error: MT_ERR_UNSUPPORTED if
 * other users can change the path, MT_ERR_IO if it cannot be followed, MT_ERR_MEMORY. */
int mt_safe_path_open(const char *path, struct mt_error *error);

/* Sets `path` to FOLDER/NAME. Returns false if it is too long. */
bool mt_path_join(char path[PATH_MAX], const char *folder, const char *name);

/* Opens a folder in the open folder `parent`, but not a link to one. Returns -1 and sets errno on
 * failure. */
int mt_safe_open_folder(int parent, const char *name);

/* Returns true if only this user and root can write to a file or folder. The members of this user's
 * private group do not count as others: with a umask of 002, all new folders are open to it. */
bool mt_safe_is_closed(const struct stat *info);

/* The folder of memtrace in the user's cache. Nobody else can change what is in it. */

struct mt_cache {
    int fd;
    char path[PATH_MAX];
};

/* Creates and opens the folder: `wanted`, or the first that can be used of
 * $XDG_CACHE_HOME/memtrace, ~/.cache/memtrace, and memtrace-UID in $TMPDIR (/tmp), which only its
 * owner may enter. Its group loses the permission to write there. Skips paths that other users can
 * change (mt_safe_path_open), and paths with a space, a colon or a semicolon, which cannot be in
 * LD_PRELOAD. MT_ERR_OUTPUT: none is usable; *error has the reason for the first one, and nothing
 * is to be closed. */
enum mt_status mt_cache_open(const char *wanted, struct mt_cache *cache,
                             struct mt_error *error) MT_MUST_USE;
void mt_cache_close(struct mt_cache *cache);

/* Unlike mt_safe_is_closed, also refuses this user's private group: memtrace makes these folders,
 * so its permission to write is removed. */
bool mt_cache_is_closed(const struct stat *info);

#endif
