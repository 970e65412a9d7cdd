/* The allocators' own tests, run on the simulated allocators: sequences of RMM, ONNX Runtime and
 * TensorFlow, without checks of state that a trace does not show. docs/internals/policies.md lists
 * the files, and the tests that have no counterpart here. */
#include "cmocka_all.h"

#include "policy_bench.h"
#include "util.h"

enum { SLOTS = 16, MANY = 1023 };

/* How the address of a block is checked: its distance to the first block of the test, whether it
 * equals that of another block, or that the request fails. */
enum check { ANY, AT, SAME_AS, NOT_AS, FAILS };

struct step {
    int slot;
    uint64_t bytes; /* 0 = free */
    uint32_t stream;
    enum check check;
    uint64_t of; /* AT: bytes; SAME_AS, NOT_AS: slot */
};

static void check_place(const struct step *step, uint64_t first_addr, uint64_t addr,
                        const struct mt_policy_block *slots)
{
    if (step->check == AT)
        assert_int_equal(addr, first_addr + step->of);
    if (step->check == SAME_AS)
        assert_int_equal(addr, slots[step->of].addr);
    if (step->check == NOT_AS)
        assert_int_not_equal(addr, slots[step->of].addr);
}

static void play(const char *name, const char *options, uint64_t limit_bytes,
                 const struct step *steps, size_t count)
{
    struct mt_policy_block slots[SLOTS] = {{0}}, block;
    struct policy_bench bench;
    uint64_t first_addr = 0;

    policy_bench_open(&bench, name, options, limit_bytes);
    for (size_t i = 0; i < count; i++) {
        const struct step *step = &steps[i];
        if (step->bytes) {
            enum mt_status status = policy_bench_take(&bench, step->bytes, step->stream, &block);
            assert_int_equal(status, step->check == FAILS ? MT_ERR_DEVICE_OOM : MT_OK);
            if (status == MT_OK) {
                first_addr = first_addr ? first_addr : block.addr;
                check_place(step, first_addr, block.addr, slots);
                slots[step->slot] = block;
            }
        } else {
            policy_bench_give(&bench, &slots[step->slot]);
        }
        assert_true(policy_bench_is_sound(&bench));
    }
    policy_bench_close(&bench);
}

#define PLAY(name, options, limit_bytes, steps)                                                    \
    play(name, options, limit_bytes, steps, MT_ARRAY_LEN(steps))

TEST(rmm_pool_force_growth)
{
    static const struct step without_maximum[] = {
        {0, 1000, 0, ANY, 0}, {1, 4000, 0, ANY, 0}, {2, 500, 0, ANY, 0}, {3, 2000, 0, FAILS, 0}};
    static const struct step with_maximum[] = {
        {0, 1000, 0, ANY, 0}, {1, 4000, 0, FAILS, 0}, {2, 500, 0, ANY, 0}, {3, 2000, 0, ANY, 0}};

    PLAY("rmm-pool", "initial_pool_size=0", 6000, without_maximum);
    PLAY("rmm-pool", "initial_pool_size=0,maximum_pool_size=8192", 6000, with_maximum);
}

TEST(rmm_pool_sizes)
{
    static const struct step one[] = {{0, 1000, 0, ANY, 0}};
    static const struct step two_large[] = {{0, 256 * MT_MIB, 0, ANY, 0},
                                            {1, 256 * MT_MIB, 0, AT, 256 * MT_MIB},
                                            {0, 0, 0, ANY, 0},
                                            {1, 0, 0, ANY, 0}};
    static const struct step after_a_stream[] = {
        {0, 10000, 1, ANY, 0}, {0, 0, 1, ANY, 0}, {1, 10000, 0, SAME_AS, 0}};

    PLAY("rmm-pool", "initial_pool_size=1000192,maximum_pool_size=1000192", 0, one);
    PLAY("rmm-pool", "initial_pool_size=512MiB", 1024 * MT_MIB, two_large);
    PLAY("rmm-pool", "initial_pool_size=0", 0, after_a_stream);
}

