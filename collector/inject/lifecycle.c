/* The start of the collector, its behavior in a forked child, and its end. Until the first event,
 * only its settings exist in a process. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "collect.h"
#include "collect_message.h"
#include "core.h"
#include "foreign_text.h"
#include "header.h"
#include "inject_source.h"
#include "io.h"
#include "monotonic_clock.h"
#include "own_file.h"
#include "run_identity.h"
#include "ring.h"
#include "run_names.h"
#include "settings.h"
#include "tape_file.h"
#include "torch_parts.h"

/* Functions for a program that records itself. It loads this library with MEMTRACE_OUTPUT set,
 * before it starts CUDA (python/memtrace/recording.py). The functions are found by dlsym;
 * docs/internals/recorder.md describes them for programs. */

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int memtrace_begin(void);
EXPORTED int memtrace_end(void);

enum { BEGUN, BEGUN_WITHOUT_PYTORCH, NOT_BEGUN = -1 };
enum { ENDED, ENDED_WITHOUT_TRACE, NOT_ENDED = -1 };

/* A PyTorch that is already loaded calls its own functions, not those that this library exports
 * under the same names. So nothing would report that it starts CUDA. */
static bool meet_loaded_pytorch(void)
{
    /* it depends on all libraries whose functions are needed */
    void *library = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
    bool is_recorded = !library || mt_torch_allocator_meet(library, false);

    if (library)
        dlclose(library);
    return is_recorded;
}

/* Call it once after loading, before CUDA starts. Returns 0, 1 if the blocks of the PyTorch that is
 * already loaded cannot be recorded, or -1 if this process is not recorded or already is. */
int memtrace_begin(void)
{
    if (!mt_recorder_settings->asked || atomic_load(&mt_core.state) != MT_CORE_NEW)
        return NOT_BEGUN;
    return meet_loaded_pytorch() ? BEGUN : BEGUN_WITHOUT_PYTORCH;
}

/* Closes the trace. Nothing is recorded in this process afterwards. Call it while no other thread
 * uses the GPU. Returns 0 if the trace is complete, 1 if there is none, because nothing was
 * recorded, or -1 if it is closed later: by `memtrace record`, or by `memtrace recover` from the
 * tape. */
int memtrace_end(void)
{
    switch (mt_lifecycle_end()) {
    case MT_EARLY_END_WHOLE: return ENDED;
    case MT_EARLY_END_NOTHING: return ENDED_WITHOUT_TRACE;
    case MT_EARLY_END_REFUSED: break;
    }
    return NOT_ENDED;
}

/* Chooses the file to which a process records. If another process of the run has taken the name,
 * this process's number is added. A process that execs gets a second file. */

enum { MAX_TRIES = 100, FIRST_DEFINITION_BYTES = 4 << 20 };

/* The path of attempt 0, 1, 2, ... Returns false if it is too long. */
static bool name_trace(unsigned attempt)
{
    const char *output = mt_recorder_settings->output;
    size_t length = strlen(output), stem = mt_trace_stem_length(output);
    char *path = mt_core.trace_path, host[128], rank[32] = "", again[32] = "";
    int written;

    if (attempt > 1 || (attempt && output[length - 1] == '/'))
        (void)snprintf(again, sizeof again, "-%u",
                       output[length - 1] == '/' ? attempt + 1 : attempt);
    if (output[length - 1] == '/') {
        long number = mt_run_ranks().rank;
        mt_run_host(host, sizeof host);
        if (number >= 0)
            (void)snprintf(rank, sizeof rank, "-rank%ld", number);
        written = snprintf(path, sizeof mt_core.trace_path, "%s%s-%ld%s%s.trace.zst", output, host,
                           (long)getpid(), rank, again);
    } else if (!attempt) {
        written = snprintf(path, sizeof mt_core.trace_path, "%s", output);
    } else {
        written = snprintf(path, sizeof mt_core.trace_path, "%.*s-%ld%s%s", (int)stem, output,
                           (long)getpid(), again, output + stem);
    }
    if (written < 0 || (size_t)written >= sizeof mt_core.trace_path)
        return false;
    (void)snprintf(mt_core.tape_path, sizeof mt_core.tape_path, "%s%s", path, MT_TAPE_SUFFIX);
    return mt_ring_part_path(path, 1, mt_core.part_path, sizeof mt_core.part_path);
}

/* A message is cut at the end of its line, so the command has a line of its own. */
static void say_unlisted(const char *manifest, int why)
{
    bool said[2] = {false, false}; /* a process lists its trace once; a child has its own trace */
    char trace[MT_COLLECT_LINE_BYTES - 64];
    struct mt_buf word = {.data = trace, .capacity = sizeof trace, .is_fixed = true};

    mt_collect_message(&said[0], "cannot write '%s': %s", manifest, strerror(why));
    mt_buf_add_shell_path(&word, mt_core.trace_path);
    mt_collect_message(&said[1], "when the program has ended, run: memtrace recover %s",
                       word.failed ? "TRACE" : trace);
}

