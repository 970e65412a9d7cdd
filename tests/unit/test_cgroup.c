/* The control group's limit and victims, in folders that imitate the file systems of a machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cgroup.h"

#include "cmocka_all.h"

static char root[] = "/tmp/memtrace-cgroup-XXXXXX";

static void put(const char *path, const char *text)
{
    char full[512];

    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = '\0';
        mkdir(full, 0700);
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int begin(void **state)
{
    (void)state;
    strcpy(root + sizeof root - 7, "XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int end(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

TEST_WITH(version_2_has_the_lowest_limit_of_all_ancestors, begin, end)
{
    uint64_t kills;

    put("/proc/self/cgroup", "0::/user.slice/job_7/task\n");
    put("/sys/fs/cgroup/memory.max", "1000000\n"); /* as in a container */
    put("/sys/fs/cgroup/user.slice/memory.max", "max\n");
    put("/sys/fs/cgroup/user.slice/job_7/memory.max", "68719476736\n");
    put("/sys/fs/cgroup/user.slice/job_7/task/memory.max", "max\n");
    put("/sys/fs/cgroup/user.slice/job_7/task/memory.events",
        "low 0\nhigh 3\nmax 10\noom 2\noom_kill 1\noom_group_kill 0\n");
    assert_int_equal(mt_cgroup_limit_bytes(root), 1000000);
    put("/sys/fs/cgroup/memory.max", "max\n");
    assert_int_equal(mt_cgroup_limit_bytes(root), UINT64_C(68719476736));
    assert_true(mt_cgroup_oom_kills(root, &kills));
    assert_int_equal(kills, 1);
}

TEST_WITH(a_group_without_the_controller_uses_its_parent, begin, end)
{
    uint64_t kills;

    put("/proc/self/cgroup", "0::/system.slice/job_7/task/\n");
    put("/sys/fs/cgroup/system.slice/job_7/memory.max", "4096\n");
    put("/sys/fs/cgroup/system.slice/job_7/memory.events", "oom_kill 2\n");
    put("/sys/fs/cgroup/system.slice/job_7/task/cgroup.procs", "1\n");
    put("/sys/fs/cgroup/system.slice/memory.max", "8192\n");
    assert_int_equal(mt_cgroup_limit_bytes(root), 4096);
    assert_true(mt_cgroup_oom_kills(root, &kills));
    assert_int_equal(kills, 2);
}

TEST_WITH(version_1_files_are_read, begin, end)
{
    uint64_t kills;

    put("/proc/self/cgroup", "5:cpuset:/\n4:cpu,memory:/slurm/job_7\n1:name=systemd:/\n0::/\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes", "4294967296\n");
    put("/sys/fs/cgroup/memory/slurm/job_7/memory.oom_control",
        "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
    assert_int_equal(mt_cgroup_limit_bytes(root), UINT64_C(4294967296));
    assert_true(mt_cgroup_oom_kills(root, &kills));
    assert_int_equal(kills, 5);
}

TEST_WITH(a_container_sees_its_group_as_the_root, begin, end)
{
    uint64_t kills;

    put("/proc/self/cgroup", "0::/kubepods/pod1/abc\n"); /* a path of the host */
    put("/sys/fs/cgroup/memory.max", "2147483648\n");
    put("/sys/fs/cgroup/memory.events", "oom_kill 0\n");
    assert_int_equal(mt_cgroup_limit_bytes(root), UINT64_C(2147483648));
    assert_true(mt_cgroup_oom_kills(root, &kills));
    assert_int_equal(kills, 0);
}

TEST_WITH(hostile_files_are_ignored, begin, end)
{
    static const char *const groups[] = {
        "",       "0",        "0:",          "0::",    "0::/../../etc", ":::::",
        "memory", "4:memory", "0:memory:/x", "\n\n\n", "4:xmemory:/a"};
    uint64_t kills;
    char many[9000];

    assert_int_equal(mt_cgroup_limit_bytes(root), 0); /* no such files at all */
    assert_false(mt_cgroup_oom_kills(root, &kills));
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        put("/proc/self/cgroup", groups[i]);
        assert_int_equal(mt_cgroup_limit_bytes(root), 0);
        assert_false(mt_cgroup_oom_kills(root, &kills));
    }
    put("/proc/self/cgroup", "0::/a\n");
    put("/sys/fs/cgroup/a/memory.max", "99999999999999999999999\n");
    put("/sys/fs/cgroup/a/memory.events", "oom_kill -1\noom_kill 3\n");
    assert_int_equal(mt_cgroup_limit_bytes(root), 0);
    assert_false(mt_cgroup_oom_kills(root, &kills));
    memset(many, 'x', sizeof many - 1);
    many[sizeof many - 1] = '\0';
    put("/proc/self/cgroup", many);
    assert_int_equal(mt_cgroup_limit_bytes(root), 0);
}

TEST_WITH(a_path_outside_of_the_root_is_not_followed, begin, end)
{
    put("/proc/self/cgroup", "0::/a/../../outside\n");
    put("/sys/fs/outside/memory.max", "1\n");
    put("/sys/fs/outside/memory.events", "oom_kill 1\n");
    put("/sys/fs/cgroup/a/memory.max", "max\n");
    assert_int_equal(mt_cgroup_limit_bytes(root), 0);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
