/* See leftovers.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "leftovers.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "io.h"
#include "manifest.h"
#include "temporary_file.h"
#include "trace.h"

enum {
    RANDOM_LETTERS = 6,
    MIN_AGE_SECONDS = 60 /* of temporary files: they are locked just after they are made */
};

static bool is_manifest_name(const char *name)
{
    size_t length = strlen(MT_MANIFEST_PREFIX);

    return strncmp(name, MT_MANIFEST_PREFIX, length) == 0 &&
           strlen(name) == length + RANDOM_LETTERS;
}

static bool is_old(const struct stat *facts)
{
    return time(NULL) - facts->st_mtime > MIN_AGE_SECONDS;
}

/* Do its first bytes say what its name says? */
static bool is_leftover(int fd, const char *name, const struct stat *facts)
{
    char bytes[64];
    ssize_t count = mt_io_pread_full(fd, bytes, sizeof bytes, 0);

    if (count < 0)
        return false;
    if (mt_is_temporary_name(name))
        return is_old(facts) && (count == 0 || mt_trace_probe(bytes, (size_t)count));
    return mt_manifest_probe(bytes, (size_t)count);
}

static void remove_if_left(int folder, const char *name)
{
    struct stat opened, named;
    int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return;
    /* The age is looked at before the lock, so that a new file is never locked against its maker,
     * and after it, for what was written in between. */
    if (fstat(fd, &opened) == 0 && S_ISREG(opened.st_mode) && opened.st_uid == geteuid() &&
        opened.st_nlink == 1 && (!mt_is_temporary_name(name) || is_old(&opened)) &&
        mt_io_lock(fd, LOCK_EX | LOCK_NB) && fstat(fd, &opened) == 0 &&
        is_leftover(fd, name, &opened) && fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
        named.st_dev == opened.st_dev && named.st_ino == opened.st_ino)
        (void)unlinkat(folder, name, 0);
    (void)mt_io_close(fd);
}

void mt_leftovers_remove(const char *folder)
{
    DIR *listing = opendir(folder);
    const struct dirent *entry;

    if (!listing)
        return;
    while ((entry = readdir(listing)))
        if (is_manifest_name(entry->d_name) || mt_is_temporary_name(entry->d_name))
            remove_if_left(dirfd(listing), entry->d_name);
    closedir(listing);
}
