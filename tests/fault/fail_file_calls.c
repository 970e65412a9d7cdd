/* LD_PRELOAD library: calls on files of one process fail on command.
 *
 *   FAIL_FILE=N, FAIL_FILE_FROM=1, FAIL_FILE_PROGRAM=TEXT, FAIL_FILE_LOG=FILE
 *                          as in fault_shim.h. Without FAIL_FILE the library does nothing; with
 *                          FAIL_FILE=0 it logs every call. With EINTR, FROM means every second
 *                          call: a caller that repeats the call must get through
 *   FAIL_FILE_CALL=NAME    counts only calls of this name (below); default: all of them
 *   FAIL_FILE_ERROR=NUMBER the errno; SHORT = reads and writes move a third of the bytes instead
 *   FAIL_FILE_AT=TEXT      counts only files whose path contains TEXT
 *   FAIL_FILE_OWN=1        counts only calls that the executable's own code makes, no library's
 *
 * close() closes before it fails, as the kernel does. What stdio writes does not come through here.
 * Not for programs with sanitizers. */
#define _GNU_SOURCE 1
#include "fault_shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>

static bool makes_short, only_own;
static int number;
static void *executable; /* where it is in memory */
static const char *call_name, *path_part;

/* The start of the executable or library that has this code. */
static void *object_of(const void *code)
{
    Dl_info facts;

    return dladdr(code, &facts) ? facts.dli_fbase : NULL;
}

__attribute__((constructor)) static void start(void)
{
    const char *error = getenv("FAIL_FILE_ERROR");

    if (!getenv("FAIL_FILE") || !shim_start("FAIL_FILE"))
        return;
    makes_short = error && !strcmp(error, "SHORT");
    number = error && !makes_short ? atoi(error) : EIO;
    call_name = shim_setting("CALL");
    path_part = shim_setting("AT");
    only_own = shim_setting("OWN") != NULL;
    executable = object_of((void *)getauxval(AT_ENTRY));
    shim.ready = true;
}

/* A call that is interrupted again and again ends only if some calls get through. */
static bool is_chosen(unsigned long at)
{
    bool is_interrupted = number == EINTR && !makes_short;

    return shim_is_chosen(at) && (!is_interrupted || (at - shim.fails_at) % 2 == 0);
}

static bool must_fail(const char *name, const char *path, const void *caller)
{
    if (!shim.ready || (call_name && strcmp(call_name, name) != 0) ||
        (path_part && !strstr(path, path_part)) || (only_own && object_of(caller) != executable))
        return false;
    unsigned long at = shim_count();
    if (at == shim.fails_at || !shim.fails_at)
        shim_log(name, at);
    if (!is_chosen(at))
        return false;
    errno = number;
    return true;
}

static bool fd_fails(const char *name, int fd, const void *caller)
{
    char link[64], path[4096];
    int saved = errno;

    if (!shim.ready)
        return false;
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
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

static int open_in(int folder, const char *path, int flags, va_list more, const void *caller)
{
    int mode = va_arg(more, int);

    return must_fail("open", path, caller) ? -1
                                           : (int)syscall(SYS_openat, folder, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
    va_list more;

    va_start(more, flags);
    int fd = open_in(folder, path, flags, more, CALLER);
    va_end(more);
    return fd;
}

int open(const char *path, int flags, ...)
{
    va_list more;

    va_start(more, flags);
    int fd = open_in(AT_FDCWD, path, flags, more, CALLER);
    va_end(more);
    return fd;
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
