/* The end of a command has the time of its trace, even if somebody sets the clock meanwhile. */
#include "cmocka_all.h"

#include <time.h>

#include "launch.h"

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

static time_t jump_s; /* of the clock that can be set */

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    int result = __real_clock_gettime(clock, time);

    if (clock == CLOCK_REALTIME)
        time->tv_sec += jump_s;
    return result;
}

static char **inherited(void *context, pid_t pid)
{
    static char *nothing[] = {NULL};

    (void)context;
    (void)pid;
    return nothing;
}

TEST(a_clock_that_is_set)
{
    static char *const command[] = {(char *)(uintptr_t) "true", NULL};
    static const struct mt_launch_request request = {.command = command, .environment = inherited};
    static const time_t jumps_s[] = {-3600, 3600, -100000000};
    struct mt_error error = {.offset = MT_NO_OFFSET};

    for (size_t i = 0; i < sizeof jumps_s / sizeof *jumps_s; i++) {
        struct mt_launch launch;

        jump_s = 0;
        mt_launch_init(&launch);
        uint64_t began_ns = launch.began_t_ns;
        assert_int_equal(mt_launch_start(&launch, &request, &error), MT_OK);
        jump_s = jumps_s[i];
        mt_launch_wait(&launch, 0);
        uint64_t ended_ns = mt_launch_end(&launch).t_ns;
        assert_true(ended_ns >= began_ns);
        assert_true(ended_ns - began_ns < UINT64_C(1800) * 1000000000);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
