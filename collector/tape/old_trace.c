/* See old_trace.h. */
#include "old_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "io.h"

static enum mt_status refuse(struct mt_error *error, const char *why)
{
    return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "%s", why);
}

/* `may_lack`: a missing file is not an error; old->fd is -1 then. */
static enum mt_status open_file(const char *path, bool may_lack, struct mt_old_trace *old,
                                struct mt_error *error)
{
    old->fd = mt_io_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (old->fd < 0 && errno == ENOENT && may_lack)
        return MT_OK;
    if (old->fd < 0 && errno == ELOOP)
        return refuse(error, "is a symbolic link: name the file that it points to");
    if (old->fd < 0 || fstat(old->fd, &old->facts))
        return mt_fail(error, MT_ERR_IO, MT_NO_OFFSET, "the trace cannot be read: %s",
                       strerror(errno));
    return S_ISREG(old->facts.st_mode) ? MT_OK : refuse(error, "is not a regular file");
}

/* Returns whether it is the file that the tape's process created, and begins like a trace. */
static bool is_file_of(const struct mt_tape *tape, const struct mt_old_trace *old)
{
    unsigned char bytes[16];
    ssize_t count = mt_io_pread_full(old->fd, bytes, sizeof bytes, 0);

    return (uint64_t)old->facts.st_dev == tape->trace_device &&
           (uint64_t)old->facts.st_ino == tape->trace_inode &&
           (count == 0 || (count > 0 && mt_trace_probe(bytes, (size_t)count)));
}

static bool is_host_error(enum mt_status status)
{
    return status == MT_ERR_MEMORY || status == MT_ERR_IO;
}

/* Checks that the trace belongs to the tape, and whether there is anything left to do. */
static enum mt_status identify(struct mt_old_trace *old, const struct mt_tape *tape, bool written,
                               struct mt_error *error)
{
    struct mt_source *source = NULL;
    enum mt_status status = mt_trace_open_fd(old->fd, UINT64_MAX, &source, error);
    uint64_t id = source ? source->header.recording_id : 0;

    /* a file that is incomplete may not be a trace yet */
    if (status != MT_OK && (written || is_host_error(status)))
        return status;
    old->is_complete = source && source->header.tape_added;
    mt_source_close(source);
    if (id == tape->recording_id || (!id && is_file_of(tape, old)))
        return MT_OK;
    return refuse(error, "its tape is of another recording: neither is changed; move the tape away "
                         "if you do not need it");
}

enum mt_status mt_old_trace_open(const char *path, const struct mt_tape *tape, uint64_t trace_bytes,
                                 struct mt_old_trace *old, struct mt_error *error)
{
    enum mt_status status = open_file(path, !trace_bytes, old, error);

    if (status == MT_OK && old->fd >= 0)
        status = identify(old, tape, trace_bytes != 0, error);
    if (status != MT_OK || old->is_complete || !trace_bytes)
        return status;
    if ((uint64_t)old->facts.st_size < trace_bytes)
        return mt_fail(error, MT_ERR_FORMAT, (uint64_t)old->facts.st_size,
                       "the trace is shorter than its tape says");
    return mt_trace_open_fd(old->fd, trace_bytes, &old->source, error);
}

void mt_old_trace_close(struct mt_old_trace *old)
{
    mt_source_close(old->source);
    if (old->fd >= 0)
        close(old->fd);
    *old = (struct mt_old_trace){.fd = -1};
}
