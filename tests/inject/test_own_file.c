/* A file that memtrace keeps open while the program around it closes descriptors
 * and reuses their numbers. */
#include "cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "own_file.h"
#include "tape_file.h"

/* In place of libc's: what another program does just before the next call. */
static void (*before_lstat)(const char *path);

int lstat(const char *path, struct stat *facts)
{
    void (*act)(const char *path) = before_lstat;

    before_lstat = NULL;
    if (act)
        act(path);
    return fstatat(AT_FDCWD, path, facts, AT_SYMLINK_NOFOLLOW);
}

/* Called at the start of the next pwrite; true: also of the one after it. */
static bool (*before_pwrite)(int fd);

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset)
{
    const struct iovec part = {(void *)(uintptr_t)bytes, length};

    if (before_pwrite && !before_pwrite(fd))
        before_pwrite = NULL;
    return pwritev(fd, &part, 1, offset);
}

static const char ours[] = "memtrace's", theirs[] = "the program's";

struct fixture {
    char folder[64], path[96], other[96];
    struct mt_own_file file;
};

static int set_up(void **state)
{
    struct fixture *t = calloc(1, sizeof *t);

    assert_non_null(t);
    snprintf(t->folder, sizeof t->folder, "/tmp/test_own_file.XXXXXX");
    assert_non_null(mkdtemp(t->folder));
    snprintf(t->path, sizeof t->path, "%s/ours", t->folder);
    snprintf(t->other, sizeof t->other, "%s/theirs", t->folder);
    assert_true(mt_own_file_create(&t->file, t->path));
    assert_int_equal(mt_own_file_write(&t->file, ours, sizeof ours, 0), sizeof ours);
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *t = *state;
    char command[96];

    mt_own_file_close(&t->file);
    snprintf(command, sizeof command, "rm -rf %s", t->folder);
    free(t);
    return system(command);
}

/* The program closes our number and gives it to a file of its own. */
static int take_number(struct fixture *t)
{
    int fd = open(t->other, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), number = t->file.fd;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, theirs, sizeof theirs), sizeof theirs);
    assert_int_equal(dup2(fd, number), number);
    close(fd);
    return number;
}

static void check_content(const char *path, const void *bytes, size_t length)
{
    char found[64];
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    assert_int_equal(read(fd, found, sizeof found), length);
    assert_memory_equal(found, bytes, length);
    close(fd);
}

TEST_WITH(only_its_owner_may_read_it, set_up, tear_down)
{
    struct fixture *t = *state;
    struct stat facts;

    assert_int_equal(fstat(t->file.fd, &facts), 0);
    assert_int_equal(facts.st_mode & 07777, 0600);
}

