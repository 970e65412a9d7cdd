/* Recording on a disk that is full: at the start, later until the end, for a while, at the end. */
#include "collect_bench.h"

static void no_room(void)
{
    const struct rlimit limit = {1 << 20, 1 << 20};

    setrlimit(RLIMIT_FSIZE, &limit);
    emit_many(1, 0, 10);
    assert_false(mt_collect_is_running());
}

TEST(a_full_disk_leaves_the_program_alone)
{
    struct stat facts;

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
    while (mt_collect_is_running())
        usleep(1000);
    emit_many(1, 90001, 90101);
}

/* The trace stops growing, the program goes on, and the tape knows the rest. */
TEST(a_disk_that_becomes_full_is_counted)
{
    struct found found;

    clean();
    assert_int_equal(run_child(becomes_full), 0);
    struct mt_recovery recovery = recover(trace);
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

/* How often a thread has waited: a thread that has no slot waits for one in short naps. */
static _Thread_local unsigned naps;

int nanosleep(const struct timespec *time, struct timespec *rest)
{
    naps++;
    return (int)syscall(SYS_nanosleep, time, rest);
}

static bool has_free_slot(void)
{
    for (uint32_t i = 0; i < mt_core.tape->slot_count; i++)
        if (atomic_load(&mt_tape_slot(mt_core.tape, i)->state) == MT_SLOT_FREE)
            return true;
    return false;
}

/* 600,000 events are more than the tape holds (32 MiB). */
static void is_full_for_a_while(void)
{
    emit_many(1, 0, 1000);
    usleep(300000);
    atomic_store(&disk_is_full, true);
    emit_many(1, 1000, 2000);
    while (!atomic_load(&mt_core.disk_full)) /* until the writer has seen it */
        usleep(1000);
    naps = 0;
    emit_many(1, 2000, 600001);
    if (naps) /* for one of the 150 slots that are missing */
        _exit(3);
    assert_true(mt_collect_is_running());
    atomic_store(&disk_is_full, false);
    while (!has_free_slot())
        usleep(1000);
    emit_many(1, 600001, 600101);
}

/* Recording goes on after the disk got room, and what was lost is counted in the trace. */
TEST(a_disk_that_is_full_for_a_while)
{
    struct found found;

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
TEST(a_disk_that_is_full_at_the_end)
{
    struct found found;

    clean();
    assert_int_equal(run_child(is_full_at_the_end), 0);
    assert_true(mt_recover_is_needed(trace));
    struct mt_recovery recovery = recover(trace);
    read_trace(trace, &found);
    assert_int_equal(recovery.events_dropped, 0);
    assert_int_equal(found.allocs[1], 5000);
    assert_true(found.in_order);
}

int main(int argc, char **argv)
{
    bench_begin(argc, argv);
    return bench_end(run_tests_of_file(set_up, NULL));
}
