/* The folder of memtrace in the user's cache. Nobody else can change what is in it. */
#ifndef MT_CACHE_FOLDER_H
#define MT_CACHE_FOLDER_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "status.h"

struct mt_cache {
    int fd;
    char path[PATH_MAX];
};

/* Creates and opens the folder: `wanted`, or the first that can be used of
 * $XDG_CACHE_HOME/memtrace, ~/.cache/memtrace, and memtrace-UID in $TMPDIR (/tmp), which only its
 * owner may enter. Its group loses the permission to write there. Skips paths that other users can
 * change (safe_path.h), and paths with a space, a colon or a semicolon, which cannot be in
 * LD_PRELOAD. MT_ERR_OUTPUT: none is usable; *error has the reason for the first one, and nothing
 * is to be closed. */
enum mt_status mt_cache_open(const char *wanted, struct mt_cache *cache,
                             struct mt_error *error) MT_MUST_USE;
void mt_cache_close(struct mt_cache *cache);

/* Unlike mt_safe_is_closed, also refuses this user's private group: memtrace makes these folders,
 * so its permission to write is removed. */
bool mt_cache_is_closed(const struct stat *info);

#endif
