/* Between a comparison and the following system call, another thread of the program can still close
 * the descriptor and open a file that gets its number. Two things make the second improbable: the
 * kernel assigns the lowest free number and this one is high, and data is written with pwrite,
 * which fails with ESPIPE on a socket or a pipe instead of reaching the peer. A call that failed
 * because the number was closed or reused is made again with a descriptor that is opened again. */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "io.h"
#include "own_file.h"
#include "stable_hash.h"
#include "status.h"
#include "temporary_file.h"

/* The kernel's table of descriptors extends to the highest one, and each fork copies it. Higher
 * numbers would cost time. */
enum { HIGHEST_WANTED = 3072 };

/* A program that closes everything in a loop must not hold up a thread of memtrace forever. */
enum { MAX_REOPENS = 64 };

static bool is_same(const struct mt_own_file *file, const struct stat *facts)
{
    return S_ISREG(facts->st_mode) && facts->st_dev == file->device && facts->st_ino == file->inode;
}

static bool is_ours(const struct mt_own_file *file, int fd, struct stat *facts)
{
    return fd >= 0 && !fstat(fd, facts) && is_same(file, facts);
}

static void close_if_ours(const struct mt_own_file *file, int fd)
{
    struct stat facts;

    if (is_ours(file, fd, &facts))
        close(fd);
}

static bool has_seccomp_filter(void)
{
    return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER;
}

/* A filter that the program installed itself, unlike that of a container, allows what the program
 * needs and may kill it for anything else. */
bool mt_own_file_is_sandboxed(const struct mt_own_file *file)
{
    return !file->sandboxed_before && has_seccomp_filter();
}

/* Three quarters of the limit: programs that move their own descriptors out of the way use the
 * highest numbers. Lower if there is no room. */
static int high_number(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur / 4 * 3 > HIGHEST_WANTED)
        return HIGHEST_WANTED;
    return (int)(limit.rlim_cur / 4 * 3);
}

static int move_up(const struct mt_own_file *file, int fd)
{
    struct stat facts;

    for (int wanted = high_number(); wanted > fd; wanted /= 2) {
        int moved = fcntl(fd, F_DUPFD_CLOEXEC, wanted);
        if (moved < 0)
            continue;
        if (!is_ours(file, moved, &facts)) { /* another thread took the low number */
            close(moved);
            return -1;
        }
        close_if_ours(file, fd);
        return moved;
    }
    return fd;
}

static bool fail(struct mt_own_file *file, const char *why)
{
    file->trouble = why;
    errno = ESTALE;
    return false;
}

/* Identifies the file by name: the number may already belong to another file. */
static bool identify(struct mt_own_file *file, const char *path, int fd)
{
    struct stat named, opened;

    if (lstat(path, &named))
        return false;
    file->path = path;
    file->device = named.st_dev;
    file->inode = named.st_ino;
    file->sandboxed_before = has_seccomp_filter();
    errno = ESTALE;
    return is_ours(file, fd, &opened);
}

bool mt_own_file_is_mine(const struct stat *facts)
{
    return S_ISREG(facts->st_mode) && facts->st_uid == geteuid() && facts->st_nlink == 1;
}

void mt_own_file_unlink(int fd, int folder, const char *name)
{
    struct stat opened, named;

    if (!fstat(fd, &opened) && mt_own_file_is_mine(&opened) &&
        !fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) && named.st_dev == opened.st_dev &&
        named.st_ino == opened.st_ino)
        (void)unlinkat(folder, name, 0); /* not atomic: see remove_new */
}

/* The name was just created, but another program may have put its own file there, and no descriptor
 * proves which one it is. Only a file without contents is removed. The kernel has no call that
 * removes a name only if it refers to a certain file: a file that gets the name between these two
 * calls is removed. */
static void remove_new(const char *path)
{
    struct stat facts;

    if (!lstat(path, &facts) && mt_own_file_is_mine(&facts) && !facts.st_size)
        (void)unlink(path);
}

void mt_own_file_remove(struct mt_own_file *file)
{
    struct stat facts;

    if (file->path && !lstat(file->path, &facts) && is_same(file, &facts))
        (void)unlink(file->path); /* not atomic: see remove_new */
    mt_own_file_close(file);
}

bool mt_own_file_create(struct mt_own_file *file, const char *path)
{
    int fd = mt_io_open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);

    *file = MT_OWN_FILE_NONE;
    if (fd < 0)
        return false;
    if (!identify(file, path, fd)) {
        int why = errno;
        *file = MT_OWN_FILE_NONE; /* the number may belong to another file, so it is not closed */
        remove_new(path);
        errno = why;
        return false;
    }
    file->fd = move_up(file, fd);
    return true;
}

