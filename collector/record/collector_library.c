/* See collector_library.h. */
#include "collector_library.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util.h"

/* Relative to the program's folder: a build folder, then the private folder of `cmake --install`
 * (cmake/install.cmake). */
static const char *const folders[] = {"", PRIVATE_FOLDER};

/* Returns the folder of this program, with a slash at the end. */
static bool own_folder(char folder[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    char *slash;

    if (length <= 0)
        return false;
    folder[length] = '\0';
    slash = strrchr(folder, '/');
    if (!slash)
        return false;
    slash[1] = '\0';
    return true;
}

/* Resolves links and dots of `candidate`, if it is a readable file. */
static bool resolve(const char *candidate, char path[PATH_MAX])
{
    return realpath(candidate, path) && access(path, R_OK) == 0;
}

/* LD_PRELOAD is a list separated by blanks or colons, without quoting. */
static enum mt_status check_path(const char *path, struct mt_error *error)
{
    if (!strpbrk(path, " :\t\n"))
        return MT_OK;
    return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                   "LD_PRELOAD does not support the space or colon in '%.150s'", path);
}

bool mt_collector_is_built(void)
{
    return HAS_COLLECTOR;
}

enum mt_status mt_collector_library(const char *name, char path[PATH_MAX], struct mt_error *error)
{
    const char *told = strcmp(name, MT_COLLECTOR_NAME) == 0 ? getenv("MEMTRACE_INJECT") : NULL;
    char own[PATH_MAX]; /* the folder, then the name of a candidate */
    size_t i, length;

    if (told && *told) {
        if (resolve(told, path))
            return check_path(path, error);
        return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "MEMTRACE_INJECT is '%.100s': %s", told,
                       strerror(errno));
    }
    if (!mt_collector_is_built())
        return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET,
                       "this memtrace was built without the recorder: install a complete package");
    if (!own_folder(own))
        return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "the folder of memtrace is unknown");
    length = strlen(own);
    for (i = 0; i < MT_ARRAY_LEN(folders); i++) {
        int more = snprintf(own + length, sizeof own - length, "%s%s", folders[i], name);
        if (more > 0 && (size_t)more < sizeof own - length && resolve(own, path))
            return check_path(path, error);
    }
    own[length] = '\0';
    return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET,
                   "%s is neither in %.100s nor in its %s: reinstall memtrace with all its files",
                   name, own, PRIVATE_FOLDER);
}
