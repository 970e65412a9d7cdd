/* Paths that lead to the same file whatever other users do, and the folder of memtrace in the
 * user's cache. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "output_file.h"
#include "safe_path.h"
#include "status.h"

enum { MAX_LINKS = 40 }; /* as in the kernel */

struct walk {
    int at;        /* where the rest begins */
    char *rest;    /* from malloc; what is not visited yet */
    char *next;    /* in `rest` */
    uid_t highest; /* the owner of "/" can replace everything. In a user namespace this is how root
                      of the machine looks. */
    unsigned links;
};

/* Systems that create files with a umask of 002 give each user a group of the same name. */
static bool is_private_group(gid_t gid)
{
    const struct passwd *user = getpwuid(geteuid());
    const struct group *group = user && user->pw_gid == gid ? getgrgid(gid) : NULL;

    if (!group || strcmp(group->gr_name, user->pw_name) != 0)
        return false;
    for (char *const *member = group->gr_mem; *member; member++)
        if (strcmp(*member, user->pw_name) != 0)
            return false;
    return true;
}

static bool others_can_write(const struct stat *info)
{
    return info->st_mode & S_IWOTH || (info->st_mode & S_IWGRP && !is_private_group(info->st_gid));
}

static bool is_trusted(uid_t owner)
{
    return owner == geteuid() || owner == 0;
}

bool mt_safe_is_closed(const struct stat *info)
{
    return is_trusted(info->st_uid) && !others_can_write(info);
}

/* In a folder with the sticky bit, as /tmp, others can create names, but not replace those of this
 * user, which the next step checks. The mode of a link means nothing. */
static bool is_kept(const struct walk *walk, const struct stat *info)
{
    bool is_sticky = S_ISDIR(info->st_mode) && info->st_mode & S_ISVTX;

    return (is_trusted(info->st_uid) || info->st_uid == walk->highest) &&
           (S_ISLNK(info->st_mode) || is_sticky || !others_can_write(info));
}

static enum mt_status refuse(int fd, const char *path, const char *reason, struct mt_error *error)
{
    char own[64], name[PATH_MAX];

    snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(own, name, sizeof name - 1);
    name[length > 0 ? length : 0] = '\0';
    return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET, "%s %.160s", reason,
                   *name == '/' ? name : path);
}

/* Cuts the next component from the rest. Returns NULL at the end. */
static char *take_component(struct walk *walk)
{
    char *name = walk->next + strspn(walk->next, "/");

    walk->next = name + strcspn(name, "/");
    if (*walk->next)
        *walk->next++ = '\0';
    return *name ? name : NULL;
}

static bool is_at_end(const struct walk *walk)
{
    return !walk->next[strspn(walk->next, "/")];
}

static void go_to(struct walk *walk, int fd)
{
    if (walk->at >= 0)
        (void)mt_io_close(walk->at);
    walk->at = fd;
}

/* Puts the target of a link in front of the rest. */
static enum mt_status follow(struct walk *walk, int link, struct mt_error *error)
{
    char target[PATH_MAX];
    ssize_t length = readlinkat(link, "", target, sizeof target);
    size_t rest = strlen(walk->next);

    if (length < 0 || length == sizeof target || ++walk->links > MAX_LINKS) {
        errno = length < 0 ? errno : ELOOP;
        return mt_io_fail(error, MT_ERR_IO, "a symbolic link");
    }
    char *joined = malloc((size_t)length + rest + 2);
    if (!joined)
        return mt_fail_memory(error);
    memcpy(joined, target, (size_t)length);
    joined[length] = '/';
    memcpy(joined + length + 1, walk->next, rest + 1);
    free(walk->rest);
    walk->rest = walk->next = joined;
    if (*target == '/')
        go_to(walk, mt_io_open("/", O_PATH | O_DIRECTORY, 0));
    return walk->at < 0 ? mt_io_fail(error, MT_ERR_IO, "/") : MT_OK;
}

static enum mt_status step(struct walk *walk, const char *name, const char *path,
                           struct mt_error *error)
{
    int fd = mt_io_open_at(walk->at, name, O_PATH | O_NOFOLLOW, 0);
    enum mt_status status = MT_OK;
    struct stat info;

    if (fd < 0 || fstat(fd, &info) != 0)
        status = mt_io_fail(error, MT_ERR_IO, name);
    else if ((S_ISLNK(info.st_mode) || !is_at_end(walk)) && !is_kept(walk, &info))
        status = refuse(fd, path,
                        is_trusted(info.st_uid) || info.st_uid == walk->highest
                            ? "other users can write to"
                            : "another user owns",
                        error);
    else if (S_ISLNK(info.st_mode))
        status = follow(walk, fd, error);
    if (!status && !S_ISLNK(info.st_mode))
        go_to(walk, fd);
    else if (fd >= 0)
        (void)mt_io_close(fd);
    return status;
}

static enum mt_status begin(struct walk *walk, const char *path, struct mt_error *error)
{
    char folder[PATH_MAX] = "";
    size_t size = strlen(path) + PATH_MAX + 1;
    struct stat info;

    walk->at = mt_io_open("/", O_PATH | O_DIRECTORY, 0);
    if (walk->at < 0 || fstat(walk->at, &info) != 0 || (*path != '/' && !getcwd(folder, PATH_MAX)))
        return mt_io_fail(error, MT_ERR_IO, path);
    walk->highest = info.st_uid;
    if (!is_kept(walk, &info))
        return refuse(walk->at, path, "other users can write to", error);
    walk->rest = walk->next = malloc(size);
    if (!walk->rest)
        return mt_fail_memory(error);
    snprintf(walk->rest, size, "%s/%s", folder, path);
    return MT_OK;
}

int mt_safe_path_open(const char *path, struct mt_error *error)
{
    struct walk walk = {.at = -1};
    enum mt_status status = begin(&walk, path, error);

    for (const char *name; !status && (name = take_component(&walk));)
        status = step(&walk, name, path, error);
    free(walk.rest);
    if (!status)
        return walk.at;
    if (walk.at >= 0)
        (void)mt_io_close(walk.at);
    return -1;
}

/* The loader splits LD_PRELOAD at the first two characters, and search paths at the last two. */
static bool can_be_preloaded(const char *path)
{
    return !strpbrk(path, " :;$");
}

bool mt_path_join(char path[PATH_MAX], const char *folder, const char *name)
{
    int length = snprintf(path, PATH_MAX, "%s/%s", folder, name);

    return length > 0 && length < PATH_MAX;
}

bool mt_cache_is_closed(const struct stat *info)
{
    return mt_safe_is_closed(info) && !(info->st_mode & S_IWGRP);
}

int mt_safe_open_folder(int parent, const char *name)
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
    cache->fd = mt_safe_open_folder(place, ".");
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

    return folder && folder[0] == '/' && mt_path_join(path, folder, name);
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
    if (!mt_path_join(path, folder && folder[0] == '/' ? folder : "/tmp", name))
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
