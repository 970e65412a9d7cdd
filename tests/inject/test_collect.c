/* The whole way from emitting events to a trace that reads, in processes that
 * end in every way. Each case is a child that records; the parent recovers what
 * is left and reads the trace. Addresses are chosen so that the trace says by
 * itself what is missing: thread and counter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collect.h"
#include "recover.h"
#include "sources.h"
#include "tape_file.h"
#include "trace.h"

/* The writer is inside this source for most of its time, if `slow` is set. */
static bool slow;
static _Atomic bool working;

static void work(void)
{
    if (!slow)
        return;
    atomic_store(&working, true);
    usleep(50000);
    atomic_store(&working, false);
}

static const struct mt_inject_source source_of_work = {.poll = work};
const struct mt_inject_source *const mt_inject_sources[] = {&source_of_work, NULL};

enum { MAX_THREADS = 32 };

static char folder[64], trace[128];

/* What the child has surely emitted, in memory shared with the parent. */
static struct shared {
    _Atomic uint64_t emitted[MAX_THREADS];
} * shared;

static void emit(uint64_t thread, uint64_t count, const char *name)
{
    struct mt_raw_event event = {.addr = thread << 48 | count << 9,
                                 .size_bytes = count + 1,
                                 .heap = MT_RAW_PYTORCH,
                                 .device = 0,
                                 .kind = MT_EVENT_ALLOC};

    if (!mt_collect_enter())
        return;
    mt_collect_emit(&event);
    if (name) {
        event = (struct mt_raw_event){.kind = MT_EVENT_MARK, .device = UINT8_MAX};
        event.id = mt_collect_name(name, strlen(name));
        mt_collect_emit(&event);
    }
    mt_collect_leave();
    atomic_store(&shared->emitted[thread], count + 1);
}

static void emit_many(uint64_t thread, uint64_t from, uint64_t to)
{
    for (; from < to; from++)
        emit(thread, from, from % 1000 ? NULL : "thousand");
}

/* ---- the parent's side ------------------------------------------------- */

