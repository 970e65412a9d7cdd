#include "output_target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"

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
    long number;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(path, names[i].path) == 0)
            return names[i].descriptor;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        size_t length = strlen(folders[i]);

        if (strncmp(path, folders[i], length) != 0)
            continue;
        number = strtol(path + length, &end, 10);
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
    int fd, why;

    *own = file->st_size == 0;
    if (*own || !rules->is_own)
        return MT_OK;
    fd = mt_io_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (fd >= 0)
        start = malloc(MT_OUTPUT_START_BYTES);
    if (start)
        got = mt_io_read_full(fd, start, MT_OUTPUT_START_BYTES);
    why = errno;
    *own = got >= 0 && rules->is_own(start, (size_t)got);
    free(start);
    if (fd >= 0)
        (void)mt_io_close(fd);
    if (got >= 0)
        return MT_OK;
    return why == ENOMEM ? mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "out of memory")
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
    enum mt_status status;
    bool own;

    if (rules->force)
        return MT_OK;
    status = recognize(path, file, rules, &own, error);
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
    bool is_link, resolves;

    *found = (struct found){.exists = false};
    if (!*path)
        return refuse(error, strerror(ENOENT));
    if (path[strlen(path) - 1] == '/')
        return refuse(error, strerror(EISDIR));
    if (lstat(path, &name) != 0) /* a missing folder is created later */
        return errno == ENOENT ? MT_OK : refuse(error, strerror(errno));
    is_link = S_ISLNK(name.st_mode);
    resolves = stat(path, &file) == 0;
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
    return errno == ENOMEM ? mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "out of memory")
                           : refuse(error, strerror(errno));
}

enum mt_status mt_output_target_find(const char *path, const struct mt_output_rules *rules,
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

enum mt_status mt_output_target_recheck(const char *path, const struct mt_output_rules *rules,
                                        const struct mt_output_target *target,
                                        struct mt_error *error)
{
    struct found found;
    enum mt_status status = look(path, rules, &found, error);
    char *name;
    bool same;

    if (status == MT_OK)
        status = name_of(path, &found, &name, error);
    if (status != MT_OK)
        return status;
    same = !found.is_through && strcmp(name, target->path) == 0;
    free(name);
    return same ? MT_OK : refuse(error, "it was replaced by something else in the meantime");
}

enum mt_status mt_output_check(const char *path, const struct mt_output_rules *rules,
                               struct mt_error *error)
{
    struct found found;

    return descriptor_of(path) >= 0 ? MT_OK : look(path, rules, &found, error);
}
