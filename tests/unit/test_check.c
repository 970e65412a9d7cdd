/* What a failed MT_ASSERT and MT_CHECK print, and when whole structures are checked. */
#include "cmocka_all.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "cli.h"

static enum mt_status checked(struct mt_error *error, int value)
{
    MT_CHECK(error, value < 3);
    return MT_OK;
}

TEST(check_returns_place_and_expression)
{
    struct mt_error error = {0};

    assert_int_equal(checked(&error, 2), MT_OK);
    assert_int_equal(checked(NULL, 3), MT_ERR_INTERNAL);
    assert_int_equal(checked(&error, 3), MT_ERR_INTERNAL);
    assert_int_equal(error.status, MT_ERR_INTERNAL);
    /* Compilers without __FILE_NAME__ give the path. */
    assert_non_null(strstr(error.text, "value < 3 is false ("));
    assert_non_null(strstr(error.text, "test_check.c:"));
}

/* Runs `body` in a child. Returns its wait status; `text` gets what it wrote to standard error. */
static int in_child(void (*body)(void), char *text, size_t size)
{
    int ends[2], status = 0;

    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        body();
        _exit(0);
    }
    close(ends[1]);
    ssize_t length = read(ends[0], text, size - 1);
    text[length > 0 ? length : 0] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void report_internal(void)
{
    struct mt_error error = {0};

    (void)!checked(&error, 3);
    _exit(mt_report_error("run.trace", &error));
}

TEST(a_person_reads_one_line)
{
    char text[1024];
    int status = in_child(report_internal, text, sizeof text);

    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), MT_EXIT_INTERNAL);
    assert_non_null(strstr(text, "memtrace: internal error with 'run.trace': value < 3 is false"));
    assert_non_null(strstr(text, "please report"));
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

static int evaluated;

static int count_and_fail(void)
{
    evaluated++;
    return 0;
}

static void stop_by_assert(void)
{
    MT_ASSERT(count_and_fail());
    _exit(evaluated);
}

static bool is_sound(int value, const char **why)
{
    MT_SOUND(why, value == 1);
    return true;
}

static void stop_by_unsound(void)
{
    const char *why = NULL;

    setenv("MEMTRACE_CHECK_SEED", "77", 1);
    MT_ASSERT_SOUND(is_sound(2, &why), why);
}

TEST(assertions_stop_builds_that_have_them)
{
    char text[1024];
    int status = in_child(stop_by_assert, text, sizeof text);

#ifdef MEMTRACE_ASSERT
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_non_null(
        strstr(text, "assertion failed: count_and_fail(), in stop_by_assert (test_check.c:"));
    status = in_child(stop_by_unsound, text, sizeof text);
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_non_null(strstr(text, "value == 1 (line "));
    assert_non_null(strstr(text, "MEMTRACE_CHECK_SEED=77"));
#else
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_string_equal(text, "");
    assert_int_equal(in_child(stop_by_unsound, text, sizeof text), 0);
#endif
}

#ifdef MEMTRACE_ASSERT
TEST(checks_cost_a_fraction_of_the_work)
{
    const uint64_t cost = 1000, operations = 1000000;
    struct mt_check_pace pace = {0}, again = {0};
    uint64_t i, due = 0;

    for (i = 0; i < operations; i++) {
        bool is_due = mt_check_is_due(&pace, cost);
        assert_int_equal(mt_check_is_due(&again, cost), is_due);
        due += is_due;
    }
    assert_in_range(due * cost, operations * 8 / 10, operations * 11 / 10);
}
#endif

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
