/* Small files are read without harm to files of a program that closes numbers that it does not
 * know. */
#include "cmocka_all.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"

/* The program's file, which gets the number that memtrace reads; -1: none. */
static int own = -1, reused = -1;

ssize_t __real_pread(int fd, void *bytes, size_t length, off_t offset);
ssize_t __wrap_pread(int fd, void *bytes, size_t length, off_t offset);
ssize_t __wrap_pread(int fd, void *bytes, size_t length, off_t offset)
{
    if (own >= 0)
        reused = dup2(own, fd);
    return __real_pread(fd, bytes, length, offset);
}

static char path[] = "/tmp/memtrace-io-XXXXXX";

static int enter(void **state)
{
    (void)state;
    strcpy(path + sizeof path - 7, "XXXXXX");
    int fd = mkstemp(path);
    return fd >= 0 && write(fd, "words", 5) == 5 && !close(fd) ? 0 : -1;
}

static int leave(void **state)
{
    (void)state;
    return unlink(path);
}

TEST_WITH(small_files_end_with_nul, enter, leave)
{
    char text[8] = "1234567";

    assert_int_equal(mt_io_read_text(path, text, 4), 3);
    assert_string_equal(text, "wor");
    assert_int_equal(mt_io_read_text(path, text, sizeof text), 5);
    assert_string_equal(text, "words");
    assert_int_equal(mt_io_read_text("/nowhere", text, sizeof text), 0);
    assert_string_equal(text, "");
}

TEST_WITH(a_pipe_keeps_what_is_in_it, enter, leave)
{
    char text[8] = "1234567";

    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "words", 5), 5);
    assert_int_equal(mt_io_read_text(path, text, sizeof text), 0);
    assert_string_equal(text, "");
    assert_int_equal(read(fd, text, sizeof text), 5);
    close(fd);
}

TEST_WITH(a_number_that_the_program_reused_stays_open, enter, leave)
{
    char text[8];

    own = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_true(own >= 0);
    (void)mt_io_read_text(path, text, sizeof text);
    assert_true(reused >= 0 && reused != own);
    assert_int_equal(lseek(reused, 0, SEEK_CUR), 0);
    close(reused);
    close(own);
    own = -1;
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
