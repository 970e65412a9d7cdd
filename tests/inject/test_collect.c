/* The whole way from emitting events to a trace that reads, in processes that end in every way. */
#include "collect_bench.h"

static void few(void)
{
    emit_many(1, 0, 2500);
}

TEST(ends_in_order)
{
    struct found found;

    clean();
    assert_int_equal(run_child(few), 0);
    read_trace(trace, &found);
    assert_int_equal(found.allocs[1], 2500);
    assert_int_equal(found.marks, 3);
    assert_true(found.in_order && found.closed);
    struct mt_recovery recovery = recover(trace);
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

TEST(survives_underscore_exit)
{
    struct found found;

    clean();
    assert_int_equal(run_child(ends_abruptly), 0);
    struct mt_recovery recovery = recover(trace);
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
TEST(times_of_a_short_life)
{
    struct mt_error error = {0};
    struct mt_event_batch batch;
    struct mt_source *source;

    clean();
    assert_int_equal(run_child(dies_young), 0);
    recover(trace);
    assert_int_equal(mt_trace_open(trace, &source, &error), MT_OK);
    assert_int_equal(mt_source_next(source, &batch, &error), MT_OK);
    assert_true(batch.count >= 2);
    assert_true(batch.events[1].t_ns - batch.events[0].t_ns >= 39000000);
    mt_source_close(source);
}

static uint32_t count_slots(bool (*counts)(const struct mt_slot *slot))
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < mt_core.tape->slot_count; i++)
        count += counts(mt_tape_slot(mt_core.tape, i));
    return count;
}

static bool is_full(const struct mt_slot *slot)
{
    return atomic_load(&slot->state) == MT_SLOT_FULL;
}

static bool was_used(const struct mt_slot *slot)
{
    return slot->thread != 0;
}

/* Four slots at a time. The writer empties them in between. */
static void bursts(void)
{
    for (uint64_t i = 0; i < 10; i++) {
        emit_many(1, i * 2048, (i + 1) * 2048);
        while (count_slots(is_full))
            usleep(1000);
        usleep(1000); /* until the pass of the writer has ended */
    }
    if (count_slots(was_used) > 20)
        _exit(1);
}

/* Their memory is mapped and in a cache. */
TEST(uses_emptied_slots_again)
{
    struct found found;

    clean();
    assert_int_equal(run_child(bursts), 0);
    read_trace(trace, &found);
    assert_int_equal(found.allocs[1], 20480);
}

/* A page that is not there: on a fault, the disk responds after the writer's patience. */
static char *page;

static void respond_late(int unused)
{
    (void)unused;
    usleep(3000000);
    if (mprotect(page, 4096, PROT_READ | PROT_WRITE))
        _exit(1);
}

static void *goes_on(void *unused)
{
    usleep(200000);
    emit_many(2, 0, 3);
    return unused;
}

static void writes_to_a_slow_disk(void)
{
    struct sigaction action = {.sa_handler = respond_late};
    pthread_t other;

    emit_many(1, 0, 10);
    page = (char *)mt_tape_slot(mt_core.tape, 0) + 4096;
    if (mt_tape_slot(mt_core.tape, 0)->thread != mt_self->number ||
        sigaction(SIGSEGV, &action, NULL) || mprotect(page, 4096, PROT_NONE) ||
        pthread_create(&other, NULL, goes_on, NULL))
        _exit(1);
    emit_many(1, 10, 200);
    pthread_join(other, NULL);
}

