#include "random.h"

#include <sys/random.h>
#include <time.h>
#include <unistd.h>

uint64_t mt_random_number(const void *place)
{
    struct timespec now = {0};
    uint64_t number;

    if (getrandom(&number, sizeof number, GRND_NONBLOCK) == (ssize_t)sizeof number)
        return number;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec ^ (uint64_t)getpid() << 16 ^
           (uint64_t)(uintptr_t)place;
}