TEST(rmm_pool_maximum_below_initial)
{
    struct policy_bench bench;
    struct mt_policy *policy = NULL;
    struct mt_trace_header header = {0};
    struct mt_error error;

    policy_bench_open(&bench, "rmm-pool", "initial_pool_size=0", 0);
    assert_int_equal(
        mt_policy_create(bench.ops,
                         &(struct mt_policy_setup){"initial_pool_size=1024,maximum_pool_size=256",
                                                   &header, &bench.symbols, &bench.device,
                                                   bench.spelling, sizeof bench.spelling},
                         &policy, &error),
        MT_ERR_USAGE);
    policy_bench_close(&bench);
}

TEST(rmm_arena_first_fit_and_coalescing)
{
    static const struct step first_fit[] = {
        {0, 1024, 0, AT, 0}, {1, 2048, 0, AT, 1024}, {0, 0, 0, ANY, 0}, {2, 512, 0, AT, 0}};
    static const struct step after_full[] = {{0, MT_MIB / 2, 0, AT, 0},
                                             {1, MT_MIB / 2, 0, AT, MT_MIB / 2},
                                             {0, 0, 0, ANY, 0},
                                             {2, MT_MIB / 2, 0, AT, 0}};
    static const struct step next[] = {
        {0, MT_MIB / 2, 0, AT, 0}, {0, 0, 0, ANY, 0}, {1, MT_MIB, 0, AT, 0}};
    static const struct step previous[] = {{0, 1024, 0, AT, 0},    {1, 1024, 0, AT, 1024},
                                           {2, 1024, 0, AT, 2048}, {0, 0, 0, ANY, 0},
                                           {1, 0, 0, ANY, 0},      {3, 2048, 0, AT, 0}};
    static const struct step both[] = {{0, 1024, 0, AT, 0},
                                       {1, 1024, 0, AT, 1024},
                                       {0, 0, 0, ANY, 0},
                                       {1, 0, 0, ANY, 0},
                                       {2, MT_MIB, 0, AT, 0}};
    static const struct step fits[] = {{0, MT_MIB / 4, 0, AT, 0},
                                       {1, MT_MIB / 4, 0, AT, MT_MIB / 4},
                                       {0, 0, 0, ANY, 0},
                                       {2, MT_MIB / 2, 0, AT, MT_MIB / 2},
                                       {3, MT_MIB / 2 + 1, 0, FAILS, 0}};

    PLAY("rmm-arena", "arena_size=1MiB", 0, first_fit);
    PLAY("rmm-arena", "arena_size=1MiB", 0, after_full);
    PLAY("rmm-arena", "arena_size=1MiB", 0, next);
    PLAY("rmm-arena", "arena_size=1MiB", 0, previous);
    PLAY("rmm-arena", "arena_size=1MiB", 0, both);
    PLAY("rmm-arena", "arena_size=1MiB", 0, fits);
}

TEST(rmm_arena_global)
{
    static const struct step acquire[] = {{0, 256, 1, AT, 0},
                                          {1, 1024, 2, AT, MT_MIB},
                                          {2, 512, 3, AT, 2 * MT_MIB},
                                          {3, 512, 4, AT, 3 * MT_MIB}};
    static const struct step again[] = {
        {0, 2 * MT_MIB, 0, AT, 0}, {0, 0, 0, ANY, 0}, {0, 2 * MT_MIB, 0, AT, 0}};
    static const struct step too_large[] = {{0, (uint64_t)1 << 50, 0, FAILS, 0},
                                            {0, (uint64_t)1 << 50, 0, FAILS, 0}};
    static const struct step align_up[] = {{0, MT_MIB + 256, 0, AT, 0},
                                           {1, MT_MIB + 512, 0, ANY, 0},
                                           {0, 0, 0, ANY, 0},
                                           {1, 0, 0, ANY, 0},
                                           {2, 4 * MT_MIB, 0, AT, 0}};

    PLAY("rmm-arena", "arena_size=4MiB", 0, acquire);
    PLAY("rmm-arena", "arena_size=4MiB", 0, again);
    PLAY("rmm-arena", "arena_size=4MiB", 0, too_large);
    PLAY("rmm-arena", "arena_size=4MiB", 0, align_up);
}

