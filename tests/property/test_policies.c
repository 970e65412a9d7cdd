/* Long random programs on every policy, with an observer that does not know its rules
 * (policy_observer.h). At the end, all memory is released. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "dice.h"
#include "oracle.h"
#include "policy_observer.h"
#include "util.h"

enum { STREAMS = 3, POOLS = 3, LIVE = 160, STEPS = 2500, PROGRAMS = 6 };

struct program {
    struct policy_observer observer;
    struct mt_policy *policy;
    struct mt_device_model device;
    bool may_fail;      /* the device or the policy has a limit */
    uint64_t next_addr; /* for `recorded`, which wants addresses */
};

/* Small sizes are common, large ones exist, and some sit on the thresholds. */
static uint64_t random_size(void)
{
    static const uint64_t edges[] = {
        1, 512, MT_MIB, MT_MIB + 1, 10 * MT_MIB, 10 * MT_MIB - 1, 20 * MT_MIB, 64 * MT_MIB};

    if (xorshift_below(10) == 0)
        return edges[xorshift_below(MT_ARRAY_LEN(edges))];
    return 1 + xorshift_below((uint64_t)1 << (6 + xorshift_below(21)));
}

static void check(struct program *program)
{
    if (xorshift_below(4) == 0) /* it looks at everything there is */
        observer_look_inside(&program->observer);
    else
        observer_compare(&program->observer);
    if (program->observer.trouble[0])
        fail_msg("%s: %s", program->observer.ops->name, program->observer.trouble);
}

static void take(struct program *program)
{
    struct mt_policy_request request = {random_size(), (uint32_t)xorshift_below(STREAMS),
                                        (uint16_t)xorshift_below(POOLS), program->next_addr, 0};
    struct mt_policy_block block;

    program->next_addr += 256 * MT_MIB;
    enum mt_status status = program->observer.ops->alloc(program->policy, &request, &block);
    if (status == MT_ERR_DEVICE_OOM) {
        assert_true(program->may_fail);
        return;
    }
    assert_int_equal(status, MT_OK);
    observer_took(&program->observer, request.size_bytes, &block);
}

static void give(struct program *program, size_t i)
{
    struct observed_block held = program->observer.blocks[i];

    if (!held.pending) {
        assert_int_equal(program->observer.ops->free_requested(program->policy, held.block.handle),
                         MT_OK);
        observer_free_requested(&program->observer, i);
        if (xorshift_below(4) == 0)
            return; /* waits for another stream */
    }
    assert_int_equal(program->observer.ops->free_completed(program->policy, held.block.handle),
                     MT_OK);
    observer_free_completed(&program->observer, i);
}

static void empty_cache(struct program *program)
{
    assert_int_equal(program->observer.ops->empty_cache(program->policy), MT_OK);
}

static void run(struct program *program)
{
    for (size_t step = 0; step < STEPS || program->observer.count; step++) {
        uint64_t dice = xorshift_below(100);
        mt_device_clear(&program->device);
        observer_new_log(&program->observer);
        size_t held = program->observer.count;
        if (step >= STEPS)
            give(program, 0);
        else if (dice == 0)
            empty_cache(program);
        else if (held < LIVE && (dice < 52 || !held))
            take(program);
        else
            give(program, xorshift_below(held));
        check(program);
    }
    mt_device_clear(&program->device);
    observer_new_log(&program->observer);
    empty_cache(program);
    check(program);
}

/* `recorded` follows the recording; it has no model. */
static bool is_unlogged(const struct mt_policy_ops *ops)
{
    const struct oracle_rules *rules = oracle_find(ops->name);

    return !rules || rules->unlogged;
}

