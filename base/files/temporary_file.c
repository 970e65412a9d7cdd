#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dirent64 */
#endif

#include "temporary_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io.h"
#include "random.h"

#define PREFIX ".memtrace-"
#define SUFFIX ".tmp"

enum { DIGITS = 16, NAME_BYTES = sizeof PREFIX - 1 + DIGITS + sizeof SUFFIX, MAX_NAMES = 64 };

char *mt_temporary_path(const char *target, uint64_t number)
{
    size_t folder = mt_folder_length(target), bytes = folder + NAME_BYTES;
    char *path = malloc(bytes);

    if (path)
        (void)snprintf(path, bytes, "%.*s" PREFIX "%016llx" SUFFIX, (int)folder, target,
                       (unsigned long long)number);
    return path;
}

bool mt_temporary_file_is_name(const char *name)
{
    return strlen(name) == NAME_BYTES - 1 && strncmp(name, PREFIX, sizeof PREFIX - 1) == 0 &&
           strspn(name + sizeof PREFIX - 1, "0123456789abcdef") == DIGITS &&
           strcmp(name + sizeof PREFIX - 1 + DIGITS, SUFFIX) == 0;
}

size_t mt_folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Lists the name before it creates the file, so that a signal in between does not leave the file
 * behind. The name is random, so the handler cannot remove a file of another process. */
static int open_listed(struct mt_unfinished *list, char *name, mode_t mode, bool *is_ours)
{
    if (list)
        mt_unfinished_add(list, name);
    int fd = mt_io_open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
    *is_ours = fd >= 0 || !list || mt_unfinished_take(list, name);
    return fd;
}

enum mt_status mt_temporary_open(struct mt_temporary *file, const char *target, mode_t mode,
                                 struct mt_unfinished *list, struct mt_error *error)
{
    bool is_ours = true; /* false: a signal handler owns it, and the process is about to end */
    char *name = NULL;
    int fd = -1;

    *file = MT_TEMPORARY_NONE;
    /* O_EXCL fails if the name exists */
    for (int i = 0; is_ours && fd < 0 && i < MAX_NAMES; i++) {
        free(name);
        name = mt_temporary_path(target, mt_random_number(file));
        if (name)
            fd = open_listed(list, name, mode, &is_ours);
        if (!name || (fd < 0 && errno != EEXIST))
            break;
    }
    if (fd < 0) {
        enum mt_status status = mt_io_fail_output(error);

        if (is_ours)
            free(name);
        return status;
    }
    (void)mt_io_lock(fd, LOCK_EX | LOCK_NB); /* a file that cannot be locked is never cleaned up */
    *file = (struct mt_temporary){fd, name, list};
    return MT_OK;
}

bool mt_temporary_close(struct mt_temporary *file)
{
    int fd = file->fd;

    file->fd = -1;
    return mt_io_close(fd);
}

static void forget_path(struct mt_temporary *file)
{
    if (!file->list || mt_unfinished_take(file->list, file->path))
        free(file->path);
    file->path = NULL;
}

bool mt_temporary_rename(struct mt_temporary *file, const char *target)
{
    if (!mt_io_rename(file->path, target))
        return false;
    forget_path(file);
    return true;
}

void mt_temporary_discard(struct mt_temporary *file)
{
    if (file->fd >= 0)
        (void)mt_temporary_close(file);
    if (!file->path)
        return;
    (void)unlink(file->path);
    forget_path(file);
}

bool mt_synchronize_folder_of(const char *path)
{
    size_t length = mt_folder_length(path);
    char *folder = length ? strndup(path, length) : strdup(".");
    int fd = folder ? mt_io_open(folder, O_RDONLY | O_DIRECTORY, 0) : -1;
    bool ok = fd >= 0 && mt_io_synchronize(fd);
    int why = errno;

    if (fd >= 0)
        (void)mt_io_close(fd);
    else if (folder && (why == EACCES || why == EPERM))
        ok = true; /* a folder that is writable but not readable cannot be synchronized */
    free(folder);
    errno = why;
    return ok;
}

void mt_unfinished_add(struct mt_unfinished *list, char *path)
{
    for (int i = 0; i < MT_MAX_UNFINISHED; i++) {
        char *expected = NULL;

        if (atomic_compare_exchange_strong(&list->paths[i], &expected, path))
            return;
    }
}

/* NULL in the slot means that a handler took the path, or that the list was full. `handled`
 * distinguishes the two. */
bool mt_unfinished_take(struct mt_unfinished *list, char *path)
{
    for (int i = 0; i < MT_MAX_UNFINISHED; i++) {
        char *expected = path;

        if (atomic_compare_exchange_strong(&list->paths[i], &expected, NULL))
            return true;
    }
    return !atomic_load(&list->handled);
}

/* The wheel runs on glibc 2.28, which does not have getdents64(). */
void mt_folder_empty(int fd)
{
    _Alignas(struct dirent64) char entries[4096];
    ssize_t length;

    (void)lseek(fd, 0, SEEK_SET);
    while ((length = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0)
        for (ssize_t at = 0; at < length;) {
            const struct dirent64 *entry = (const void *)(entries + at);

            (void)unlinkat(fd, entry->d_name, 0); /* fails for "." and ".." */
            at += entry->d_reclen;
        }
}

void mt_unfinished_folder_set(struct mt_unfinished *list, const char *path)
{
    atomic_store(&list->folder_owner, getpid());
    atomic_store(&list->folder, path);
}

/* A forked process inherits the list, but not the folder. */
static void remove_folder(struct mt_unfinished *list)
{
    const char *path = atomic_exchange(&list->folder, NULL);
    int fd = -1;

    if (path && atomic_load(&list->folder_owner) == getpid())
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    mt_folder_empty(fd);
    (void)close(fd);
    (void)rmdir(path);
}

void mt_unfinished_unlink(struct mt_unfinished *list)
{
    atomic_store(&list->handled, true);
    for (int i = 0; i < MT_MAX_UNFINISHED; i++) {
        char *path = atomic_exchange(&list->paths[i], NULL);

        if (path)
            (void)unlink(path);
    }
    remove_folder(list);
}

void mt_unfinished_forget(struct mt_unfinished *list)
{
    for (int i = 0; i < MT_MAX_UNFINISHED; i++)
        atomic_store(&list->paths[i], NULL);
    atomic_store(&list->folder, NULL);
}
