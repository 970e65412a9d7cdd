#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

int mt_io_open_at(int folder, const char *name, int flags, mode_t mode)
{
    int fd;

    do
        fd = openat(folder, name, flags | O_CLOEXEC, mode);
    while (fd < 0 && errno == EINTR);
    return fd;
}

int mt_io_open(const char *path, int flags, mode_t mode)
{
    return mt_io_open_at(AT_FDCWD, path, flags, mode);
}

DIR *mt_io_open_entries(int folder)
{
    int copy = mt_io_open_at(folder, ".", O_RDONLY | O_DIRECTORY, 0);
    DIR *entries = copy < 0 ? NULL : fdopendir(copy);

    if (!entries && copy >= 0)
        (void)mt_io_close(copy);
    return entries;
}

ssize_t mt_io_read(int fd, void *bytes, size_t length)
{
    ssize_t got;

    do
        got = read(fd, bytes, length);
    while (got < 0 && errno == EINTR);
    return got;
}

ssize_t mt_io_pread(int fd, void *bytes, size_t length, uint64_t offset)
{
    ssize_t got;

    do
        got = pread(fd, bytes, length, (off_t)offset);
    while (got < 0 && errno == EINTR);
    return got;
}

ssize_t mt_io_read_full(int fd, void *bytes, size_t length)
{
    size_t done = 0;
    ssize_t got = 1;

    while (done < length && (got = mt_io_read(fd, (char *)bytes + done, length - done)) > 0)
        done += (size_t)got;
    return got < 0 ? -1 : (ssize_t)done;
}

ssize_t mt_io_pread_full(int fd, void *bytes, size_t length, uint64_t offset)
{
    size_t done = 0;
    ssize_t got = 1;

    while (done < length &&
           (got = mt_io_pread(fd, (char *)bytes + done, length - done, offset + done)) > 0)
        done += (size_t)got;
    return got < 0 ? -1 : (ssize_t)done;
}

size_t mt_io_read_text(const char *path, char *text, size_t capacity)
{
    int fd = mt_io_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    struct stat opened, now;
    const bool is_known = fd >= 0 && !fstat(fd, &opened);
    ssize_t length = is_known ? mt_io_pread_full(fd, text, capacity - 1, 0) : 0;

    if (is_known && !fstat(fd, &now) && now.st_dev == opened.st_dev && now.st_ino == opened.st_ino)
        (void)mt_io_close(fd);
    text[length > 0 ? length : 0] = '\0';
    return length > 0 ? (size_t)length : 0;
}

bool mt_io_lock(int fd, int operation)
{
    int result;

    do
        result = flock(fd, operation);
    while (result < 0 && errno == EINTR);
    return result == 0;
}

bool mt_io_synchronize(int fd)
{
    int result;

    do
        result = fsync(fd);
    while (result < 0 && errno == EINTR);
    return result == 0 || errno == EINVAL || errno == ENOSYS || errno == ENOTSUP;
}

bool mt_io_rename(const char *from, const char *to)
{
    int result;

    do
        result = rename(from, to);
    while (result < 0 && errno == EINTR);
    return result == 0;
}

bool mt_io_write(int fd, const void *bytes, size_t length)
{
    const char *at = bytes;

    while (length) {
        ssize_t written = write(fd, at, length);

        if (written < 0 && errno == EINTR)
            continue;
        if (written == 0)
            errno = EIO; /* no progress: prevents an endless loop */
        if (written <= 0)
            return false;
        at += written;
        length -= (size_t)written;
    }
    return true;
}

bool mt_io_is_file(const char *path)
{
    struct stat facts;

    return stat(path, &facts) == 0 && S_ISREG(facts.st_mode);
}

bool mt_io_close(int fd)
{
    /* Linux releases the number before it waits, so a second close could hit another thread's
     * file. */
    return close(fd) == 0 || errno == EINTR;
}

enum mt_status mt_io_fail(struct mt_error *error, enum mt_status status, const char *what)
{
    return mt_fail(error, status, MT_NO_OFFSET, "%s: %s", what, strerror(errno));
}

enum mt_status mt_io_fail_output(struct mt_error *error)
{
    return errno == ENOMEM ? mt_fail_memory(error)
                           : mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "%s", strerror(errno));
}
