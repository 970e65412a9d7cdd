/* Names of threads that become known late: see thread_names.h. */
#include "cmocka_all.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "recorded_events.h"
#include "thread_names.h"

static unsigned self(void)
{
    return (unsigned)syscall(SYS_gettid);
}

static void expect(const char *how, const char *name)
{
    char wanted[320];

    snprintf(wanted, sizeof wanted, "%s %u %s\n", how, self(), name);
    assert_string_equal(recorded.definitions, wanted);
    recorded_clear();
}

/* As if /proc were mounted again. */
static dev_t added_to_devices;

int __real_stat(const char *path, struct stat *facts);
int __wrap_stat(const char *path, struct stat *facts);
int __wrap_stat(const char *path, struct stat *facts)
{
    int result = __real_stat(path, facts);

    facts->st_dev += added_to_devices;
    return result;
}

int __real_fstat(int fd, struct stat *facts);
int __wrap_fstat(int fd, struct stat *facts);
int __wrap_fstat(int fd, struct stat *facts)
{
    int result = __real_fstat(fd, facts);

    facts->st_dev += added_to_devices;
    return result;
}

static int fresh(void **state)
{
    (void)state;
    mt_thread_names_source.forked();
    recorded_clear();
    return 0;
}

TEST_WITH(renamed_threads, fresh, NULL)
{
    prctl(PR_SET_NAME, "one");
    mt_thread_names_source.poll();
    expect("renamed", "one");
    prctl(PR_SET_NAME, "two");
    mt_thread_names_source.poll(); /* too soon to look again */
    assert_string_equal(recorded.definitions, "");
    mt_thread_names_source.stop();
    expect("renamed", "two");
    mt_thread_names_source.stop();
    assert_string_equal(recorded.definitions, "");
}

TEST_WITH(given_names_stay, fresh, NULL)
{
    prctl(PR_SET_NAME, "comm");
    mt_thread_name_set(self(), "given", 5);
    mt_thread_names_source.poll();
    expect("given", "given");
    prctl(PR_SET_NAME, "other");
    mt_thread_names_source.stop();
    assert_string_equal(recorded.definitions, "");
    mt_thread_name_set(self(), "again", 5);
    mt_thread_names_source.stop();
    expect("given", "again");
    mt_thread_name_set(self(), "", 0);
    mt_thread_names_source.stop();
    assert_string_equal(recorded.definitions, "");
}

TEST_WITH(long_names_are_cut, fresh, NULL)
{
    char name[1000], wanted[257];

    memset(name, 'n', sizeof name);
    memset(wanted, 'n', 256);
    wanted[256] = 0;
    mt_thread_name_set(self(), name, sizeof name);
    mt_thread_names_source.poll();
    expect("given", wanted);
}

TEST_WITH(without_a_collector, fresh, NULL)
{
    prctl(PR_SET_NAME, "comm");
    recorded.refuses = true;
    mt_thread_name_set(self(), "given", 5);
    mt_thread_names_source.stop();
    assert_string_equal(recorded.definitions, "");
    recorded.refuses = false; /* nothing is lost: it is told later */
    mt_thread_names_source.stop();
    expect("given", "given");
}

static int lowest_descriptor(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    close(fd);
    return fd;
}

TEST_WITH(another_proc_with_as_many_threads, fresh, NULL)
{
    int before = lowest_descriptor();

    mt_thread_names_source.stop();
    added_to_devices = 1;
    mt_thread_names_source.stop();
    added_to_devices = 0;
    assert_int_equal(lowest_descriptor(), before);
}

static void *name_many(void *unused)
{
    for (int i = 0; i < 1000; i++)
        mt_thread_name_set(1, "x", 1);
    return unused;
}

TEST_WITH(from_many_threads, fresh, NULL)
{
    pthread_t threads[4];
    size_t count = 0;

    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, name_many, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    mt_thread_names_source.stop();
    for (const char *at = recorded.definitions; (at = strstr(at, "given 1 x\n")); at++)
        count++;
    assert_int_equal(count, sizeof recorded.definitions / strlen("given 1 x\n"));
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
