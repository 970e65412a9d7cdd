/* Recording across forks, clones and signal handlers that leave in the middle. */
#include "collect_bench.h"

static void forks(void)
{
    emit_many(1, 0, 100);
    pid_t pid = fork();
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

TEST(a_child_has_a_trace_of_its_own)
{
    char line[256], child[256] = "";
    struct found found;
    unsigned lines = 0;

    clean();
    (void)!truncate(getenv("MEMTRACE_MANIFEST"), (off_t)strlen(MT_MANIFEST_FIRST_LINE));
    assert_int_equal(run_child(forks), 0);
    FILE *manifest = fopen(getenv("MEMTRACE_MANIFEST"), "r");
    assert_non_null(manifest);
    while (fgets(line, sizeof line, manifest)) {
        line[strcspn(line, "\n")] = '\0';
        if (!*line || *line == '#')
            continue;
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
TEST(a_fork_waits_for_the_writer)
{
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

    emit_many(1, 0, 100);
    long pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (!pid)
        _exit(use_files_and_emit());
    waitpid((pid_t)pid, &status, 0);
    emit_many(1, 100, 200);
    atomic_store(&shared->emitted[3], (uint64_t)status);
}

TEST(a_bare_clone_is_left_alone)
{
    struct found found;

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

TEST(an_early_bare_clone_is_left_alone)
{
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
    pthread_atfork(NULL, NULL, emit_in_handler);
    emit_many(1, 0, 100);
    pid_t pid = fork();
    if (!pid)
        _exit(0);
    waitpid(pid, NULL, 0);
}

/* libc knows of this child, whichever handler comes first. */
TEST(events_of_a_fork_handler_are_recorded)
{
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

TEST(counts_what_is_nested)
{
    struct found found;

    clean();
    assert_int_equal(run_child(nested), 0);
    struct mt_recovery recovery = recover(trace);
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
TEST(no_handler_leaves_the_names_locked)
{
    struct found found;

#ifdef __SANITIZE_THREAD__
    skip(); /* it delays signals until a thread blocks, so that the handler never runs */
#endif
    clean();
    assert_int_equal(run_child(defines_after_leaving), 0);
    recover(trace);
    read_trace(trace, &found);
    assert_int_equal(found.allocs[4], 1);
}

int main(int argc, char **argv)
{
    bench_begin(argc, argv);
    return bench_end(run_tests_of_file(set_up, NULL));
}
