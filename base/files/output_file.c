/* Output files: which path may be written, and how a result replaces a file only if it is
 * complete. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "buf.h"
#include "io.h"
#include "output_file.h"
#include "status.h"
#include "temporary_file.h"

/* `is_own` sees at most this much of the start of a file. */
#define OUTPUT_START_BYTES ((size_t)64 * 1024)

static enum mt_status refuse(struct mt_error *error, const char *reason)
{
    return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "%s", reason);
}

/* Returns the number of the open descriptor that the path names, or -1. */
static int descriptor_of(const char *path)
{
    static const struct {
        const char *path;
        int descriptor;
    } names[] = {
        {"-", STDOUT_FILENO},
        {"/dev/stdout", STDOUT_FILENO}, /* as a name, because nothing is printed here */
        {"/dev/stderr", STDERR_FILENO}, /* likewise */
    };
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    char *end;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(path, names[i].path) == 0)
            return names[i].descriptor;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        size_t length = strlen(folders[i]);

        if (strncmp(path, folders[i], length) != 0)
            continue;
        long number = strtol(path + length, &end, 10);
        return *end || end == path + length || number < 0 || number > 1 << 20 ? -1 : (int)number;
    }
    return -1;
}

static bool is_written_through(mode_t mode)
{
    return !S_ISREG(mode) && !S_ISDIR(mode) && !S_ISLNK(mode);
}

static enum mt_status open_through(const char *path, int descriptor, int *fd,
                                   struct mt_error *error)
{
    *fd = descriptor >= 0 ? fcntl(descriptor, F_DUPFD_CLOEXEC, 3)
                          : mt_io_open(path, O_WRONLY | O_NOCTTY, 0);
    return *fd < 0 ? refuse(error, strerror(errno)) : MT_OK;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool is_input(const struct stat *file, const struct mt_output_rules *rules)
{
    struct stat input;

    for (size_t i = 0; i < rules->input_count; i++) {
        const char *path = rules->inputs[i];
        int failed = strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, &input) : stat(path, &input);

        if (!failed && is_same_file(file, &input))
            return true;
    }
    return false;
}

/* `command >FILE -o FILE` would lose the result. */
static bool is_standard_output(const struct stat *file)
{
    struct stat output;

    return fstat(STDOUT_FILENO, &output) == 0 && is_same_file(file, &output);
}

/* Sets *own if the file is empty, or begins as `is_own` expects. */
static enum mt_status recognize(const char *path, const struct stat *file,
                                const struct mt_output_rules *rules, bool *own,
                                struct mt_error *error)
{
    char *start = NULL;
    ssize_t got = -1;

    *own = file->st_size == 0;
    if (*own || !rules->is_own)
        return MT_OK;
    int fd = mt_io_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (fd >= 0)
        start = malloc(OUTPUT_START_BYTES);
    if (start)
        got = mt_io_read_full(fd, start, OUTPUT_START_BYTES);
    int why = errno;
    *own = got >= 0 && rules->is_own(start, (size_t)got);
    free(start);
    if (fd >= 0)
        (void)mt_io_close(fd);
    if (got >= 0)
        return MT_OK;
    return why == ENOMEM ? mt_fail_memory(error)
                         : mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET,
                                   "it exists, and its contents cannot be read: %s", strerror(why));
}

static enum mt_status refuse_foreign(const struct mt_output_rules *rules, struct mt_error *error)
{
    return mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET,
                   "it exists and is not %s: choose another name, or replace it with --force",
                   rules->kind ? rules->kind : "a result of memtrace");
}

static enum mt_status check_file(const char *path, const struct stat *file,
                                 const struct mt_output_rules *rules, struct mt_error *error)
{
    bool own;

    if (rules->force)
        return MT_OK;
    enum mt_status status = recognize(path, file, rules, &own, error);
    if (status == MT_OK && !own)
        return refuse_foreign(rules, error);
    if (status == MT_OK && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0)
        return refuse(error, strerror(errno));
    return status;
}

/* Sets *follow if the destination of the link is replaced. */
static enum mt_status check_link(const char *path, const struct stat *link, const struct stat *file,
                                 const struct mt_output_rules *rules, bool *follow,
                                 struct mt_error *error)
{
    struct mt_output_rules without_force = *rules;
    bool is_ours = link->st_uid == geteuid() || link->st_uid == 0;

    without_force.force = false;
    *follow = is_ours && file && check_file(path, file, &without_force, NULL) == MT_OK;
    if (*follow || rules->force)
        return MT_OK;
    if (!file)
        return refuse(error, "it is a symbolic link to a file that does not exist: write to that "
                             "name, or replace the link with --force");
    return mt_fail(
        error, MT_ERR_OUTPUT, MT_NO_OFFSET,
        "it is a symbolic link to a file that is not %s: choose another name, or replace "
        "the link with --force",
        rules->kind ? rules->kind : "a result of memtrace");
}

/* The file that the path leads to, and what may be done with it. */
struct found {
    bool exists, is_through, follow;
    mode_t mode;
};

static enum mt_status look(const char *path, const struct mt_output_rules *rules,
                           struct found *found, struct mt_error *error)
{
    struct stat name, file;

