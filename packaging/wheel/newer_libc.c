/* What an archive of a library was compiled to expect of libc, and glibc 2.28 does not have. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/random.h>

void arc4random_buf(void *buffer, size_t size_bytes);

/* glibc 2.36. libexpat, which fontconfig brings and cairo names, seeds its hash tables with it. As
 * in glibc, the process ends if the kernel has no random bytes. */
void arc4random_buf(void *buffer, size_t size_bytes)
{
    char *at = buffer;

    while (size_bytes > 0) {
        ssize_t count = getrandom(at, size_bytes, 0);

        if (count < 0 && errno == EINTR) /* a signal, before the kernel has random bytes */
            continue;
        if (count < 0)
            abort();
        at += count;
        size_bytes -= (size_t)count;
    }
}
