/* LD_PRELOAD library: calls on files of one process fail on command.
 *
 *   FAIL_FILE=N           call number N, from 1 on, fails; 0 = none does
 *   FAIL_FILE_FROM=1      ... and all that follow; with EINTR every second one, as a caller that
 *                         repeats the call must get through
 *   FAIL_FILE_CALL=NAME   counts only calls of this name (below); default: all of them
 *   FAIL_FILE_ERROR=NUMBER  the errno; SHORT = reads and writes move a third of the bytes instead
 *   FAIL_FILE_AT=TEXT     counts only files whose path contains TEXT
 *   FAIL_FILE_OWN=1       counts only calls that the executable's own code makes, no library's
 *   FAIL_FILE_PROGRAM=TEXT  only in processes whose executable's path contains TEXT
 *   FAIL_FILE_LOG=FILE    gets "NAME N" at the first failure, with FAIL_FILE=0 at every call
 *
 * close() closes before it fails, as the kernel does. What stdio writes does not come through here.
 * Not for programs with sanitizers. */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_ulong counted;
static unsigned long fails_at;
static bool ready, from_there_on, makes_short, only_own;
static int number;
static void *executable; /* where it is in memory */
static const char *call_name, *path_part, *log_path;

static bool is_this_program(void)
{
    const char *wanted = getenv("FAIL_FILE_PROGRAM");
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);

    path[length > 0 ? length : 0] = '\0';
    return !wanted || strstr(path, wanted);
}

/* The start of the executable or library that has this code. */
static void *object_of(const void *code)
{
    Dl_info facts;

    return dladdr(code, &facts) ? facts.dli_fbase : NULL;
}

__attribute__((constructor)) static void start(void)
{
    const char *at = getenv("FAIL_FILE"), *error = getenv("FAIL_FILE_ERROR");

    if (!at || !is_this_program())
        return;
    fails_at = strtoul(at, NULL, 10);
    from_there_on = getenv("FAIL_FILE_FROM") != NULL;
    makes_short = error && !strcmp(error, "SHORT");
    number = error && !makes_short ? atoi(error) : EIO;
    call_name = getenv("FAIL_FILE_CALL");
    path_part = getenv("FAIL_FILE_AT");
    log_path = getenv("FAIL_FILE_LOG");
    only_own = getenv("FAIL_FILE_OWN") != NULL;
    executable = object_of((void *)getauxval(AT_ENTRY));
    ready = true;
}

static void add_line(const char *name, unsigned long at)
{
    char line[64];
    int length = snprintf(line, sizeof line, "%s %lu\n", name, at);
    long fd = log_path ? syscall(SYS_openat, AT_FDCWD, log_path,
                                 O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)
                       : -1;

    if (fd < 0)
        return;
    (void)syscall(SYS_write, fd, line, length);
    (void)syscall(SYS_close, fd);
}

static bool is_chosen(unsigned long at)
{
    if (!fails_at || at < fails_at)
        return false;
    if (!from_there_on)
        return at == fails_at;
    return number != EINTR || makes_short || (at - fails_at) % 2 == 0;
}

static bool must_fail(const char *name, const char *path, const void *caller)
{
    unsigned long at;

    if (!ready || (call_name && strcmp(call_name, name) != 0) ||
        (path_part && !strstr(path, path_part)) || (only_own && object_of(caller) != executable))
        return false;
    at = atomic_fetch_add(&counted, 1) + 1;
    if (at == fails_at || !fails_at)
        add_line(name, at);
    if (!is_chosen(at))
        return false;
    errno = number;
    return true;
}

static bool fd_fails(const char *name, int fd, const void *caller)
{
    char link[64], path[4096];
    ssize_t length;
    int saved = errno;

    if (!ready)
        return false;
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    errno = saved;
    return must_fail(name, path, caller);
}

#define CALLER __builtin_return_address(0)

ssize_t read(int fd, void *bytes, size_t length)
{
    bool fails = fd_fails("read", fd, CALLER);

    if (fails && !makes_short)
        return -1;
    return syscall(SYS_read, fd, bytes, fails ? (length + 2) / 3 : length);
}

ssize_t pread(int fd, void *bytes, size_t length, off_t offset)
{
    bool fails = fd_fails("pread", fd, CALLER);

    if (fails && !makes_short)
        return -1;
    return syscall(SYS_pread64, fd, bytes, fails ? (length + 2) / 3 : length, offset);
}

ssize_t write(int fd, const void *bytes, size_t length)
{
    bool fails = fd_fails("write", fd, CALLER);

    if (fails && !makes_short)
        return -1;
    return syscall(SYS_write, fd, bytes, fails ? (length + 2) / 3 : length);
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset)
{
    bool fails = fd_fails("pwrite", fd, CALLER);

    if (fails && !makes_short)
        return -1;
    return syscall(SYS_pwrite64, fd, bytes, fails ? (length + 2) / 3 : length, offset);
}

int close(int fd)
{
    bool fails = fd_fails("close", fd, CALLER);
    int result = (int)syscall(SYS_close, fd);

    if (!fails)
        return result;
    errno = number;
    return -1;
}

int fsync(int fd)
{
    return fd_fails("fsync", fd, CALLER) ? -1 : (int)syscall(SYS_fsync, fd);
}

int ftruncate(int fd, off_t length)
{
    return fd_fails("ftruncate", fd, CALLER) ? -1 : (int)syscall(SYS_ftruncate, fd, length);
}

int fchmod(int fd, mode_t mode)
{
    return fd_fails("fchmod", fd, CALLER) ? -1 : (int)syscall(SYS_fchmod, fd, mode);
}

int fstat(int fd, struct stat *facts)
{
    return fd_fails("fstat", fd, CALLER) ? -1 : (int)syscall(SYS_fstat, fd, facts);
}

int rename(const char *from, const char *to)
{
    return must_fail("rename", to, CALLER)
               ? -1
               : (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
}

int unlink(const char *path)
{
    return must_fail("unlink", path, CALLER) ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int mkdir(const char *path, mode_t mode)
{
    return must_fail("mkdir", path, CALLER) ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
    va_list more;
    int mode;

    va_start(more, flags);
    mode = va_arg(more, int);
    va_end(more);
    return must_fail("open", path, CALLER) ? -1
                                           : (int)syscall(SYS_openat, folder, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
    va_list more;
    int mode;

    va_start(more, flags);
    mode = va_arg(more, int);
    va_end(more);
    return must_fail("open", path, CALLER) ? -1
                                           : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int mkostemp(char *path, int flags)
{
    static int (*original)(char *, int);

    if (must_fail("mkostemp", path, CALLER))
        return -1;
    if (!original)
        *(void **)&original = dlsym(RTLD_NEXT, "mkostemp");
    return original(path, flags);
}

void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset)
{
    if (!(flags & MAP_ANONYMOUS) ? fd_fails("mmap", fd, CALLER)
                                 : must_fail("mmap", "anonymous", CALLER))
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, length, protection, flags, fd, offset);
}