TEST(rmm_arena_of_a_stream)
{
    static const struct step allocate[] = {{0, MT_MIB, 1, AT, 0}, {1, 256, 1, AT, MT_MIB}};
    static const struct step deallocate[] = {{0, MT_MIB, 1, AT, 0},
                                             {0, 0, 1, ANY, 0},
                                             {1, 256, 1, ANY, 0},
                                             {1, 0, 1, ANY, 0},
                                             {2, MT_MIB, 1, AT, 0}};
    static const struct step previous[] = {{0, 256, 1, AT, 0},  {1, 256, 1, ANY, 0},
                                           {2, 256, 1, ANY, 0}, {0, 0, 1, ANY, 0},
                                           {1, 0, 1, ANY, 0},   {3, 512, 1, AT, 0}};
    static const struct step next[] = {{0, 256, 1, AT, 0}, {1, 256, 1, ANY, 0}, {2, 256, 1, ANY, 0},
                                       {1, 0, 1, ANY, 0},  {0, 0, 1, ANY, 0},   {3, 512, 1, AT, 0}};
    static const struct step both[] = {{0, 256, 1, AT, 0},
                                       {1, 256, 1, ANY, 0},
                                       {0, 0, 1, ANY, 0},
                                       {1, 0, 1, ANY, 0},
                                       {2, 2048, 1, AT, 0}};

    PLAY("rmm-arena", "arena_size=4MiB", 0, allocate);
    PLAY("rmm-arena", "arena_size=4MiB", 0, deallocate);
    PLAY("rmm-arena", "arena_size=4MiB", 0, previous);
    PLAY("rmm-arena", "arena_size=4MiB", 0, next);
    PLAY("rmm-arena", "arena_size=4MiB", 0, both);
}

TEST(rmm_arena_defragments)
{
    static const struct step one_stream[] = {{0, MT_MIB, 1, AT, 0},
                                             {1, MT_MIB, 1, AT, MT_MIB},
                                             {2, MT_MIB, 1, AT, 2 * MT_MIB},
                                             {3, MT_MIB, 1, AT, 3 * MT_MIB},
                                             {0, 0, 1, ANY, 0},
                                             {1, 0, 1, ANY, 0},
                                             {2, 0, 1, ANY, 0},
                                             {3, 0, 1, ANY, 0},
                                             {4, 4 * MT_MIB, 0, AT, 0}};
    static const struct step four_streams[] = {
        {0, 32 * MT_KIB, 1, AT, 0},  {0, 0, 1, ANY, 0},           {1, 32 * MT_KIB, 2, ANY, 0},
        {1, 0, 2, ANY, 0},           {2, 32 * MT_KIB, 3, ANY, 0}, {2, 0, 3, ANY, 0},
        {3, 32 * MT_KIB, 4, ANY, 0}, {3, 0, 4, ANY, 0},           {4, 4 * MT_MIB, 0, AT, 0}};
    static const struct step freed_after_it_moved[] = {
        {0, 256, 1, AT, 0},          {1, 32 * MT_KIB, 2, AT, MT_MIB},
        {1, 0, 2, ANY, 0},           {2, MT_MIB, 3, AT, MT_MIB},
        {3, 32 * MT_KIB, 3, ANY, 0}, {0, 0, 1, ANY, 0},
        {2, 0, 3, ANY, 0},           {3, 0, 3, ANY, 0}};

    PLAY("rmm-arena", "arena_size=4MiB", 0, one_stream);
    PLAY("rmm-arena", "arena_size=4MiB", 0, four_streams);
    PLAY("rmm-arena", "arena_size=2MiB", 0, freed_after_it_moved);
}

