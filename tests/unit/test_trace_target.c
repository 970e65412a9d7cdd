/* The name of a trace belongs to one run, from the check of the old trace to the end. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* mkdtemp */
#endif
#include "cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace_target.h"

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);

uid_t __real_geteuid(void);
uid_t __wrap_geteuid(void);

static int flock_error; /* of a file system without locks */
static bool is_other_user;

uid_t __wrap_geteuid(void)
{
    return __real_geteuid() + is_other_user;
}

int __wrap_flock(int fd, int operation)
{
    if (!flock_error)
        return __real_flock(fd, operation);
    errno = flock_error;
    return -1;
}

struct folder {
    char path[64], trace[96];
};

static int enter(void **state)
{
    static const char *const variables[] = {
        "RANK",         "LOCAL_RANK", "NODE_RANK", "WORLD_SIZE",          "OMPI_COMM_WORLD_RANK",
        "SLURM_PROCID", "PMI_RANK",   "PMIX_RANK", "MV2_COMM_WORLD_RANK",
    };
    struct folder *folder = test_calloc(1, sizeof *folder);

    snprintf(folder->path, sizeof folder->path, "/tmp/test_trace_target-XXXXXX");
    assert_non_null(mkdtemp(folder->path));
    snprintf(folder->trace, sizeof folder->trace, "%s/run.trace.zst", folder->path);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    flock_error = 0;
    is_other_user = false;
    *state = folder;
    return 0;
}

/* Fails if a claim was left: the test removes its traces itself. */
static int leave(void **state)
{
    struct folder *folder = *state;

    unlink(folder->trace);
    assert_int_equal(rmdir(folder->path), 0);
    test_free(folder);
    return 0;
}

static struct mt_trace_target *prepare_at(const char *output, uint64_t began_ns)
{
    static char *const command[] = {(char *)(uintptr_t) "program", NULL};
    const struct mt_trace_target_request request = {
        .output = output, .command = command, .room_bytes = 4096, .began_ns = began_ns};
    struct mt_trace_target *place = test_calloc(1, sizeof *place);
    struct mt_error error = {.offset = MT_NO_OFFSET};

    assert_int_equal(mt_trace_target_prepare(place, &request, &error), MT_OK);
    return place;
}

static struct mt_trace_target *prepare(const char *output)
{
    return prepare_at(output, UINT64_MAX);
}

static void end(struct mt_trace_target *place)
{
    mt_trace_target_leave(place);
    test_free(place);
}

static void write_trace(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

    assert_true(fd >= 0);
    close(fd);
}

TEST_WITH(a_name_has_one_owner, enter, leave)
{
    const struct folder *folder = *state;
    struct mt_trace_target *first = prepare(folder->trace), *second = prepare(folder->trace),
                           *third;

    assert_string_equal(first->name, "run.trace.zst");
    assert_false(first->is_renamed);
    assert_string_equal(second->name, "run-2.trace.zst");
    assert_true(second->is_renamed);
    end(first);
    third = prepare(folder->trace);
    assert_string_equal(third->name, "run.trace.zst");
    end(third);
    end(second);
}

/* A number must not replace a trace: nobody gave it this name. */
TEST_WITH(a_number_is_free, enter, leave)
{
    const struct folder *folder = *state;
    struct mt_trace_target *first = prepare(folder->trace), *second;
    char taken[128];

    snprintf(taken, sizeof taken, "%s/run-2.trace.zst", folder->path);
    write_trace(taken);
    second = prepare(folder->trace);
    assert_string_equal(second->name, "run-3.trace.zst");
    end(second);
    end(first);
    unlink(taken);
}

TEST_WITH(a_claim_without_an_owner_is_taken_over, enter, leave)
{
    const struct folder *folder = *state;
    struct mt_trace_target *killed = prepare(folder->trace), *next;

    close(killed->claim.fd); /* what its death does: the lock goes, the file stays */
    next = prepare(folder->trace);
    assert_string_equal(next->name, "run.trace.zst");
    end(next);
    free(killed->claim.file);
    test_free(killed);
}

/* Nobody can determine whether its owner lives. */
TEST_WITH(without_locks_the_file_counts, enter, leave)
{
    const struct folder *folder = *state;
    static const int errors[] = {ENOLCK, EOPNOTSUPP, ENOSYS};

    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        flock_error = errors[i];
        struct mt_trace_target *first = prepare(folder->trace);
        struct mt_trace_target *second = prepare(folder->trace);
        assert_string_equal(first->name, "run.trace.zst");
        assert_string_equal(second->name, "run-2.trace.zst");
        end(first);
        end(second);
        first = prepare(folder->trace);
        assert_string_equal(first->name, "run.trace.zst");
        end(first);
    }
}

/* As NFS, which maps root to nobody. */
TEST_WITH(a_new_claim_may_have_another_owner, enter, leave)
{
    const struct folder *folder = *state;

    is_other_user = true;
    struct mt_trace_target *place = prepare(folder->trace);
    assert_string_equal(place->name, "run.trace.zst");
    end(place);
}

TEST_WITH(only_the_checked_trace_is_removed, enter, leave)
{
    const struct folder *folder = *state;

    write_trace(folder->trace);
    struct mt_trace_target *place = prepare(folder->trace);
    mt_trace_target_clear(place);
    assert_int_equal(access(folder->trace, F_OK), -1);
    write_trace(folder->trace); /* of a process that outlived its `memtrace record` */
    mt_trace_target_clear(place);
    assert_int_equal(access(folder->trace, F_OK), 0);
    end(place);
    unlink(folder->trace);

    place = prepare(folder->trace); /* there is no trace to replace */
    write_trace(folder->trace);
    mt_trace_target_clear(place);
    assert_int_equal(access(folder->trace, F_OK), 0);
    end(place);
}

/* The other run has ended in the meantime, so it has no claim. */
TEST_WITH(a_trace_that_is_newer_than_this_run_stays, enter, leave)
{
    const struct folder *folder = *state;

    write_trace(folder->trace);
    struct mt_trace_target *place = prepare_at(folder->trace, 1);
    assert_string_equal(place->name, "run-2.trace.zst");
    mt_trace_target_clear(place);
    assert_int_equal(access(folder->trace, F_OK), 0);
    end(place);
}

TEST_WITH(a_rank_has_its_own_name, enter, leave)
{
    static const struct {
        const char *rank, *world, *given, *name;
    } cases[] = {
        {"3", "8", "run.trace.zst", "run-rank3.trace.zst"},
        {"0", "8", "run.trace.zst", "run-rank0.trace.zst"},
        {"3", "8", "run-3.trace.zst", "run-3.trace.zst"},
        {"3", "8", "run-3-of-8.trace.zst", "run-3-of-8-rank3.trace.zst"},
        {"3", "8", "run03.new.trace.zst", "run03.new.trace.zst"},
        {"3", "8", "run-13.trace.zst", "run-13-rank3.trace.zst"},
        {"0", "1", "run.trace.zst", "run.trace.zst"},
        {"3", NULL, "run", "run-rank3"},
        {"x", "8", "run.trace.zst", "run.trace.zst"},
    };
    const struct folder *folder = *state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char output[128];

        snprintf(output, sizeof output, "%s/%s", folder->path, cases[i].given);
        setenv("RANK", cases[i].rank, 1);
        unsetenv("WORLD_SIZE");
        if (cases[i].world)
            setenv("WORLD_SIZE", cases[i].world, 1);
        struct mt_trace_target *place = prepare(output);
        assert_string_equal(place->name, cases[i].name);
        assert_false(place->is_renamed);
        end(place);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