TEST_WITH(its_number_is_high, set_up, tear_down)
{
    struct fixture *t = *state;
    struct rlimit limit;
    int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_true(t->file.fd > lowest);
    assert_true(limit.rlim_cur < 64 || t->file.fd >= 32);
    assert_true((rlim_t)t->file.fd < limit.rlim_cur);
    assert_int_equal(fcntl(t->file.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    close(lowest);
}

/* In a child, so that the limit stays there. */
TEST_WITH(a_low_limit_is_enough, set_up, tear_down)
{
    struct fixture *t = *state;
    pid_t child = fork();
    int status;

    if (!child) {
        const struct rlimit limit = {8, 8};
        struct mt_own_file low;
        for (int fd = 3; fd < 4096; fd++)
            close(fd);
        setrlimit(RLIMIT_NOFILE, &limit);
        while (open("/dev/null", O_RDONLY | O_CLOEXEC) < 6) {
        }
        _exit(!mt_own_file_create(&low, t->other) || low.fd != 7 ||
              mt_own_file_write(&low, ours, 1, 0) != 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static bool close_once(int fd)
{
    close(fd);
    return false;
}

static bool close_always(int fd)
{
    close(fd);
    return true;
}

static bool make_pipe(int fd)
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(dup2(ends[1], fd), fd);
    close(ends[0]);
    close(ends[1]);
    return false;
}

/* Another thread closes or reuses the number between the comparison and the call. */
TEST_WITH(a_number_lost_in_between_is_opened_again, set_up, tear_down)
{
    struct fixture *t = *state;

    before_pwrite = close_once;
    assert_int_equal(mt_own_file_write(&t->file, "+", 1, sizeof ours), 1);
    before_pwrite = make_pipe;
    assert_int_equal(mt_own_file_write(&t->file, "+", 1, sizeof ours), 1);
    assert_null(t->file.trouble);
    check_content(t->path, "memtrace's\0+", sizeof ours + 1);
}

TEST_WITH(a_program_that_closes_it_forever_ends_the_tries, set_up, tear_down)
{
    struct fixture *t = *state;

    before_pwrite = close_always;
    assert_int_equal(mt_own_file_write(&t->file, "+", 1, sizeof ours), -1);
    before_pwrite = NULL;
}

TEST_WITH(a_closed_number_is_opened_again, set_up, tear_down)
{
    struct fixture *t = *state;

    close(t->file.fd);
    assert_int_equal(mt_own_file_write(&t->file, "+", 1, sizeof ours), 1);
    assert_null(t->file.trouble);
    check_content(t->path, "memtrace's\0+", sizeof ours + 1);
}

TEST_WITH(a_number_of_the_program_s_is_left_alone, set_up, tear_down)
{
    struct fixture *t = *state;
    int number = take_number(t);
    struct stat facts;

    assert_int_equal(mt_own_file_write(&t->file, "+", 1, sizeof ours), 1);
    assert_true(mt_own_file_reserve(&t->file, 0, 8192));
    assert_int_not_equal(t->file.fd, number);
    mt_own_file_close(&t->file);
    check_content(t->other, theirs, sizeof theirs);
    assert_int_equal(fstat(number, &facts), 0); /* still open */
    close(number);
}

TEST_WITH(closing_leaves_the_program_s_number_open, set_up, tear_down)
{
    struct fixture *t = *state;
    int number = take_number(t);

    mt_own_file_close(&t->file);
    assert_int_equal(write(number, theirs, 1), 1);
    close(number);
}

static void check_lost(struct fixture *t)
{
    assert_int_equal(mt_own_file_write(&t->file, "+", 1, sizeof ours), -1);
    assert_int_equal(errno, ESTALE);
    assert_non_null(t->file.trouble);
    assert_false(mt_own_file_reserve(&t->file, 0, 8192));
}

TEST_WITH(a_deleted_file_is_lost_with_its_number, set_up, tear_down)
{
    struct fixture *t = *state;

    unlink(t->path);
    assert_int_equal(mt_own_file_write(&t->file, "+", 1, sizeof ours), 1);
    close(t->file.fd);
    check_lost(t);
    assert_int_equal(access(t->path, F_OK), -1); /* not made again */
}

TEST_WITH(another_file_of_that_name_is_not_ours, set_up, tear_down)
{
    struct fixture *t = *state;
    int number = take_number(t);

    assert_int_equal(rename(t->other, t->path), 0);
    check_lost(t);
    check_content(t->path, theirs, sizeof theirs);
    close(number);
}

TEST_WITH(a_link_of_that_name_is_not_followed, set_up, tear_down)
{
    struct fixture *t = *state;

    assert_int_equal(rename(t->path, t->other), 0);
    assert_int_equal(symlink(t->other, t->path), 0);
    close(t->file.fd);
    check_lost(t);
}

TEST_WITH(a_shorter_file_is_not_written_beyond_its_end, set_up, tear_down)
{
    struct fixture *t = *state;

    assert_int_equal(truncate(t->path, 3), 0);
    check_lost(t);
    check_content(t->path, ours, 3);
}

static void put_theirs(const char *path)
{
    assert_int_equal(unlink(path), 0);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, theirs, sizeof theirs), sizeof theirs);
    close(fd);
}

/* The file is made, and before it is looked at again another one has its name. */
TEST_WITH(a_file_of_another_program_is_not_removed, set_up, tear_down)
{
    struct fixture *t = *state;
    struct mt_own_file file;

    before_lstat = put_theirs;
    assert_false(mt_own_file_create(&file, t->other));
    assert_int_equal(errno, ESTALE);
    check_content(t->other, theirs, sizeof theirs);
}

static int other_number = -1;

/* The program closes every descriptor, and opens a file, which gets the number. */
static void close_all(const char *path)
{
    struct stat made, other;
    int fd = 3;

    assert_int_equal(stat(path, &made), 0);
    while (fd < 1024 && (fstat(fd, &other) || other.st_ino != made.st_ino))
        fd++;
    close(fd);
    other_number = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(other_number, fd);
}

TEST_WITH(an_empty_file_that_lost_its_number_is_removed, set_up, tear_down)
{
    struct fixture *t = *state;
    struct mt_own_file file;

    before_lstat = close_all;
    assert_false(mt_own_file_create(&file, t->other));
    assert_int_equal(access(t->other, F_OK), -1);
    assert_int_equal(close(other_number), 0);
}

TEST_WITH(only_its_own_file_is_removed, set_up, tear_down)
{
    struct fixture *t = *state;

    assert_int_equal(rename(t->path, t->other), 0);
    put_theirs(t->other); /* ours is gone: theirs stands under both names */
    assert_int_equal(link(t->other, t->path), 0);
    mt_own_file_remove(&t->file);
    check_content(t->path, theirs, sizeof theirs);
    assert_int_equal(unlink(t->path), 0);
    assert_true(mt_own_file_create(&t->file, t->path));
    mt_own_file_remove(&t->file);
    assert_int_equal(access(t->path, F_OK), -1);
    assert_int_equal(t->file.fd, -1);
}

TEST_WITH(a_socket_gets_nothing, set_up, tear_down)
{
    struct fixture *t = *state;
    int ends[2], number = t->file.fd;
    char byte;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    assert_int_equal(dup2(ends[0], number), number);
    assert_int_equal(mt_own_file_write(&t->file, "+", 1, sizeof ours), 1);
    assert_int_equal(read(ends[1], &byte, 1), -1);
    assert_int_equal(errno, EAGAIN);
    close(number), close(ends[0]), close(ends[1]);
}

/* What `recover` asks: may it touch the tape? */
TEST_WITH(the_tape_stays_locked_when_its_descriptors_are_closed, set_up, tear_down)
{
    struct fixture *t = *state;
    struct mt_error error = {0};
    struct mt_own_file file;
    struct mt_tape *tape, *seen;
    int status;

    assert_int_equal(mt_tape_create(t->other, 16, &tape, &file, &error), MT_OK);
    assert_true(tape->locked);
    int fd = open(t->other, O_RDONLY | O_CLOEXEC);
    close(fd); /* takes a record lock with it */
    close(file.fd);
    pid_t child = fork();
    if (!child)
        _exit(mt_tape_open(t->other, &seen, NULL, &error) != MT_ERR_USAGE);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    mt_tape_unmap(tape);
    assert_int_equal(mt_tape_open(t->other, &seen, NULL, &error), MT_OK);
    mt_tape_unmap(seen);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
