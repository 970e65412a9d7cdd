/* A program that keeps the recorder busy for a given time:
 *
 *     soaked SECONDS EVENTS BOOK PLUGIN FILE
 *
 * 16 threads allocate and free at an even pace until EVENTS events are made. Beside them one thread
 * forks children, every second of which executes this program and uses the GPU itself, one loads
 * and unloads PLUGIN, and one opens, duplicates and closes descriptors and appends lines to FILE.
 * What the driver accepted is counted in BOOK (struct book below, in native integers), which the
 * test compares with the traces. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../record/driver_calls.h"

enum { THREADS = 16, BATCH = 64, CHILD_PAIRS = 50, DESCRIPTORS = 64 };

struct book {
    _Atomic uint64_t events;       /* of this process */
    _Atomic uint64_t children;     /* that ended well */
    _Atomic uint64_t child_events; /* of all children */
    _Atomic uint64_t loads;        /* of PLUGIN */
    _Atomic uint64_t lines;        /* in FILE */
};

static struct book *book;
static uint64_t started_ns, wanted_ns, wanted_events;
static atomic_bool done;

static void nap_ns(uint64_t ns)
{
    struct timespec nap = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

    nanosleep(&nap, NULL);
}

static void allocate_pairs(size_t bytes, unsigned pairs)
{
    unsigned long long addr;

    for (unsigned i = 0; i < pairs; i++)
        if (cuMemAlloc(&addr, bytes) || cuMemFree(addr))
            give_up("cuMemAlloc");
}

/* Events that should have been made by now. */
static uint64_t due(void)
{
    uint64_t passed = now_ns() - started_ns;

    return passed >= wanted_ns
               ? wanted_events
               : (uint64_t)((double)wanted_events * ((double)passed / (double)wanted_ns));
}

static void *allocate(void *argument)
{
    size_t bytes = 1024 * ((uintptr_t)argument + 1);

    cuCtxSetCurrent(context);
    while (atomic_load(&book->events) < wanted_events) {
        if (atomic_load(&book->events) >= due()) {
            nap_ns(2000000);
            continue;
        }
        allocate_pairs(bytes, BATCH);
        atomic_fetch_add(&book->events, 2 * BATCH);
    }
    return NULL;
}

/* A child forked from threads may not use the driver; one that executes a program may. */
static void *fork_children(void *unused)
{
    unsigned count = 0;

    (void)unused;
    while (!atomic_load(&done)) {
        int status;
        bool uses_gpu = ++count % 2;
        pid_t child = fork();
        if (child == 0) {
            if (uses_gpu)
                execl("/proc/self/exe", "soaked", "child", (char *)NULL);
            _exit(uses_gpu ? 91 : 0);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || status)
            give_up("a child failed");
        atomic_fetch_add(&book->children, 1);
        if (uses_gpu)
            atomic_fetch_add(&book->child_events, 2 * CHILD_PAIRS);
        nap_ns(wanted_ns / 120);
    }
    return NULL;
}

static void *load_plugin(void *path)
{
    while (!atomic_load(&done)) {
        void *plugin = dlopen(path, RTLD_NOW);
        if (!plugin)
            give_up(dlerror());
        dlclose(plugin);
        atomic_fetch_add(&book->loads, 1);
        nap_ns(50000000);
    }
    return NULL;
}

/* Opens files where others were closed a moment ago: a recorder that writes to a number that is
 * no longer its own leaves bytes in FILE. */
static void *shuffle_descriptors(void *path)
{
    int held[DESCRIPTORS], count = 0;

    while (!atomic_load(&done)) {
        int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 || write(fd, "a line of the program\n", 22) != 22)
            give_up("its own file");
        atomic_fetch_add(&book->lines, 1);
        held[count++] = fd;
        if (count == DESCRIPTORS)
            while (count)
                close(held[--count]);
        nap_ns(20000000);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS], others[3];

    if (argc == 2 && !strcmp(argv[1], "child")) {
        start_driver();
        allocate_pairs(4096, CHILD_PAIRS);
        return 0;
    }
    if (argc != 6)
        return 2;
    wanted_ns = strtoull(argv[1], NULL, 10) * 1000000000u;
    wanted_events = strtoull(argv[2], NULL, 10);
    int fd = open(argv[3], O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *book))
        give_up("book");
    book = mmap(NULL, sizeof *book, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (book == MAP_FAILED)
        give_up("book");
    start_driver();
    started_ns = now_ns();
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, allocate, (void *)i))
            give_up("no thread");
    if (pthread_create(&others[0], NULL, fork_children, NULL) ||
        pthread_create(&others[1], NULL, load_plugin, argv[4]) ||
        pthread_create(&others[2], NULL, shuffle_descriptors, argv[5]))
        give_up("no thread");
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    atomic_store(&done, true);
    for (uintptr_t i = 0; i < 3; i++)
        pthread_join(others[i], NULL);
    return 0;
}
