/* When a watchdog finds collectives complete, played by a thread with the name of PyTorch's. */
#include "cmocka_all.h"

#include <string.h>
#include <sys/wait.h>

#include "../../simulate/driver/note_file.c"
#include "../../simulate/driver/pending_collectives.c"

enum { STREAM = 8, OTHER_STREAM = 16, SYNC_EVENT = 1 };

static unsigned early; /* MEMTRACE_SIMULATED_EARLY_RELEASE of this program */

unsigned sim_option(const char *name)
{
    return strcmp(name, "MEMTRACE_SIMULATED_EARLY_RELEASE") == 0 ? early : 0;
}

static cudaStream_t stream_of(uintptr_t number)
{
    return (cudaStream_t)number;
}

static cudaEvent_t event_of(uintptr_t number)
{
    return (cudaEvent_t)number;
}

/* An asynchronous collective, as ProcessGroupNCCL starts it. */
static void collect(struct sim_order *order, uintptr_t event)
{
    sim_stream_waits(stream_of(STREAM), event_of(SYNC_EVENT), SYNC_EVENT);
    sim_collective_starts(order, stream_of(STREAM));
    sim_event_is_recorded(event_of(event), stream_of(STREAM), false);
}

/* Looks at one event, and returns in *context whether it was hidden. */
struct look {
    cudaEvent_t event;
    bool is_hidden;
};

static void *look(void *context)
{
    struct look *what = context;

    prctl(PR_SET_NAME, (unsigned long)(uintptr_t) "pt_nccl_watchdg", 0UL, 0UL, 0UL);
    what->is_hidden = sim_event_is_hidden(what->event);
    sim_watchdog_moves_on();
    return NULL;
}

static bool is_hidden_from_watchdog(uintptr_t event)
{
    struct look what = {.event = event_of(event)};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, look, &what), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return what.is_hidden;
}

static void launch(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        sim_count_launch();
}

static int forget_all(void **state)
{
    (void)state;
    while (works)
        drop(&works);
    undecided.count = undecided.noted = 0;
    return 0;
}

TEST_WITH(launches_decide, forget_all, NULL)
{
    struct sim_order order = {0};

    collect(&order, 100);
    assert_true(is_hidden_from_watchdog(100));
    assert_false(sim_event_is_hidden(event_of(100))); /* for this thread it is complete */
    launch(2 * LAUNCHES_EACH_ROUND);
    assert_false(is_hidden_from_watchdog(100));
    assert_int_equal(work_count, 0);
}

TEST_WITH(waiting_decides, forget_all, NULL)
{
    struct sim_order order = {0};

    collect(&order, 100);
    collect(&order, 101);
    assert_int_equal(undecided.count, 1);
    sim_stream_waits(stream_of(OTHER_STREAM), event_of(101), 101);
    assert_false(is_hidden_from_watchdog(101));
    assert_true(is_hidden_from_watchdog(100));
    sim_event_is_gone(event_of(100));
    assert_int_equal(work_count, 0);
}

/* FSDP2 waits for another event before each collective, and PyTorch keeps nothing for it. */
TEST_WITH(collectives_on_streams_of_the_program_do_not_count, forget_all, NULL)
{
    struct sim_order order = {0};

    for (uintptr_t i = 0; i < 3; i++) {
        sim_stream_waits(stream_of(STREAM), event_of(200 + i), 200 + i);
        sim_collective_starts(&order, stream_of(STREAM));
        sim_event_is_recorded(event_of(300 + i), stream_of(STREAM), false);
    }
    assert_int_equal(work_count, 0);
    assert_int_equal(undecided.count, 0);
}

TEST_WITH(a_communicator_ends, forget_all, NULL)
{
    struct sim_order order = {0}, other = {0};

    collect(&order, 100);
    collect(&other, 101);
    sim_collectives_end(&order);
    assert_false(is_hidden_from_watchdog(100));
    assert_true(is_hidden_from_watchdog(101));
}

static void *look_late(void *context)
{
    const struct timespec pause = {.tv_nsec = 50000000};

    nanosleep(&pause, NULL);
    return look(context);
}

TEST_WITH(a_collective_waits_for_the_watchdog, forget_all, NULL)
{
    struct sim_order order = {0};
    struct look what = {.event = event_of(101)};
    pthread_t thread;

    collect(&order, 100); /* the second one confirms it */
    collect(&order, 101);
    sim_event_is_gone(event_of(100));
    launch(2 * LAUNCHES_EACH_ROUND);
    assert_int_equal(pthread_create(&thread, NULL, look_late, &what), 0);
    collect(&order, 102);
    assert_int_equal(work_count, 1);      /* only the new one */
    assert_int_equal(undecided.count, 1); /* 100, when 101 started */
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(what.is_hidden);
}

/* Reads the count in the note of this process, as `memtrace dry-run` does after a kill. */
static unsigned long long noted_in(const char *base)
{
    char path[128], text[160];
    unsigned long long count = 0;

    snprintf(path, sizeof path, "%s.collectives.%ld", base, (long)getpid());
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    const char *member = strstr(text, "\"undecided\": ");
    assert_non_null(member);
    assert_int_equal(sscanf(member, "\"undecided\": %llu", &count), 1);
    assert_int_equal(unlink(path), 0);
    return count;
}

TEST_WITH(a_killed_process_has_noted_at_least_half, forget_all, NULL)
{
    char folder[] = "/tmp/memtrace-collectives-XXXXXX", base[64];
    struct sim_order order = {0};

    assert_non_null(mkdtemp(folder));
    snprintf(base, sizeof base, "%s/note", folder);
    setenv("MEMTRACE_DRY_RUN_NOTES", base, 1);
    for (uintptr_t i = 0; i < 100; i++)
        collect(&order, 100 + i);
    unsetenv("MEMTRACE_DRY_RUN_NOTES");
    assert_int_equal(undecided.count, 99); /* the last one has no successor */
    assert_in_range(noted_in(base), 50, 99);
    assert_int_equal(rmdir(folder), 0);
}

TEST_WITH(a_child_of_fork_has_no_collectives, forget_all, NULL)
{
    struct sim_order order = {0};
    int status;

    collect(&order, 100);
    collect(&order, 101);
    assert_int_equal(undecided.count, 1);
    pthread_mutex_lock(&lock); /* as another thread may hold it */
    pid_t child = fork();
    if (child == 0)
        _exit(works || work_count || pthread_mutex_trylock(&lock));
    pthread_mutex_unlock(&lock);
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(undecided.count, 1);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
