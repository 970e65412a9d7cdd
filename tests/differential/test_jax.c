/* Compares the policy `bfc` with JAX's arena on a GPU: the requests of a program that trains and
 * infers, recorded with JAX's cuda_async allocator, which shows their exact sizes, and
 * `memory_stats()` of the arena at 18 points of the same program, growing and preallocated. Every
 * number is equal. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "packed_text.h"
#include "policy_bench.h"
#include "util.h"

enum { REQUESTS = 1328, MOMENTS = 18, NUMBERS = 6, TEXT = 1 << 17 };

static const uint64_t GPU_BYTES = 150109880320; /* of the H200, as reported by the driver */

static char *text;

static int load(void **unused)
{
    (void)unused;
    text = read_packed_text("captures/jax_arena.csv.zst", TEXT);
    return 0;
}

static int unload(void **unused)
{
    (void)unused;
    free(text);
    return 0;
}

struct against_jax {
    struct policy_bench bench;
    struct mt_policy_block blocks[REQUESTS];
    uint64_t largest, limit, moments;
};

static uint64_t number(char **next)
{
    return strtoull(*next + (**next == ','), next, 10);
}

/* num_allocs, bytes_in_use, peak_bytes_in_use, largest_alloc_size, pool_bytes,
 * bytes_limit of the growing arena, then of the preallocated one. */
static void compare(struct against_jax *run, char *next, size_t skipped)
{
    const struct mt_counters *counters = policy_bench_counters(&run->bench);
    const uint64_t ours[NUMBERS] = {counters->allocations,  counters->active.now,
                                    counters->active.peak,  run->largest,
                                    counters->reserved.now, run->limit};

    for (size_t i = 0; i < skipped; i++)
        (void)number(&next);
    for (size_t i = 0; i < NUMBERS; i++)
        assert_int_equal(ours[i], number(&next));
    run->moments++;
}

static void follow(struct against_jax *run, char *line, size_t skipped)
{
    char *next = line + 1;

    if (line[0] == '=') {
        compare(run, next, skipped);
        return;
    }
    uint64_t id = number(&next);
    assert_true(id < REQUESTS);
    if (line[0] == '-') {
        policy_bench_give(&run->bench, &run->blocks[id]);
        return;
    }
    assert_int_equal(policy_bench_take(&run->bench, number(&next), 0, &run->blocks[id]), MT_OK);
    run->largest = mt_max_u64(run->largest, run->blocks[id].size_bytes);
}

static void play(const char *options, uint64_t limit, size_t skipped)
{
    static struct against_jax run;
    char *copy = strdup(text), *rest = copy, *line;

    assert_non_null(copy);
    memset(&run, 0, sizeof run);
    run.limit = limit;
    policy_bench_open(&run.bench, "bfc", options, GPU_BYTES);
    while ((line = strtok_r(rest, "\n", &rest)))
        follow(&run, line, skipped);
    assert_int_equal(run.moments, MOMENTS);
    assert_int_equal(policy_bench_counters(&run.bench)->allocations, REQUESTS);
    policy_bench_close(&run.bench);
    free(copy);
}

/* The most that the arena may hold, found by allocating all of it. */
static uint64_t whole_arena(const char *options)
{
    struct mt_policy_block block;
    struct policy_bench bench;

    policy_bench_open(&bench, "bfc", options, GPU_BYTES);
    assert_int_equal(policy_bench_take(&bench, 1, 0, &block), MT_OK);
    uint64_t bytes = policy_bench_counters(&bench)->reserved.now;
    policy_bench_close(&bench);
    return bytes;
}

TEST(growing)
{
    play("preallocate=False", whole_arena(NULL), 0);
}

TEST(preallocated)
{
    /* XLA_PYTHON_CLIENT_MEM_FRACTION=.03 */
    play("memory_fraction=0.03", whole_arena("memory_fraction=0.03"), NUMBERS);
}

int main(void)
{
    return run_tests_of_file(load, unload);
}
