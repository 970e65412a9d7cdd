/* The only place in the libraries that may stop the process, and only in builds with
 * MEMTRACE_ASSERT. It uses write(2), since the heap may be corrupt. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum mt_status mt_check_failed(struct mt_error *error, const char *expression, const char *file,
                               int line)
{
    return mt_fail(error, MT_ERR_INTERNAL, MT_NO_OFFSET, "%s is false (%s:%d)", expression, file,
                   line);
}

#ifdef MEMTRACE_ASSERT

#define SEED_VARIABLE "MEMTRACE_CHECK_SEED"

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
    uint64_t mixed = *state += UINT64_C(0x9e3779b97f4a7c15);

    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

/* Returns the seed from the environment, or the process id. */
static uint64_t seed_of_moments(void)
{
    const char *text = getenv(SEED_VARIABLE);

    if (text)
        return strtoull(text, NULL, 0);
    return (uint64_t)getpid();
}

_Noreturn void mt_assert_failed(const char *expression, const char *why, const char *file, int line,
                                const char *function)
{
    char text[1024];
    int length =
        snprintf(text, sizeof text,
                 "memtrace: assertion failed: %s%s%s, in %s (%s:%d); " SEED_VARIABLE "=%llu\n",
                 expression, why ? ": " : "", why ? why : "", function, file, line,
                 (unsigned long long)seed_of_moments());

    if (length > 0)
        (void)!write(STDERR_FILENO, text,
                     (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
    abort();
}

/* A check of `cost` steps follows after cost / 2 to cost * 3 / 2 operations, so all checks together
 * take about one step per operation. */
bool mt_check_is_due(struct mt_check_pace *pace, uint64_t cost)
{
    if (pace->left) {
        pace->left--;
        return false;
    }
    if (!pace->state)
        pace->state = seed_of_moments() | UINT64_C(1) << 63;
    pace->left = cost / 2 + next_random(&pace->state) % (cost + 1);
    return true;
}

#endif