/* Returns true if another try may find the file. The name may be a link, a pipe or a device by now,
 * so it is checked first. */
static bool open_again(struct mt_own_file *file)
{
    struct stat facts;

    file->fd = -1;
    if (mt_own_file_is_sandboxed(file))
        return fail(file, "the program closed its descriptor and is sandboxed");
    if (lstat(file->path, &facts))
        return fail(file, "the program closed its descriptor, and its path is gone");
    if (!is_same(file, &facts))
        return fail(file, "the program closed its descriptor, and another file is there now");
    int fd = mt_io_open(file->path, O_RDWR | O_NOFOLLOW, 0);
    if (fd < 0)
        return fail(file, "the program closed its descriptor, and it cannot be opened again");
    if (is_ours(file, fd, &facts)) /* otherwise another thread took the number or the name */
        file->fd = move_up(file, fd);
    return true;
}

int mt_own_file_fd(struct mt_own_file *file, uint64_t length_bytes)
{
    struct stat facts;

    if (file->trouble || !file->path) {
        errno = ESTALE;
        return -1;
    }
    for (int tries = 0; !is_ours(file, file->fd, &facts); tries++) {
        if (tries == MAX_REOPENS)
            (void)fail(file, "the program closes its descriptor again and again");
        if (tries == MAX_REOPENS || !open_again(file))
            return -1;
    }
    if ((uint64_t)facts.st_size < length_bytes) {
        (void)fail(file, "it was truncated");
        return -1;
    }
    return file->fd;
}

/* Whether a call that failed with `code` got a number that another thread had closed or reused. */
static bool lost_number(int code)
{
    return code == EBADF || code == ESPIPE || code == ENODEV;
}

/* A sandbox that lets a program write probably allows write(2), but not pwrite(2). */
static ssize_t write_in_sandbox(int fd, const void *bytes, size_t length, uint64_t offset)
{
    return lseek(fd, (off_t)offset, SEEK_SET) < 0 ? -1 : write(fd, bytes, length);
}

ssize_t mt_own_file_write(void *context, const void *bytes, size_t length, uint64_t offset)
{
    struct mt_own_file *file = context;
    bool sandboxed = mt_own_file_is_sandboxed(file);
    ssize_t written;
    int tries = 0;

    do {
        int fd = mt_own_file_fd(file, offset);
        if (fd < 0)
            return -1;
        written = sandboxed ? write_in_sandbox(fd, bytes, length, offset)
                            : pwrite(fd, bytes, length, (off_t)offset);
    } while (written < 0 && lost_number(errno) && tries++ < MAX_REOPENS);
    return written;
}

/* posix_fallocate writes zeros if the file system has no such call. It returns the error. */
bool mt_own_file_reserve(struct mt_own_file *file, uint64_t offset, uint64_t bytes)
{
    int code, tries = 0;

    errno = EPERM;
    if (mt_own_file_is_sandboxed(file))
        return false;
    do {
        int fd = mt_own_file_fd(file, 0);
        if (fd < 0)
            return false;
        code = posix_fallocate(fd, (off_t)offset, (off_t)bytes);
    } while (code == EINTR || (lost_number(code) && tries++ < MAX_REOPENS));
    errno = code;
    return code == 0;
}

void mt_own_file_close(struct mt_own_file *file)
{
    close_if_ours(file, file->fd);
    *file = MT_OWN_FILE_NONE;
}

enum { RANDOM_LETTERS = 6 };

bool mt_manifest_is_name(const char *name)
{
    size_t length = strlen(MT_MANIFEST_PREFIX);

    return strncmp(name, MT_MANIFEST_PREFIX, length) == 0 &&
           strlen(name) == length + RANDOM_LETTERS;
}

/* Returns true if a file that starts with these `length` bytes looks like a list of traces. */
static bool manifest_probe(const char *bytes, size_t length)
{
    size_t wanted = strlen(MT_MANIFEST_FIRST_LINE);

    return length >= wanted && !memcmp(bytes, MT_MANIFEST_FIRST_LINE, wanted);
}

bool mt_manifest_is_mine(int fd, const char *name)
{
    char bytes[sizeof MT_MANIFEST_FIRST_LINE];
    struct stat facts;

    if (!mt_manifest_is_name(name + mt_folder_length(name)) || fstat(fd, &facts) ||
        !mt_own_file_is_mine(&facts))
        return false;
    ssize_t count = mt_io_pread_full(fd, bytes, sizeof bytes, 0);
    return count > 0 && manifest_probe(bytes, (size_t)count);
}

