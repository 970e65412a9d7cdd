#include "cache_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io.h"
#include "output_file.h"
#include "safe_path.h"

/* The loader splits LD_PRELOAD at the first two characters, and search paths at the last two. */
static bool can_be_preloaded(const char *path)
{
    return !strpbrk(path, " :;$");
}

static bool join(char path[PATH_MAX], const char *folder, const char *name)
{
    int length = snprintf(path, PATH_MAX, "%s/%s", folder, name);

    return length > 0 && length < PATH_MAX;
}

bool mt_cache_is_closed(const struct stat *info)
{
    return mt_safe_is_closed(info) && !(info->st_mode & S_IWGRP);
}

/* Opens a folder, but not a link to one. */
static int open_in(int parent, const char *name)
{
    return mt_io_open_at(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

/* With a umask of 002, the group may write to new folders, and it may have other members. Only this
 * user needs the folder, so the permission is removed. */
static void close_to_group(int fd, struct stat *info)
{
    if (info->st_mode & S_IWGRP && info->st_uid == geteuid() &&
        fchmod(fd, info->st_mode & 07777 & ~(mode_t)S_IWGRP) == 0)
        info->st_mode &= ~(mode_t)S_IWGRP;
}

static enum mt_status check_folder(int fd, const char *path, struct mt_error *error)
{
    struct stat info;

    if (fstat(fd, &info) != 0 || faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) != 0)
        return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "%.150s: %s", path, strerror(errno));
    close_to_group(fd, &info);
    if (!mt_cache_is_closed(&info))
        return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "other users can write to %.150s", path);
    return MT_OK;
}

/* Fails unless the folder is writable and no other user can put a library there, or another folder
 * in its place. */
static enum mt_status open_folder(struct mt_cache *cache, struct mt_error *error)
{
    struct mt_error reason = {0};
    int place = mt_safe_path_open(cache->path, &reason);

    cache->fd = -1;
    if (place < 0)
        return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "%.220s", reason.text);
    cache->fd = open_in(place, ".");
    if (cache->fd < 0)
        (void)mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "%.150s: %s", cache->path,
                      strerror(errno));
    (void)mt_io_close(place);
    if (cache->fd >= 0 && check_folder(cache->fd, cache->path, error))
        mt_cache_close(cache);
    return cache->fd < 0 ? MT_ERR_OUTPUT : MT_OK;
}

static enum mt_status use_folder(struct mt_cache *cache, struct mt_error *error)
{
    struct mt_error reason = {0};
    const char *path = cache->path;

    if (path[0] != '/')
        return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "%.200s is not an absolute path", path);
    if (!can_be_preloaded(path))
        return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET,
                       "%.150s contains a character that LD_PRELOAD does not allow", path);
    enum mt_status status = mt_output_file_make_folders(path, &reason);
    if (status)
        return mt_fail(error, status, MT_NO_OFFSET, "%.150s: %.60s", path, reason.text);
    return open_folder(cache, error);
}

static bool cache_of_variable(const char *variable, const char *name, char path[PATH_MAX])
{
    const char *folder = getenv(variable);

    return folder && folder[0] == '/' && join(path, folder, name);
}

/* All processes of a user have the same name for it. It is created with its final mode, so it is
 * never accessible to others. A symbolic link is refused: in a shared folder, it could be another
 * user's, and point to any folder of this user. */
static bool temporary_cache(char path[PATH_MAX])
{
    const char *folder = getenv("TMPDIR");
    struct stat info;
    char name[64];

    snprintf(name, sizeof name, "memtrace-%lu", (unsigned long)geteuid());
    if (!join(path, folder && folder[0] == '/' ? folder : "/tmp", name))
        return false;
    return mkdir(path, 0700) == 0 || (lstat(path, &info) == 0 && S_ISDIR(info.st_mode));
}

enum mt_status mt_cache_open(const char *wanted, struct mt_cache *cache, struct mt_error *error)
{
    struct mt_error reason = {0};

    cache->fd = -1;
    if (wanted) {
        if (strlen(wanted) >= PATH_MAX)
            return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "the path of the cache is too long");
        memcpy(cache->path, wanted, strlen(wanted) + 1);
        return use_folder(cache, error);
    }
    if (cache_of_variable("XDG_CACHE_HOME", "memtrace", cache->path) &&
        use_folder(cache, &reason) == MT_OK)
        return MT_OK;
    if (cache_of_variable("HOME", ".cache/memtrace", cache->path) &&
        use_folder(cache, reason.status ? NULL : &reason) == MT_OK)
        return MT_OK;
    if (temporary_cache(cache->path) && use_folder(cache, reason.status ? NULL : &reason) == MT_OK)
        return MT_OK;
    return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET,
                   "no folder for the cache of memtrace: %.130s; set XDG_CACHE_HOME to a folder "
                   "that only you can write to",
                   reason.status ? reason.text : "neither HOME nor TMPDIR can be used");
}

void mt_cache_close(struct mt_cache *cache)
{
    if (cache->fd >= 0)
        (void)mt_io_close(cache->fd);
    cache->fd = -1;
}
