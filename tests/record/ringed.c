/* A program for the tests of `record --ring`, which keeps a book of what it did:
 *
 *     ringed BOOK THREADS LIVE EVENTS SECONDS
 *
 * THREADS threads keep LIVE blocks each and replace one after the other, together EVENTS events a
 * second, for SECONDS (0: until they are ended). An entry of the book is written when the call of
 * the driver has returned, so it must be in the trace. The test sets `order`. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "driver_calls.h"

enum { MAX_THREADS = 8, LOG = 1 << 19, MAX_LIVE = 1 << 16, BATCH = 8, EVENTS_PER_BLOCK = 3 };
enum {
    ORDER_NONE,
    ORDER_REFUSE,
    ORDER_EXIT,
    ORDER_FORK,
    ORDER_SANDBOX,
    ORDER_LARGE,
    ORDER_FORK_TWICE,
    ORDER_SMALL
};

struct entry {
    uint64_t addr, size; /* size 0: freed */
};

struct thread_book {
    _Atomic uint64_t entries; /* entry n is at n % LOG */
    uint64_t pad[7];
    struct entry log[LOG];
    struct entry live[MAX_LIVE];
};

struct book {
    _Atomic uint64_t order; /* done: 0 again */
    _Atomic uint64_t ready; /* all threads have their blocks */
    _Atomic uint64_t child; /* of ORDER_FORK_TWICE: it has forked */
    uint64_t pad[5];
    struct thread_book threads[MAX_THREADS];
};

static struct book *book;
static uint64_t threads, blocks, per_second, until_ns;

static void enter(struct thread_book *mine, uint64_t addr, uint64_t size)
{
    uint64_t n = atomic_load(&mine->entries);

    mine->log[n % LOG] = (struct entry){addr, size};
    atomic_store(&mine->entries, n + 1);
}

static void replace(struct thread_book *mine, struct entry *block, uint64_t count)
{
    unsigned long long addr;
    uint64_t size = 4096 + count % 65536 * 16;

    if (block->size) {
        if (cuMemFree(block->addr))
            give_up("cuMemFree");
        enter(mine, block->addr, 0);
        block->size = 0;
    }
    if (cuMemAlloc(&addr, size))
        give_up("cuMemAlloc");
    block->addr = addr;
    block->size = size;
    enter(mine, addr, size);
}

#ifdef SYS_unlink
#define OTHER_UNLINK SYS_unlink
#else
#define OTHER_UNLINK SYS_unlinkat
#endif

/* From now on, a system call that creates or removes a file ends the process. Where the kernel
 * refuses filters, nothing changes. */
static void enter_sandbox(void)
{
    struct sock_filter lines[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OTHER_UNLINK, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unlinkat, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_CREAT, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {sizeof lines / sizeof *lines, lines};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter))
        perror("no sandbox");
}

/* On the first thread, like every order. */
static void allocate_for_a_moment(size_t bytes)
{
    unsigned long long addr;

    if (cuMemAlloc(&addr, bytes))
        give_up("a large block");
    enter(&book->threads[0], addr, bytes);
    if (cuMemFree(addr))
        give_up("cuMemFree");
    enter(&book->threads[0], addr, 0);
}

/* More native stacks than an idle recorder may take. They are not in the book. */
static void allocate_often(void)
{
    unsigned long long addr;

    for (int i = 0; i < 20000; i++)
        if (cuMemAlloc(&addr, 4096) || cuMemFree(addr))
            give_up("a small block");
}

/* The child stays until the program ends, and uses no GPU. */
static void fork_twice(void)
{
    const struct timespec nap = {0, 1000000};
    pid_t child = fork(), grandchild;

    if (child)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    grandchild = fork();
    if (!grandchild)
        _exit(0);
    if (grandchild < 0 || waitpid(grandchild, NULL, 0) != grandchild)
        _exit(91);
    atomic_store(&book->child, (uint64_t)getpid());
    while (atomic_load(&book->order) != ORDER_EXIT)
        nanosleep(&nap, NULL);
    _exit(0);
}

static void obey(void)
{
    unsigned long long addr;

    switch (atomic_load(&book->order)) {
    case ORDER_REFUSE:
        if (!cuMemAlloc(&addr, (size_t)1 << 44))
            give_up("16 TiB");
        break;
    case ORDER_FORK:
        if (fork() == 0) {
            execl("/proc/self/exe", "ringed", "child", (char *)NULL);
            _exit(91);
        }
        break;
    case ORDER_SANDBOX: enter_sandbox(); break;
    case ORDER_LARGE: allocate_for_a_moment((size_t)4 << 30); break;
    case ORDER_FORK_TWICE: fork_twice(); break;
    case ORDER_SMALL: allocate_often(); break;
    case ORDER_EXIT: return;
    default: break;
    }
    atomic_store(&book->order, ORDER_NONE);
}

static int goes_on(void)
{
    return atomic_load(&book->order) != ORDER_EXIT && (!until_ns || now_ns() < until_ns);
}

static void *work(void *argument)
{
    struct thread_book *mine = &book->threads[(uintptr_t)argument];
    uint64_t began = now_ns(), count, share = per_second / threads;
    char name[16];

    snprintf(name, sizeof name, "ring%d", (int)(uintptr_t)argument);
    prctl(PR_SET_NAME, name);
    cuCtxSetCurrent(context);
    for (count = 0; goes_on(); count++) {
        replace(mine, &mine->live[count % blocks], count);
        if (count == blocks)
            atomic_fetch_add(&book->ready, 1);
        if (!argument)
            obey();
        while (count % BATCH == 0 && count > blocks && goes_on() &&
               (double)(count - blocks) * EVENTS_PER_BLOCK >
                   (double)share * (double)(now_ns() - began) / 1e9) {
            struct timespec nap = {0, 1000000};
            nanosleep(&nap, NULL);
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t started[MAX_THREADS];

    if (argc == 2) { /* a child that executes the program again */
        unsigned long long addr;
        start_driver();
        return cuMemAlloc(&addr, 12345) != 0;
    }
    if (argc != 6)
        return 2;
    threads = strtoull(argv[2], NULL, 10);
    blocks = strtoull(argv[3], NULL, 10);
    per_second = strtoull(argv[4], NULL, 10);
    if (!threads || threads > MAX_THREADS || !blocks || blocks > MAX_LIVE)
        return 2;
    int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *book))
        give_up("book");
    book = mmap(NULL, sizeof *book, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (book == MAP_FAILED)
        give_up("book");
    if (strtoull(argv[5], NULL, 10))
        until_ns = now_ns() + strtoull(argv[5], NULL, 10) * 1000000000u;
    start_driver();
    for (uintptr_t i = 0; i < threads; i++)
        if (pthread_create(&started[i], NULL, work, (void *)i))
            give_up("no thread");
    for (uintptr_t i = 0; i < threads; i++)
        pthread_join(started[i], NULL);
    return 0;
}
