/* A file through pread and a moving window, or memory. Not mmap: if a file shrinks while it is
 * mapped, reading it raises SIGBUS. */
#include "container.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "io.h"
#include "util.h"

enum { WINDOW_BYTES = 4 * MT_FRAME_MAX_BYTES };

static enum mt_status read_pipe(struct mt_input *input, struct mt_error *error)
{
    struct mt_buf all = {0};

    for (;;) {
        char *room = mt_buf_reserve(&all, 1 << 16);
        ssize_t got = room ? mt_io_read(input->fd, room, 1 << 16) : 0;
        if (got > 0)
            all.length += (size_t)got;
        else if (got == 0)
            break;
        else {
            mt_buf_release(&all);
            return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "%s", strerror(errno));
        }
    }
    if (all.failed) {
        mt_buf_release(&all);
        return mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "out of memory");
    }
    input->owned = (uint8_t *)all.data;
    input->memory = input->owned;
    input->size = all.length;
    return MT_OK;
}

enum mt_status mt_input_open(struct mt_input *input, const char *path, struct mt_error *error)
{
    bool is_stdin = !strcmp(path, "-");
    enum mt_status status = MT_OK;
    struct stat info;

    memset(input, 0, sizeof *input);
    input->fd = is_stdin ? STDIN_FILENO : mt_io_open(path, O_RDONLY, 0);
    if (input->fd < 0 || fstat(input->fd, &info) < 0) {
        status = mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "%s", strerror(errno));
    } else if (S_ISDIR(info.st_mode)) {
        status = mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "is a directory");
    } else if (!is_stdin && S_ISREG(info.st_mode)) {
        input->size = (uint64_t)info.st_size;
        return MT_OK;
    } else {
        status = read_pipe(input, error);
    }
    if (input->fd >= 0 && !is_stdin)
        close(input->fd);
    input->fd = -1;
    return status;
}

enum mt_status mt_input_open_fd(struct mt_input *input, int fd, uint64_t limit_bytes,
                                struct mt_error *error)
{
    struct stat info;

    memset(input, 0, sizeof *input);
    input->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (input->fd < 0 || fstat(input->fd, &info) < 0)
        return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "%s", strerror(errno));
    if (!S_ISREG(info.st_mode))
        return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "is not a regular file");
    input->size = mt_min_u64((uint64_t)info.st_size, limit_bytes);
    return MT_OK;
}

void mt_input_open_memory(struct mt_input *input, const void *bytes, size_t length)
{
    memset(input, 0, sizeof *input);
    input->fd = -1;
    input->memory = bytes;
    input->size = length;
}

void mt_input_close(struct mt_input *input)
{
    if (input->fd >= 0)
        close(input->fd);
    free(input->owned);
    free(input->window);
    memset(input, 0, sizeof *input);
    input->fd = -1;
}

static enum mt_status fill_window(struct mt_input *input, uint64_t offset, size_t length,
                                  struct mt_error *error)
{
    size_t wanted = length > WINDOW_BYTES ? length : WINDOW_BYTES;

    if (wanted > input->window_capacity) {
        uint8_t *window = realloc(input->window, wanted);
        if (!window)
            return mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "out of memory");
        input->window = window;
        input->window_capacity = wanted;
    }
    input->window_offset = offset;
    input->window_length = 0;
    while (input->window_length < wanted) {
        ssize_t got = mt_io_pread(input->fd, input->window + input->window_length,
                                  wanted - input->window_length, offset + input->window_length);
        if (got == 0)
            return MT_OK;
        if (got < 0)
            return mt_fail(error, MT_ERR_IO, offset + input->window_length, "%s", strerror(errno));
        input->window_length += (size_t)got;
    }
    return MT_OK;
}

enum mt_status mt_input_at(struct mt_input *input, uint64_t offset, size_t length,
                           const uint8_t **bytes, size_t *got, struct mt_error *error)
{
    *bytes = NULL;
    *got = 0;
    if (offset >= input->size)
        return MT_OK;
    length = (size_t)mt_min_u64(length, input->size - offset);
    if (input->fd < 0) {
        *bytes = input->memory + offset;
        *got = length;
        return MT_OK;
    }
    if (offset < input->window_offset ||
        offset + length > input->window_offset + input->window_length) {
        enum mt_status status = fill_window(input, offset, length, error);
        if (status != MT_OK)
            return status;
    }
    MT_ASSERT(offset >= input->window_offset && input->window_length <= input->window_capacity);
    *bytes = input->window + (offset - input->window_offset);
    *got = (size_t)mt_min_u64(length, input->window_length - (offset - input->window_offset));
    return MT_OK;
}