bool mt_manifest_has_line(int fd, const char *line)
{
    char bytes[sizeof MT_MANIFEST_IDLE - 1];

    return mt_io_pread_full(fd, bytes, sizeof bytes, sizeof MT_MANIFEST_FIRST_LINE - 1) ==
               (ssize_t)sizeof bytes &&
           !memcmp(bytes, line, sizeof bytes);
}

void mt_manifest_remove(int fd, int folder, const char *name)
{
    if (mt_manifest_is_mine(fd, name))
        mt_own_file_unlink(fd, folder, name);
}

/* The name of a trace: the claim of one process on it, and names that are derived from it. */

size_t mt_trace_stem_length(const char *path)
{
    static const char usual[] = ".trace.zst";
    const char *name = strrchr(path, '/');
    size_t length = strlen(path);

    if (length > sizeof usual - 1 && !strcmp(path + length - (sizeof usual - 1), usual))
        return length - (sizeof usual - 1);
    const char *dot = strrchr(name ? name : path, '.');
    return dot ? (size_t)(dot - path) : length;
}

enum { MAX_TRIES = 100 };

enum outcome { OURS, THEIRS, AGAIN, IMPOSSIBLE };

/* A file that exists but cannot be opened belongs to another user, who may be recording. */
static int open_claim(const char *file, bool *is_new, enum outcome *otherwise)
{
    struct stat facts;
    int fd = mt_io_open(file, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600), why = errno;

    *is_new = fd >= 0;
    *otherwise = IMPOSSIBLE;
    if (fd < 0 && lstat(file, &facts) == 0) {
        fd = mt_io_open(file, O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0);
        *otherwise = errno == ENOENT ? AGAIN : THEIRS;
    } else if (why == EEXIST) {
        *otherwise = AGAIN; /* removed in the meantime */
    }
    errno = why;
    return fd;
}

static bool has_name(int fd, const char *file, struct stat *opened)
{
    struct stat named;

    return !fstat(fd, opened) && !lstat(file, &named) && opened->st_dev == named.st_dev &&
           opened->st_ino == named.st_ino;
}

/* Another process may have removed the file between open and flock. Then the lock is worth
 * nothing. A new file may have another owner than this process: NFS maps root to nobody. */
static enum outcome judge(const char *file, int fd, bool is_new)
{
    struct stat opened;

    if (!mt_io_lock(fd, LOCK_EX | LOCK_NB))
        return is_new && errno != EWOULDBLOCK ? OURS : THEIRS; /* no locks here: see the header */
    if (!has_name(fd, file, &opened))
        return AGAIN;
    return is_new || mt_own_file_is_mine(&opened) ? OURS : THEIRS;
}

static enum outcome try_once(struct mt_trace_claim *claim)
{
    enum outcome outcome;
    bool is_new;

    claim->fd = open_claim(claim->file, &is_new, &outcome);
    if (claim->fd < 0)
        return outcome;
    outcome = judge(claim->file, claim->fd, is_new);
    if (outcome != OURS)
        (void)mt_io_close(claim->fd);
    return outcome;
}

enum mt_status mt_trace_claim_take(struct mt_trace_claim *claim, const char *path,
                                   struct mt_unfinished *list, bool *is_ours,
                                   struct mt_error *error)
{
    const char *name = path + mt_folder_length(path);
    enum outcome outcome = AGAIN;

    *is_ours = false;
    *claim = (struct mt_trace_claim){
        .file = mt_temporary_path(path, mt_stable_hash_text(MT_STABLE_HASH_START, name)),
        .list = list};
    if (!claim->file)
        return mt_fail_memory(error);
    for (int i = 0; i < MAX_TRIES && outcome == AGAIN; i++)
        outcome = try_once(claim);
    if (outcome == OURS) {
        *is_ours = true;
        if (list)
            mt_unfinished_add(list, claim->file);
        return MT_OK;
    }
    if (outcome == IMPOSSIBLE)
        (void)mt_fail(error, MT_ERR_OUTPUT, MT_NO_OFFSET, "%s", strerror(errno));
    free(claim->file);
    *claim = (struct mt_trace_claim){0};
    return outcome == IMPOSSIBLE ? MT_ERR_OUTPUT : MT_OK;
}

/* The file is removed while it is locked, so it cannot be the claim of another process. For the
 * same reason, a handler that owns the path and is about to end the process keeps the lock. */
void mt_trace_claim_release(struct mt_trace_claim *claim)
{
    struct stat opened;

    if (!claim->file)
        return;
    if (!claim->list || mt_unfinished_take(claim->list, claim->file)) {
        if (has_name(claim->fd, claim->file, &opened))
            (void)unlink(claim->file);
        free(claim->file);
        (void)mt_io_close(claim->fd);
    }
    *claim = (struct mt_trace_claim){0};
}
