/* The only thread of the collector: polls the sources, drains the tape into the trace, and returns
 * the slots. All slow work is done here. */
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collect.h"
#include "core.h"
#include "drain.h"
#include "settings.h"
#include "inject_source.h"
#include "tape_file.h"
#include "zstd_library.h"

enum {
    COMPRESSION_LEVEL = 1,
    DEFINITION_RESERVE = 4 << 20,
    STACK_BYTES = 1 << 20,
    MAX_FINISH_SECONDS = 5,
    MAX_PAUSE_NS = 999999999
};
#define GIVE_UP_NS UINT64_C(2000000000) /* for a thread that does not commit */

struct job {
    struct mt_symbols symbols;
    struct mt_drain *drain;
    struct mt_writer *writer;
    uint64_t stuck_since_ns; /* 0 = not stuck */
    bool ring_grows;         /* told: no new file could be created once */
};

static struct timespec in_ns(long ns)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until); /* the clock of sem_timedwait */
    until.tv_nsec += ns;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return until;
}

static bool take_until(sem_t *semaphore, struct timespec until)
{
    int failed;

    do
        failed = sem_timedwait(semaphore, &until);
    while (failed && errno == EINTR);
    return !failed;
}

static void let_forks_begin(void)
{
    int value = 0;

    if (!sem_getvalue(&mt_core.writer_sleeps, &value) && !value)
        (void)sem_post(&mt_core.writer_sleeps);
}

/* The wait is bounded: a thread that left fork with longjmp, in a signal handler, never returns
 * it. */
static void go_on(void)
{
    (void)take_until(&mt_core.writer_sleeps, in_ns(MAX_PAUSE_NS));
}

static void sleep_until_woken(void)
{
    const struct timespec most = {0, (long)mt_recorder_settings->flush_ms * 1000000L};

    let_forks_begin();
    if (!atomic_load(&mt_core.wake))
        (void)syscall(SYS_futex, &mt_core.wake, FUTEX_WAIT_PRIVATE, 0, &most, NULL, 0);
    go_on();
    atomic_store(&mt_core.wake, 0);
    atomic_store(&mt_core.full_slots, 0);
}

/* A signal handler of the program may fork while the interrupted thread forks. */
static _Thread_local unsigned pauses;
static _Thread_local bool holds_the_writer;

void mt_writer_thread_pause(void)
{
    int saved = errno, state;

    if (pauses++ || !mt_core.writer_runs || pthread_equal(pthread_self(), mt_core.writer))
        return;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state); /* the wait can be canceled */
    holds_the_writer = take_until(&mt_core.writer_sleeps, in_ns(MAX_PAUSE_NS));
    (void)pthread_setcancelstate(state, NULL);
    errno = saved;
}

void mt_writer_thread_resume(void)
{
    if (!pauses || --pauses)
        return;
    if (holds_the_writer)
        let_forks_begin();
    holds_the_writer = false;
}

void mt_writer_thread_resume_in_child(void)
{
    pauses = 0;
    holds_the_writer = false;
}

/* ThreadSanitizer ends a child of fork() if its thread gets the stack of a thread of the parent.
 * With it, each generation requests a larger stack. */
static size_t stack_bytes(void)
{
#ifdef __SANITIZE_THREAD__
    return STACK_BYTES + (size_t)mt_core.last_generation * (64 << 10);
#else
    return STACK_BYTES;
#endif
}

void mt_writer_thread_forget(void)
{
    mt_core.writer_runs = false;
}

static bool is_full(int why)
{
    return why == ENOSPC || why == EDQUOT;
}

static void nap(void)
{
    const struct timespec flush = {0, (long)mt_recorder_settings->flush_ms * 1000000L};

    let_forks_begin();
    (void)nanosleep(&flush, NULL);
    go_on();
}

/* A full disk may get room again. Until then the tape takes what fits, later events are counted as
 * dropped, and no thread of the program waits (core.h, disk_full). The end of the process ends the
 * wait; the contents of the tape are recovered. */
