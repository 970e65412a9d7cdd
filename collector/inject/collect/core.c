#include "core.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static const _Atomic uint32_t no_generation;

struct mt_core mt_core = {.generation = &no_generation,
                          .tape_file = {.fd = -1},
                          .trace_file = {.fd = -1},
                          .before_file = {.fd = -1}};

_Thread_local struct mt_thread *mt_self;

void mt_core_forget_generation(void)
{
    mt_core.generation = &no_generation;
}

void mt_core_wake_writer(void)
{
    if (!atomic_exchange(&mt_core.wake, 1))
        (void)syscall(SYS_futex, &mt_core.wake, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
