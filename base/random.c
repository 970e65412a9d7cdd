#include "random.h"

#include <sys/random.h>
#include <unistd.h>

#include "monotonic_clock.h"
#include "util.h"

uint64_t mt_random_number(const void *place)
{
    uint64_t number;

    if (getrandom(&number, sizeof number, GRND_NONBLOCK) == (ssize_t)sizeof number)
        return number;
    return mt_mix_u64(mt_now_ns()) ^ (uint64_t)getpid() << 16 ^ (uint64_t)(uintptr_t)place;
}
