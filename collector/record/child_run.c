#include "child_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io.h"
#include "monotonic_clock.h"
#include "process_memory.h"

enum { USUAL_STACK_BYTES = 8 << 20 };

struct work {
    const struct mt_child_call *call;
    void *answer;
};

static void *do_work(void *context)
{
    const struct work *work = context;

    work->call->body(work->call->subject, work->answer);
    return NULL;
}

/* Foreign libraries expect a stack of the usual size, whatever `ulimit -s` is: libdw needs more
 * than 64 KiB. The limit does not apply to threads. */
static void run_on_usual_stack(struct work *work)
{
    struct rlimit limit;
    pthread_attr_t attributes;
    pthread_t thread;
    bool is_small = getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < USUAL_STACK_BYTES;

    if (is_small && pthread_attr_init(&attributes) == 0) {
        is_small = pthread_attr_setstacksize(&attributes, USUAL_STACK_BYTES) == 0 &&
                   pthread_create(&thread, &attributes, do_work, work) == 0;
        (void)pthread_attr_destroy(&attributes);
        if (is_small && pthread_join(thread, NULL) == 0)
            return;
    }
    (void)do_work(work);
}

static void run_in_child(const struct mt_child_call *call, void *answer, int output)
{
    int nothing = mt_io_open("/dev/null", O_RDWR, 0);
    struct work work = {call, answer};

    setpgid(0, 0);
    mt_memory_return_failures(true); /* only the parent has last words */
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && nothing >= 0; fd++)
        dup2(nothing, fd);
    run_on_usual_stack(&work);
    (void)mt_io_write(output, answer, call->answer_bytes); /* else the parent sees the child die */
    _exit(0);
}

static enum mt_child_end read_answer(const struct mt_child_call *call, char *answer, int fd)
{
    int64_t end_ms = (int64_t)mt_now_ms() + (int64_t)call->limit_s * 1000, left_ms;
    size_t length = 0;

    while (length < call->answer_bytes && (left_ms = end_ms - (int64_t)mt_now_ms()) > 0) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (poll(&wait, 1, (int)left_ms) <= 0)
            continue;
        ssize_t count = mt_io_read(fd, answer + length, call->answer_bytes - length);
        if (count <= 0)
            return MT_CHILD_DIED;
        length += (size_t)count;
    }
    return length == call->answer_bytes ? MT_CHILD_ANSWERED : MT_CHILD_LATE;
}

/* Kills the process unless it has died, waits for it, and kills the rest of its group. */
static int bury(pid_t child, enum mt_child_end how)
{
    int status = 0;

    if (how != MT_CHILD_DIED) /* otherwise it is about to end by itself, with a status */
        kill(-child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    kill(-child, SIGKILL);
    return how == MT_CHILD_DIED && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

enum mt_child_end mt_child_run(const struct mt_child_call *call, int *signal_number)
{
    char *answer = calloc(1, call->answer_bytes);
    enum mt_child_end how = MT_CHILD_IMPOSSIBLE;
    int ends[2] = {-1, -1};
    pid_t child = -1;

    *signal_number = 0;
    if (answer && pipe(ends) == 0)
        child = fork();
    if (child == 0) {
        close(ends[0]);
        fcntl(ends[1], F_SETFD, FD_CLOEXEC);
        run_in_child(call, answer, ends[1]);
    }
    if (ends[1] >= 0)
        close(ends[1]);
    if (child > 0) {
        setpgid(child, child); /* in both processes, because either may run first */
        how = read_answer(call, answer, ends[0]);
        *signal_number = bury(child, how);
        if (how == MT_CHILD_ANSWERED)
            memcpy(call->answer, answer, call->answer_bytes);
    }
    if (ends[0] >= 0)
        close(ends[0]);
    free(answer);
    return how;
}
