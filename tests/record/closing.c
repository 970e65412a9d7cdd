/* Programs that close descriptors that they do not know, and reuse the numbers,
 * while they allocate on the GPU. Their files must be what they are without
 * memtrace. Each prints how many events of allocations and frees it caused.
 *
 *   closing all FOLDER WAIT_MS      closes 3 to the limit, opens files, goes on
 *   closing over FOLDER             gives every number to a file of its own
 *   closing lost FOLDER TRACE       closes all, after it deleted its trace
 *   closing mute FOLDER TRACE       ... and 0 to 2
 *   closing clone FOLDER            a child by clone closes all, opens files, emits
 *   closing server ROUNDS           sockets under load; the peer checks each byte
 *   closing random FOLDER SEED ROUNDS   random open, write, close, dup2, fork
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "driver_calls.h"

enum {
    LIMIT = 1024,    /* of descriptors */
    HIGH = 768,      /* where the recorder's are by that limit */
    FILES = 8,       /* of the small programs */
    MESSAGE = 20000, /* bytes that a peer gets */
    LOADERS = 3,     /* threads that allocate */
    NAP_NS = 50000,  /* between their allocations */
    MAX_OWN = 64     /* files that the random program has open */
};

static _Atomic unsigned long long events;
static _Atomic int ended;

static void nap(long ns)
{
    const struct timespec time = {ns / 1000000000, ns % 1000000000};

    nanosleep(&time, NULL);
}

static void start(void)
{
    const struct rlimit limit = {LIMIT, LIMIT};

    if (setrlimit(RLIMIT_NOFILE, &limit))
        give_up("start");
    start_driver();
}

static void allocate(int times)
{
    unsigned long long addr;

    for (; times; times--) {
        if (cuMemAlloc(&addr, 4096) || cuMemFree(addr))
            give_up("cuMemAlloc");
        atomic_fetch_add(&events, 3); /* a free is requested and completed */
    }
}

/* In a child, where CUDA does not work: a failed call is also an event. */
static void try_to_allocate(int times)
{
    unsigned long long addr;

    while (times--)
        if (!cuMemAlloc(&addr, 4096))
            give_up("CUDA works in a child");
}

static void *load(void *unused)
{
    (void)unused;
    cuCtxSetCurrent(context);
    while (!atomic_load(&ended)) {
        allocate(1);
        nap(NAP_NS);
    }
    return NULL;
}

static pthread_t loaders[LOADERS];

static void start_load(void)
{
    start();
    allocate(1);
    for (size_t i = 0; i < LOADERS; i++)
        if (pthread_create(&loaders[i], NULL, load, NULL))
            give_up("no thread");
}

static void end_load(void)
{
    atomic_store(&ended, 1);
    for (size_t i = 0; i < LOADERS; i++)
        pthread_join(loaders[i], NULL);
}

/* tests/thread_sanitizer.supp names these two: descriptors change while others use them. */
__attribute__((noinline)) static int close_anything(int fd)
{
    return close(fd);
}

/* Linux answers EBUSY for a number that another thread, here memtrace's, is just opening. */
__attribute__((noinline)) static int dup2_anywhere(int from, int to)
{
    int fd;

    do
        fd = dup2(from, to);
    while (fd < 0 && errno == EBUSY);
    return fd;
}

static void close_from(int fd)
{
    for (; fd < LIMIT; fd++)
        close_anything(fd);
}

static void close_all(void)
{
    close_from(3);
}

static int open_own(const char *folder, int number)
{
    char path[512];
    int fd;

    snprintf(path, sizeof path, "%s/own.%d", folder, number);
    fd = open(path, O_RDWR | O_CREAT | O_APPEND, 0600);
    if (fd < 0)
        give_up(path);
    return fd;
}

static void write_own(int fd, int number, int line)
{
    char text[64];
    int length = snprintf(text, sizeof text, "file %d, record %d\n", number, line);

    if (write(fd, text, (size_t)length) != length)
        give_up("write");
}

static void use_files(const char *folder, int first, int rounds)
{
    int fds[FILES];

    for (int i = 0; i < FILES; i++)
        fds[i] = open_own(folder, first + i);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < FILES; i++)
            write_own(fds[i], first + i, round);
        allocate(100);
        nap(10000000);
    }
    for (int i = 0; i < FILES; i++)
        if (close_anything(fds[i]))
            give_up("close");
}

