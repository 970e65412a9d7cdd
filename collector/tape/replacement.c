/* See replacement.h. */
#include "replacement.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "io.h"
#include "trace.h"

enum { PERMISSIONS = 0777 };

static enum mt_status fail_errno(struct mt_error *error, const char *what)
{
    return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "%s: %s", what, strerror(errno));
}

enum mt_status mt_replacement_begin(struct mt_replacement *self, const char *path,
                                    struct mt_unfinished *list, struct mt_error *error)
{
    struct mt_error why = {.offset = MT_NO_OFFSET};
    enum mt_status status = mt_temporary_open(&self->file, path, 0600, list, &why);

    self->path = path;
    return status == MT_OK ? MT_OK
                           : mt_fail(error, status, MT_NO_OFFSET,
                                     "cannot create a file beside the trace: %s", why.text);
}

void mt_replacement_release(struct mt_replacement *self)
{
    mt_temporary_discard(&self->file);
}

static enum mt_status check_counts(const struct mt_integrity *found, uint64_t events, bool ended,
                                   struct mt_error *error)
{
    if (found->frames_damaged)
        return mt_fail(error, MT_ERR_FORMAT, found->first_error.offset, "%.200s",
                       found->first_error.text);
    if (found->events_invalid || found->events_unknown)
        return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "%llu events cannot be read",
                       (unsigned long long)found->events_invalid + found->events_unknown);
    if (ended && (!found->closed || found->cut))
        return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "its end is missing");
    if (events != MT_ANY_COUNT && found->events_read != events)
        return mt_fail(error, MT_ERR_FORMAT, MT_NO_OFFSET, "it holds %llu of %llu events",
                       (unsigned long long)found->events_read, (unsigned long long)events);
    return MT_OK;
}

enum mt_status mt_trace_read_back(int fd, uint64_t events, bool ended, struct mt_error *error)
{
    struct mt_event_batch batch;
    struct mt_source *source;
    enum mt_status status = mt_trace_open_fd(fd, UINT64_MAX, &source, error);

    if (status != MT_OK)
        return status;
    while ((status = mt_source_next(source, &batch, error)) == MT_OK)
        continue;
    if (status == MT_END)
        status = check_counts(&source->integrity, events, ended, error);
    mt_source_close(source);
    return status;
}

/* If root replaces the file of another user, the owner stays the same. */
static enum mt_status take_over(struct mt_replacement *self, const struct stat *old,
                                struct mt_error *error)
{
    if (!old)
        return MT_OK;
    if (geteuid() == 0 && fchown(self->file.fd, old->st_uid, old->st_gid))
        return fail_errno(error, "the new trace cannot be given to the owner of the old one");
    if (fchmod(self->file.fd, old->st_mode & PERMISSIONS))
        return fail_errno(error, "the new trace cannot get the mode of the old one");
    return MT_OK;
}

/* Returns whether the file at the path is still the one that was read. */
static bool is_unchanged(const char *path, const struct stat *old)
{
    struct stat now;

    if (lstat(path, &now))
        return !old && errno == ENOENT;
    return old && now.st_dev == old->st_dev && now.st_ino == old->st_ino;
}

enum mt_status mt_replacement_finish(struct mt_replacement *self,
                                     const struct mt_replacement_facts *facts,
                                     struct mt_error *error)
{
    struct mt_error found = {.offset = MT_NO_OFFSET};
    enum mt_status status = mt_trace_read_back(self->file.fd, facts->events, facts->ended, &found);

    if (status != MT_OK)
        return mt_fail(error, status, found.offset, "%s: %.180s",
                       status == MT_ERR_FORMAT ? "the new trace is not valid"
                                               : "the new trace cannot be read back",
                       found.text);
    status = take_over(self, facts->old, error);
    if (status != MT_OK)
        return status;
    if (!mt_io_synchronize(self->file.fd))
        return fail_errno(error, "the new trace could not be written");
    if (!is_unchanged(self->path, facts->old))
        return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET,
                       "another file has taken its place in the meantime: nothing was replaced");
    if (!mt_temporary_rename(&self->file, self->path))
        return fail_errno(error, "the new trace could not be put in place");
    (void)mt_temporary_close(&self->file); /* fsync has reported all possible errors */
    return mt_synchronize_folder_of(self->path)
               ? MT_OK
               : fail_errno(error, "the new trace is in place, but may not be on the disk yet");
}
