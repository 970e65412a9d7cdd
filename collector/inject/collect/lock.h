/* Locks that no signal handler can leave held. A signal handler of the program may leave the
 * interrupted code with longjmp, and a thread may be canceled asynchronously. A mutex would then
 * stay held, and later calls of the program would block forever. All signals are blocked while such
 * a lock is held, including those of libc (cancellation), which pthread_sigmask does not block.
 * This takes two system calls, 0.2 us, so use it once for each new name, not for each event.
 *
 * Locks that are taken only inside calls of the driver or of PyTorch's allocator do not need
 * this: a longjmp out of such a call leaves the driver's own locks held as well. */
#ifndef MT_INJECT_LOCK_H
#define MT_INJECT_LOCK_H

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The signal mask of the kernel: 64 signals. */
struct mt_signals {
    uint64_t blocked;
};

static inline struct mt_signals mt_lock(pthread_mutex_t *mutex)
{
    const struct mt_signals all = {UINT64_MAX};
    struct mt_signals before = {0};

    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
    pthread_mutex_lock(mutex);
    return before;
}

static inline void mt_unlock(pthread_mutex_t *mutex, struct mt_signals before)
{
    pthread_mutex_unlock(mutex);
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
}

#endif