/* `memtrace record` learns from the manifest which traces exist. The line begins with a newline,
 * because the previous line may be truncated. If the manifest is gone, `memtrace record` has ended
 * and nothing reads it. The name comes from the environment: another file is not changed, and a
 * pipe does not block. */
static void tell_manifest(void)
{
    const char *manifest = mt_recorder_settings->manifest;
    char line[sizeof mt_core.trace_path + 2];

    if (!manifest[0])
        return;
    int fd = mt_io_open(manifest, O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0) {
        if (errno != ENOENT && errno != ELOOP)
            say_unlisted(manifest, errno);
        return;
    }
    int length = snprintf(line, sizeof line, "\n%s\n", mt_core.trace_path);
    if (mt_manifest_is_mine(fd, manifest)) {
        if (mt_manifest_has_line(fd, MT_MANIFEST_BEGUN))
            mt_core.tape->commits[0].began_t_ns = 0;
        else if (mt_manifest_has_line(fd, MT_MANIFEST_STOPPED))
            atomic_store(&mt_core.tape->asked, MT_ASK_STOP);
        if (!mt_io_write(fd, line, (size_t)length))
            say_unlisted(manifest, errno);
    }
    (void)mt_io_close(fd);
}

/* A name is taken if its trace exists, or if its tape is a file that must not be removed. */
static bool open_trace(void)
{
    struct stat facts;

    for (unsigned attempt = 0; attempt < MAX_TRIES; attempt++) {
        if (!name_trace(attempt)) {
            errno = ENAMETOOLONG;
            return false;
        }
        if (mt_own_file_create(&mt_core.trace_file, mt_core.trace_path)) {
            const bool had_tape = lstat(mt_core.tape_path, &facts) == 0; /* of a deleted trace */
            if (mt_tape_make_way(mt_core.tape_path) &&
                (!mt_recorder_settings->ring_seconds ||
                 mt_ring_make_way(mt_core.trace_path, had_tape)))
                return true;
            mt_own_file_remove(&mt_core.trace_file);
            errno = EEXIST;
        }
        if (errno != EEXIST)
            return false;
    }
    return false;
}

static bool make_tape(struct mt_error *error)
{
    uint32_t slots = mt_recorder_settings->arena_mib * (uint32_t)((1u << 20) / MT_SLOT_BYTES);
    struct mt_tape *tape;

    if (mt_tape_create(mt_core.tape_path, slots, &tape, &mt_core.tape_file, error) != MT_OK)
        return false;
    mt_tape_set_trace(tape, &mt_core.trace_file);
    tape->ring_ns = mt_recorder_settings->ring_seconds * UINT64_C(1000000000);
    tape->commits[0].began_t_ns = mt_recorder_settings->idle ? MT_TAPE_IDLE : 0;
    tape->ring_above_bytes = mt_recorder_settings->ring_above_bytes;
    if (mt_tape_reserve_definitions(&mt_core.tape_file, tape, FIRST_DEFINITION_BYTES))
        atomic_store(&tape->definitions_reserved, FIRST_DEFINITION_BYTES);
    mt_core.tape = tape;
    return true;
}

/* Names and creates the trace (mt_core.trace_path, trace_file) and its tape, and adds the trace to
 * the manifest. On failure prints one line for the user and returns false. */
static bool trace_file_create(void)
{
    struct mt_error error = {0};
    static bool said;

    if (!open_trace()) {
        mt_collect_message(&said, "cannot write '%s': %s; nothing is recorded", mt_core.trace_path,
                           strerror(errno));
        return false;
    }
    if (!make_tape(&error)) {
        mt_collect_message(&said, "cannot write '%s': %s; nothing is recorded", mt_core.tape_path,
                           error.text);
        mt_own_file_remove(&mt_core.trace_file);
        return false;
    }
    tell_manifest();
    return true;
}

/* Records the exit status in the trace's header if the process ends by exit or by returning from
 * main. The handler is registered after main has started: a handler from the library's constructor
 * would run after the library's own end (process_ends). For other ends the parent process records
 * the status: collector/record. */

static void note(int status, void *unused)
{
    char text[MT_ENDING_TEXT], time[32];

    (void)unused;
    if (!mt_collect_is_running() || mt_core.process != getpid() || !mt_collect_enter())
        return;
    (void)snprintf(time, sizeof time, "%llu", (unsigned long long)mt_unix_ns());
    mt_collect_fact("ended", mt_ending_text(MT_ENDED_EXIT, status & 0xFF, text));
    mt_collect_fact("ended_t_ns", time);
    mt_collect_leave();
}

/* Call it when the collector starts; later calls do nothing. A forked child inherits the parent's
 * handlers. */
