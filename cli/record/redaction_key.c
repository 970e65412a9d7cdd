#define _GNU_SOURCE /* mkostemp */

#include "redaction_key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "cli.h"
#include "io.h"

/* Writes the salt to a file next to `path` and then links the file at `path`, so other processes
 * see a complete file or none. On failure, returns false and sets errno, which is EEXIST if another
 * process was faster. */
static bool publish(const char *path, const struct mt_redaction *redaction)
{
    struct mt_buf part = {0};
    bool is_there = false;
    int fd, reason = ENOMEM;

    mt_buf_printf(&part, "%s.XXXXXX", path);
    fd = mkostemp(part.data, O_CLOEXEC);
    if (fd >= 0) {
        bool is_written = mt_io_write(fd, redaction->salt, sizeof redaction->salt);

        is_there = mt_io_close(fd) && is_written && link(part.data, path) == 0;
        reason = errno;
        unlink(part.data);
    } else {
        reason = errno;
    }
    mt_buf_release(&part);
    errno = reason;
    return is_there;
}

/* Returns 1 if the salt was read, 0 if there is no file, -1 after a message. */
static int read_salt(const char *path, struct mt_redaction *redaction)
{
    int fd = mt_io_open(path, O_RDONLY, 0);
    ssize_t got;

    if (fd < 0 && errno == ENOENT)
        return 0;
    got = fd < 0 ? -1 : mt_io_read_full(fd, redaction->salt, sizeof redaction->salt);
    if (got < 0)
        mt_say("cannot read the key '%s': %s", path, strerror(errno));
    else if (got < (ssize_t)sizeof redaction->salt)
        mt_say("the key '%s' has %zd bytes, but it needs at least %zu. To create a key, name a "
               "file that does not exist",
               path, got, sizeof redaction->salt);
    if (fd >= 0)
        (void)mt_io_close(fd);
    return got == (ssize_t)sizeof redaction->salt ? 1 : -1;
}

int mt_redaction_key_read(const char *path, struct mt_redaction *redaction)
{
    int found = read_salt(path, redaction);

    if (found)
        return found > 0 ? MT_EXIT_OK : MT_EXIT_INPUT;
    if (mt_redaction_init(redaction) != MT_OK) {
        mt_say("cannot redact: the system provides no random numbers");
        return MT_EXIT_INPUT;
    }
    if (publish(path, redaction))
        return MT_EXIT_OK;
    if (errno == EEXIST) {
        found = read_salt(path, redaction);
        if (!found) /* such as a symbolic link that points to nothing */
            mt_say("cannot read the key '%s': %s", path, strerror(ENOENT));
        return found > 0 ? MT_EXIT_OK : MT_EXIT_INPUT;
    }
    mt_say("cannot write the key '%s': %s", path, strerror(errno));
    return MT_EXIT_OUTPUT;
}
