/* See collector_library.h. */
#include "collector_library.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "module.h"

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