static void exit_note_begin(void)
{
    static bool registered;

    if (!registered)
        registered = on_exit(note, NULL) == 0;
}

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

    sigfillset(&all);
    sigemptyset(&file_size);
    sigaddset(&file_size, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    bool done = trace_file_create();
    if (!done && !sigismember(&before, SIGXFSZ))
        (void)sigtimedwait(&file_size, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return done;
}

static bool start(void)
{
    static bool said;

    if (!mt_recorder_settings->asked ||
        (!mt_recorder_settings->follow && (uint32_t)getpid() != mt_recorder_settings->root_process))
        return false;
    mt_clock_start(&mt_core.clock);
    struct mt_clock_point first = mt_clock_now(&mt_core.clock);
    if (!mt_thread_key_make() || (!mt_core.generation_page && !make_generation_page()) ||
        !create_files())
        return false;
    atomic_store(&mt_core.is_idle, mt_core.tape->commits[0].began_t_ns == MT_TAPE_IDLE);
    /* two points of the start, which must suffice if the process dies before the writer takes
     * another one; creating the files took about a millisecond */
    mt_core.tape->first_point = first;
    mt_core.tape->last_points[0] = mt_clock_now(&mt_core.clock);
    mt_core.tape->started_unix_ns = mt_core.tape->last_points[0].unix_ns;
    atomic_store(mt_core.generation_page, ++mt_core.last_generation);
    mt_core.generation = mt_core.generation_page;
    mt_run_facts();
    exit_note_begin();
    if (mt_writer_thread_start())
        return true;
    mt_collect_message(&said, "cannot start a thread: nothing is recorded");
    return false;
}

static bool start_once(void)
{
    int state = MT_CORE_NEW;

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
    for (uint64_t start_ns = mt_now_ns(); state == MT_CORE_STARTING;
         state = atomic_load(&mt_core.state)) {
        if (mt_now_ns() - start_ns > MAX_START_WAIT_NS)
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
    if (state == MT_CORE_NEW || state == MT_CORE_OFF)
        return;
    detach_tape();
    mt_own_file_close(&mt_core.tape_file);
    mt_own_file_close(&mt_core.trace_file);
    mt_core.before_file = MT_OWN_FILE_NONE;
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
    atomic_store(&mt_core.state, mt_recorder_settings->follow ? MT_CORE_NEW : MT_CORE_OFF);
    errno = saved;
}

/* In a bare clone the tape belongs to the parent, and the descriptors may have been reused, so
 * nothing is touched. */
static void leave_alone(void)
{
    static bool said;

    atomic_store(&mt_core.state, MT_CORE_OFF);
    mt_core_forget_generation();
    mt_collect_message(&said, "process %ld was made by clone() without fork(): it is not recorded",
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
 * locks its list of traces. A process that finds the list unlocked removes it, unless the list
 * lets processes that start later begin. The name comes from the environment, so it may be that of
 * any file. */
static bool launcher_waits(void)
{
    const char *list = mt_recorder_settings->manifest;
    bool waits = false;

    if (!list[0])
        return false;
    int fd = open(list, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (mt_manifest_is_mine(fd, list)) { /* else this trace is not listed there */
        waits = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        if (!waits) {
            if (!mt_manifest_has_line(fd, MT_MANIFEST_BEGUN))
                mt_manifest_remove(fd, AT_FDCWD, list);
            remove_claim();
        }
    }
    close(fd);
    return waits;
}

/* Closes the trace. Returns false if a part of it is only on the tape (a full disk), or if a ring
 * has several parts, which takes the tape and too long for the end of a process to put together. */
static bool close_trace(void)
{
    mt_writer_thread_finish();
    return atomic_load(&mt_core.tape->closed) && !mt_tape_last_commit(mt_core.tape)->part;
}

static void leave_tape(void)
{
    atomic_store(&mt_core.state, MT_CORE_OFF);
    atomic_store(mt_core.generation_page, 0);
    mt_own_file_remove(&mt_core.tape_file);
}

/* Returns true if this process has a trace that can still be closed. */
static bool has_open_trace(void)
{
    const int state = atomic_load(&mt_core.state);

    return state == MT_CORE_STOPPED ? mt_core.process == getpid()
                                    : state == MT_CORE_RUNNING && mt_collect_is_running();
}

enum mt_early_end mt_lifecycle_end(void)
{
    int unused = MT_CORE_NEW;

    if (atomic_compare_exchange_strong(&mt_core.state, &unused, MT_CORE_OFF) ||
        atomic_load(&mt_core.state) == MT_CORE_OFF)
        return MT_EARLY_END_NOTHING;
    if (!has_open_trace() || launcher_waits() || !close_trace())
        return MT_EARLY_END_REFUSED;
    leave_tape();
    return MT_EARLY_END_WHOLE;
}

/* Runs at exit. Later events (the end of the driver) stay on the tape, and `memtrace record` adds
 * them. Without `memtrace record` (it does not wait for this process, or was killed), a trace with
 * an end record is final. */
__attribute__((destructor)) static void process_ends(void)
{
    if (!has_open_trace())
        return;
    bool is_closed = close_trace();
    if (!launcher_waits() && is_closed) /* in any case, a list that nobody needs is removed */
        leave_tape();
}