TEST(rmm_fixed_size_keeps_what_it_took)
{
    struct mt_policy_block blocks[16];
    struct policy_bench bench;

    policy_bench_open(&bench, "rmm-binning", "min_size_exponent=10,max_size_exponent=10", 0);
    for (size_t i = 0; i < MT_ARRAY_LEN(blocks); i++) {
        assert_int_equal(policy_bench_take(&bench, 512, (uint32_t)i % 4, &blocks[i]), MT_OK);
        assert_int_equal(blocks[i].size_bytes, 1024);
    }
    uint64_t reserved = policy_bench_counters(&bench)->reserved.now;
    assert_true(reserved >= 1024 * MT_ARRAY_LEN(blocks));
    for (size_t i = 0; i < MT_ARRAY_LEN(blocks); i++)
        policy_bench_give(&bench, &blocks[i]);
    assert_int_equal(policy_bench_counters(&bench)->reserved.now, reserved);
    policy_bench_close(&bench);
}

static void check_stats(const struct policy_bench *bench, uint64_t allocations, uint64_t in_use,
                        uint64_t peak)
{
    const struct mt_counters *counters = policy_bench_counters(bench);

    assert_int_equal(counters->allocations, allocations);
    assert_int_equal(counters->allocated.now, in_use);
    assert_int_equal(counters->allocated.peak, peak);
}

static void no_dups(const char *name, const char *options)
{
    struct mt_policy_block blocks[MANY];
    struct policy_bench bench;
    uint64_t largest = 0;

    policy_bench_open(&bench, name, options, 1024 * MT_MIB);
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(policy_bench_take(&bench, i + 1, 0, &blocks[i]), MT_OK);
        largest = mt_max_u64(largest, blocks[i].size_bytes);
    }
    assert_int_equal(largest, 1024);
    assert_int_equal(blocks[3].size_bytes, 256); /* AllocatedVsRequested: 4 bytes */
    check_stats(&bench, MANY, 654336, 654336);
    assert_true(policy_bench_is_sound(&bench)); /* no overlaps, too */
    for (size_t i = 0; i < MANY; i++)
        policy_bench_give(&bench, &blocks[i]);
    check_stats(&bench, MANY, 0, 654336);
    policy_bench_close(&bench);
}

static void exercise_coalescing(const char *name, const char *options, uint64_t largest)
{
    const uint64_t sizes[] = {4096, 8 * MT_MIB, 16384, largest};
    struct mt_policy_block first, again, blocks[MT_ARRAY_LEN(sizes)];
    struct policy_bench bench;

    policy_bench_open(&bench, name, options, 1024 * MT_MIB);
    assert_int_equal(policy_bench_take(&bench, 4096, 0, &first), MT_OK);
    policy_bench_give(&bench, &first);
    check_stats(&bench, 1, 0, 4096);
    for (int i = 0; i < 1024; i++) {
        for (size_t k = 0; k < MT_ARRAY_LEN(sizes); k++)
            assert_int_equal(policy_bench_take(&bench, sizes[k], 0, &blocks[k]), MT_OK);
        for (size_t k = 0; k < MT_ARRAY_LEN(sizes); k++)
            policy_bench_give(&bench, &blocks[k]);
    }
    check_stats(&bench, 4097, 0, 4096 + 8 * MT_MIB + 16384 + largest);
    assert_int_equal(policy_bench_take(&bench, 4096, 0, &again), MT_OK);
    assert_int_equal(again.addr, first.addr);
    policy_bench_close(&bench);
}

TEST(ort_arena)
{
    static const struct step too_much[] = {{0, 256, 0, ANY, 0}, {1, 4 * MT_MIB, 0, FAILS, 0}};
    static const struct step backoff[] = {{0, 1024, 0, FAILS, 0}};

    no_dups("ort", "gpu_mem_limit=1GiB");
    exercise_coalescing("ort", "gpu_mem_limit=1GiB", 32 * MT_MIB);
    PLAY("ort", "gpu_mem_limit=1MiB", 0, too_much);
    PLAY("ort", "gpu_mem_limit=10MiB", 512, backoff);
}

