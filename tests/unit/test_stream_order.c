/* When the host finds events complete: a main stream, a side stream, and who queries. */
#define _GNU_SOURCE /* dladdr */
#include "cmocka_all.h"

#include <string.h>
#include <sys/wait.h>

#include "../../simulate/driver/note_file.c"
#include "../../simulate/driver/stream_order.c"

static bool early; /* MEMTRACE_SIMULATED_EARLY_RELEASE of this program */
static struct sim_stream_order main_stream, side;

bool sim_releases_early(void)
{
    return early;
}

static int begin(void **state)
{
    (void)state;
    early = is_program_put_off = false;
    memset(&main_stream, 0, sizeof main_stream);
    memset(&side, 0, sizeof side);
    memset(&host, 0, sizeof host);
    memset(put_off, 0, sizeof put_off);
    marks = 0;
    launches = 0;
    places = 0;
    blocks = (struct sim_count){.subject = "blocks"};
    queries = (struct sim_count){.subject = "queries"};
    return 0;
}

static struct sim_event_order recorded_on(struct sim_stream_order *stream)
{
    struct sim_event_order event = {0};

    sim_order_record(stream, &event);
    return event;
}

static bool is_pending(struct sim_event_order *event)
{
    return sim_order_is_pending(event, SIM_ASKER_ALLOCATOR);
}

static void launch(struct sim_stream_order *stream, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        sim_order_launch(stream);
}

TEST_WITH(the_host_waits_for_a_stream, begin, NULL)
{
    struct sim_event_order before = recorded_on(&side), unused = {0}, after;

    assert_false(is_pending(&unused));
    assert_true(is_pending(&before));
    sim_order_finish_stream(&main_stream);
    assert_true(is_pending(&before)); /* nothing orders the streams */
    sim_order_finish_stream(&side);
    after = recorded_on(&side);
    assert_false(is_pending(&before));
    assert_true(is_pending(&after));
    assert_int_equal(blocks.count, 2); /* each event once */
}

/* The main stream waits for the side stream, and the host for an event of the main stream. */
TEST_WITH(waits_are_passed_on, begin, NULL)
{
    struct sim_event_order first = recorded_on(&side), second = recorded_on(&side), third, last;

    sim_order_wait(&main_stream, &second);
    third = recorded_on(&side);
    last = recorded_on(&main_stream);
    sim_order_finish_event(&last);
    assert_false(is_pending(&first));
    assert_false(is_pending(&second));
    assert_false(is_pending(&last));
    assert_true(is_pending(&third));
}

/* The allocator queries the oldest event of a stream only. */
TEST_WITH(blocks_behind_a_waiting_one_count, begin, NULL)
{
    struct sim_event_order first = recorded_on(&side), second = recorded_on(&side), third;

    assert_true(is_pending(&first));
    third = recorded_on(&side);
    sim_order_finish_stream(&side);
    assert_false(is_pending(&first));
    assert_false(is_pending(&second));
    assert_false(is_pending(&third)); /* it did not wait at any request */
    assert_int_equal(blocks.count, 2);
}

TEST_WITH(cuda_queues_a_number_of_launches, begin, NULL)
{
    struct sim_event_order waited_for = recorded_on(&side), alone, own;

    sim_order_wait(&main_stream, &waited_for);
    alone = recorded_on(&side);
    own = recorded_on(&main_stream);
    launch(&main_stream, QUEUED_LAUNCHES);
    assert_true(is_pending(&own));
    assert_true(is_pending(&waited_for));
    launch(&main_stream, QUEUED_LAUNCHES / 8);
    assert_false(is_pending(&own));
    assert_false(is_pending(&waited_for));
    assert_true(is_pending(&alone));
    launch(&main_stream, MOST_LAUNCHES);
    assert_false(is_pending(&alone));
}

static bool is_busy(struct sim_stream_order *stream)
{
    return sim_order_stream_is_pending(stream, SIM_ASKER_PROGRAM);
}

TEST_WITH(streams_are_queried, begin, NULL)
{
    unsigned tries = 0;

    assert_false(is_busy(&side)); /* empty */
    launch(&side, 1);
    sim_order_finish_stream(&side);
    assert_false(is_busy(&side));
    launch(&side, 1);
    assert_true(is_busy(&side));
    sim_order_finish_stream(&side);
    assert_false(is_busy(&side));
    launch(&side, 1);
    struct sim_event_order event = recorded_on(&side);
    assert_true(is_busy(&side));
    sim_order_finish_event(&event); /* behind everything in the stream */
    assert_false(is_busy(&side));
    launch(&side, 1);
    event = recorded_on(&side);
    while (sim_order_stream_is_pending(&side, SIM_ASKER_ALLOCATOR)) /* its library */
        tries++;
    assert_int_equal(tries, PATIENCE);
    assert_int_equal(blocks.count, 0);
    assert_false(is_pending(&event)); /* the program has seen that the stream is complete */
    launch(&side, 1);
    assert_true(is_busy(&side));
    launch(&main_stream, 1); /* it goes on without the stream */
    assert_int_equal(queries.count, 1);
    early = true;
    launch(&side, 1);
    assert_false(is_busy(&side));
}

