/* See python_memory.h. Lets the kernel test the address: rt_sigprocmask reads the given set before
 * it checks its first argument, which is invalid here. So it returns EFAULT or EINVAL, and changes
 * nothing. Unlike process_vm_readv, no sandbox forbids it. */
#include "python_memory.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The smallest page of a kernel. Larger ones are only tested more often. */
enum { PAGE = 4096, MASK_BYTES = 8 };

bool mt_python_readable(uintptr_t address)
{
    uintptr_t aligned = address & ~(uintptr_t)(MASK_BYTES - 1);

    return syscall(SYS_rt_sigprocmask, ~0, aligned, NULL, MASK_BYTES) == -1 && errno == EINVAL;
}

bool mt_python_copy(void *to, uintptr_t address, size_t bytes)
{
    uintptr_t end = address + bytes;
    int kept = errno;
    bool good = end >= address && address >= PAGE;

    for (uintptr_t at = address; good && at < end; at = (at | (PAGE - 1)) + 1)
        good = mt_python_readable(at);
    if (good)
        memcpy(to, (const void *)address, bytes);
    errno = kept;
    return good;
}

bool mt_python_memory_works(void)
{
    static const char there = 'x';
    char copy = 0;
    int kept = errno;
    bool works = !mt_python_readable(MASK_BYTES);

    errno = kept;
    return works && mt_python_copy(&copy, (uintptr_t)&there, 1) && copy == there;
}
