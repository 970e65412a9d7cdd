#include "amend.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "container.h"
#include "io.h"

static enum mt_status refuse(struct mt_error *error, const char *why)
{
    return mt_fail(error, MT_ERR_FORMAT, 0, "%s", why);
}

/* Returns -1 and fills *error on failure. */
static int open_file(const char *path, int flags, struct mt_error *error)
{
    int fd = mt_io_open(path, flags | O_NOFOLLOW | O_NONBLOCK, 0);
    struct stat facts;

    if (fd < 0) {
        (void)mt_io_fail(error, MT_ERR_IO, path);
        return -1;
    }
    if (!fstat(fd, &facts) && S_ISREG(facts.st_mode))
        return fd;
    (void)refuse(error, "is not a regular file");
    (void)mt_io_close(fd);
    return -1;
}

/* Length of the whole frame, 0 if there is none. */
static size_t frame_bytes(int fd)
{
    uint8_t start[MT_SKIPPABLE_HEADER_BYTES];
    uint32_t payload;

    if (mt_io_pread_full(fd, start, sizeof start, 0) != (ssize_t)sizeof start ||
        mt_get_u32(start) != MT_OWN_FRAME_MAGIC)
        return 0;
    payload = mt_get_u32(start + 4);
    return payload <= MT_HEADER_MAX_BYTES ? sizeof start + payload : 0;
}

static enum mt_status read_frame(int fd, struct mt_arena *arena, struct mt_trace_header *header,
                                 struct mt_error *error)
{
    size_t bytes = frame_bytes(fd);
    const char *reason;
    struct mt_buf frame = {0};
    char *room = bytes ? mt_buf_reserve(&frame, bytes) : NULL;
    enum mt_status status = MT_OK;

    if (!bytes)
        return refuse(error, "has no header");
    if (!room)
        status = mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "out of memory");
    else if (mt_io_pread_full(fd, room, bytes, 0) != (ssize_t)bytes)
        status = refuse(error, "its header is cut");
    if (status == MT_OK) {
        status = mt_header_read((const uint8_t *)room + MT_SKIPPABLE_HEADER_BYTES,
                                bytes - MT_SKIPPABLE_HEADER_BYTES, arena, header, &reason);
        if (status != MT_OK)
            mt_fail(error, status, 0, "header: %s", reason);
    }
    mt_buf_release(&frame);
    return status;
}

enum mt_status mt_trace_read_header(const char *path, struct mt_arena *arena,
                                    struct mt_trace_header *header, struct mt_error *error)
{
    int fd = open_file(path, O_RDONLY, error);
    enum mt_status status;

    *header = (struct mt_trace_header){.rank = -1, .world_size = -1};
    if (fd < 0)
        return MT_ERR_IO;
    status = read_frame(fd, arena, header, error);
    (void)mt_io_close(fd);
    return status;
}

static enum mt_status write_frame(int fd, const struct mt_trace_header *header,
                                  struct mt_error *error)
{
    size_t bytes = frame_bytes(fd);
    struct mt_buf frame = {0};
    enum mt_status status = MT_OK;

    if (!bytes)
        return refuse(error, "has no header");
    mt_header_write(header, bytes, &frame);
    if (frame.failed)
        status = mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "out of memory");
    else if (frame.length != bytes)
        status = mt_fail(error, MT_ERR_USAGE, 0, "its header has no room");
    else if (lseek(fd, 0, SEEK_SET) || !mt_io_write(fd, frame.data, frame.length))
        status = mt_io_fail_output(error);
    mt_buf_release(&frame);
    return status;
}

enum mt_status mt_trace_replace_header(const char *path, const struct mt_trace_header *header,
                                       struct mt_error *error)
{
    int fd = open_file(path, O_RDWR, error);
    enum mt_status status;

    if (fd < 0)
        return MT_ERR_IO;
    status = write_frame(fd, header, error);
    if (!mt_io_close(fd) && status == MT_OK)
        status = mt_io_fail_output(error);
    return status;
}
