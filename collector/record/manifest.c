/* The list of the traces of a run, and files that a killed memtrace left in a folder of traces. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* mkostemp */
#endif

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "arena.h"
#include "buf.h"
#include "io.h"
#include "manifest.h"
#include "map.h"
#include "own_file.h"
#include "status.h"
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
    bool is_temporary = mt_temporary_file_is_name(name);
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
        if (mt_manifest_is_name(entry->d_name) || mt_temporary_file_is_name(entry->d_name))
            remove_if_left(dirfd(listing), entry->d_name);
    closedir(listing);
}

enum { MAX_BYTES = 64 << 20 };

enum mt_status mt_manifest_new(const char *folder, char path[PATH_MAX], int *lock,
                               struct mt_error *error)
{
    if (snprintf(path, PATH_MAX, "%s" MT_MANIFEST_PREFIX "XXXXXX", folder) >= PATH_MAX)
        return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "the path is too long");
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "%s", strerror(errno));
    /* Another run that searches for leftovers may hold the lock for a moment. It does not remove a
     * list that has no first line yet. On a file system without locks, other runs treat this run as
     * ended. */
    (void)mt_io_lock(fd, LOCK_EX);
    *lock = fd;
    if (mt_io_write(fd, MT_MANIFEST_FIRST_LINE MT_MANIFEST_IDLE,
                    strlen(MT_MANIFEST_FIRST_LINE MT_MANIFEST_IDLE)))
        return MT_OK;
    (void)mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "%s", strerror(errno));
    (void)mt_io_close(fd);
    (void)unlink(path);
    return MT_ERR_OUTPUT;
}

bool mt_manifest_set_line(int lock, const char *line)
{
    return pwrite(lock, line, strlen(line), (off_t)strlen(MT_MANIFEST_FIRST_LINE)) ==
           (ssize_t)strlen(line);
}

static enum mt_status read_file(const char *path, struct mt_buf *text, struct mt_error *error)
{
    int fd = mt_io_open(path, O_RDONLY, 0);
    ssize_t count = fd < 0 ? -1 : 1;

    while (count > 0 && text->length < MAX_BYTES) {
        char *room = mt_buf_reserve(text, 65536);
        if (!room)
            break;
        count = mt_io_read(fd, room, 65536);
        if (count > 0)
            text->length += (size_t)count;
    }
    if (count < 0)
        mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "%s", strerror(errno));
    if (fd >= 0)
        (void)mt_io_close(fd);
    if (text->failed)
        return mt_fail_memory(error);
    return count < 0 ? MT_ERR_IO : MT_OK;
}

/* A line is added if it is a path that is not in the list yet. */
static enum mt_status add_line(struct mt_strings *paths, const char *line, size_t length)
{
    uint32_t id;

    return length && line[0] == '/' ? mt_strings_intern(paths, line, length, &id) : MT_OK;
}

static enum mt_status add_lines(struct mt_strings *paths, const struct mt_buf *text)
{
    const char *at = text->data, *end = at + text->length, *next;
    enum mt_status status = MT_OK;

    for (; at && at < end && status == MT_OK; at = next + 1) {
        next = memchr(at, '\n', (size_t)(end - at));
        if (!next)
            break; /* a process is about to write the rest of the line, or failed to */
        status = add_line(paths, at, (size_t)(next - at));
    }
    return status;
}

static enum mt_status copy_paths(const struct mt_strings *paths, struct mt_arena *arena,
                                 char ***traces)
{
    *traces = mt_arena_array(arena, (size_t)paths->count + 1, sizeof(char *));
    for (uint32_t i = 0; *traces && i < paths->count; i++) {
        (*traces)[i] = mt_arena_text(arena, paths->texts[i], paths->lengths[i]);
        if (!(*traces)[i])
            return MT_ERR_MEMORY;
    }
    return *traces ? MT_OK : MT_ERR_MEMORY;
}

enum mt_status mt_manifest_read(const char *path, struct mt_arena *arena, char ***traces,
                                size_t *count, struct mt_error *error)
{
    struct mt_strings paths = {0};
    struct mt_buf text = {0};
    enum mt_status status = read_file(path, &text, error);

    *count = 0;
    if (status == MT_OK) {
        status = add_lines(&paths, &text);
        if (status == MT_OK)
            status = copy_paths(&paths, arena, traces);
        if (status != MT_OK)
            mt_fail_status(error, status);
    }
    if (status == MT_OK)
        *count = paths.count;
    mt_buf_release(&text);
    mt_strings_release(&paths);
    return status;
}
