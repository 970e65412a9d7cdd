/* Paths that lead to the same file whatever other users do: each folder above it, and each link on
 * the way, belongs to this user or to root, and no other user can write to it. */
#ifndef MT_SAFE_PATH_H
#define MT_SAFE_PATH_H

#include <stdbool.h>
#include <sys/stat.h>

#include "status.h"

/* Walks from folder to folder and follows links itself, so that a path that changes meanwhile does
 * not matter. Returns a descriptor (O_PATH) of what is at the end. Its own owner and mode are not
 * checked: call mt_safe_is_closed. Returns -1 with the reason in *error: MT_ERR_UNSUPPORTED if
 * other users can change the path, MT_ERR_IO if it cannot be followed, MT_ERR_MEMORY. */
int mt_safe_path_open(const char *path, struct mt_error *error);

/* Returns true if only this user and root can write to a file or folder. The members of this user's
 * private group do not count as others: with a umask of 002, all new folders are open to it. */
bool mt_safe_is_closed(const struct stat *info);

#endif
