/* Tapes whose header a hostile or half-dead process left: what mt_tape_open refuses. */
#include "cmocka_all.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "process_memory.h"
#include "tape_file.h"

/* In place of libc's: a system that cannot say what holds a lock. */
static bool locks_fail;

/* What the process still does to its tape before it ends, while somebody looks at the lock. */
static void (*last_words)(void);

int fcntl(int fd, int command, ...)
{
    static int (*real)(int, int, ...);
    va_list arguments;
    void *argument;

    va_start(arguments, command);
    argument = va_arg(arguments, void *);
    va_end(arguments);
    if (command == F_GETLK && locks_fail) {
        errno = ENOLCK;
        return -1;
    }
    if (command == F_GETLK && last_words)
        last_words();
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fcntl");
    return real(fd, command, argument);
}

struct left {
    char path[64];
    struct mt_error error;
};

/* The tape of a process that has ended, with its header changed by `change`. */
static void leave(struct left *left, void (*change)(struct mt_tape *tape))
{
    struct mt_own_file file;
    struct mt_tape *tape = NULL;

    memset(left, 0, sizeof *left);
    snprintf(left->path, sizeof left->path, "/tmp/test_tape_read.%d.tape", (int)getpid());
    unlink(left->path);
    assert_int_equal(mt_tape_create(left->path, MT_TAPE_MIN_SLOTS, &tape, &file, &left->error),
                     MT_OK);
    if (change)
        change(tape);
    mt_own_file_close(&file);
    mt_tape_unmap(tape);
}

static enum mt_status read_tape(struct left *left)
{
    struct mt_tape *tape = NULL;
    enum mt_status status = mt_tape_open(left->path, &tape, NULL, &left->error);

    mt_tape_unmap(tape);
    return status;
}

static void check_refused(void (*change)(struct mt_tape *tape))
{
    struct left left;

    leave(&left, change);
    assert_int_equal(read_tape(&left), MT_ERR_FORMAT);
    assert_string_equal(left.error.text, "damaged");
    unlink(left.path);
}

static void write_everything(struct mt_tape *tape)
{
    tape->commits[0] = (struct mt_tape_commit){.trace_bytes = 100, .events_written = UINT64_MAX};
}

static void write_too_much(struct mt_tape *tape)
{
    tape->commits[0] =
        (struct mt_tape_commit){.trace_bytes = 100, .events_written = MT_MAX_SEQ + 1};
}

static void take_too_much(struct mt_tape *tape)
{
    tape->commits[0] = (struct mt_tape_commit){.trace_bytes = 100, .next_raw = MT_MAX_SEQ + 1};
}

static void write_into_nothing(struct mt_tape *tape)
{
    tape->commits[0] = (struct mt_tape_commit){.events_written = 1};
}

static void write_what_was_not_taken(struct mt_tape *tape)
{
    atomic_store(&tape->next_seq, 4);
    tape->commits[0] =
        (struct mt_tape_commit){.trace_bytes = 100, .next_raw = 5, .events_written = 5};
}

static void tear_the_other_commit(struct mt_tape *tape)
{
    write_everything(tape);
    tape->commits[1] = tape->commits[0];
    tape->commits[0] = (struct mt_tape_commit){.trace_bytes = 100, .events_written = MT_MAX_SEQ};
}

TEST(commits_out_of_bounds)
{
    struct left left;

    check_refused(write_everything);
    check_refused(write_too_much);
    check_refused(take_too_much);
    check_refused(write_into_nothing);
    check_refused(write_what_was_not_taken);
    leave(&left, tear_the_other_commit);
    assert_int_equal(read_tape(&left), MT_OK);
    unlink(left.path);
}

static void take_numbers_without_end(struct mt_tape *tape)
{
    atomic_store(&tape->next_seq, MT_MAX_SEQ + 1);
}

static void drop_without_end(struct mt_tape *tape)
{
    atomic_store(&tape->dropped_events, MT_MAX_SEQ + 1);
}