/* A stream that only waits for another one has work. */
TEST_WITH(a_stream_that_waits_is_queried, begin, NULL)
{
    struct sim_event_order event = recorded_on(&side);

    sim_order_finish_event(&event);
    sim_order_wait(&main_stream, &event);
    assert_false(is_busy(&main_stream)); /* for nothing */
    event = recorded_on(&side);
    sim_order_wait(&main_stream, &event);
    assert_true(is_busy(&main_stream));
    sim_order_finish_stream(&main_stream);
    assert_false(is_busy(&main_stream));
    assert_false(is_pending(&event));
}

TEST_WITH(a_loop_ends, begin, NULL)
{
    struct sim_event_order event = recorded_on(&side), last;
    unsigned tries = 0;

    while (sim_order_is_pending(&event, SIM_ASKER_PROGRAM))
        tries++;
    assert_int_equal(tries, PATIENCE);
    launch(&main_stream, 1);
    event = recorded_on(&side);
    for (tries = 0; is_pending(&event); tries++)
        continue;
    assert_int_equal(tries, PATIENCE_OF_ALLOCATOR);
    assert_int_equal(queries.count, 0); /* a program that waits decides nothing */
    launch(&main_stream, 1);
    event = recorded_on(&side);
    last = recorded_on(&side);
    for (tries = 0; sim_order_is_pending(&last, SIM_ASKER_LIBRARY); tries++)
        continue;
    assert_int_equal(tries, PATIENCE);
    assert_true(is_pending(&event)); /* another thread decides nothing about device memory */
}

TEST_WITH(a_program_that_goes_on_has_decided, begin, NULL)
{
    struct sim_event_order event = recorded_on(&side);

    for (unsigned i = 0; i < 3 * PATIENCE; i++) {
        assert_true(sim_order_is_pending(&event, SIM_ASKER_PROGRAM));
        launch(&main_stream, 1);
    }
    assert_int_equal(queries.count, 3 * PATIENCE);
    assert_true(sim_order_is_pending(&event, SIM_ASKER_LIBRARY));
    assert_true(sim_order_is_pending(&event, SIM_ASKER_PROGRAM));
    sim_order_finish_event(&event); /* it waits after all */
    launch(&main_stream, 1);
    assert_int_equal(queries.count, 3 * PATIENCE);
    assert_int_equal(blocks.count, 0);
}

TEST_WITH(early_events_are_complete_at_once, begin, NULL)
{
    early = true;
    struct sim_event_order event = recorded_on(&side);
    assert_false(is_pending(&event));
    assert_int_equal(blocks.count, 0);
}

TEST_WITH(further_streams_share_a_place, begin, NULL)
{
    struct sim_stream_order many[SIM_ORDERED_STREAMS + 2] = {{0}};
    struct sim_event_order events[SIM_ORDERED_STREAMS + 2];

    for (unsigned i = 0; i < SIM_ORDERED_STREAMS + 2; i++)
        events[i] = recorded_on(&many[i]);
    assert_int_equal(events[SIM_ORDERED_STREAMS + 1].place, SIM_ORDERED_STREAMS - 1);
    sim_order_finish_stream(&many[0]);
    assert_false(is_pending(&events[0]));
    assert_true(is_pending(&events[1]));
    assert_true(is_pending(&events[SIM_ORDERED_STREAMS + 1]));
}

TEST_WITH(streams_without_events_take_no_place, begin, NULL)
{
    struct sim_stream_order many[2 * SIM_ORDERED_STREAMS] = {{0}}, used = {0};

    for (unsigned i = 0; i < 2 * SIM_ORDERED_STREAMS; i++)
        sim_order_finish_stream(&many[i]);
    struct sim_event_order event = recorded_on(&used);
    sim_order_finish_stream(&many[0]);
    assert_true(is_pending(&event));
    sim_order_end_stream(&used, 1);
    assert_true(is_pending(&event));
    sim_order_finish_ended(0); /* the host waits for a device */
    assert_true(is_pending(&event));
    sim_order_finish_ended(1);
    assert_false(is_pending(&event));
}

TEST_WITH(the_library_tells_who_queries, begin, NULL)
{
    assert_int_equal(asker_of("/x/torch/lib/libc10_cuda.so"), SIM_ASKER_ALLOCATOR);
    assert_int_equal(asker_of("/x/torch/lib/libtorch_cuda.so"), SIM_ASKER_LIBRARY);
    assert_int_equal(asker_of("libtorch_python.so"), SIM_ASKER_PROGRAM);
    assert_int_equal(asker_of("/x/libc10_cuda.so/program"), SIM_ASKER_PROGRAM);
    assert_int_equal(sim_asker_at((const void *)(uintptr_t)&the_library_tells_who_queries),
                     SIM_ASKER_PROGRAM);
    assert_int_equal(sim_asker_at(&host), SIM_ASKER_PROGRAM);
}

/* Returns whether this process has a note about blocks below `base`. */
static bool has_note(const char *base)
{
    char path[128];

    snprintf(path, sizeof path, "%s.blocks.%ld", base, (long)getpid());
    return unlink(path) == 0;
}

