/* See leftovers.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "leftovers.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "io.h"
#include "own_file.h"
#include "temporary_file.h"
#include "trace.h"

enum {
    MIN_AGE_SECONDS = 60
}; /* for temporary files: they are locked just after they are
      created */

static bool is_old(const struct stat *facts)
{
    return time(NULL) - facts->st_mtime > MIN_AGE_SECONDS;
}

/* Returns true if the first bytes of a file match its name. */
static bool is_unfinished_trace(int fd)
{
    char bytes[64];
    ssize_t count = mt_io_pread_full(fd, bytes, sizeof bytes, 0);

    return count == 0 || (count > 0 && mt_trace_probe(bytes, (size_t)count));
}

static void remove_if_left(int folder, const char *name)
{
    bool is_temporary = mt_is_temporary_name(name);
    struct stat facts;
    int fd = mt_io_open_at(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0);

    if (fd < 0)
        return;
    /* The age is checked twice: before the lock is taken, so that a new file is never locked
     * against its creator, and afterwards, because the file may have been written in between. */
    if (fstat(fd, &facts) == 0 && mt_own_file_is_mine(&facts) &&
        (!is_temporary || is_old(&facts)) && mt_io_lock(fd, LOCK_EX | LOCK_NB) &&
        fstat(fd, &facts) == 0) {
        if (!is_temporary)
            mt_manifest_remove(fd, folder, name);
        else if (is_old(&facts) && is_unfinished_trace(fd))
            mt_own_file_unlink(fd, folder, name);
    }
    (void)mt_io_close(fd);
}

void mt_leftovers_remove(const char *folder)
{
    DIR *listing = opendir(folder);
    const struct dirent *entry;

    if (!listing)
        return;
    while ((entry = readdir(listing)))
        if (mt_is_manifest_name(entry->d_name) || mt_is_temporary_name(entry->d_name))
            remove_if_left(dirfd(listing), entry->d_name);
    closedir(listing);
}
