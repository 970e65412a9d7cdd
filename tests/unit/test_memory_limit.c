/* The memory budget: what is counted, what is refused, and the source of the default. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "process_memory.h"
#include "memory_limit.h"
#include "outputs.h"
#include "file_kinds.h"

TEST(requests_above_the_limit_are_refused)
{
    const struct mt_error lack = {.status = MT_ERR_MEMORY};
    char text[MT_MEMORY_TEXT];

    assert_true(mt_memory_allows(UINT64_MAX)); /* no budget yet */
    mt_memory_limit_set(1000);
    mt_memory_taken(600);
    assert_true(mt_memory_allows(400));
    assert_int_equal(mt_memory_refused(), 0);
    assert_false(mt_memory_allows(401));
    assert_false(mt_memory_allows(UINT64_MAX));
    assert_int_equal(mt_memory_refused(), 1001); /* the first one */
    assert_string_equal(
        mt_memory_reason(text),
        "needs more memory than the 0.98 KiB that --max-memory allows; raise --max-memory");
    assert_int_equal(mt_report_error("x", &lack), MT_EXIT_INPUT);
    assert_int_equal(mt_report_output_error("x", &lack), MT_EXIT_INPUT);
    assert_int_equal(mt_report_drawing_error("x", &lack), MT_EXIT_INPUT);
    mt_memory_given_back(601); /* one byte of overhead of the C library */
    assert_int_equal(mt_memory_in_use(), 0);
    assert_true(mt_memory_allows(1000));
    mt_memory_budget_set(0);
}

TEST(the_variable_is_read)
{
    char text[MT_MEMORY_TEXT];

    setenv("MEMTRACE_MAX_MEMORY", "2KiB", 1);
    assert_int_equal(mt_memory_limit_start(mt_outputs_unfinished()), -1);
    assert_int_equal(mt_memory_budget(), 2048);
    assert_false(mt_memory_allows(4096));
    assert_string_equal(
        mt_memory_reason(text),
        "needs more memory than 2.00 KiB (MEMTRACE_MAX_MEMORY); raise the limit with --max-memory");
    setenv("MEMTRACE_MAX_MEMORY", "much", 1);
    assert_int_equal(mt_memory_limit_start(mt_outputs_unfinished()), 2);
    unsetenv("MEMTRACE_MAX_MEMORY");
    assert_int_equal(mt_memory_limit_start(mt_outputs_unfinished()), -1);
    assert_true(mt_memory_budget() > 0);
    mt_memory_budget_set(0);
}

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[300];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void make_folder(const char *folder, const char *name)
{
    char path[300];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

TEST(limits_of_cgroups)
{
    char root[] = "/tmp/test_memory_limit.XXXXXX", command[100];

    assert_non_null(mkdtemp(root));
    assert_true(mt_memory_cgroup_limit(root, "0::/a/b\n") == UINT64_MAX);
    make_folder(root, "a");
    make_folder(root, "a/b");
    make_folder(root, "memory");
    make_folder(root, "memory/c");
    write_file(root, "a/b/memory.max", "max\n");
    assert_true(mt_memory_cgroup_limit(root, "0::/a/b\n") == UINT64_MAX);
    write_file(root, "a/memory.max", "5000\n"); /* also applies to child groups */
    assert_int_equal(mt_memory_cgroup_limit(root, "0::/a/b\n"), 5000);
    write_file(root, "a/b/memory.max", "4000\n");
    assert_int_equal(mt_memory_cgroup_limit(root, "0::/a/b\n"), 4000);
    assert_int_equal(mt_memory_cgroup_limit(root, "0::/not/seen/here"), UINT64_MAX);
    write_file(root, "memory.max", "3000\n"); /* the root of a container */
    assert_int_equal(mt_memory_cgroup_limit(root, "0::/not/seen/here"), 3000);
    write_file(root, "memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_true(mt_memory_cgroup_limit(root, "3:cpu,cpuacct:/\n4:memory:/c\n") == UINT64_MAX);
    write_file(root, "memory/c/memory.limit_in_bytes", "2000\n");
    assert_int_equal(mt_memory_cgroup_limit(root, "3:cpu,cpuacct:/\n4:hugetlb,memory:/c\n"), 2000);
    assert_true(mt_memory_cgroup_limit(root, "3:memoryless:/c\n") == UINT64_MAX);
    assert_int_equal(mt_memory_cgroup_limit(root, "4:memory:/c\n0::/a\n"), 2000);
    assert_true(mt_memory_cgroup_limit(root, "") == UINT64_MAX);
    assert_true(mt_memory_cgroup_limit(root, "nonsense\n:\n::\n0::") == UINT64_MAX);
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

/* 2: 1,000 of 5,000 are free in the parent, 3,500 of 4,000 in the child. */
TEST(free_memory_of_cgroups)
{
    char root[] = "/tmp/test_memory_limit.XXXXXX", command[100];

    assert_non_null(mkdtemp(root));
    make_folder(root, "a");
    make_folder(root, "a/b");
    make_folder(root, "memory");
    make_folder(root, "memory/c");
    write_file(root, "a/memory.max", "5000\n");
    assert_int_equal(mt_memory_cgroup_available(root, "0::/a/b\n"), 5000);
    write_file(root, "a/memory.current", "4200\n");
    write_file(root, "a/memory.stat", "anon 1\nactive_file 7\ninactive_file 200\nfile 9\n");
    write_file(root, "a/b/memory.max", "4000\n");
    write_file(root, "a/b/memory.current", "500\n");
    assert_int_equal(mt_memory_cgroup_available(root, "0::/a/b\n"), 1000);
    assert_int_equal(mt_memory_cgroup_limit(root, "0::/a/b\n"), 4000);
    write_file(root, "a/memory.current", "6000\n"); /* the limit was lowered */
    assert_int_equal(mt_memory_cgroup_available(root, "0::/a/b\n"), 0);
    write_file(root, "memory/c/memory.limit_in_bytes", "2000\n");
    write_file(root, "memory/c/memory.usage_in_bytes", "1500\n");
    write_file(root, "memory/c/memory.stat", "inactive_file 1\ntotal_inactive_file 300\n");
    assert_int_equal(mt_memory_cgroup_available(root, "4:memory:/c\n"), 800);
    assert_true(mt_memory_cgroup_available(root, "0::/not/seen\n") == UINT64_MAX);
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

TEST(available_memory_is_read)
{
    assert_int_equal(mt_memory_available_in("MemTotal:  9 kB\nMemAvailable:   12345 kB\n"),
                     UINT64_C(12345) * 1024);
    assert_true(mt_memory_available_in("MemTotal:  9 kB\n") == UINT64_MAX);
    assert_true(mt_memory_available_in("MemAvailable: 99999999999999999999 kB\n") == UINT64_MAX);
    assert_true(mt_memory_available() > 0);
}

static void leave(void)
{
    _exit(7);
}

/* A text that lacks a part, such as a NULL, is never printed or written. */
TEST(an_incomplete_answer_ends_the_program)
{
    static const struct mt_outputs outputs = {.force = false};
    struct mt_buf text = {0};

    mt_buf_add_text(&text, "half");
    mt_buf_add_text(&text, NULL);
    for (int is_file = 0; is_file < 2; is_file++) {
        pid_t child = fork();
        int status;

        if (child == 0) {
            mt_memory_last_words_set(leave);
            _exit(is_file ? mt_outputs_write("/dev/null", &outputs, &mt_file_baseline, &text)
                          : mt_print(&text));
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 7 << 8);
    }
    mt_buf_release(&text);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
