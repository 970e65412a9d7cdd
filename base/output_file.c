#include "output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"
#include "process_memory.h"

enum { FLUSH_BYTES = 256 * 1024 };

static bool make_folder(const char *path)
{
    struct stat facts;
    int why;

    if (mkdir(path, 0777) == 0)
        return true;
    why = errno;
    if (stat(path, &facts) == 0 && S_ISDIR(facts.st_mode))
        return true;
    errno = why == EEXIST ? ENOTDIR : why;
    return false;
}

enum mt_status mt_make_folders(const char *path, struct mt_error *error)
{
    char *name = strdup(path);
    enum mt_status status = MT_OK;

    for (char *at = name; at && *at && status == MT_OK;) {
        char end;

        at += strspn(at, "/");
        at += strcspn(at, "/");
        end = *at;
        *at = '\0';
        if (!make_folder(name))
            status = mt_io_fail_output(error);
        *at = end;
    }
    if (!name)
        status = mt_io_fail_output(error);
    free(name);
    return status;
}

static enum mt_status make_folder_of(const char *path, struct mt_error *error)
{
    char *folder = strndup(path, mt_folder_length(path));
    enum mt_status status = folder ? mt_make_folders(folder, error) : mt_io_fail_output(error);

    free(folder);
    return status;
}

static void release(struct mt_output *output)
{
    mt_temporary_discard(&output->temporary);
    free(output->target.path);
    mt_buf_release(&output->pending);
    output->target = (struct mt_output_target){.fd = -1};
    output->fd = -1;
    output->rules = NULL;
}

enum mt_status mt_output_open(struct mt_output *output, const char *path,
                              const struct mt_output_rules *rules, struct mt_error *error)
{
    enum mt_status status;

    *output =
        (struct mt_output){.fd = -1, .path = path, .rules = rules, .temporary = MT_TEMPORARY_NONE};
    status = mt_output_target_find(path, rules, &output->target, error);
    output->fd = output->target.fd;
    if (status == MT_OK && output->target.path)
        status = make_folder_of(output->target.path, error);
    if (status == MT_OK && output->target.path)
        status = mt_temporary_open(&output->temporary, output->target.path, output->target.mode,
                                   rules->unfinished, error);
    if (status == MT_OK && output->target.path)
        output->fd = output->temporary.fd;
    if (status != MT_OK)
        release(output);
    return status;
}

static bool fail(struct mt_output *output)
{
    if (output->failure.status == MT_OK)
        (void)mt_io_fail_output(&output->failure);
    return false;
}

static bool flush(struct mt_output *output)
{
    struct mt_buf *pending = &output->pending;

    if (pending->length && !mt_io_write(output->fd, pending->data, pending->length))
        return fail(output);
    pending->length = 0;
    return true;
}

bool mt_output_add(struct mt_output *output, const void *bytes, size_t length)
{
    if (output->failure.status != MT_OK)
        return false;
    output->bytes += length;
    if (output->pending.length + length > FLUSH_BYTES && !flush(output))
        return false;
    if (length > FLUSH_BYTES)
        return mt_io_write(output->fd, bytes, length) || fail(output);
    if (!output->pending.data && !mt_buf_reserve(&output->pending, FLUSH_BYTES)) {
        errno = ENOMEM;
        return fail(output);
    }
    mt_buf_add(&output->pending, bytes, length);
    return true;
}

static bool cut(int fd)
{
    int result;

    do
        result = ftruncate(fd, 0);
    while (result < 0 && errno == EINTR);
    return result == 0 && lseek(fd, 0, SEEK_SET) == 0;
}

bool mt_output_restart(struct mt_output *output)
{
    if (!output->temporary.path || output->failure.status != MT_OK)
        return false;
    output->pending.length = 0;
    output->bytes = 0;
    return cut(output->fd) || fail(output);
}

/* Everything that can fail while the target is still unchanged. */
static bool complete(struct mt_output *output)
{
    const struct mt_output_target *target = &output->target;
    bool ok = output->failure.status == MT_OK && flush(output), closed;

    /* mkdir and open apply the umask. If this fails, the new file only has fewer permissions. */
    if (ok && target->keeps_mode)
        (void)fchmod(output->fd, target->mode);
    if (ok && target->path && output->rules->is_durable)
        ok = mt_io_synchronize(output->fd) || fail(output);
    /* Closing ends the lock; the rename ends the temporary name. Until then the file must not look
     * old. */
    if (target->path)
        (void)futimens(output->fd, NULL);
    closed = target->path ? mt_temporary_close(&output->temporary) : mt_io_close(output->fd);
    output->fd = -1;
    return ok && (closed || fail(output));
}

static enum mt_status put_in_place(struct mt_output *output, struct mt_error *error)
{
    enum mt_status status =
        mt_output_target_recheck(output->path, output->rules, &output->target, error);

    if (status == MT_OK && !mt_temporary_rename(&output->temporary, output->target.path))
        status = mt_io_fail_output(error);
    return status;
}

enum mt_status mt_output_finish(struct mt_output *output, struct mt_error *error)
{
    enum mt_status status;

    if (!complete(output)) {
        if (error)
            *error = output->failure;
        status = output->failure.status;
        mt_output_abandon(output);
        return status;
    }
    status = output->target.path ? put_in_place(output, error) : MT_OK;
    if (status != MT_OK) {
        mt_output_abandon(output);
        return status;
    }
    if (output->target.path && output->rules->is_durable &&
        !mt_synchronize_folder_of(output->target.path))
        status = mt_io_fail_output(error);
    release(output);
    return status;
}

void mt_output_abandon(struct mt_output *output)
{
    if (output->fd >= 0 && output->fd != output->temporary.fd)
        (void)mt_io_close(output->fd);
    if (output->rules)
        release(output);
}

enum mt_status mt_output_write(const char *path, const struct mt_output_rules *rules,
                               const void *bytes, size_t length, struct mt_error *error)
{
    struct mt_output output;
    enum mt_status status = mt_output_open(&output, path, rules, error);

    if (status != MT_OK)
        return status;
    (void)mt_output_add(&output, bytes, length);
    return mt_output_finish(&output, error);
}