static ssize_t write_patiently(void *file, const void *bytes, size_t length, uint64_t offset)
{
    static bool said;
    ssize_t written = mt_own_file_write(file, bytes, length, offset);

    while (written < 0 && is_full(errno) && !atomic_load(&mt_core.stop)) {
        if (!atomic_exchange(&mt_core.disk_full, true))
            mt_collect_message(
                &said,
                "the disk of '%s' is full; recording continues when it has room; events "
                "that do not fit on the tape until then are counted as lost",
                mt_core.trace_path);
        nap();
        written = mt_own_file_write(file, bytes, length, offset);
    }
    if (written >= 0)
        atomic_store(&mt_core.disk_full, false);
    return written;
}

static void make_header(const struct job *job, struct mt_trace_header *header)
{
    *header = (struct mt_trace_header){.rank = -1, .world_size = -1};
    mt_drain_header(job->drain, header);
    if (mt_core.tape->ring_ns)
        header->ring_part = mt_drain_part(job->drain) + 1;
    header->starts_in_middle |= header->ring_part > 1;
}

static enum mt_status flush_and_commit(struct job *job, struct mt_error *error)
{
    enum mt_status status = mt_writer_flush(job->writer, error);

    if (status == MT_OK)
        mt_drain_commit(job->drain, mt_writer_bytes(job->writer));
    return status;
}

static enum mt_status open_writer(struct job *job, struct mt_error *error)
{
    const struct mt_writer_options options = {.compression_level = COMPRESSION_LEVEL,
                                              .header_bytes = MT_TAPE_HEADER_BYTES};
    const struct mt_trace_output output = {write_patiently, write_patiently, &mt_core.trace_file};
    const struct mt_tape_commit begin = *mt_tape_last_commit(mt_core.tape);
    struct mt_trace_header header;
    bool changed;
    enum mt_status status = mt_symbols_init(&job->symbols);

    if (status == MT_OK)
        status = mt_drain_new(mt_core.tape, &job->symbols, &begin, &job->drain, error);
    if (status == MT_OK)
        status = mt_drain_definitions(job->drain, &changed);
    if (status == MT_OK && (mt_core.tape->ring_ns || mt_drain_is_idle(job->drain)))
        status = mt_drain_follow(job->drain);
    if (status != MT_OK)
        return mt_fail_status(error, status);
    if (!mt_zstd_load())
        return mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                       "zstd's library cannot be loaded; install libzstd 1.4 or newer");
    make_header(job, &header);
    status = mt_writer_new_output(&output, &header, &job->symbols, &options, &job->writer, error);
    if (status == MT_OK)
        mt_drain_commit(job->drain, mt_writer_bytes(job->writer));
    return status;
}

/* Facts become known late: the framework may be loaded hours after the start. */
static enum mt_status update_header(struct job *job, struct mt_error *error)
{
    struct mt_trace_header header;
    bool changed;
    enum mt_status status = mt_drain_definitions(job->drain, &changed);

    if (status != MT_OK || !changed)
        return status;
    make_header(job, &header);
    status = mt_writer_set_header(job->writer, &header, error);
    return status == MT_ERR_USAGE ? MT_OK : status; /* does not fit: recovery writes all of it */
}

static void take_time(void)
{
    struct mt_tape *tape = mt_core.tape;
    uint32_t next = (atomic_load(&tape->last_point) + 1u) & 1u;

    tape->last_points[next] = mt_clock_now(&mt_core.clock);
    atomic_store_explicit(&tape->last_point, next, memory_order_release);
}

/* Definitions are appended while the program may hold locks, so disk space for them is reserved
 * here. */
static void reserve_definitions(void)
{
    struct mt_tape *tape = mt_core.tape;
    uint64_t reserved = atomic_load(&tape->definitions_reserved);
    uint64_t wanted = atomic_load(&tape->definitions_bytes) + DEFINITION_RESERVE;

    if (wanted > tape->definitions_capacity)
        wanted = tape->definitions_capacity;
    if (wanted > reserved && mt_tape_reserve_definitions(&mt_core.tape_file, tape, wanted))
        atomic_store_explicit(&tape->definitions_reserved, wanted, memory_order_release);
}

/* A thread that took a number and does not return (for example because its signal handler left with
 * longjmp) must not block the others forever. */
static enum mt_drain_mode choose_mode(struct job *job)
{
    return job->stuck_since_ns && mt_now_ns() - job->stuck_since_ns > GIVE_UP_NS ? MT_DRAIN_SKIP
                                                                                 : MT_DRAIN_LIVE;
}