static void say_drops_without_end(struct mt_tape *tape)
{
    tape->commits[0] =
        (struct mt_tape_commit){.trace_bytes = 100, .dropped_written = MT_MAX_SEQ + 1};
}

static void count_to_the_end(struct mt_tape *tape)
{
    atomic_store(&tape->next_seq, MT_MAX_SEQ);
    atomic_store(&tape->dropped_events, MT_MAX_SEQ);
}

TEST(counters_out_of_bounds)
{
    struct left left;

    check_refused(take_numbers_without_end);
    check_refused(drop_without_end);
    check_refused(say_drops_without_end);
    leave(&left, count_to_the_end);
    assert_int_equal(read_tape(&left), MT_OK);
    unlink(left.path);
}

/* What nobody can tell counts as in use. */
TEST(lock_that_cannot_be_read)
{
    struct left left;

    leave(&left, NULL);
    assert_false(mt_tape_is_in_use(left.path));
    locks_fail = true;
    assert_true(mt_tape_is_in_use(left.path));
    assert_int_equal(read_tape(&left), MT_ERR_IO);
    locks_fail = false;
    assert_non_null(
        strstr(left.error.text, "cannot determine whether its process is still running"));
    assert_int_equal(read_tape(&left), MT_OK);
    unlink(left.path);
}

static const char *dying_path;

static void commit_once_more(void)
{
    const uint64_t next_seq = 7;
    int fd = open(dying_path, O_RDWR);

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &next_seq, sizeof next_seq, offsetof(struct mt_tape, next_seq)),
                     sizeof next_seq);
    close(fd);
}

/* The header is read before it is known that the process has ended, and again after that. */
TEST(what_was_done_last_counts)
{
    struct mt_tape *tape = NULL;
    struct left left;

    leave(&left, NULL);
    dying_path = left.path;
    last_words = commit_once_more;
    assert_int_equal(mt_tape_open(left.path, &tape, NULL, &left.error), MT_OK);
    last_words = NULL;
    assert_int_equal(atomic_load(&tape->next_seq), 7);
    mt_tape_unmap(tape);
    unlink(left.path);
}

/* A file that got the name of the tape after the tape was read stays. */
TEST(only_the_tape_that_was_read_is_removed)
{
    struct mt_tape *tape = NULL;
    struct left left;
    struct stat file;
    char aside[sizeof left.path + 8];

    leave(&left, NULL);
    assert_int_equal(mt_tape_open(left.path, &tape, &file, &left.error), MT_OK);
    mt_tape_unmap(tape);
    snprintf(aside, sizeof aside, "%s.aside", left.path);
    assert_int_equal(rename(left.path, aside), 0);
    int fd = open(left.path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_false(mt_tape_remove(left.path, &file));
    assert_int_equal(errno, ESTALE);
    assert_int_equal(rename(aside, left.path), 0);
    assert_true(mt_tape_remove(left.path, &file));
    assert_false(mt_tape_remove(left.path, &file));
    assert_int_equal(errno, ENOENT);
}

enum { USED_SLOTS = 8 };

static void fill_slots(struct mt_tape *tape)
{
    for (uint32_t i = 0; i < USED_SLOTS; i++)
        atomic_store(&mt_tape_slot(tape, i)->committed, MT_SLOT_EVENTS);
}

TEST(memory_counts)
{
    const uint64_t needed = MT_TAPE_PAGE_BYTES + USED_SLOTS * (uint64_t)MT_SLOT_BYTES;
    struct left left;

    leave(&left, fill_slots);
    mt_memory_budget_set(mt_memory_in_use() + needed - 1);
    assert_int_equal(read_tape(&left), MT_ERR_MEMORY);
    assert_int_not_equal(mt_memory_refused(), 0);
    assert_int_equal(mt_memory_in_use(), 0);
    mt_memory_budget_set(mt_memory_in_use() + needed);
    assert_int_equal(read_tape(&left), MT_OK);
    assert_int_equal(mt_memory_in_use(), 0);
    mt_memory_budget_set(0);
    unlink(left.path);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
