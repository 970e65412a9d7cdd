/* A program to be recorded: uses the driver (the stand-in, or a real one) and
 * ends in a given way.
 *
 *   recorded plain CODE          no CUDA at all
 *   recorded exit CODE           allocates, frees, exits
 *   recorded quick CODE          ... with _exit
 *   recorded atexit              ... and dies of SIGSEGV on the way
 *   recorded signal NUMBER       ... dies of a signal
 *   recorded segv | abort
 *   recorded mesh BEFORE AFTER   says its place before the first call of the driver, and after it,
 *                                unless it is "-"; exits with the number of calls that were refused
 *   recorded echo                copies stdin to stdout
 *   recorded fork | forkexec | spawn | exec     see below
 *   recorded wait FILE           ends when FILE is gone
 *   recorded daemon FILE         leaves a process behind that ends when FILE is gone
 *   recorded threads COUNT       as many threads allocate at once
 *   recorded log FILE            allocates until it is killed, and keeps book
 *   recorded signals FILE        counts signals in FILE, ends after TERM
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "driver_calls.h"

extern char **environ;

enum { LOG_SLOTS = 1 << 20, ALIVE = 8, ROUNDS = 200 };

/* 5 events: three allocations, of 1000, 2000 and 3000 KiB, the first two freed. */
static void use_gpu(void)
{
    unsigned long long addr[3];

    start_driver();
    for (size_t i = 0; i < 3; i++)
        if (cuMemAlloc(&addr[i], (i + 1) * 1000 * 1024))
            give_up("cuMemAlloc");
    if (cuMemFree(addr[0]) || cuMemFree(addr[1]))
        give_up("cuMemFree");
}

static int wait_for(pid_t child)
{
    int status;

    if (child < 0 || waitpid(child, &status, 0) != child || status)
        give_up("the child failed");
    return 0;
}

static pid_t start_again(const char *self, int by_spawn)
{
    char *arguments[] = {strdup(self), strdup("exit"), strdup("0"), NULL};
    pid_t child;

    if (by_spawn)
        return posix_spawn(&child, self, NULL, NULL, arguments, environ) ? -1 : child;
    child = fork();
    if (child == 0) {
        execv(self, arguments);
        _exit(91);
    }
    return child;
}

/* Both use the GPU, the child of its own accord. */
static int with_fork(void)
{
    use_gpu();
    pid_t child = fork();
    if (child == 0) {
        use_gpu();
        exit(0);
    }
    return wait_for(child);
}

static void wait_until_gone(const char *file)
{
    struct timespec nap = {0, 10000000};

    while (access(file, F_OK) == 0)
        nanosleep(&nap, NULL);
}

/* Returns when the daemon has begun. */
static int as_daemon(const char *file)
{
    int ends[2];
    char byte;

    if (pipe(ends))
        give_up("no pipe");
    if (fork() == 0) {
        setsid();
        use_gpu();
        close(0), close(1), close(2), close(ends[0]), close(ends[1]);
        wait_until_gone(file);
        exit(0);
    }
    close(ends[1]);
    return (int)read(ends[0], &byte, 1);
}

static void *allocate(void *argument)
{
    unsigned long long addr;
    uintptr_t number = (uintptr_t)argument;

    cuCtxSetCurrent(context);
    for (int i = 0; i < ROUNDS; i++)
        if (cuMemAlloc(&addr, 1024 * (number + 1)) || cuMemFree(addr))
            give_up("cuMemAlloc");
    return NULL;
}

