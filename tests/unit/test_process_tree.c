/* launch.h finds every descendant, whatever the number of processes. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* clone */
#endif
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "launch.h"

enum { PROCESSES = 4300, STACK_BYTES = 4096 };

/* Runs in a process that shares the test's memory, so that thousands are cheap. */
__attribute__((no_sanitize("address", "undefined", "thread"))) static int nap(void *argument)
{
    (void)argument;
    (void)syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL); /* leaves none behind if the test fails */
    for (;;)
        (void)syscall(SYS_ppoll, NULL, 0, NULL, NULL, 0);
    return 0;
}

TEST(thousands_of_processes_end)
{
    char *stacks = malloc((size_t)PROCESSES * STACK_BYTES);
    int started = 0, status;

    assert_non_null(stacks);
    for (; started < PROCESSES; started++)
        if (clone(nap, stacks + (size_t)(started + 1) * STACK_BYTES, CLONE_VM | SIGCHLD, NULL) < 0)
            break;
    mt_process_tree_end(0, SIGKILL);
    alarm(60); /* waits for a live process */
    for (int i = 0; i < started; i++)
        assert_true(waitpid(-1, &status, 0) > 0 && WIFSIGNALED(status));
    alarm(0);
    free(stacks);
    if (started < PROCESSES)
        skip(); /* the machine allows fewer processes */
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
