#include "pending_collectives.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "monotonic_clock.h"
#include "note_file.h"
#include "simulated_runtime.h"

enum {
    LAUNCHES_EACH_ROUND = 2048,
    /* After this time, a collective is also complete for the watchdog. Otherwise the watchdog would
     * end the program, because its collectives exceed the timeout of the group. */
    HIDDEN_MS = 15 * 1000,
    /* Without a watchdog (TORCH_NCCL_BLOCKING_WAIT, NCCL without ProcessGroupNCCL), no thread
     * queries the events. */
    PATIENCE_SECONDS = 10,
    PATIENCE_AT_END_SECONDS = 2,
    NAME_BYTES = 16 /* PR_GET_NAME */
};

/* An asynchronous collective for which the program has not waited, and which the watchdog has not
 * handled. */
struct work {
    struct work *next;
    cudaEvent_t event; /* behind it */
    const struct sim_order *order;
    uint64_t round;
    uint64_t recorded_ms;
    pthread_t finder; /* the watchdog that found it complete and is handling it */
    bool is_likely;   /* the first collective of a communicator; the second one shows whether it was
                         asynchronous */
    bool is_found, has_ended, is_counted;
};

/* State of this thread. */
#define OF_THREAD static __thread __attribute__((tls_model("initial-exec")))
OF_THREAD struct {
    cudaStream_t stream;
    uint64_t event;
} last_wait;
OF_THREAD struct {
    struct sim_order *order; /* NULL: no asynchronous collective was started */
    cudaStream_t stream;
    bool is_likely;
} started;
OF_THREAD enum { UNKNOWN, WATCHDOG, OTHER } role;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t handled = PTHREAD_COND_INITIALIZER;
static struct work *works;
static atomic_size_t work_count;
static atomic_ullong launches;
/* Collectives that a real run may have found complete earlier. */
static struct sim_count undecided = {.subject = "collectives"};
static bool has_no_watchdog;

bool sim_is_watchdog(void)
{
    char name[NAME_BYTES + 1] = "";
    if (role == UNKNOWN) {
        prctl(PR_GET_NAME, (unsigned long)(uintptr_t)name, 0UL, 0UL, 0UL);
        role = strcmp(name, "pt_nccl_watchdg") == 0 ? WATCHDOG : OTHER;
    }
    return role == WATCHDOG;
}

bool sim_releases_early(void)
{
    static atomic_int early = -1;
    if (atomic_load(&early) < 0)
        atomic_store(&early, sim_option("MEMTRACE_SIMULATED_EARLY_RELEASE") != 0);
    return atomic_load(&early) != 0;
}

static uint64_t this_round(void)
{
    return atomic_load(&launches) / LAUNCHES_EACH_ROUND;
}

void sim_count_launch(void)
{
    atomic_fetch_add_explicit(&launches, 1, memory_order_relaxed);
}

static bool is_over(const struct work *work)
{
    return work->has_ended || sim_releases_early() || this_round() >= work->round + 2;
}

/* ---- the list; locked */

static struct work **find(cudaEvent_t event)
{
    struct work **at = &works;
    while (*at != NULL && (*at)->event != event)
        at = &(*at)->next;
    return at;
}

static void drop(struct work **at)
{
    struct work *gone = *at;
    *at = gone->next;
    atomic_fetch_sub(&work_count, 1);
    free(gone);
    pthread_cond_broadcast(&handled);
}

static void forget(cudaEvent_t event)
{
    if (atomic_load(&work_count) == 0)
        return;
    pthread_mutex_lock(&lock);
    struct work **at = find(event);
    if (*at != NULL)
        drop(at);
    pthread_mutex_unlock(&lock);
}

static bool is_to_handle(void)
{
    for (const struct work *work = works; work != NULL; work = work->next)
        if (is_over(work) && !work->is_likely)
            return true;
    return false;
}

static void wait_for_watchdog(time_t seconds)
{
    struct timespec end;
    int error = 0;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += seconds;
    while (is_to_handle() && error == 0)
        error = pthread_cond_timedwait(&handled, &lock, &end);
    if (is_to_handle()) {
        has_no_watchdog = true;
        while (works != NULL)
            drop(&works);
    }
}

/* ---- the end of the program */

/* Runs before the destructors of PyTorch's libraries, because it is registered later. The watchdog
 * queries collectives that are not complete, and must not do that while these destructors run. */
static void end_all(void)
{
    pthread_mutex_lock(&lock);
    for (struct work *work = works; work != NULL; work = work->next) {
        work->has_ended = true;
        work->is_likely = false;
    }
    wait_for_watchdog(PATIENCE_AT_END_SECONDS);
    pthread_mutex_unlock(&lock);
}

/* A child of fork has no watchdog, and the parent reports the collectives. Another thread may have
 * held the lock. */