static int with_threads(size_t count)
{
    pthread_t threads[64];

    start_driver();
    for (size_t i = 0; i < count && i < 64; i++)
        if (pthread_create(&threads[i], NULL, allocate, (void *)i))
            give_up("no thread");
    for (size_t i = 0; i < count && i < 64; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

/* Allocation n has 256 * (n + 1) bytes; it is entered after the driver's call
 * came back, so everything that is entered must be in the trace. */
struct book {
    _Atomic uint64_t allocations, frees;
    _Atomic uint64_t late_ns; /* the longest that a sleep of 10 ms took too long */
    uint64_t pad[5];
    uint64_t done_ns[LOG_SLOTS]; /* of allocation n */
};

static void *watch_scheduler(void *argument)
{
    struct book *book = argument;

    for (;;) {
        struct timespec nap = {0, 10000000};
        uint64_t before = now_ns(), took;
        nanosleep(&nap, NULL);
        took = now_ns() - before - 10000000;
        if (took > atomic_load(&book->late_ns))
            atomic_store(&book->late_ns, took);
    }
    return NULL;
}

static int keep_book(const char *file)
{
    int fd = open(file, O_RDWR);
    struct book *book = mmap(NULL, sizeof *book, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    struct timespec nap = {0, 100000};
    unsigned long long alive[ALIVE];
    pthread_t thread;

    if (book == MAP_FAILED)
        give_up("no book");
    start_driver();
    pthread_create(&thread, NULL, watch_scheduler, book);
    for (uint64_t n = 0; n < LOG_SLOTS; n++) {
        if (n >= ALIVE) {
            if (cuMemFree(alive[n % ALIVE]))
                give_up("cuMemFree");
            atomic_fetch_add(&book->frees, 1);
        }
        if (cuMemAlloc(&alive[n % ALIVE], 256 * (n + 1)))
            give_up("cuMemAlloc");
        book->done_ns[n] = now_ns();
        atomic_store(&book->allocations, n + 1);
        if (n % 4 == 3)
            nanosleep(&nap, NULL);
    }
    return 0;
}

static volatile sig_atomic_t counts[65], ended;

static void count(int number)
{
    counts[number]++;
    ended = ended || number == SIGTERM;
}

static int count_signals(const char *file)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH};
    struct sigaction action = {.sa_handler = count};
    struct timespec nap = {0, 5000000};
    FILE *out;

    use_gpu();
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
    for (;;) { /* rewritten in one step, because another process polls it */
        char other[4096];
        int last = ended;
        snprintf(other, sizeof other, "%s.new", file);
        out = fopen(other, "w");
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
            fprintf(out, "%d %d\n", numbers[i], (int)counts[numbers[i]]);
        fclose(out);
        rename(other, file);
        if (last)
            return 5;
        nanosleep(&nap, NULL);
    }
}

static int echo(void)
{
    char bytes[4096];
    size_t length;

    use_gpu();
    while ((length = fread(bytes, 1, sizeof bytes, stdin)) > 0)
        fwrite(bytes, 1, length, stdout);
    return 0;
}

/* As a program that is not linked to the recorder calls it. */
static int set_mesh(const char *mesh)
{
    int (*set)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, "memtrace_set_mesh");

    if (!strcmp(mesh, "-"))
        return 0;
    if (!set)
        give_up("memtrace_set_mesh");
    return set(mesh) != 0;
}

static int say_mesh(const char *before, const char *after)
{
    int refused = set_mesh(before);

    use_gpu();
    return refused + set_mesh(after);
}

static void write_nowhere(void)
{
    volatile int *volatile nowhere = NULL;

    *nowhere = 1;
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "", *value = argc > 2 ? argv[2] : "0";

    if (!strcmp(way, "atexit"))
        atexit(write_nowhere); /* registered first, it runs last */

    if (!strcmp(way, "plain"))
        return atoi(value);
    if (!strcmp(way, "echo"))
        return echo();
    if (!strcmp(way, "mesh") && argc > 3)
        return say_mesh(argv[2], argv[3]);
    if (!strcmp(way, "fork"))
        return with_fork();
    if (!strcmp(way, "daemon"))
        return as_daemon(value);
    if (!strcmp(way, "threads"))
        return with_threads((size_t)atoi(value));
    if (!strcmp(way, "log"))
        return keep_book(value);
    if (!strcmp(way, "signals"))
        return count_signals(value);
    use_gpu();
    if (!strcmp(way, "exit") || !strcmp(way, "atexit"))
        return atoi(value);
    if (!strcmp(way, "wait"))
        return wait_until_gone(value), 0;
    if (!strcmp(way, "quick"))
        _exit(atoi(value));
    if (!strcmp(way, "signal"))
        raise(atoi(value));
    if (!strcmp(way, "segv"))
        write_nowhere();
    if (!strcmp(way, "abort"))
        abort();
    if (!strcmp(way, "forkexec"))
        return wait_for(start_again(argv[0], 0));
    if (!strcmp(way, "spawn"))
        return wait_for(start_again(argv[0], 1));
    if (!strcmp(way, "exec"))
        execl(argv[0], argv[0], "exit", "7", (char *)NULL);
    fprintf(stderr, "recorded: no such way: %s\n", way);
    return 92;
}
