/* Standard output and error are /dev/null in between, for targets that run code of
 * the command line. libFuzzer's own messages and reports of sanitizers go to standard error. */
#ifndef MT_TESTS_SILENCE_H
#define MT_TESTS_SILENCE_H

#include <fcntl.h>
#include <unistd.h>

#include "fuzz.h"

/* Part of the sanitizers; null in builds without them. */
__attribute__((weak)) void __sanitizer_set_report_fd(void *descriptor);

static int silence_saved[2] = {-1, -1}, silence_null = -1;

static inline void silence_begin(void)
{
    if (silence_null < 0) {
        silence_null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        silence_saved[0] = dup(STDOUT_FILENO);
        silence_saved[1] = dup(STDERR_FILENO);
        FUZZ_CHECK(silence_null >= 0 && silence_saved[0] >= 0 && silence_saved[1] >= 0);
        if (__sanitizer_set_report_fd)
            __sanitizer_set_report_fd((void *)(intptr_t)silence_saved[1]);
    }
    dup2(silence_null, STDOUT_FILENO);
    dup2(silence_null, STDERR_FILENO);
}

static inline void silence_end(void)
{
    dup2(silence_saved[0], STDOUT_FILENO);
    dup2(silence_saved[1], STDERR_FILENO);
}

#endif
