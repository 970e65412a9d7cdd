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

/* The loader splits LD_PRELOAD at spaces and colons, and LD_LIBRARY_PATH, which replaces the former
 * for a path with a space (mt_record_preload_word), at colons and semicolons. Neither has quotes.
 */
static enum mt_status check_path(const char *path, struct mt_error *error)
{
    if (!strchr(path, ':') && !(strchr(path, ' ') && strchr(path, ';')))
        return MT_OK;
    return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                   "the loader cannot preload '%.150s' because of its colon or semicolon: install "
                   "memtrace in another folder",
                   path);
}

bool mt_collector_is_built(void)
{
    return HAS_COLLECTOR;
}

enum mt_status mt_collector_library(const char *name, char path[PATH_MAX], struct mt_error *error)
{
    const char *told = strcmp(name, MT_COLLECTOR_NAME) == 0 ? getenv("MEMTRACE_INJECT") : NULL;
    char own[PATH_MAX], candidate[2 * PATH_MAX];
    size_t i;

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
    for (i = 0; i < MT_ARRAY_LEN(folders); i++) {
        snprintf(candidate, sizeof candidate, "%s%s%s", own, folders[i], name);
        if (resolve(candidate, path))
            return check_path(path, error);
    }
    return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET,
                   "%s is neither in %.100s nor in its %s: reinstall memtrace with all its files",
                   name, own, PRIVATE_FOLDER);
}