/* The event has no number yet, so the events after it do not wait, and it is not given up. */
TEST(a_page_fault_that_takes_seconds)
{
    struct found found;

    clean();
    assert_int_equal(run_child(writes_to_a_slow_disk), 0);
    read_trace(trace, &found);
    assert_int_equal(found.allocs[1], 200);
    assert_int_equal(found.allocs[2], 3);
    assert_int_equal(found.dropped, 0);
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
TEST(keeps_what_comes_late)
{
    struct found found;

    clean();
    assert_int_equal(run_child(late_events), 0);
    recover(trace);
    read_trace(trace, &found);
    assert_int_equal(found.allocs[1], 11);
    assert_true(found.in_order && found.closed);
}

static void ends_early(void)
{
    char tape[192], manifest[160], aside[176];

    snprintf(tape, sizeof tape, "%s%s", trace, MT_TAPE_SUFFIX);
    name_manifest(manifest);
    snprintf(aside, sizeof aside, "%s.aside", manifest);
    emit_many(1, 0, 2500);
    assert_int_equal(mt_lifecycle_end(), MT_EARLY_END_REFUSED); /* its launcher waits */
    assert_int_equal(rename(manifest, aside), 0);
    assert_int_equal(mt_lifecycle_end(), MT_EARLY_END_WHOLE);
    assert_int_equal(rename(aside, manifest), 0);
    assert_int_equal(access(tape, F_OK), -1);
    emit_many(1, 2500, 2510);
    assert_int_equal(mt_lifecycle_end(), MT_EARLY_END_NOTHING);
    _exit(0);
}

/* The trace is final before the process ends, and later events are not recorded. */
TEST(ends_on_request)
{
    struct found found;

    clean();
    assert_int_equal(run_child(ends_early), 0);
    read_trace(trace, &found);
    assert_int_equal(found.allocs[1], 2500);
    assert_true(found.in_order && found.closed);
}

static void ends_before_it_begins(void)
{
    assert_int_equal(mt_lifecycle_end(), MT_EARLY_END_NOTHING);
    emit_many(1, 0, 10);
}

TEST(ends_without_a_trace)
{
    clean();
    assert_int_equal(run_child(ends_before_it_begins), 0);
    assert_int_equal(access(trace, F_OK), -1);
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
    for (uintptr_t i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, body, (void *)(i + 1)); /* NOLINT */
}

static void eight_threads(void)
{
    pthread_t threads[8];

    start_threads(emit_some, threads, 8);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
}

TEST(all_of_eight_threads)
{
    struct found found;

    clean();
    assert_int_equal(run_child(eight_threads), 0);
    recover(trace);
    read_trace(trace, &found);
    for (int i = 1; i <= 8; i++)
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
    memset(shared, 0, sizeof *shared);
    fflush(NULL);
    pid_t pid = fork();
    if (!pid) {
        body();
        _exit(0);
    }
    return pid;
}

/* Killed at random moments: nothing that was emitted is missing, but one event
 * a thread that was being written. */
TEST(survives_kill)
{
    unsigned seed = (unsigned)getpid(), round;

    print_message("seed %u\n", seed);
    srand(seed);
    for (round = 0; round < 20; round++) {
        struct found found;
        clean();
        pid_t pid = start_child(four_threads_for_ever);
        while (!atomic_load(&shared->emitted[1]))
            usleep(1000);
        usleep((useconds_t)(rand() % 300000));
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        struct mt_recovery recovery = recover(trace);
        read_trace(trace, &found);
        for (int i = 1; i <= 4; i++) {
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

TEST(refuses_a_living_process)
{
    struct mt_recovery recovery;
    struct mt_error error = {0};

    clean();
    pid_t pid = start_child(four_threads_for_ever);
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

TEST(damaged_tapes_do_no_harm)
{
    char kept_tape[192], kept_trace[192], tape[160];
    struct mt_tape header;

#ifdef __SANITIZE_THREAD__
    skip(); /* one thread does all of it, for ten minutes */
#endif
    clean();
    assert_int_equal(run_child(ends_abruptly), 0);
    snprintf(tape, sizeof tape, "%s%s", trace, MT_TAPE_SUFFIX);
    snprintf(kept_tape, sizeof kept_tape, "%s.kept", tape);
    snprintf(kept_trace, sizeof kept_trace, "%s.kept", trace);
    assert_int_equal(rename(tape, kept_tape), 0);
    assert_int_equal(rename(trace, kept_trace), 0);
    int fd = open(kept_tape, O_RDWR);
    assert_int_equal(pread(fd, &header, sizeof header, 0), sizeof header);
    for (off_t offset = 0; offset < (off_t)sizeof header; offset += 4)
        recover_damaged(fd, offset);
    for (off_t offset = 0; offset < 256; offset += 4)
        recover_damaged(fd, (off_t)header.slots_offset + offset);
    for (off_t offset = 0; offset < 256; offset += 4)
        recover_damaged(fd, (off_t)header.definitions_offset + offset);
    close(fd);
}

int main(int argc, char **argv)
{
    bench_begin(argc, argv);
    return bench_end(run_tests_of_file(set_up, NULL));
}
