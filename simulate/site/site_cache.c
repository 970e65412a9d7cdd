#include "site_cache.h"

#include "grow.h"
#include "io.h"
#include "output_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define UNFINISHED "making-"

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

static bool is_closed(const struct stat *info)
{
    return (info->st_uid == geteuid() || info->st_uid == 0) &&
           !(info->st_mode & (S_IWGRP | S_IWOTH));
}

/* With a umask of 002, the group may write to new folders, and it may have other members. Only this
 * user needs the folder, so the permission is removed. */
static void close_to_group(const char *path, struct stat *info)
{
    if (info->st_mode & S_IWGRP && info->st_uid == geteuid() &&
        chmod(path, info->st_mode & 07777 & ~(mode_t)S_IWGRP) == 0)
        info->st_mode &= ~(mode_t)S_IWGRP;
}

/* Fails unless the folder is writable and no other user can put a library there. */
static enum mt_status use_folder(const char *path, struct mt_error *error)
{
    struct mt_error reason = {0};
    struct stat info;

    if (path[0] != '/')
        return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "%.200s is not an absolute path", path);
    if (!can_be_preloaded(path))
        return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET,
                       "%.150s contains a character that LD_PRELOAD does not allow", path);
    enum mt_status status = mt_make_folders(path, &reason);
    if (status)
        return mt_fail(error, status, MT_NO_OFFSET, "%.150s: %.60s", path, reason.text);
    if (stat(path, &info) != 0 || access(path, W_OK | X_OK) != 0)
        return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "%.150s: %s", path, strerror(errno));
    close_to_group(path, &info);
    if (!is_closed(&info))
        return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "other users can write to %.150s", path);
    return MT_OK;
}

static bool cache_of_user(char path[PATH_MAX])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

    if (cache && cache[0] == '/')
        return join(path, cache, "memtrace");
    return home && home[0] == '/' && join(path, home, ".cache/memtrace");
}

/* All processes of a user have the same name for it. It is created with its final mode, so it is
 * never accessible to others. A symbolic link is refused, because another user's link may point to
 * any folder of this user. */
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

enum mt_status mt_cache_folder(const char *wanted, char folder[PATH_MAX], struct mt_error *error)
{
    struct mt_error reason = {0};

    if (wanted) {
        if (strlen(wanted) >= PATH_MAX)
            return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "the path of the cache is too long");
        memcpy(folder, wanted, strlen(wanted) + 1);
        return use_folder(folder, error);
    }
    if (cache_of_user(folder) && use_folder(folder, &reason) == MT_OK)
        return MT_OK;
    if (temporary_cache(folder) && use_folder(folder, reason.status ? NULL : &reason) == MT_OK)
        return MT_OK;
    return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET,
                   "no folder for the simulated libraries: %.150s; set XDG_CACHE_HOME to one that "
                   "can be written",
                   reason.status ? reason.text : "neither HOME nor TMPDIR can be used");
}

enum mt_status mt_cache_begin(const char *folder, char made[PATH_MAX], struct mt_error *error)
{
    if (!join(made, folder, UNFINISHED "XXXXXX"))
        return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "the path of the cache is too long");
    return mkdtemp(made) ? MT_OK : mt_io_fail_output(error);
}

bool mt_cache_site_is_ours(const char *site)
{
    struct stat info;

    return lstat(site, &info) == 0 && S_ISDIR(info.st_mode) && is_closed(&info);
}

void mt_cache_remove(const char *folder)
{
    DIR *entries = opendir(folder);
    char path[PATH_MAX];

    for (const struct dirent *entry; entries && (entry = readdir(entries)) != NULL;)
        if (join(path, folder, entry->d_name)) /* hidden files are incomplete notes */
            (void)unlink(path);                /* fails for "." and ".." */
    if (entries)
        (void)closedir(entries);
    (void)rmdir(folder);
}

enum mt_status mt_cache_finish(const char *made, const char *site, struct mt_error *error)
{
    if (mt_io_rename(made, site))
        return MT_OK;
    bool is_there = errno == ENOTEMPTY || errno == EEXIST;
    enum mt_status status = is_there ? MT_OK : mt_io_fail_output(error);
    mt_cache_remove(made);
    return status;
}

struct entry {
    char name[NAME_MAX + 1];
    time_t used;
};

static int newest_first(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    return (x->used < y->used) - (x->used > y->used);
}

static bool is_unfinished(const char *name)
{
    return strncmp(name, UNFINISHED, strlen(UNFINISHED)) == 0;
}

/* Other files in the folder do not belong to memtrace. */
static bool is_ours(const char *name)
{
    return is_unfinished(name) || (strlen(name) == MT_SITE_KEY_DIGITS &&
                                   strspn(name, "0123456789abcdef") == MT_SITE_KEY_DIGITS);
}

static size_t list_entries(const char *folder, struct entry **list)
{
    DIR *entries = opendir(folder);
    size_t count = 0, capacity = 0;
    char path[PATH_MAX];
    struct stat info;

    for (const struct dirent *entry; entries && (entry = readdir(entries)) != NULL;) {
        if (!is_ours(entry->d_name) || !join(path, folder, entry->d_name) ||
            lstat(path, &info) != 0 || !S_ISDIR(info.st_mode))
            continue;
        if (count == capacity && mt_grow(list, &capacity, count + 1, sizeof **list))
            break;
        snprintf((*list)[count].name, sizeof(*list)[count].name, "%s", entry->d_name);
        (*list)[count++].used = info.st_mtime;
    }
    if (entries)
        (void)closedir(entries);
    return count;
}

void mt_cache_tidy(const char *folder, const char *site)
{
    struct entry *list = NULL;
    char path[PATH_MAX];
    time_t now = time(NULL);
    size_t kept = 0;

    (void)utimensat(AT_FDCWD, site, NULL, 0);
    size_t count = list_entries(folder, &list);
    if (count)
        qsort(list, count, sizeof *list, newest_first);
    for (size_t i = 0; i < count; i++) {
        bool was_left = is_unfinished(list[i].name);
        kept += !was_left;
        if ((was_left || kept > MT_SITES_KEPT) && now - list[i].used > MT_SITE_MIN_AGE_S &&
            join(path, folder, list[i].name))
            mt_cache_remove(path);
    }
    free(list);
}
