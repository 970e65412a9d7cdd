#include "site_cache.h"

#include "grow.h"
#include "io.h"
#include "random.h"
#include "safe_path.h"
#include "sorted.h"

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

enum mt_status mt_cache_begin(const struct mt_cache *cache, struct mt_cache_making *making,
                              struct mt_error *error)
{
    int result;

    making->fd = -1;
    do {
        snprintf(making->name, sizeof making->name, UNFINISHED "%016llx",
                 (unsigned long long)mt_random_number(making));
        result = mkdirat(cache->fd, making->name, 0700);
    } while (result != 0 && errno == EEXIST);
    if (result == 0)
        making->fd = mt_safe_open_folder(cache->fd, making->name);
    return making->fd < 0 ? mt_io_fail_output(error) : MT_OK;
}

int mt_cache_site_open(const struct mt_cache *cache, const char *key)
{
    int fd = mt_safe_open_folder(cache->fd, key);
    struct stat info;

    if (fd < 0 || (fstat(fd, &info) == 0 && mt_cache_is_closed(&info)))
        return fd;
    (void)mt_io_close(fd);
    return -1;
}

/* The files in sites, and the notes of programs (dry_run_notes.h). */
static bool is_file_of_memtrace(const char *name)
{
    return (strncmp(name, "lib", 3) == 0 && strstr(name, ".so")) ||
           strcmp(name, MT_SITE_FACTS) == 0 || strncmp(name, "notes.", 6) == 0 ||
           strncmp(name, ".notes.", 7) == 0;
}

static void remove_files(int fd)
{
    DIR *entries = mt_io_open_entries(fd);

    for (const struct dirent *entry; entries && (entry = readdir(entries)) != NULL;)
        if (is_file_of_memtrace(entry->d_name))
            (void)unlinkat(fd, entry->d_name, 0);
    if (entries)
        (void)closedir(entries);
}

/* Fails if a file is left in it. */
static void remove_folder(const struct mt_cache *cache, const char *name, int fd)
{
    remove_files(fd);
    (void)unlinkat(cache->fd, name, AT_REMOVEDIR);
}

void mt_cache_remove(const struct mt_cache *cache, const char *name)
{
    int fd = mt_safe_open_folder(cache->fd, name);
    struct stat info;

    if (fd >= 0) {
        if (fstat(fd, &info) == 0 && info.st_uid == geteuid())
            remove_folder(cache, name, fd);
        (void)mt_io_close(fd);
    } else if (fstatat(cache->fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode)) {
        (void)unlinkat(cache->fd, name, 0);
    }
}

void mt_cache_abandon(const struct mt_cache *cache, struct mt_cache_making *making)
{
    remove_folder(cache, making->name, making->fd);
    (void)mt_io_close(making->fd);
    making->fd = -1;
}

static bool rename_in(int folder, const char *from, const char *to)
{
    int result;

    do
        result = renameat(folder, from, folder, to);
    while (result < 0 && errno == EINTR);
    return result == 0;
}

enum mt_status mt_cache_finish(const struct mt_cache *cache, struct mt_cache_making *making,
                               const char *key, struct mt_error *error)
{
    if (rename_in(cache->fd, making->name, key)) {
        (void)mt_io_close(making->fd);
        making->fd = -1;
        return MT_OK;
    }
    bool is_there = errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR;
    enum mt_status status = is_there ? MT_OK : mt_io_fail_output(error);
    mt_cache_abandon(cache, making);
    return status;
}

struct entry {
    char name[NAME_MAX + 1];
    time_t used;
};

MT_DEFINE_ORDER(newest_first, struct entry, MT_DESCENDING(used))

static bool is_unfinished(const char *name)
{
    return strncmp(name, UNFINISHED, strlen(UNFINISHED)) == 0;
}

/* Other files in the folder do not belong to memtrace. */
static bool is_folder_of_memtrace(const char *name)
{
    return is_unfinished(name) || (strlen(name) == MT_SITE_KEY_DIGITS &&
                                   strspn(name, "0123456789abcdef") == MT_SITE_KEY_DIGITS);
}

static size_t list_entries(const struct mt_cache *cache, struct entry **list)
{
    DIR *entries = mt_io_open_entries(cache->fd);
    size_t count = 0, capacity = 0;
    struct stat info;

    for (const struct dirent *entry; entries && (entry = readdir(entries)) != NULL;) {
        if (!is_folder_of_memtrace(entry->d_name) ||
            fstatat(cache->fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISDIR(info.st_mode))
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

void mt_cache_tidy(const struct mt_cache *cache, const char *key)
{
    struct entry *list = NULL;
    time_t now = time(NULL);
    size_t kept = 0;

    (void)utimensat(cache->fd, key, NULL, AT_SYMLINK_NOFOLLOW);
    size_t count = list_entries(cache, &list);
    if (count)
        qsort(list, count, sizeof *list, newest_first);
    for (size_t i = 0; i < count; i++) {
        bool was_left = is_unfinished(list[i].name);
        kept += !was_left;
        if ((was_left || kept > MT_SITES_KEPT) && now - list[i].used > MT_SITE_MIN_AGE_S)
            mt_cache_remove(cache, list[i].name);
    }
    free(list);
}