/* TwoStreamAllocation, up to the point where a stream releases its chunks. */
TEST(ort_two_streams)
{
    static const struct step steps[] = {
        {0, 4096, 1, ANY, 0},    {1, 4096, 2, ANY, 0}, {0, 0, 1, ANY, 0},
        {2, 4096, 2, NOT_AS, 0}, {1, 0, 2, ANY, 0},    {3, 4096, 1, SAME_AS, 0},
        {4, 4096, 1, NOT_AS, 1},
    };

    PLAY("ort", NULL, 0, steps);
}

TEST(tensorflow_arena)
{
    static const struct step too_much[] = {{0, 256, 0, ANY, 0}, {1, 8 * MT_MIB, 0, FAILS, 0}};

    no_dups("bfc", "memory_fraction=1");
    exercise_coalescing("bfc", "memory_fraction=1", 40 * MT_MIB);
    PLAY("bfc", "memory_fraction=1", 2 * MT_MIB, too_much);
}

/* 128 blocks of 4 MiB in regions of 4, 4, 8, ..., 256 MiB. All but the last are freed, in all
 * regions but one. */
static void fill_regions(struct policy_bench *bench, const char *options, uint64_t limit_bytes)
{
    struct mt_policy_block blocks[128];

    policy_bench_open(bench, "bfc", options, limit_bytes);
    for (size_t i = 0; i < MT_ARRAY_LEN(blocks); i++)
        assert_int_equal(policy_bench_take(bench, 4 * MT_MIB, 0, &blocks[i]), MT_OK);
    assert_int_equal(policy_bench_counters(bench)->segments.now, 8);
    assert_int_equal(policy_bench_counters(bench)->reserved.now, 512 * MT_MIB);
    for (size_t i = 0; i + 1 < MT_ARRAY_LEN(blocks); i++)
        policy_bench_give(bench, &blocks[i]);
}

TEST(tensorflow_regions)
{
    struct policy_bench bench;
    struct mt_policy_block block;

    /* PhysicalAllocatorOomsFragmentation */
    fill_regions(&bench, "memory_fraction=1,preallocate=False", 512 * MT_MIB);
    assert_int_equal(policy_bench_take(&bench, 508 * MT_MIB, 0, &block), MT_ERR_DEVICE_OOM);
    policy_bench_close(&bench);

    /* TestRegionDeallocation: one region is left besides the requested one */
    fill_regions(&bench, "memory_fraction=1,preallocate=False,garbage_collection=True",
                 2048 * MT_MIB);
    assert_int_equal(policy_bench_take(&bench, 1600 * MT_MIB, 0, &block), MT_OK);
    assert_int_equal(policy_bench_counters(&bench)->device_frees, 7);
    assert_int_equal(policy_bench_counters(&bench)->segments.now, 2);
    policy_bench_close(&bench);
}

/* ForceAllowGrowth: checks the length of the first region. */
TEST(tensorflow_first_region)
{
    struct policy_bench bench;
    struct mt_policy_block block;

    policy_bench_open(&bench, "bfc", "memory_fraction=1,preallocate=False", 2048 * MT_MIB);
    assert_int_equal(policy_bench_take(&bench, 1, 0, &block), MT_OK);
    assert_int_equal(policy_bench_counters(&bench)->reserved.now, 2 * MT_MIB);
    policy_bench_close(&bench);
    policy_bench_open(&bench, "bfc", "memory_fraction=1", 2048 * MT_MIB);
    assert_int_equal(policy_bench_take(&bench, 1, 0, &block), MT_OK);
    assert_int_equal(policy_bench_counters(&bench)->reserved.now, 2048 * MT_MIB);
    policy_bench_close(&bench);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