static void closes_all(const char *folder, int wait_ms)
{
    start();
    allocate(100);
    nap(wait_ms * 1000000L);
    close_all();
    use_files(folder, 0, 50);
}

/* No number is left to memtrace. */
static void takes_all(const char *folder)
{
    int own;

    start();
    allocate(100);
    nap(50000000);
    own = open_own(folder, 0);
    for (int fd = 3; fd < LIMIT; fd++)
        if (fd != own && dup2_anywhere(own, fd) != fd)
            give_up("dup2");
    for (int fd = 3; fd < LIMIT; fd++) {
        write_own(fd, 0, fd);
        allocate(10);
        if (fd % 32 == 0)
            nap(10000000);
    }
    for (int fd = 3; fd < LIMIT; fd++)
        if (close_anything(fd))
            give_up("close");
    allocate(100);
}

static void loses_trace(const char *folder, const char *trace, int first)
{
    start();
    allocate(100);
    nap(50000000);
    if (unlink(trace))
        give_up("unlink");
    close_from(first);
    use_files(folder, 0, 50);
}

static void child_of_clone(const char *folder)
{
    int fds[FILES];

    close_all();
    for (int i = 0; i < FILES; i++) {
        int fd = open_own(folder, 100 + i);
        fds[i] = fcntl(fd, F_DUPFD, HIGH + i);
        close_anything(fd);
    }
    try_to_allocate(50);
    for (int i = 0; i < FILES; i++)
        write_own(fds[i], 100 + i, 0);
    _exit(0);
}

static void clones(const char *folder)
{
    int status;

    start_load();
    for (int round = 0; round < 20; round++) {
        long child = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
        if (!child) {
            alarm(20);
            child_of_clone(folder);
        }
        if (child < 0 || waitpid((pid_t)child, &status, 0) != child || status) {
            fprintf(stderr, "closing: the child ended with %x\n", status);
            _exit(91);
        }
    }
    end_load();
}

static char letter(int round, int i)
{
    return (char)('a' + (round + i) % 26);
}

static void check_peer(int fd, int round)
{
    char bytes[4096];
    ssize_t length;
    int got = 0;

    while ((length = read(fd, bytes, sizeof bytes)) > 0)
        for (ssize_t i = 0; i < length; i++)
            if (bytes[i] != letter(round, got++)) {
                fprintf(stderr, "closing: round %d: byte %d is not the program's\n", round, got);
                _exit(92);
            }
    if (length < 0 || got != MESSAGE) {
        fprintf(stderr, "closing: round %d: the peer got %d bytes\n", round, got);
        _exit(93);
    }
}

/* A server that closes every descriptor and listens again; its connections take the high numbers.
 */
static void serves(int rounds)
{
    int ends[2];
    char bytes[MESSAGE];

    start_load();
    nap(300000000); /* the loader closes its file of NVML without a look at whose it is */
    for (int round = 0; round < rounds; round++) {
        pid_t child;
        int status;
        close_all();
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
            give_up("socketpair");
        child = fork();
        if (!child) {
            for (int fd = 3; fd < LIMIT; fd++)
                if (fd != ends[1])
                    close_anything(fd);
            check_peer(ends[1], round);
            _exit(0);
        }
        close_anything(ends[1]);
        for (int fd = HIGH - 8; fd < HIGH + 16; fd++)
            dup2_anywhere(ends[0], fd);
        for (int i = 0; i < MESSAGE; i++)
            bytes[i] = letter(round, i);
        for (int i = 0; i < MESSAGE; i += MESSAGE / 20) {
            if (write(HIGH + i % 16, bytes + i, MESSAGE / 20) != MESSAGE / 20)
                give_up("write");
            nap(500000);
        }
        close_all();
        if (waitpid(child, &status, 0) != child || status)
            _exit(94);
    }
    end_load();
}

static uint64_t random_state;

static unsigned pick(unsigned below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state >> 16) % below;
}

/* What the program believes to have open: number -> file. */
static struct {
    int file_at[LIMIT]; /* -1: none */
    int lines[4096];    /* of each file */
    int count, files;
} own;