static void run_policy(const struct mt_policy_ops *ops, const char *options, uint64_t limit_bytes)
{
    struct mt_trace_header header = {0};
    struct program program = {.next_addr = (uint64_t)1 << 40};
    struct mt_symbols symbols;
    struct mt_error error;
    char spelling[160];
    uint32_t id;

    program.observer =
        (struct policy_observer){.ops = ops, .device = &program.device, .alignment = 256};
    program.observer.unlogged = is_unlogged(ops);
    if (options && strstr(options, "expandable")) /* by less than a chunk */
        program.observer.overshoot = 40 * MT_MIB;
    program.may_fail =
        limit_bytes || (options && (strstr(options, "limit") || strstr(options, "maximum") ||
                                    strstr(options, "max_size") || strstr(options, "arena_size")));
    assert_int_equal(mt_symbols_init(&symbols), MT_OK);
    for (size_t i = 1; i < STREAMS; i++)
        assert_int_equal(mt_symbols_stream(&symbols, 0x1000 - i, &id), MT_OK);
    for (size_t i = 1; i < POOLS; i++)
        assert_int_equal(mt_symbols_pool(&symbols, 0, i, &id), MT_OK);
    mt_device_init(&program.device, limit_bytes, 80 * MT_GIB, false);
    if (mt_policy_create(ops,
                         &(struct mt_policy_setup){options, &header, &symbols, &program.device,
                                                   spelling, sizeof spelling},
                         &program.policy, &error) != MT_OK)
        fail_msg("%s:%s: %s", ops->name, options, error.text);
    program.observer.policy = program.policy;
    run(&program);
    ops->destroy(program.policy);
    mt_device_release(&program.device);
    mt_symbols_release(&symbols);
}

/* Policies with options that change their behavior. Those without a row run with their defaults. */
static const struct {
    const char *name, *options;
} variants[] = {
    {"pytorch", ""},
    {"pytorch", "expandable_segments:True"},
    {"pytorch", "max_split_size_mb:32"},
    {"pytorch", "garbage_collection_threshold:0.5"},
    {"pytorch", "expandable_segments:True,max_split_size_mb:40,large_segment_size_mb:40"},
    {"pytorch", "max_split_size_mb:20,garbage_collection_threshold:0.8,"
                "roundup_power2_divisions:8"},
    {"pytorch", "roundup_power2_divisions:[1:2,16:4,>:1]"},
    {"recorded", NULL},
    {"none", NULL},
    {"none", "page_size=2MiB"},
    {"cuda-async", NULL},
    {"cuda-async", "gpu=idle"},
    {"cuda-async", "gpu=busy,max_size=1GiB"},
    {"cuda-async", "release_threshold=0"},
    {"cupy", NULL},
    {"cupy", "limit=300MiB"},
    {"bfc", NULL},
    {"bfc", "preallocate=False"},
    {"bfc", "preallocate=False,garbage_collection=True,fragmentation_fraction=0.01"},
    {"ort", NULL},
    {"ort", "arena_extend_strategy=kSameAsRequested"},
    {"ort", "gpu_mem_limit=200MiB,max_dead_bytes_per_chunk=1MiB"},
    {"rmm-pool", NULL},
    {"rmm-pool", "initial_pool_size=0"},
    {"rmm-pool", "initial_pool_size=1MiB,maximum_pool_size=200MiB"}, /* has a limit */
    {"rmm-binning", "min_size_exponent=9,max_size_exponent=16"},
    {"rmm-binning", NULL},
    {"rmm-arena", NULL},
    {"rmm-arena", "arena_size=40MiB"},
    {"cub", NULL},
    {"cub", "bin_growth=2,min_bin=9,max_bin=24,max_cached_bytes=64MiB"},
    {"best-fit", "segment=20MiB"},
    {"planned", ""}, /* without a plan: the rest alone */
};

static const struct mt_policy_ops *variant_ops(size_t i)
{
    return mt_policy_find(variants[i].name, strlen(variants[i].name));
}

static bool has_variant(const struct mt_policy_ops *ops)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(variants); i++)
        if (variant_ops(i) == ops)
            return true;
    return false;
}

/* What is recorded has no limit of its own. */
static void run_every_policy(uint64_t limit_bytes)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(variants); i++)
        run_policy(variant_ops(i), variants[i].options,
                   variant_ops(i) == &mt_policy_recorded ? 0 : limit_bytes);
    for (size_t i = 0; mt_policies[i]; i++)
        if (!has_variant(mt_policies[i]))
            run_policy(mt_policies[i], NULL, limit_bytes);
}

TEST(random_programs_keep_every_invariant)
{
    for (size_t program = 0; program < PROGRAMS; program++) {
        random_state = 0x9E3779B97F4A7C15u + program;
        print_message("seed %llu\n", (unsigned long long)random_state);
        run_every_policy(program % 2 == 0 ? 600 * MT_MIB : 0);
    }
}

/* What is held stays within the limit at every moment. */
TEST(the_limit_is_never_passed)
{
    for (uint64_t limit = 40 * MT_MIB; limit < 400 * MT_MIB; limit += 119 * MT_MIB) {
        random_state = limit;
        run_every_policy(limit);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