static int run_child(void (*body)(void))
{
    pid_t pid;
    int status;

    memset(shared, 0, sizeof *shared);
    fflush(NULL);
    pid = fork();
    if (!pid) {
        body();
        exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

struct found {
    uint64_t allocs[MAX_THREADS], last[MAX_THREADS], dropped, marks;
    bool in_order, closed;
};

static void read_trace(const char *path, struct found *found)
{
    struct mt_error error = {0};
    struct mt_event_batch batch;
    struct mt_source *source;
    enum mt_status status;
    size_t i;

    *found = (struct found){.in_order = true};
    if (mt_trace_open(path, &source, &error) != MT_OK)
        fail_msg("%s: %s", path, error.text);
    while ((status = mt_source_next(source, &batch, &error)) == MT_OK) {
        for (i = 0; i < batch.count; i++) {
            const struct mt_event *event = &batch.events[i];
            uint64_t thread = event->addr >> 48;
            if (event->kind == MT_EVENT_ALLOC && thread < MAX_THREADS) {
                found->last[thread] = event->size_bytes;
                found->in_order &= event->size_bytes == found->allocs[thread] + 1;
                found->allocs[thread] += !strcmp(
                    mt_symbols_text(&source->symbols, source->symbols.heaps[event->heap].name),
                    "pytorch");
                assert_string_equal(
                    mt_symbols_text(&source->symbols, source->symbols.heaps[event->heap].name),
                    "pytorch");
            } else if (event->kind == MT_EVENT_MARK) {
                found->marks += !strcmp(mt_symbols_text(&source->symbols, event->name), "thousand");
            } else if (event->kind == MT_EVENT_DROPPED) {
                found->dropped += event->size_bytes;
            }
        }
    }
    assert_int_equal(status, MT_END);
    found->closed = source->integrity.closed && !source->integrity.frames_damaged;
    mt_source_close(source);
}

static struct mt_recovery recover(const char *path)
{
    struct mt_recovery recovery;
    struct mt_error error = {0};

    if (mt_recover(path, NULL, &recovery, &error) != MT_OK)
        fail_msg("%s: %s", path, error.text);
    assert_false(mt_recover_is_needed(path));
    return recovery;
}

static void clean(void)
{
    char command[256];

    snprintf(command, sizeof command, "rm -rf %s; mkdir %s", folder, folder);
    assert_int_equal(system(command), 0);
}

/* ---- cases ------------------------------------------------------------- */

static void few(void)
{
    emit_many(1, 0, 2500);
}

static void ends_in_order(void **state)
{
    struct mt_recovery recovery;
    struct found found;

    (void)state;
    clean();
    assert_int_equal(run_child(few), 0);
    read_trace(trace, &found);
    assert_int_equal(found.allocs[1], 2500);
    assert_int_equal(found.marks, 3);
    assert_true(found.in_order && found.closed);
    recovery = recover(trace);
    assert_true(recovery.was_closed);
    assert_int_equal(recovery.events_written, 2503);
    assert_int_equal(recovery.events_recovered, 0);
    read_trace(trace, &found);
    assert_int_equal(found.allocs[1], 2500);
}

static void ends_abruptly(void)
{
    emit_many(1, 0, 70000);
    _exit(0);
}

static void survives_underscore_exit(void **state)
{
    struct mt_recovery recovery;
    struct found found;

    (void)state;
    clean();
    assert_int_equal(run_child(ends_abruptly), 0);
    recovery = recover(trace);
    assert_false(recovery.was_closed);
    assert_int_equal(recovery.events_written + recovery.events_recovered, 70070);
    assert_int_equal(recovery.events_missing + recovery.events_dropped, 0);
    read_trace(trace, &found);
    assert_int_equal(found.allocs[1], 70000);
    assert_true(found.in_order && found.closed);
}

static void dies_young(void)
{
    emit(1, 0, NULL);
    usleep(40000);
    emit(1, 1, NULL);
    _exit(0);
}

/* No pass of the writer has related the counter to the clock by then. */
static void times_of_a_short_life(void **state)
{
    struct mt_error error = {0};
    struct mt_event_batch batch;
    struct mt_source *source;

    (void)state;
    clean();
    assert_int_equal(run_child(dies_young), 0);
    recover(trace);
    assert_int_equal(mt_trace_open(trace, &source, &error), MT_OK);
    assert_int_equal(mt_source_next(source, &batch, &error), MT_OK);
    assert_true(batch.count >= 2);
    assert_true(batch.events[1].t_ns - batch.events[0].t_ns >= 39000000);
    mt_source_close(source);
}

static void emits_after_the_end(void)
{
    emit(1, 10, NULL);
}

static void late_events(void)
{
    atexit(emits_after_the_end);
    emit_many(1, 0, 10);
}

/* Destructors of the program's libraries may run after ours. */
static void keeps_what_comes_late(void **state)
{
    struct found found;

    (void)state;
    clean();
    assert_int_equal(run_child(late_events), 0);
    recover(trace);
    read_trace(trace, &found);
    assert_int_equal(found.allocs[1], 11);
    assert_true(found.in_order && found.closed);
}

static void *emit_for_ever(void *number)
{
    uint64_t thread = (uint64_t)(uintptr_t)number, i;

    for (i = 0;; i++)
        emit(thread, i, i % 1000 ? NULL : "thousand");
    return NULL;
}

static void *emit_some(void *number)
{
    emit_many((uint64_t)(uintptr_t)number, 0, 30000);
    return NULL;
}

static void start_threads(void *(*body)(void *), pthread_t *threads, uintptr_t count)
{
    uintptr_t i;

    for (i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, body, (void *)(i + 1)); /* NOLINT */
}

static void eight_threads(void)
{
    pthread_t threads[8];
    int i;

    start_threads(emit_some, threads, 8);
    for (i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
}

static void all_of_eight_threads(void **state)
{
    struct found found;
    int i;

    (void)state;
    clean();
    assert_int_equal(run_child(eight_threads), 0);
    recover(trace);
    read_trace(trace, &found);
    for (i = 1; i <= 8; i++)
        assert_int_equal(found.allocs[i], 30000);
    assert_int_equal(found.dropped, 0);
    assert_true(found.in_order && found.closed);
}

static void four_threads_for_ever(void)
{
    pthread_t threads[4];

    start_threads(emit_for_ever, threads, 4);
    pause();
}

static pid_t start_child(void (*body)(void))
{
    pid_t pid;

    memset(shared, 0, sizeof *shared);
    fflush(NULL);
    pid = fork();
    if (!pid) {
        body();
        _exit(0);
    }
    return pid;
}

/* Killed at random moments: nothing that was emitted is missing, but one event
 * a thread that was being written. */
static void survives_kill(void **state)
{
    unsigned seed = (unsigned)getpid(), round;

    (void)state;
    print_message("seed %u\n", seed);
    srand(seed);
    for (round = 0; round < 20; round++) {
        struct mt_recovery recovery;
        struct found found;
        pid_t pid;
        int i;
        clean();
        pid = start_child(four_threads_for_ever);
        while (!atomic_load(&shared->emitted[1]))
            usleep(1000);
        usleep((useconds_t)(rand() % 300000));
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        recovery = recover(trace);
        read_trace(trace, &found);
        for (i = 1; i <= 4; i++) {
            uint64_t emitted = atomic_load(&shared->emitted[i]);
            if (recovery.events_dropped)
                continue; /* the machine is too slow for this speed: counted, see below */
            assert_in_range(found.allocs[i], emitted, emitted + 1);
        }
        assert_true(recovery.events_missing <= 4 + 4);
        assert_int_equal(found.dropped, recovery.events_dropped + recovery.events_missing);
        assert_true((found.in_order || recovery.events_dropped) && found.closed);
    }
}

static void forks(void)
{
    pid_t pid;

    emit_many(1, 0, 100);
    pid = fork();
    if (!pid) {
        emit_many(2, 0, 50);
        exit(0);
    }
    waitpid(pid, NULL, 0);
    pid = fork();
    if (!pid)
        _exit(0); /* a worker that does nothing leaves nothing */
    waitpid(pid, NULL, 0);
    emit_many(1, 100, 200);
}

static void a_child_has_a_trace_of_its_own(void **state)
{
    char line[256], child[256] = "";
    struct found found;
    unsigned lines = 0;
    FILE *manifest;

    (void)state;
    clean();
    (void)!truncate(getenv("MEMTRACE_MANIFEST"), 0);
    assert_int_equal(run_child(forks), 0);
    manifest = fopen(getenv("MEMTRACE_MANIFEST"), "r");
    assert_non_null(manifest);
    while (fgets(line, sizeof line, manifest)) {
        line[strcspn(line, "\n")] = '\0';
        if (strcmp(line, trace))
            snprintf(child, sizeof child, "%s", line);
        lines++;
    }
    fclose(manifest);
    assert_int_equal(lines, 2);
    recover(trace);
    recover(child);
    read_trace(trace, &found);
    assert_int_equal(found.allocs[1], 200);
    assert_int_equal(found.allocs[2], 0);
    read_trace(child, &found);
    assert_int_equal(found.allocs[2], 50);
    assert_int_equal(found.allocs[1], 0);
}

static void forks_while_the_writer_works(void)
{
    int i, status = 0;

    slow = true;
    for (i = 0; i < 20 && !status; i++) {
        emit(1, (uint64_t)i, NULL);
        usleep((useconds_t)(rand() % 20000));
        if (!fork())
            _exit(atomic_load(&working));
        wait(&status);
    }
    _exit(status != 0);
}

/* What the writer holds at that moment (an allocator's lock) stays held in the child. */
static void a_fork_waits_for_the_writer(void **state)
{
    (void)state;
    clean();
    assert_int_equal(run_child(forks_while_the_writer_works), 0);
}

enum { OWN_FILES = 64 };

static int entries_in(const char *path)
{
    DIR *directory = opendir(path);
    int count = 0;

    while (directory && readdir(directory))
        count++;
    if (directory)
        closedir(directory);
    return count - 2;
}

/* In a bare clone: closes what it does not know, opens files, then its first event.
 * All of its files must be open and empty afterwards, and it must have no thread: to
 * start one could wait for a lock that a thread of the parent holds. */
static int use_files_and_emit(void)
{
    int fds[OWN_FILES], fd, i, bad = 0;
    char path[128];
    struct stat facts;

    for (fd = 3; fd < 4096; fd++)
        close(fd);
    for (i = 0; i < OWN_FILES; i++) {
        snprintf(path, sizeof path, "%s.own.%d", folder, i);
        fds[i] = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        fds[i] = fcntl(fds[i], F_DUPFD, 700 + i); /* where the recorder's were */
        unlink(path);
    }
    emit_many(2, 0, 50);
    for (i = 0; i < OWN_FILES; i++)
        bad += fstat(fds[i], &facts) || facts.st_size;
    return bad + (entries_in("/proc/self/task") != 1);
}

/* A fork that runs no handlers: the page tells. */
static void clones(void)
{
    int status;
    long pid;

    emit_many(1, 0, 100);
    pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (!pid)
        _exit(use_files_and_emit());
    waitpid((pid_t)pid, &status, 0);
    emit_many(1, 100, 200);
    atomic_store(&shared->emitted[3], (uint64_t)status);
}

static void a_bare_clone_is_left_alone(void **state)
{
    struct found found;

    (void)state;
    clean();
    assert_int_equal(run_child(clones), 0);
    assert_int_equal(atomic_load(&shared->emitted[3]), 0);
    recover(trace);
    read_trace(trace, &found);
    assert_int_equal(found.allocs[1], 200);
    assert_int_equal(found.allocs[2], 0);
    assert_true(found.in_order);
    assert_int_equal(entries_in(folder), 1); /* no trace of the child's */
}

/* The same before anything is recorded: there is no page yet. */
static void clones_first(void)
{
    int status;
    long pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

    if (!pid)
        _exit(use_files_and_emit());
    waitpid((pid_t)pid, &status, 0);
    atomic_store(&shared->emitted[3], (uint64_t)status);
}

static void an_early_bare_clone_is_left_alone(void **state)
{
    (void)state;
    clean();
    assert_int_equal(run_child(clones_first), 0);
    assert_int_equal(atomic_load(&shared->emitted[3]), 0);
    assert_int_equal(entries_in(folder), 0);
}

static void emit_in_handler(void)
{
    emit_many(2, 0, 10);
}

static void forks_with_a_handler(void)
{
    pid_t pid;

    pthread_atfork(NULL, NULL, emit_in_handler);
    emit_many(1, 0, 100);
    pid = fork();
    if (!pid)
        _exit(0);
    waitpid(pid, NULL, 0);
}

/* libc knows of this child, whichever handler comes first. */
static void events_of_a_fork_handler_are_recorded(void **state)
{
    (void)state;
    clean();
    assert_int_equal(run_child(forks_with_a_handler), 0);
    assert_int_equal(atomic_load(&shared->emitted[2]), 10);
    recover(trace);
    assert_int_equal(entries_in(folder), 3); /* its trace and its tape */
}

static sigjmp_buf back;

static void jump(int signal_number)
{
    (void)signal_number;
    emit(3, 0, NULL); /* inside another event: counted, not recorded */
    siglongjmp(back, 1);
}

static void nested(void)
{
    struct mt_raw_event event = {
        .addr = (uint64_t)1 << 48, .size_bytes = 1, .heap = MT_RAW_PYTORCH, .kind = MT_EVENT_ALLOC};

    signal(SIGUSR1, jump);
    if (!mt_collect_enter())
        return;
    if (!sigsetjmp(back, 1))
        raise(SIGUSR1);
    mt_collect_emit(&event);
    mt_collect_leave();
}

static void counts_what_is_nested(void **state)
{
    struct mt_recovery recovery;
    struct found found;

    (void)state;
    clean();
    assert_int_equal(run_child(nested), 0);
    recovery = recover(trace);
    read_trace(trace, &found);
    assert_int_equal(found.allocs[1], 1);
    assert_int_equal(found.allocs[3], 0);
    assert_int_equal(recovery.events_dropped, 1);
    assert_int_equal(found.dropped, 1);
}

static void leave(int signal_number)
{
    (void)signal_number;
    siglongjmp(back, 1);
}

/* Names of 16 KiB: most of the time is spent where the log is locked. */
static void define_and_leave(void)
{
    static char name[16384];
    const struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    volatile unsigned i;

    signal(SIGALRM, leave);
    if (!mt_collect_enter())
        return;
    memset(name, 'n', sizeof name);
    setitimer(ITIMER_REAL, &often, NULL);
    for (i = 0; i < 1000; i++) {
        memcpy(name, (const void *)&i, sizeof i);
        if (!sigsetjmp(back, 1))
            (void)mt_collect_name(name, sizeof name);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    mt_collect_leave();
}

static void *define_one(void *unused)
{
    (void)unused;
    emit(4, 0, "a name that is new");
    return NULL;
}

static void defines_after_leaving(void)
{
    pthread_t thread;

    define_and_leave();
    signal(SIGALRM, SIG_DFL);
    alarm(20); /* the end of who waits for the lock */
    pthread_create(&thread, NULL, define_one, NULL);
    pthread_join(thread, NULL);
    _exit(0); /* nobody waits for the writer: recover reads the names */
}

/* The program's handler leaves by longjmp in the middle of a definition. */
static void no_handler_leaves_the_names_locked(void **state)
{
    struct found found;

#ifdef __SANITIZE_THREAD__
    skip(); /* it delays signals until a thread blocks, so that the handler never runs */
#endif
    (void)state;
    clean();
    assert_int_equal(run_child(defines_after_leaving), 0);
    recover(trace);
    read_trace(trace, &found);
    assert_int_equal(found.allocs[4], 1);
}

static void no_room(void)
{
    const struct rlimit limit = {1 << 20, 1 << 20};

    setrlimit(RLIMIT_FSIZE, &limit);
    emit_many(1, 0, 10);
    assert_false(mt_collect_is_running());
}

static void a_full_disk_leaves_the_program_alone(void **state)
{
    struct stat facts;

    (void)state;
    clean();
    assert_int_equal(run_child(no_room), 0);
    assert_int_equal(stat(trace, &facts), -1);
    assert_false(mt_recover_is_needed(trace));
}

static void becomes_full(void)
{
    emit_many(1, 0, 1000);
    usleep(300000);
    /* the tape keeps its room; the trace gets none from here on */
    const struct rlimit limit = {4096, 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    emit_many(1, 1000, 90001);
    usleep(500000);
    emit_many(1, 90001, 90101);
    assert_false(mt_collect_is_running());
}

/* The trace stops growing, the program goes on, and the tape knows the rest. */
static void a_disk_that_becomes_full_is_counted(void **state)
{
    struct mt_recovery recovery;
    struct found found;

    (void)state;
    clean();
    assert_int_equal(run_child(becomes_full), 0);
    recovery = recover(trace);
    read_trace(trace, &found);
    assert_int_equal(found.allocs[1] + found.marks + recovery.events_dropped, 90101 + 91);
    assert_true(recovery.events_dropped >= 100);
    assert_int_equal(found.dropped, recovery.events_dropped);
}

/* The disk of the trace, full or not, for the child that runs in this program. */
static _Atomic bool disk_is_full;

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset)
{
    if (atomic_load(&disk_is_full)) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_pwrite64, fd, bytes, length, offset);
}

static uint64_t milliseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

#ifdef __SANITIZE_THREAD__
enum { SLOWER = 3 };
#else
enum { SLOWER = 1 };
#endif

/* 600,000 events are more than the tape holds (32 MiB). */
static void is_full_for_a_while(void)
{
    uint64_t before;

    emit_many(1, 0, 1000);
    usleep(300000);
    atomic_store(&disk_is_full, true);
    emit_many(1, 1000, 2000);
    usleep(300000); /* the writer has seen it */
    before = milliseconds();
    emit_many(1, 2000, 600001);
    /* a thread that waited for each of the 150 slots that are missing would take 30 s, and
     * with ThreadSanitizer longer */
    assert_true(milliseconds() - before < 10000 * SLOWER);
    assert_true(mt_collect_is_running());
    atomic_store(&disk_is_full, false);
    usleep(500000);
    emit_many(1, 600001, 600101);
}

/* Recording goes on after the disk got room, and what was lost is counted in the trace. */
static void a_disk_that_is_full_for_a_while(void **state)
{
    struct found found;

    (void)state;
    clean();
    assert_int_equal(run_child(is_full_for_a_while), 0);
    (void)recover(trace);
    read_trace(trace, &found);
    assert_true(found.closed);
    assert_true(found.dropped > 0);
    assert_int_equal(found.allocs[1] + found.marks + found.dropped, 600101 + 601);
    assert_int_equal(found.last[1], 600101);
}

static void is_full_at_the_end(void)
{
    emit_many(1, 0, 1000);
    usleep(300000);
    atomic_store(&disk_is_full, true);
    emit_many(1, 1000, 5000);
    usleep(300000);
}

/* Nobody waits for the process: the tape stays, because it alone holds the rest. */
static void a_disk_that_is_full_at_the_end(void **state)
{
    struct mt_recovery recovery;
    struct found found;

    (void)state;
    clean();
    assert_int_equal(run_child(is_full_at_the_end), 0);
    assert_true(mt_recover_is_needed(trace));
    recovery = recover(trace);
    read_trace(trace, &found);
    assert_int_equal(recovery.events_dropped, 0);
    assert_int_equal(found.allocs[1], 5000);
    assert_true(found.in_order);
}

static void refuses_a_living_process(void **state)
{
    struct mt_recovery recovery;
    struct mt_error error = {0};
    pid_t pid;

    (void)state;
    clean();
    pid = start_child(four_threads_for_ever);
    while (!atomic_load(&shared->emitted[1]))
        usleep(1000);
    usleep(50000);
    assert_int_equal(mt_recover(trace, NULL, &recovery, &error), MT_ERR_USAGE);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    recover(trace);
}

/* Four bytes of the tape become others; whatever happens, nothing crashes, and
 * a trace that is made can be read. */
static void recover_damaged(int tape_fd, off_t offset)
{
    const uint32_t noise = 0xFFFFFFF0u;
    char tape[160], kept_tape[192], command[1024];
    struct mt_recovery recovery;
    struct mt_error error = {0};
    struct found found;
    uint32_t before;

    snprintf(tape, sizeof tape, "%s%s", trace, MT_TAPE_SUFFIX);
    snprintf(kept_tape, sizeof kept_tape, "%s.kept", tape);
    snprintf(command, sizeof command, "cp %s.kept %s", trace, trace);
    assert_int_equal(system(command), 0);
    assert_int_equal(link(kept_tape, tape), 0);
    assert_int_equal(pread(tape_fd, &before, sizeof before, offset), sizeof before);
    assert_int_equal(pwrite(tape_fd, &noise, sizeof noise, offset), sizeof noise);
    if (mt_recover(trace, NULL, &recovery, &error) == MT_OK)
        read_trace(trace, &found);
    unlink(tape);
    assert_int_equal(pwrite(tape_fd, &before, sizeof before, offset), sizeof before);
}

static void damaged_tapes_do_no_harm(void **state)
{
    char kept_tape[192], kept_trace[192], tape[160];
    struct mt_tape header;
    off_t offset;
    int fd;

#ifdef __SANITIZE_THREAD__
    skip(); /* one thread does all of it, for ten minutes */
#endif
    (void)state;
    clean();
    assert_int_equal(run_child(ends_abruptly), 0);
    snprintf(tape, sizeof tape, "%s%s", trace, MT_TAPE_SUFFIX);
    snprintf(kept_tape, sizeof kept_tape, "%s.kept", tape);
    snprintf(kept_trace, sizeof kept_trace, "%s.kept", trace);
    assert_int_equal(rename(tape, kept_tape), 0);
    assert_int_equal(rename(trace, kept_trace), 0);
    fd = open(kept_tape, O_RDWR);
    assert_int_equal(pread(fd, &header, sizeof header, 0), sizeof header);
    for (offset = 0; offset < (off_t)sizeof header; offset += 4)
        recover_damaged(fd, offset);
    for (offset = 0; offset < 256; offset += 4)
        recover_damaged(fd, (off_t)header.slots_offset + offset);
    for (offset = 0; offset < 256; offset += 4)
        recover_damaged(fd, (off_t)header.definitions_offset + offset);
    close(fd);
}

static int set_up(void **state)
{
    (void)state;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED;
}

/* The settings are read before main: so this program runs itself again. */
static void run_again(char **argv)
{
    char manifest[160];
    FILE *file;

    snprintf(folder, sizeof folder, "/tmp/test_collect.XXXXXX");
    if (!mkdtemp(folder))
        exit(1);
    snprintf(trace, sizeof trace, "%s/run.trace.zst", folder);
    snprintf(manifest, sizeof manifest, "%s.manifest", folder);
    file = fopen(manifest, "w");
    if (!file || flock(fileno(file), LOCK_EX)) /* as memtrace record does, until it ends */
        exit(1);
    setenv("MEMTRACE_OUTPUT", trace, 1);
    setenv("MEMTRACE_MANIFEST", manifest, 1);
    setenv("MEMTRACE_QUIET", "1", 1);
    setenv("TEST_COLLECT_FOLDER", folder, 1);
    execv("/proc/self/exe", argv);
    exit(1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_in_order),
        cmocka_unit_test(survives_underscore_exit),
        cmocka_unit_test(times_of_a_short_life),
        cmocka_unit_test(keeps_what_comes_late),
        cmocka_unit_test(all_of_eight_threads),
        cmocka_unit_test(survives_kill),
        cmocka_unit_test(a_child_has_a_trace_of_its_own),
        cmocka_unit_test(a_fork_waits_for_the_writer),
        cmocka_unit_test(a_bare_clone_is_left_alone),
        cmocka_unit_test(an_early_bare_clone_is_left_alone),
        cmocka_unit_test(events_of_a_fork_handler_are_recorded),
        cmocka_unit_test(counts_what_is_nested),
        cmocka_unit_test(no_handler_leaves_the_names_locked),
        cmocka_unit_test(a_full_disk_leaves_the_program_alone),
        cmocka_unit_test(a_disk_that_becomes_full_is_counted),
        cmocka_unit_test(a_disk_that_is_full_for_a_while),
        cmocka_unit_test(a_disk_that_is_full_at_the_end),
        cmocka_unit_test(refuses_a_living_process),
        cmocka_unit_test(damaged_tapes_do_no_harm),
    };
    int failed;
    char command[160];

    if (!getenv("TEST_COLLECT_FOLDER"))
        run_again(argv);
    snprintf(folder, sizeof folder, "%s", getenv("TEST_COLLECT_FOLDER"));
    snprintf(trace, sizeof trace, "%s", getenv("MEMTRACE_OUTPUT"));
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    failed = cmocka_run_group_tests(tests, set_up, NULL);
    snprintf(command, sizeof command, "rm -rf %s %s.manifest", folder, folder);
    return system(command) || failed;
}