static void tell_full_tape(void)
{
    static bool said;

    if (atomic_load(&mt_core.tape->dropped_definitions))
        mt_collect_message(&said,
                           "'%s' has no room for more names and stacks: later events lack them",
                           mt_core.tape_path);
}

/* The part before the current one is removed only if nothing but its name is in the way: open
 * reports a lack of descriptors before it looks at the name. */
static bool create_next(struct mt_own_file *next, const char *path)
{
    if (mt_own_file_create(next, path))
        return true;
    if (errno != EEXIST || !mt_core.before_file.path)
        return false;
    mt_own_file_remove(&mt_core.before_file);
    return mt_own_file_create(next, path);
}

static void tell_growing_ring(struct job *job, const char *path, const char *why)
{
    if (!job->ring_grows)
        mt_collect_not_recorded(&job->ring_grows,
                                "the ring cannot continue in '%s' (%s): it keeps more than the "
                                "requested time",
                                path, why);
}

/* Moves the recording to a new file. The tape names it while the current one is still open, so one
 * of the two can be identified at any moment. */
static bool take_next_file(struct job *job)
{
    char *const path = mt_drain_part(job->drain) & 1 ? mt_core.trace_path : mt_core.part_path;
    struct mt_own_file next, current = mt_core.trace_file;

    if (mt_own_file_is_sandboxed(&current)) {
        tell_growing_ring(job, path, "the program is sandboxed");
        return false;
    }
    if (!create_next(&next, path)) {
        tell_growing_ring(job, path, strerror(errno));
        return false;
    }
    next.sandboxed_before = current.sandboxed_before; /* a filter may just have been installed */
    mt_core.before_file = current;
    mt_core.before_file.fd = -1;
    mt_core.trace_file = next;
    mt_tape_set_trace(mt_core.tape, &mt_core.trace_file);
    mt_own_file_close(&current);
    return true;
}

/* Begins the next part of a ring. The commit at the end makes it the current one; if the process
 * dies before, the part before it is complete. If there can be no new file now, the current part
 * grows until the next call. */
static enum mt_status turn_ring(struct job *job, struct mt_error *error)
{
    struct mt_trace_header header;

    if (!mt_drain_part_is_full(job->drain) || !take_next_file(job))
        return MT_OK;
    mt_drain_begin_part(job->drain);
    make_header(job, &header);
    enum mt_status status = mt_writer_restart(job->writer, &header, error);
    if (status == MT_OK)
        status = mt_drain_write_state(job->drain, job->writer, error);
    return status == MT_OK ? flush_and_commit(job, error) : status;
}

static bool is_asked(enum mt_tape_ask what)
{
    return atomic_load_explicit(&mt_core.tape->asked, memory_order_relaxed) == what;
}

/* The threads of the program take stacks from now on. What is alive was passed just before. */
static enum mt_status begin_when_asked(struct job *job, struct mt_error *error)
{
    struct mt_trace_header header;

    if (!mt_drain_is_idle(job->drain) || !is_asked(MT_ASK_BEGIN))
        return MT_OK;
    atomic_store(&mt_core.is_idle, false);
    enum mt_status status = mt_drain_begin(job->drain, job->writer, error);
    make_header(job, &header);
    if (status == MT_OK)
        status = mt_writer_set_header(job->writer, &header, error);
    return status == MT_OK || status == MT_ERR_USAGE ? flush_and_commit(job, error) : status;
}

static enum mt_status drain_and_flush(struct job *job, struct mt_error *error)
{
    struct mt_drain_result result;

    take_time();
    reserve_definitions();
    tell_full_tape();
    enum mt_status status =
        mt_drain_pass(job->drain, job->writer, choose_mode(job), &result, error);
    if (status == MT_OK && result.events)
        status = mt_writer_flush(job->writer, error);
    if (status == MT_OK)
        status = update_header(job, error);
    if (status != MT_OK)
        return status;
    if (result.events || result.followed || result.missing)
        mt_drain_commit(job->drain, mt_writer_bytes(job->writer));
    atomic_store_explicit(&mt_core.next_slot, 0, memory_order_relaxed);
    if (!result.waiting || result.events || result.followed)
        job->stuck_since_ns = 0;
    else if (!job->stuck_since_ns)
        job->stuck_since_ns = mt_now_ns();
    status = begin_when_asked(job, error);
    return status == MT_OK ? turn_ring(job, error) : status;
}

