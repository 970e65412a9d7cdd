/* See manifest.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* mkostemp */
#endif
#include "manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "map.h"
#include "own_file.h"

enum { MAX_BYTES = 64 << 20 };

enum mt_status mt_manifest_new(const char *folder, char path[PATH_MAX], int *lock,
                               struct mt_error *error)
{
    int fd;

    if (snprintf(path, PATH_MAX, "%s" MT_MANIFEST_PREFIX "XXXXXX", folder) >= PATH_MAX)
        return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "the path is too long");
    fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "%s", strerror(errno));
    /* Another run that searches for leftovers may hold the lock for a moment. It does not remove a
     * list that has no first line yet. On a file system without locks, other runs treat this run as
     * ended. */
    (void)mt_io_lock(fd, LOCK_EX);
    *lock = fd;
    if (mt_io_write(fd, MT_MANIFEST_FIRST_LINE, strlen(MT_MANIFEST_FIRST_LINE)))
        return MT_OK;
    (void)mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "%s", strerror(errno));
    (void)mt_io_close(fd);
    (void)unlink(path);
    return MT_ERR_OUTPUT;
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
        return mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "out of memory");
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
    uint32_t i;

    *traces = mt_arena_array(arena, (size_t)paths->count + 1, sizeof(char *));
    for (i = 0; *traces && i < paths->count; i++) {
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
            mt_fail(error, status, MT_NO_OFFSET, "out of memory");
    }
    if (status == MT_OK)
        *count = paths.count;
    mt_buf_release(&text);
    mt_strings_release(&paths);
    return status;
}