    *found = (struct found){.exists = false};
    if (!*path)
        return refuse(error, strerror(ENOENT));
    if (path[strlen(path) - 1] == '/')
        return refuse(error, strerror(EISDIR));
    if (lstat(path, &name) != 0) /* a missing folder is created later */
        return errno == ENOENT ? MT_OK : refuse(error, strerror(errno));
    bool is_link = S_ISLNK(name.st_mode);
    bool resolves = stat(path, &file) == 0;
    if (!resolves && !is_link)
        return refuse(error, strerror(errno));
    if (resolves && S_ISBLK(file.st_mode))
        return refuse(error, "it is a disk: write to a file");
    found->is_through = resolves && is_written_through(file.st_mode);
    if (found->is_through)
        return MT_OK;
    if (resolves && S_ISDIR(file.st_mode))
        return refuse(error, strerror(EISDIR));
    if (resolves && is_input(&file, rules))
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET,
                       "it is an input of this command: write to another file");
    if (resolves && is_standard_output(&file))
        return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET,
                       "it is where standard output goes: write to another file");
    found->exists = resolves;
    found->mode = resolves ? file.st_mode & 0777 : 0;
    return is_link ? check_link(path, &name, resolves ? &file : NULL, rules, &found->follow, error)
                   : check_file(path, &file, rules, error);
}

/* Returns the name that a rename would replace, from malloc. */
static enum mt_status name_of(const char *path, const struct found *found, char **name,
                              struct mt_error *error)
{
    *name = found->follow ? realpath(path, NULL) : strdup(path);
    if (*name)
        return MT_OK;
    return errno == ENOMEM ? mt_fail_memory(error) : refuse(error, strerror(errno));
}

/* Applies the rules and opens targets that are written directly. MT_ERR_USAGE: the path is an
 * input; MT_ERR_OUTPUT: the rules or the system refuse it. Reads at most OUTPUT_START_BYTES. */
static enum mt_status output_target_find(const char *path, const struct mt_output_rules *rules,
                                         struct mt_output_target *target, struct mt_error *error)
{
    int descriptor = descriptor_of(path);
    struct found found = {.is_through = true};
    enum mt_status status = descriptor >= 0 ? MT_OK : look(path, rules, &found, error);

    *target = (struct mt_output_target){.fd = -1};
    if (status != MT_OK)
        return status;
    if (found.is_through)
        return open_through(path, descriptor, &target->fd, error);
    target->mode = found.exists ? found.mode : rules->is_private ? 0600 : 0666;
    target->keeps_mode = found.exists;
    return name_of(path, &found, &target->path, error);
}

/* Applies the rules again before the rename, because minutes may have passed. MT_OK: `path` still
 * leads to target->path. */
static enum mt_status output_target_recheck(const char *path, const struct mt_output_rules *rules,
                                            const struct mt_output_target *target,
                                            struct mt_error *error)
{
    struct found found;
    enum mt_status status = look(path, rules, &found, error);
    char *name;

    if (status == MT_OK)
        status = name_of(path, &found, &name, error);
    if (status != MT_OK)
        return status;
    bool same = !found.is_through && strcmp(name, target->path) == 0;
    free(name);
    return same ? MT_OK : refuse(error, "it was replaced by something else in the meantime");
}

enum mt_status mt_output_check(const char *path, const struct mt_output_rules *rules,
                               struct mt_error *error)
{
    struct found found;

    return descriptor_of(path) >= 0 ? MT_OK : look(path, rules, &found, error);
}

enum { FLUSH_BYTES = 256 * 1024 };

static bool make_folder(const char *path)
{
    struct stat facts;

    if (mkdir(path, 0777) == 0)
        return true;
    int why = errno;
    if (stat(path, &facts) == 0 && S_ISDIR(facts.st_mode))
        return true;
    errno = why == EEXIST ? ENOTDIR : why;
    return false;
}

enum mt_status mt_output_file_make_folders(const char *path, struct mt_error *error)
{
    char *name = strdup(path);
    enum mt_status status = MT_OK;

    for (char *at = name; at && *at && status == MT_OK;) {
        at += strspn(at, "/");
        at += strcspn(at, "/");
        char end = *at;
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
    enum mt_status status =
        folder ? mt_output_file_make_folders(folder, error) : mt_io_fail_output(error);

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
    *output =
        (struct mt_output){.fd = -1, .path = path, .rules = rules, .temporary = MT_TEMPORARY_NONE};
    enum mt_status status = output_target_find(path, rules, &output->target, error);
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

const char *mt_output_path(const struct mt_output *output)
{
    return output->temporary.path;
}

/* Everything that can fail while the target is still unchanged. */
static bool complete(struct mt_output *output)
{
    const struct mt_output_target *target = &output->target;
    bool ok = output->failure.status == MT_OK && flush(output);

    /* mkdir and open apply the umask. If this fails, the new file only has fewer permissions. */
    if (ok && target->keeps_mode)
        (void)fchmod(output->fd, target->mode);
    if (ok && target->path && output->rules->is_durable)
        ok = mt_io_synchronize(output->fd) || fail(output);
    /* Closing ends the lock; the rename ends the temporary name. Until then the file must not look
     * old. */
    if (target->path)
        (void)futimens(output->fd, NULL);
    bool closed = target->path ? mt_temporary_close(&output->temporary) : mt_io_close(output->fd);
    output->fd = -1;
    return ok && (closed || fail(output));
}

static enum mt_status put_in_place(struct mt_output *output, struct mt_error *error)
{
    enum mt_status status =
        output_target_recheck(output->path, output->rules, &output->target, error);

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
