/* The start of the collector, its behavior in a forked child, and its end. Until the first event,
 * only its settings exist in a process. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collect.h"
#include "core.h"
#include "exit_note.h"
#include "inject_source.h"
#include "own_file.h"
#include "settings.h"
#include "trace_claim.h"

enum { MAX_START_WAIT_NS = 2000000000 };

/* This thread is in libc's fork, so fork handlers will run. */
static _Thread_local bool forking;

static void fork_begins(void)
{
    forking = true;
    mt_writer_thread_pause();
}

static void fork_ends(void)
{
    mt_writer_thread_resume();
    forking = false;
}

/* Returns true if this is a child that libc did not create (a bare clone). Threads that do not
 * exist in the child may hold its locks, so starting a thread could wait forever. */
static bool is_bare_clone(void)
{
    return !forking && mt_core.process != getpid();
}

/* Kernels before 4.14 lack MADV_WIPEONFORK. The fork handlers suffice there. */
static bool make_generation_page(void)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        return false;
    (void)madvise(page, page_bytes, MADV_WIPEONFORK);
    mt_core.generation_page = page;
    return true;
}

/* If the file size limit is exceeded, the kernel sends SIGXFSZ. The program must not receive it. */
static bool create_files(void)
{
    const struct timespec now = {0, 0};
    sigset_t all, before, file_size;
    bool done;

    sigfillset(&all);
    sigemptyset(&file_size);
    sigaddset(&file_size, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    done = mt_trace_file_create();
    if (!done && !sigismember(&before, SIGXFSZ))
        (void)sigtimedwait(&file_size, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return done;
}

static bool start(void)
{
    static bool said;
    struct mt_clock_point first;

    if (!mt_recorder_settings->asked ||
        (!mt_recorder_settings->follow && (uint32_t)getpid() != mt_recorder_settings->root_process))
        return false;
    mt_clock_start(&mt_core.clock);
    first = mt_clock_now(&mt_core.clock);
    if (!mt_thread_key_make() || (!mt_core.generation_page && !make_generation_page()) ||
        !create_files())
        return false;
    /* two points of the start, which must suffice if the process dies before the writer takes
     * another one; creating the files took about a millisecond */
    mt_core.tape->first_point = first;
    mt_core.tape->last_points[0] = mt_clock_now(&mt_core.clock);
    mt_core.tape->started_unix_ns = mt_core.tape->last_points[0].unix_ns;
    atomic_store(mt_core.generation_page, ++mt_core.last_generation);
    mt_core.generation = mt_core.generation_page;
    mt_run_facts();
    mt_exit_note_begin();
    if (mt_writer_thread_start())
        return true;
    mt_collect_say(&said, "cannot start a thread: nothing is recorded");
    return false;
}

static bool start_once(void)
{
    uint64_t start_ns;
    int state = MT_CORE_IDLE;

    /* the state is kept: the memory may be shared with the parent (vfork) */
    if (is_bare_clone())
        return false;
    if (atomic_compare_exchange_strong(&mt_core.state, &state, MT_CORE_STARTING)) {
        bool started = start();
        int starting = MT_CORE_STARTING; /* the writer may have failed already */
        (void)atomic_compare_exchange_strong(&mt_core.state, &starting,
                                             started ? MT_CORE_RUNNING : MT_CORE_OFF);
        return started;
    }
    for (start_ns = mt_monotonic_ns(); state == MT_CORE_STARTING;
         state = atomic_load(&mt_core.state)) {
        if (mt_monotonic_ns() - start_ns > MAX_START_WAIT_NS)
            return false;
        sched_yield();
    }
    return state == MT_CORE_RUNNING;
}

/* Redirects late writes of the child to private memory instead of the tape. */
static void detach_tape(void)
{
    if (mt_core.tape)
        (void)mmap(mt_core.tape, mt_core.tape->file_bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    mt_core.tape = NULL;
}

/* Fork handler of the child: drops the parent's recording. */
static void forget_parent(void)
{
    const struct mt_inject_source *const *source;
    int state = atomic_load(&mt_core.state), saved = errno;

    mt_core.process = getpid();
    if (state == MT_CORE_IDLE || state == MT_CORE_OFF)
        return;
    detach_tape();
    mt_own_file_close(&mt_core.tape_file);
    mt_own_file_close(&mt_core.trace_file);
    mt_writer_thread_forget();
    atomic_store(&mt_core.stop, false);
    if (mt_core.generation_page)
        atomic_store(mt_core.generation_page, 0);
    mt_core_forget_generation();
    mt_thread_forget();
    mt_intern_forget();
    for (source = mt_core.sources; *source; source++)
        if ((*source)->forked)
            (*source)->forked();
    atomic_store(&mt_core.state, mt_recorder_settings->follow ? MT_CORE_IDLE : MT_CORE_OFF);
    errno = saved;
}

/* In a bare clone the tape belongs to the parent, and the descriptors may have been reused, so
 * nothing is touched. */
static void leave_alone(void)
{
    static bool said;

    atomic_store(&mt_core.state, MT_CORE_OFF);
    mt_core_forget_generation();
    mt_collect_say(&said, "process %ld was made by clone() without fork(): it is not recorded",
                   (long)getpid());
}

/* A fork handler of the program that runs before this library's may already emit events. */
static void found_forked(void)
{
    if (is_bare_clone())
        leave_alone();
    else
        forget_parent();
}

static void fork_ends_in_child(void)
{
    forget_parent();
    mt_writer_thread_resume_in_child();
    forking = false;
}

/* Runs before the program registers fork handlers, so this handler is the first in a child. */
__attribute__((constructor)) static void begin(void)
{
    mt_core.process = getpid();
    mt_core.start = start_once;
    mt_core.found_forked = found_forked;
    (void)pthread_atfork(fork_begins, fork_ends, fork_ends_in_child);
}

/* Removes what reserved the name of the trace for a `memtrace record` that was killed. */
static void remove_claim(void)
{
    const char *output = mt_recorder_settings->output;
    struct mt_error error = {0};
    struct mt_trace_claim claim;
    bool is_ours;

    if (output[strlen(output) - 1] != '/' &&
        mt_trace_claim_take(&claim, output, NULL, &is_ours, &error) == MT_OK)
        mt_trace_claim_release(&claim);
}

/* Returns true if `memtrace record` will complete this trace. While `memtrace record` runs, it
 * locks its list of traces. A process that finds the list unlocked removes it. The name comes from
 * the environment, so it may be that of any file. */
static bool launcher_waits(void)
{
    const char *list = mt_recorder_settings->manifest;
    bool waits = false;
    int fd;

    if (!list[0])
        return false;
    fd = open(list, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (mt_manifest_is_mine(fd, list)) { /* else this trace is not listed there */
        waits = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        if (!waits) {
            mt_manifest_remove(fd, AT_FDCWD, list);
            remove_claim();
        }
    }
    close(fd);
    return waits;
}

/* Closes the trace. Returns false if a part of it is only on the tape (a full disk). */
static bool close_trace(void)
{
    mt_writer_thread_finish();
    return atomic_load(&mt_core.tape->closed);
}

static void leave_tape(void)
{
    atomic_store(&mt_core.state, MT_CORE_OFF);
    atomic_store(mt_core.generation_page, 0);
    mt_own_file_remove(&mt_core.tape_file);
}

enum mt_early_end mt_lifecycle_end(void)
{
    int idle = MT_CORE_IDLE;

    if (atomic_compare_exchange_strong(&mt_core.state, &idle, MT_CORE_OFF) ||
        atomic_load(&mt_core.state) == MT_CORE_OFF)
        return MT_EARLY_END_NOTHING;
    if (atomic_load(&mt_core.state) != MT_CORE_RUNNING || !mt_collect_is_running() ||
        launcher_waits() || !close_trace())
        return MT_EARLY_END_REFUSED;
    leave_tape();
    return MT_EARLY_END_WHOLE;
}

/* Runs at exit. Later events (the end of the driver) stay on the tape, and `memtrace record` adds
 * them. Without `memtrace record` (it does not wait for this process, or was killed), a trace with
 * an end record is final. */
__attribute__((destructor)) static void process_ends(void)
{
    if (atomic_load(&mt_core.state) != MT_CORE_RUNNING || !mt_collect_is_running())
        return;
    if (close_trace() && !launcher_waits())
        leave_tape();
}