static enum mt_status finish(struct job *job, struct mt_error *error)
{
    enum mt_status status = drain_and_flush(job, error);

    if (status == MT_OK && mt_drain_is_idle(job->drain)) {
        mt_collect_fact("not_recorded", mt_tape_never_begun(mt_core.tape));
        status = update_header(job, error);
    }
    /* a recovery would cut the trace to its last commit, which the end record and the index
     * follow */
    if (status == MT_OK)
        status = mt_writer_finish(job->writer, error);
    if (status != MT_OK)
        return status;
    atomic_store(&mt_core.tape->closed, 1);
    /* the program may run for days, and `memtrace record` completes only traces without a tape */
    if (atomic_load(&mt_core.state) == MT_CORE_STOPPED &&
        !mt_own_file_is_sandboxed(&mt_core.tape_file))
        mt_own_file_remove(&mt_core.tape_file);
    return MT_OK;
}

static void call_sources(size_t hook_offset)
{
    const struct mt_inject_source *const *source;

    for (source = mt_core.sources; *source; source++) {
        void (*hook)(void);
        memcpy(&hook, (const char *)*source + hook_offset, sizeof hook);
        if (hook)
            hook();
    }
}

static void never_wait_for_myself(void)
{
    if (!mt_collect_enter())
        return;
    mt_self->never_waits = true;
    mt_collect_leave();
}

static enum mt_status work(struct job *job, struct mt_error *error)
{
    enum mt_status status = open_writer(job, error);

    never_wait_for_myself();
    call_sources(offsetof(struct mt_inject_source, start));
    while (status == MT_OK && !atomic_load(&mt_core.stop) && !is_asked(MT_ASK_STOP)) {
        sleep_until_woken();
        call_sources(offsetof(struct mt_inject_source, poll));
        status = drain_and_flush(job, error);
    }
    call_sources(offsetof(struct mt_inject_source, stop));
    if (is_asked(MT_ASK_STOP)) { /* what is on the tape afterwards is too late */
        atomic_store(&mt_core.state, MT_CORE_STOPPED);
        atomic_store(mt_core.generation_page, 0);
    }
    return status == MT_OK ? finish(job, error) : status;
}

static void *run(void *unused)
{
    struct job job = {0};
    struct mt_error error = {0};
    static bool said;

    (void)unused;
    (void)prctl(PR_SET_NAME, "memtrace", 0, 0, 0);
    if (work(&job, &error) != MT_OK) {
        if (atomic_load(&mt_core.state) != MT_CORE_STOPPED) {
            atomic_store(mt_core.generation_page, UINT32_MAX); /* old slots are not used */
            atomic_store(&mt_core.state, MT_CORE_FAILED);
        }
        mt_collect_message(&said,
                           "cannot write '%s': %s; recording stops, and the program continues",
                           mt_core.trace_path,
                           mt_core.trace_file.trouble ? mt_core.trace_file.trouble : error.text);
    }
    mt_writer_free(job.writer);
    mt_drain_free(job.drain);
    mt_symbols_release(&job.symbols);
    let_forks_begin();
    return NULL;
}

bool mt_writer_thread_start(void)
{
    sigset_t all, before;
    pthread_attr_t attributes;

    if (pthread_attr_init(&attributes))
        return false;
    (void)pthread_attr_setstacksize(&attributes, stack_bytes());
    (void)sem_init(&mt_core.writer_sleeps, 0, 0); /* a new thread works before it sleeps */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    mt_core.writer_runs = pthread_create(&mt_core.writer, &attributes, run, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return mt_core.writer_runs;
}

void mt_writer_thread_finish(void)
{
    struct timespec until;

    if (!mt_core.writer_runs)
        return;
    atomic_store(&mt_core.stop, true);
    atomic_store(&mt_core.wake, 0);
    mt_core_wake_writer();
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += MAX_FINISH_SECONDS;
    if (pthread_timedjoin_np(mt_core.writer, NULL, &until) == 0)
        mt_core.writer_runs = false;
}
