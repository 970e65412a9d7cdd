#define _GNU_SOURCE
#include "cudnn_asker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device_json.h"
#include "monotonic_clock.h"

enum { MAX_FAILURES = 3, STACK_BYTES = 64 << 10, CANNOT_RUN = 127, NO_SOCKET = -1 };

/* The libraries may be on a slow disk. Only tests use a shorter time. */
static int64_t first_timeout_ms = 60000, timeout_ms = 20000;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    int socket;
    dev_t device; /* identity of the socket: a program may close files that it did not open */
    ino_t inode;
    bool cannot_plan;
    int failures;
    uint32_t questions;
} asker = {.socket = NO_SOCKET};

/* The data of the new process. It is prepared before the process starts, because that process
 * shares the memory of this one until it executes another program. */
struct beginning {
    int socket;
    pid_t asker; /* not positive: there is no asker */
    char *stack_of_asker;
    char owner[16];
    const char *arguments[5];
    const char *environment[4];
    char library_path[3 * PATH_MAX + 64];
    char device[MAX_DEVICE_JSON];
};

static struct beginning beginning; /* protected by the lock; too large for a stack */

static bool is_our_socket(void)
{
    struct stat info;

    return asker.socket >= 0 && fstat(asker.socket, &info) == 0 && S_ISSOCK(info.st_mode) &&
           info.st_dev == asker.device && info.st_ino == asker.inode;
}

/* The asker ends when it detects this, or when its question takes too long. */
static void stop_asker(void)
{
    if (is_our_socket())
        (void)close(asker.socket);
    asker.socket = NO_SOCKET;
}

/* The folders in which cuDNN finds its other parts and the run-time compiler, as in its own search
 * path. */
static bool make_library_path(struct beginning *b, const char *library)
{
    const char *slash = strrchr(library, '/');
    int folder = slash != NULL ? (int)(slash - library) : 0;
    int length = snprintf(b->library_path, sizeof b->library_path,
                          "LD_LIBRARY_PATH=%.*s:%.*s/../../cu13/lib:%.*s/../../cuda_nvrtc/lib",
                          folder, library, folder, library, folder, library);

    return folder > 0 && folder < PATH_MAX && length < (int)sizeof b->library_path;
}

static bool prepare(struct beginning *b)
{
    const char *program = getenv(SIM_ASKER_PROGRAM), *library = getenv(SIM_ASKER_LIBRARY);

    if (program == NULL || library == NULL || !make_library_path(b, library))
        return false;
    sim_device_json(b->device);
    b->arguments[0] = program;
    b->arguments[1] = library;
    b->arguments[2] = b->device;
    b->arguments[3] = b->owner;
    snprintf(b->owner, sizeof b->owner, "%ld", (long)getpid());
    b->environment[0] = b->library_path;
    b->environment[1] = "CUDA_VISIBLE_DEVICES=";
    b->environment[2] = "LC_ALL=C";
    return true;
}

/* Runs in the new process, on a separate stack. All signals are blocked until the asker unblocks
 * them. */
static int become_asker(void *argument)
{
    const struct beginning *b = argument;
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (nothing < 0 || dup2(b->socket, CUDNN_ASKER_SOCKET) < 0 ||
        dup2(nothing, STDOUT_FILENO) < 0 || dup2(nothing, STDERR_FILENO) < 0)
        return CANNOT_RUN;
    (void)execve(b->arguments[0], (char *const *)(uintptr_t)b->arguments,
                 (char *const *)(uintptr_t)b->environment);
    return CANNOT_RUN;
}

static int start_asker(void *argument)
{
    struct beginning *b = argument;

    b->asker = clone(become_asker, b->stack_of_asker, CLONE_VM | CLONE_VFORK, b);
    return 0;
}

/* The asker is not a child of the program: an intermediate process starts it and ends immediately.
 * The intermediate process has no exit signal, so only a wait with __WCLONE returns it. It must not
 * execute a program, because that would restore SIGCHLD. */