TEST_WITH(a_child_of_fork_does_not_report_its_parents_blocks, begin, NULL)
{
    char folder[] = "/tmp/memtrace-blocks-XXXXXX", base[64];
    int status;

    assert_non_null(mkdtemp(folder));
    snprintf(base, sizeof base, "%s/note", folder);
    setenv("MEMTRACE_DRY_RUN_NOTES", base, 1);
    sim_count_add(&blocks, 4);
    sim_count_add(&blocks, 1);
    assert_true(has_note(base));
    pid_t child = fork();
    if (child == 0) {
        write_at_end();
        _exit(has_note(base));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    write_at_end();
    assert_true(has_note(base));
    unsetenv("MEMTRACE_DRY_RUN_NOTES");
    assert_int_equal(rmdir(folder), 0);
}

/* The simulated runtime itself. */
static struct {
    int (*set_device)(int);
    int (*stream_create)(void **, unsigned, int);
    int (*stream_synchronize)(void *);
    int (*stream_query)(void *);
    int (*event_create)(void **, unsigned);
    int (*event_record)(void *, void *);
    int (*event_query)(void *);
    int (*event_destroy)(void *);
    int (*copy_2d)(void *, size_t, const void *, size_t, size_t, size_t, int);
    int (*copy_from_symbol)(void *, const void *, size_t, size_t, int);
    int (*copy_to_symbol)(const void *, const void *, size_t, size_t, int);
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  void *, void **, void **);
} cuda;

static const struct {
    const char *name;
    void *function;
} functions[] = {{"cudaSetDevice", &cuda.set_device},
                 {"cudaStreamCreateWithPriority", &cuda.stream_create},
                 {"cudaStreamSynchronize", &cuda.stream_synchronize},
                 {"cudaStreamQuery", &cuda.stream_query},
                 {"cudaEventCreateWithFlags", &cuda.event_create},
                 {"cudaEventRecord", &cuda.event_record},
                 {"cudaEventQuery", &cuda.event_query},
                 {"cudaEventDestroy", &cuda.event_destroy},
                 {"cudaMemcpy2D", &cuda.copy_2d},
                 {"cudaMemcpyFromSymbol", &cuda.copy_from_symbol},
                 {"cudaMemcpyToSymbol", &cuda.copy_to_symbol},
                 {"cuLaunchKernel", &cuda.launch}};

static int load_runtime(void **state)
{
    void *library = dlopen(SIMULATED_LIBRARY, RTLD_NOW | RTLD_LOCAL);

    (void)state;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *function = library ? dlsym(library, functions[i].name) : NULL;

        if (!function)
            return -1;
        memcpy(functions[i].function, &function, sizeof function);
    }
    return cuda.set_device(0);
}

enum { NOT_READY = 600 };

static void *recorded(void *stream)
{
    void *event = NULL;

    assert_int_equal(cuda.event_create(&event, 0), 0);
    assert_int_equal(cuda.event_record(event, stream), 0);
    assert_int_equal(cuda.event_query(event), NOT_READY);
    return event;
}

/* The event is complete, and goes. */
static void end_event(void *event)
{
    assert_int_equal(cuda.event_query(event), 0);
    assert_int_equal(cuda.event_destroy(event), 0);
}

TEST_WITH(copies_wait, load_runtime, NULL)
{
    char from[2][4] = {"abc", "def"}, to[2][4];
    void *event = recorded(NULL);

    assert_int_equal(cuda.copy_2d(to, 4, from, 4, 4, 2, 0), 0);
    end_event(event);
    assert_memory_equal(to, from, sizeof to);
    event = recorded(NULL);
    assert_int_equal(cuda.copy_to_symbol(to, from, 4, 0, 1), 0);
    end_event(event);
    event = recorded(NULL);
    assert_int_equal(cuda.copy_from_symbol(to, from, 4, 0, 2), 0);
    end_event(event);
}

TEST_WITH(the_default_stream_has_two_handles, load_runtime, NULL)
{
    void *event = recorded((void *)(uintptr_t)1);

    assert_int_equal(cuda.stream_synchronize(NULL), 0);
    end_event(event);
}

TEST_WITH(launches_of_the_driver_count, load_runtime, NULL)
{
    void *stream = NULL, *event;

    assert_int_equal(cuda.stream_create(&stream, 1, 0), 0);
    event = recorded(stream);
    for (unsigned i = 0; i < 2 * QUEUED_LAUNCHES; i++)
        assert_int_equal(cuda.launch(NULL, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL), 0);
    end_event(event);
}

TEST_WITH(a_stream_with_work_is_not_ready, load_runtime, NULL)
{
    void *stream = NULL;

    assert_int_equal(cuda.stream_create(&stream, 1, 0), 0);
    assert_int_equal(cuda.stream_query(stream), 0);
    assert_int_equal(cuda.launch(NULL, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL), 0);
    assert_int_equal(cuda.stream_query(stream), NOT_READY);
    assert_int_equal(cuda.stream_synchronize(stream), 0);
    assert_int_equal(cuda.stream_query(stream), 0);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
