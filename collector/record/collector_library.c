#include "collector_library.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "module.h"

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
    enum mt_status status;

    if (told && *told) {
        if (realpath(told, path) && access(path, R_OK) == 0)
            return check_path(path, error);
        return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "MEMTRACE_INJECT is '%.100s': %s", told,
                       strerror(errno));
    }
    if (!mt_collector_is_built())
        return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET,
                       "this memtrace was built without the recorder: install a complete package");
    status = mt_private_file(name, path, error);
    return status == MT_OK ? check_path(path, error) : status;
}