static bool start_apart(struct beginning *b, char *stacks)
{
    sigset_t all, before;

    b->asker = -1;
    b->stack_of_asker = stacks + STACK_BYTES;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t between = clone(start_asker, stacks + 2 * (size_t)STACK_BYTES, CLONE_VM | CLONE_VFORK, b);
    while (between > 0 && waitpid(between, NULL, (int)__WCLONE) < 0 && errno == EINTR)
        continue;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return between > 0 && b->asker > 0;
}

static bool start_process(struct beginning *b)
{
    char *stacks = mmap(NULL, 2 * (size_t)STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

    if (stacks == MAP_FAILED)
        return false;
    bool is_started = start_apart(b, stacks);
    (void)munmap(stacks, 2 * (size_t)STACK_BYTES);
    return is_started;
}

/* A program may have closed its standard files. Their numbers must stay free for the next files
 * that it opens, and the new process replaces files 0 to 2. */
static int above_standard_files(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

static bool keep_socket(int end)
{
    struct stat info;
    int fd = above_standard_files(end);

    if (fd < 0 || fstat(fd, &info) != 0) {
        if (fd >= 0)
            (void)close(fd);
        return false;
    }
    asker.socket = fd;
    asker.device = info.st_dev;
    asker.inode = info.st_ino;
    return true;
}

static bool start_on(int other, struct beginning *b)
{
    b->socket = above_standard_files(other);
    if (b->socket < 0)
        return false;
    bool is_started = start_process(b);
    (void)close(b->socket);
    return is_started;
}

static bool start(void)
{
    int ends[2];

    if (!prepare(&beginning) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    bool started = keep_socket(ends[0]) && start_on(ends[1], &beginning);
    (void)close(ends[0]);
    (void)close(ends[1]);
    return started;
}

static bool wait_for_answer(int64_t until_ms)
{
    struct pollfd wait = {.fd = asker.socket, .events = POLLIN};
    int ready = 0;

    for (int64_t left_ms; ready <= 0 && (left_ms = until_ms - (int64_t)mt_now_ms()) > 0;) {
        ready = poll(&wait, 1, (int)left_ms);
        if (ready < 0 && errno != EINTR)
            return false;
    }
    return ready > 0;
}

static bool is_sound(const struct cudnn_answer *answer, ssize_t length)
{
    return length == (ssize_t)sizeof *answer && answer->mark == CUDNN_ANSWER_MARK &&
           answer->number == asker.questions && answer->state < CUDNN_ANSWER_STATES &&
           answer->count <= MAX_CUDNN_CONFIGURATIONS;
}

static bool exchange(const struct convolution *convolution, struct cudnn_answer *answer)
{
    struct cudnn_question question = {CUDNN_QUESTION_MARK, ++asker.questions, *convolution};
    int64_t until_ms =
        (int64_t)mt_now_ms() + (asker.questions == 1 ? first_timeout_ms : timeout_ms);

    if (!is_our_socket() || send(asker.socket, &question, sizeof question,
                                 MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof question)
        return false;
    return wait_for_answer(until_ms) &&
           is_sound(answer, recv(asker.socket, answer, sizeof *answer, MSG_DONTWAIT | MSG_TRUNC));
}

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork_here(void)
{
    pthread_mutex_unlock(&lock);
}

/* The asker still belongs to the parent. */
static void after_fork_in_child(void)
{
    stop_asker();
    asker.questions = 0;
    pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork_here, after_fork_in_child);
}

bool sim_ask_cudnn(const struct convolution *convolution, struct cudnn_answer *answer)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    bool is_answered = false;

    if (getenv(SIM_ASKER_PROGRAM) == NULL || getenv(SIM_ASKER_LIBRARY) == NULL)
        return false;
    (void)pthread_once(&once, watch_forks);
    pthread_mutex_lock(&lock);
    if (!asker.cannot_plan && asker.failures < MAX_FAILURES) {
        is_answered = (asker.socket != NO_SOCKET || start()) && exchange(convolution, answer);
        asker.failures += !is_answered;
        asker.cannot_plan = is_answered && answer->state == CUDNN_CANNOT_PLAN;
        if (!is_answered || asker.cannot_plan)
            stop_asker();
    }
    pthread_mutex_unlock(&lock);
    return is_answered && !asker.cannot_plan;
}