static void forget_all_in_child(void)
{
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&handled, NULL);
    works = NULL;
    atomic_store(&work_count, 0);
}

static void prepare_for_end(void)
{
    (void)atexit(end_all);
    (void)pthread_atfork(NULL, NULL, forget_all_in_child);
}

static void add(struct work *work)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare_for_end);
    pthread_mutex_lock(&lock);
    if (has_no_watchdog) {
        free(work);
    } else {
        work->next = works;
        works = work;
        atomic_fetch_add(&work_count, 1);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- counts for the answer */

static void count_undecided(void)
{
    uint64_t more = 0;
    for (struct work *work = works; work != NULL; work = work->next) {
        more += !work->is_counted && !work->is_likely;
        work->is_counted |= !work->is_likely;
    }
    sim_count_add(&undecided, more);
}

/* ---- the thread of the collectives */

/* Keeps the first collective of the communicator if it was asynchronous, otherwise removes it. */
static void confirm(const struct sim_order *order, bool was_asynchronous)
{
    for (struct work **at = &works; *at != NULL;) {
        if ((*at)->order == order && (*at)->is_likely && !was_asynchronous) {
            drop(at);
            continue;
        }
        (*at)->is_likely &= (*at)->order != order;
        at = &(*at)->next;
    }
}

/* An asynchronous collective runs on a stream of its communicator, which waits for the same event
 * each time. Other collectives run on the stream of the program, and PyTorch keeps no tensors for
 * them. */
static void note_start(struct sim_order *order, cudaStream_t stream)
{
    bool waits = last_wait.stream == stream && last_wait.event != 0;
    bool is_first = order->sync_event == 0;
    bool is_same = waits && order->sync_event == last_wait.event;
    order->sync_event = waits ? last_wait.event : UINT64_MAX;
    started.order = waits && (is_first || is_same) ? order : NULL;
    started.stream = stream;
    started.is_likely = is_first;
    if (atomic_load(&work_count) > 0) {
        pthread_mutex_lock(&lock);
        confirm(order, is_same);
        pthread_mutex_unlock(&lock);
    }
}

void sim_collective_starts(struct sim_order *order, cudaStream_t stream)
{
    if (order == NULL)
        return;
    sim_count_launch();
    note_start(order, stream);
    if (atomic_load(&work_count) == 0)
        return;
    pthread_mutex_lock(&lock);
    wait_for_watchdog(PATIENCE_SECONDS);
    count_undecided();
    pthread_mutex_unlock(&lock);
}

void sim_event_is_recorded(cudaEvent_t event, cudaStream_t stream, bool is_captured)
{
    if (started.order == NULL || started.stream != stream)
        return;
    const struct sim_order *order = started.order;
    started.order = NULL;
    forget(event);
    struct work *work = calloc(1, sizeof *work);
    if (work == NULL || is_captured) {
        free(work); /* the watchdog does not query collectives in graphs */
        return;
    }
    *work = (struct work){.event = event,
                          .order = order,
                          .round = this_round(),
                          .recorded_ms = mt_now_ms(),
                          .is_likely = started.is_likely};
    add(work);
}

/* Work::wait() makes a stream wait for the event and drops the tensors. */
void sim_stream_waits(cudaStream_t stream, cudaEvent_t event, uint64_t id)
{
    last_wait.stream = stream;
    last_wait.event = id;
    forget(event);
}

void sim_event_is_gone(cudaEvent_t event)
{
    forget(event);
}

void sim_collectives_end(const struct sim_order *order)
{
    pthread_mutex_lock(&lock);
    for (struct work *work = works; work != NULL; work = work->next)
        work->has_ended |= work->order == order;
    pthread_mutex_unlock(&lock);
}

/* ---- the watchdog */

bool sim_event_is_hidden(cudaEvent_t event)
{
    if (atomic_load(&work_count) == 0 || !sim_is_watchdog())
        return false;
    pthread_mutex_lock(&lock);
    struct work *work = *find(event);
    bool is_hidden = work != NULL && !is_over(work) && mt_now_ms() - work->recorded_ms < HIDDEN_MS;
    if (work != NULL && !is_hidden) {
        work->is_found = true;
        work->finder = pthread_self();
    }
    pthread_mutex_unlock(&lock);
    return is_hidden;
}

void sim_watchdog_moves_on(void)
{
    if (atomic_load(&work_count) == 0 || !sim_is_watchdog())
        return;
    pthread_mutex_lock(&lock);
    for (struct work **at = &works; *at != NULL;)
        if ((*at)->is_found && pthread_equal((*at)->finder, pthread_self()))
            drop(at);
        else
            at = &(*at)->next;
    pthread_mutex_unlock(&lock);
}

__attribute__((destructor)) static void write_at_end(void)
{
    sim_count_end(&undecided);
}