static void forget(int fd)
{
    own.count -= own.file_at[fd] >= 0;
    own.file_at[fd] = -1;
}

static void remember(int fd, int file)
{
    forget(fd);
    own.file_at[fd] = file;
    own.count++;
}

static int pick_own(void)
{
    int skip = (int)pick((unsigned)own.count), fd;

    for (fd = 3;; fd++)
        if (own.file_at[fd] >= 0 && !skip--)
            return fd;
}

static int pick_number(void)
{
    return pick(2) ? (int)(HIGH - 4 + pick(12)) : (int)(3 + pick(LIMIT - 3));
}

static void close_between(int first, int last)
{
    for (; first <= last; first++) {
        if (close_anything(first) && own.file_at[first] >= 0)
            give_up("close");
        forget(first);
    }
}

static void close_unknown(void)
{
    for (int fd = 3; fd < LIMIT; fd++)
        if (own.file_at[fd] < 0)
            close_anything(fd);
}

static void fork_child(const char *folder)
{
    int number = own.files++, status, fd;
    pid_t child = fork();

    if (!child) {
        if (number % 2)
            close_all();
        fd = fcntl(open_own(folder, number), F_DUPFD, HIGH);
        try_to_allocate(20);
        write_own(fd, number, 0);
        _exit(close_anything(fd) ? 95 : 0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status)
        give_up("the child failed");
}

/* Which numbers are free depends on memtrace; which ones the program uses may not. */
static void open_random(const char *folder)
{
    int to = pick_number(), fd;

    if (own.count >= MAX_OWN)
        return;
    fd = open_own(folder, own.files);
    if (fd != to && (dup2_anywhere(fd, to) != to || close_anything(fd)))
        give_up("dup2");
    remember(to, own.files++);
}

static void step(const char *folder)
{
    int fd, to;

    switch (pick(16)) {
    case 0:
    case 1:
    case 2:
    case 3: open_random(folder); return;
    case 4: close_unknown(); return;
    case 5:
        fd = pick_number();
        to = fd + (int)pick(8);
        close_between(fd, to < LIMIT ? to : LIMIT - 1);
        return;
    case 6:
    case 7:
    case 8:
        fd = own.count ? pick_own() : 0;
        to = pick_number();
        if (!fd)
            return;
        if (dup2_anywhere(fd, to) != to)
            give_up("dup2");
        remember(to, own.file_at[fd]);
        return;
    case 9:
        if (own.count)
            fd = pick_own(), close_between(fd, fd);
        return;
    case 10: nap((long)pick(3000000)); return;
    default:
        if (own.count) {
            fd = pick_own();
            write_own(fd, own.file_at[fd], own.lines[own.file_at[fd]]++);
        }
    }
}

static void does_anything(const char *folder, unsigned seed, int rounds)
{
    random_state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    memset(own.file_at, -1, sizeof own.file_at);
    start_load();
    nap(300000000); /* the loader closes its file of NVML without a look at whose it is */
    for (int round = 0; round < rounds && own.files < 4000; round++) {
        for (int i = 0; i < 24; i++)
            step(folder);
        if (pick(10) == 0)
            fork_child(folder);
    }
    close_between(3, LIMIT - 1);
    end_load();
}

int main(int argc, char **argv)
{
    const char *way = argc > 2 ? argv[1] : "", *more = argc > 3 ? argv[3] : "0";

    if (!strcmp(way, "all"))
        closes_all(argv[2], atoi(more));
    else if (!strcmp(way, "over"))
        takes_all(argv[2]);
    else if (!strcmp(way, "lost"))
        loses_trace(argv[2], more, 3);
    else if (!strcmp(way, "mute"))
        loses_trace(argv[2], more, 0), _exit(0);
    else if (!strcmp(way, "clone"))
        clones(argv[2]);
    else if (!strcmp(way, "server"))
        serves(atoi(argv[2]));
    else if (!strcmp(way, "random") && argc > 4)
        does_anything(argv[2], (unsigned)strtoul(more, NULL, 10), atoi(argv[4]));
    else
        return 96;
    printf("%llu\n", atomic_load(&events));
    return 0;
}
