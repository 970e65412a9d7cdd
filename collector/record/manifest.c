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
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "grow.h"

enum { MAX_BYTES = 64 << 20 };

/* The first line keeps the file's first block, so that names can be appended
 * when the disk is full. */
static const char first_line[] = "# traces of a run of memtrace record\n";

enum mt_status mt_manifest_new(const char *folder, char path[PATH_MAX], struct mt_error *error)
{
    ssize_t written;
    int fd;

    if (snprintf(path, PATH_MAX, "%s.memtrace-XXXXXX", folder) >= PATH_MAX)
        return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "the path is too long");
    fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "%s", strerror(errno));
    written = write(fd, first_line, sizeof first_line - 1);
    close(fd);
    if (written == (ssize_t)sizeof first_line - 1)
        return MT_OK;
    unlink(path);
    return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "%s", strerror(ENOSPC));
}

static enum mt_status read_file(const char *path, struct mt_buf *text, struct mt_error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t count = fd < 0 ? -1 : 1;

    while (count > 0 && text->length < MAX_BYTES) {
        char *room = mt_buf_reserve(text, 65536);
        if (!room)
            break;
        count = read(fd, room, 65536);
        if (count > 0)
            text->length += (size_t)count;
        else if (count < 0 && errno == EINTR)
            count = 1;
    }
    if (count < 0)
        mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "%s", strerror(errno));
    if (fd >= 0)
        close(fd);
    if (text->failed)
        return mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "out of memory");
    return count < 0 ? MT_ERR_IO : MT_OK;
}

struct list {
    struct mt_arena *arena;
    char **paths;
    size_t count, capacity;
};

/* A line was added if it is a path that is not there yet. */
static enum mt_status add_line(struct list *list, const char *line, size_t length)
{
    size_t i;

    if (!length || line[0] != '/')
        return MT_OK;
    for (i = 0; i < list->count; i++)
        if (strlen(list->paths[i]) == length && !memcmp(list->paths[i], line, length))
            return MT_OK;
    if (list->count + 2 > list->capacity &&
        mt_grow(&list->paths, &list->capacity, list->count + 2, sizeof *list->paths) != MT_OK)
        return MT_ERR_MEMORY;
    list->paths[list->count] = mt_arena_text(list->arena, line, length);
    return list->paths[list->count++] ? MT_OK : MT_ERR_MEMORY;
}

static enum mt_status add_lines(struct list *list, const struct mt_buf *text)
{
    const char *at = text->data, *end = at + text->length, *next;
    enum mt_status status = MT_OK;

    for (; at && at < end && status == MT_OK; at = next + 1) {
        next = memchr(at, '\n', (size_t)(end - at));
        if (!next)
            break; /* a process is about to write it, or could not */
        status = add_line(list, at, (size_t)(next - at));
    }
    return status;
}

enum mt_status mt_manifest_read(const char *path, struct mt_arena *arena, char ***traces,
                                size_t *count, struct mt_error *error)
{
    struct list list = {.arena = arena};
    struct mt_buf text = {0};
    enum mt_status status = read_file(path, &text, error);

    if (status == MT_OK && (status = add_lines(&list, &text)) != MT_OK)
        mt_fail(error, status, MT_NO_OFFSET, "out of memory");
    mt_buf_release(&text);
    *traces = mt_arena_array(arena, list.count + 1, sizeof(char *));
    *count = *traces ? list.count : 0;
    if (*count)
        memcpy(*traces, list.paths, *count * sizeof(char *));
    free(list.paths);
    return status;
}
