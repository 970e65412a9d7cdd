/* An example for every simulated allocator, computed by hand from the rules in
 * docs/internals/policies.md. */
#include "cmocka_all.h"

#include <string.h>

#include "policy_bench.h"
#include "util.h"

enum { SLOTS = 16, NOWHERE = -1, FAILS = -2 };

/* One step: allocates `kib` in a slot (0 = free). Then the reserved and allocated bytes, the bytes
 * requested from the device, and the slot whose address the block reuses, if any. */
struct step {
    int slot;
    uint64_t kib;
    uint32_t stream;
    uint64_t reserved_kib, allocated_kib, device_allocs;
    int place_of; /* slot, NOWHERE = do not care, FAILS = out of memory */
};

struct bench {
    struct policy_bench on;
    struct mt_policy_block slots[SLOTS];
};

static void do_step(struct bench *bench, const struct step *step)
{
    struct mt_policy_block *slot = &bench->slots[step->slot], before = {0};

    if (!step->kib) {
        policy_bench_give(&bench->on, slot);
        return;
    }
    if (step->place_of >= 0)
        before = bench->slots[step->place_of];
    enum mt_status status = policy_bench_take(&bench->on, step->kib * MT_KIB, step->stream, slot);
    assert_int_equal(status, step->place_of == FAILS ? MT_ERR_DEVICE_OOM : MT_OK);
    if (step->place_of >= 0)
        assert_int_equal(slot->addr, before.addr);
}

static void play(struct bench *bench, const struct step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        do_step(bench, &steps[i]);
        const struct mt_counters *counters = policy_bench_counters(&bench->on);
        if (counters->reserved.now != steps[i].reserved_kib * MT_KIB ||
            counters->allocated.now != steps[i].allocated_kib * MT_KIB ||
            counters->device_allocs != steps[i].device_allocs)
            fail_msg("%s, step %zu: reserved %llu B, allocated %llu B, %llu device calls",
                     bench->on.ops->name, i + 1, (unsigned long long)counters->reserved.now,
                     (unsigned long long)counters->allocated.now,
                     (unsigned long long)counters->device_allocs);
        assert_true(policy_bench_is_sound(&bench->on));
    }
}

static void example(const char *name, const char *options, uint64_t limit_bytes,
                    const struct step *steps, size_t count)
{
    struct bench bench = {0};

    policy_bench_open(&bench.on, name, options, limit_bytes);
    play(&bench, steps, count);
    policy_bench_close(&bench.on);
}

#define EXAMPLE(name, options, limit_bytes, steps)                                                 \
    example(name, options, limit_bytes, steps, MT_ARRAY_LEN(steps))

TEST(none_asks_the_device_each_time)
{
    static const struct step steps[] = {
        {0, 100, 0, 100, 100, 1, NOWHERE},  {1, 3000, 0, 3100, 3100, 2, NOWHERE},
        {0, 0, 0, 3000, 3000, 2, NOWHERE},  {2, 100, 0, 3100, 3100, 3, NOWHERE},
        {3, 1000, 0, 3100, 3100, 3, FAILS},
    };
    static const struct step pages[] = {
        {0, 100, 0, 2048, 2048, 1, NOWHERE},
        {1, 3000, 0, 6144, 6144, 2, NOWHERE},
    };

    EXAMPLE("none", NULL, 4000 * MT_KIB, steps);
    EXAMPLE("none", "page_size=2MiB", 0, pages);
}

TEST(cupy_grows_by_what_is_missing)
{
    static const struct step steps[] = {
        {0, 3072, 0, 3072, 3072, 1, NOWHERE}, /* A */
        {1, 1024, 0, 4096, 4096, 2, NOWHERE}, /* B */
        {0, 0, 0, 4096, 1024, 2, NOWHERE},
        {2, 2048, 0, 4096, 3072, 2, 0},       /* low end of A, 1024 left */
        {3, 1024, 1, 5120, 4096, 3, NOWHERE}, /* other stream: other arena */
        {4, 1536, 0, 6656, 5632, 4, NOWHERE}, /* the 1024 are too few */
        {1, 0, 0, 6656, 4608, 4, NOWHERE},
        {5, 2048, 0, 7680, 6656, 5, NOWHERE}, /* 8704 exceed the limit: B is released */
        {6, 2048, 0, 7680, 6656, 5, FAILS},
    };

    EXAMPLE("cupy", "limit=8MiB", 0, steps);
    EXAMPLE("cupy", NULL, 8 * MT_MIB, steps);
}

TEST(cuda_async_moves_pages)
{
    static const struct step steps[] = {
        {0, 10240, 0, 32768, 10240, 1, NOWHERE},
        {1, 30720, 0, 65536, 40960, 2, NOWHERE}, /* beside A, into the second page */
        {2, 30720, 0, 98304, 71680, 3, NOWHERE},
        {3, 30720, 0, 131072, 102400, 4, NOWHERE},
        {0, 0, 0, 131072, 92160, 4, NOWHERE},
        {4, 4096, 0, 131072, 96256, 4, 0},    /* the low end of A's place */
        {2, 0, 0, 131072, 65536, 4, NOWHERE}, /* no page is idle: B and D reach into both */
        {3, 0, 0, 131072, 34816, 4, NOWHERE}, /* two are: C and D are adjacent */
        {5, 65536, 0, 131072, 100352, 4, 2},  /* C's place and beyond: the pages do */
        {6, 32768, 0, 163840, 133120, 5, NOWHERE},
    };
    static const struct step moved[] = {
        {0, 32768, 0, 32768, 32768, 1, NOWHERE},
        {1, 32768, 0, 65536, 65536, 2, NOWHERE},
        {0, 0, 0, 65536, 32768, 2, NOWHERE},
        {2, 65536, 0, 98304, 98304, 3, NOWHERE}, /* A's page moves behind B, one is new */
        {3, 1024, 0, 131072, 99328, 4, 0},       /* A's address, which lacks its page */
    };
    static const struct step busy[] = {
        {0, 20480, 0, 32768, 20480, 1, NOWHERE},
        {0, 0, 0, 32768, 0, 1, NOWHERE},
        {1, 20480, 1, 65536, 20480, 2, NOWHERE}, /* A's memory still belongs to stream 0 */
        {2, 20480, 0, 65536, 40960, 2, 0},
    };

    EXAMPLE("cuda-async", NULL, 0, steps);
    EXAMPLE("cuda-async", NULL, 0, moved);
    EXAMPLE("cuda-async", "gpu=busy", 0, busy);
}

TEST(bfc_doubles_its_regions)
{
    static const struct step steps0[] = {
        {0, 1000, 0, 2048, 1000, 1, NOWHERE},
        {1, 600, 0, 2048, 2048, 1, NOWHERE},    /* 1048 are not twice 600: all of them */
        {2, 5000, 0, 10240, 10240, 2, NOWHERE}, /* the next region would have 4096, so 8192 */
        {0, 0, 0, 10240, 9240, 2, NOWHERE},
        {3, 1000, 0, 10240, 10240, 2, 0},
        {2, 0, 0, 10240, 2048, 2, NOWHERE},
        {4, 3000, 0, 10240, 5048, 2, 2}, /* 8192 are more than twice 3000: split */
        {5, 9000, 0, 26624, 21432, 3, NOWHERE},
    };
    static const struct step steps1[] = {
        {0, 1000, 0, 6144, 1000, 1, NOWHERE}, /* all of its share at once */
        {1, 4000, 0, 6144, 6144, 1, NOWHERE},
        {2, 100, 0, 6144, 6144, 1, FAILS},
    };

    EXAMPLE("bfc", "preallocate=False", 0, steps0);
    EXAMPLE("bfc", "memory_fraction=0.75", 8192 * MT_KIB, steps1);
}

TEST(ort_keeps_streams_apart)
{
    static const struct step steps0[] = {
        {0, 300, 1, 1024, 300, 1, NOWHERE},
        {1, 600, 1, 1024, 1024, 1, NOWHERE}, /* 724 are not twice 600: all of them */
        {2, 300, 2, 3072, 1324, 2, NOWHERE}, /* a region of 2048 */
        {1, 0, 0, 3072, 600, 2, NOWHERE},    /* B's place is for stream 1 */
        {3, 700, 2, 3072, 1300, 2,
         NOWHERE}, /* of the 1748 without an owner, although B's 724 fit better */
        {3, 0, 0, 3072, 600, 2, NOWHERE},
        {4, 1200, 2, 7168, 1800, 3,
         NOWHERE}, /* its 700 and the 1048 without an owner do not merge */
        {5, 800, 1, 7168, 2848, 3, NOWHERE},    /* the whole 1048, without an owner */
        {6, 5000, 1, 15360, 11040, 4, NOWHERE}, /* 8192 are not twice 5000 */
    };
    static const struct step steps1[] = {
        {0, 300, 0, 300, 300, 1, NOWHERE},
        {1, 600, 0, 900, 900, 2, NOWHERE},
        {0, 0, 0, 900, 600, 2, NOWHERE},
        {2, 200, 0, 900, 900, 2, 0}, /* 300 are not twice 200: all of them */
    };

    EXAMPLE("ort", NULL, 0, steps0);
    EXAMPLE("ort", "arena_extend_strategy=kSameAsRequested", 0, steps1);
}

TEST(rmm_pool_steals_then_merges_then_doubles)
{
    static const struct step steps0[] = {
        {0, 600, 0, 1024, 600, 1, NOWHERE},
        {1, 300, 1, 1024, 900, 1, NOWHERE}, /* stolen from stream 0, which keeps the 124 */
        {1, 0, 0, 1024, 600, 1, NOWHERE},   /* to the list of stream 1 */
        {5, 124, 0, 1024, 724, 1, NOWHERE},
        {6, 300, 1, 1024, 1024, 1, 1},
        {5, 0, 0, 1024, 900, 1, NOWHERE},
        {6, 0, 0, 1024, 600, 1, NOWHERE},
        {2, 400, 0, 1024, 1000, 1, 1},       /* both lists merged: 300 + 124 */
        {3, 500, 0, 2048, 1500, 2, NOWHERE}, /* doubled */
        {0, 0, 0, 2048, 900, 2, NOWHERE},
        {4, 700, 0, 4096, 1600, 3, NOWHERE},
    };
    static const struct step steps1[] = {
        {0, 1000, 0, 2048, 1000, 1, NOWHERE}, /* half of what remains */
        {1, 1500, 0, 3548, 2500, 2, NOWHERE},
        {0, 0, 0, 3548, 1500, 2, NOWHERE},
        {1, 0, 0, 3548, 0, 2, NOWHERE},
        {2, 3000, 0, 3000, 3000, 3, NOWHERE}, /* both segments go back first */
        {3, 2000, 0, 3000, 3000, 3, FAILS},
    };

    EXAMPLE("rmm-pool", "initial_pool_size=1MiB", 0, steps0);
    EXAMPLE("rmm-pool", "initial_pool_size=0,maximum_pool_size=4MiB", 0, steps1);
}

TEST(rmm_binning_takes_128_blocks_a_bin)
{
    static const struct step steps0[] = {
        {0, 1, 0, 384, 1, 2, NOWHERE}, /* 128 blocks of 1 and of 2 */
        {1, 2, 0, 384, 3, 2, NOWHERE}, {2, 100, 0, 484, 103, 3, NOWHERE}, /* longer than any bin */
        {2, 0, 0, 384, 3, 3, NOWHERE}, {0, 0, 0, 384, 2, 3, NOWHERE},
        {3, 1, 1, 384, 3, 3, NOWHERE}, /* from the list of stream 0 */
    };

    EXAMPLE("rmm-binning", "min_size_exponent=10,max_size_exponent=11", 0, steps0);
}

TEST(cub_uses_blocks_again_whole)
{
    static const struct step steps0[] = {
        {0, 3, 0, 4, 4, 1, NOWHERE},          {1, 20, 0, 36, 36, 2, NOWHERE},
        {0, 0, 0, 36, 32, 2, NOWHERE},        {2, 1, 0, 36, 36, 2, 0},
        {3, 1, 1, 40, 40, 3, NOWHERE},        /* another stream */
        {4, 3000, 0, 3040, 3040, 4, NOWHERE}, /* longer than 2048: not cached */
        {4, 0, 0, 40, 40, 4, NOWHERE},        {5, 300, 0, 2088, 2088, 5, NOWHERE},
        {6, 300, 0, 4136, 4136, 6, NOWHERE},  {7, 300, 0, 6184, 6184, 7, NOWHERE},
        {5, 0, 0, 6184, 4136, 7, NOWHERE},    {6, 0, 0, 6184, 2088, 7, NOWHERE},
        {7, 0, 0, 4136, 40, 7, NOWHERE}, /* the cache holds less than 6144 */
    };

    EXAMPLE("cub", NULL, 0, steps0);
}

TEST(first_fit_takes_the_lowest)
{
    static const struct step steps0[] = {
        {0, 2000, 0, 8192, 2000, 1, NOWHERE}, {1, 500, 0, 8192, 2500, 1, NOWHERE},
        {2, 1000, 0, 8192, 3500, 1, NOWHERE}, {3, 500, 0, 8192, 4000, 1, NOWHERE},
        {4, 100, 0, 8192, 4100, 1, NOWHERE},  {4, 0, 0, 8192, 4000, 1, NOWHERE},
        {0, 0, 0, 8192, 2000, 1, NOWHERE},    {2, 0, 0, 8192, 1000, 1, NOWHERE},
        {5, 900, 0, 8192, 1900, 1, 0},
    };

    EXAMPLE("first-fit", "segment=8MiB", 0, steps0);
}

TEST(next_fit_goes_on_from_the_last)
{
    static const struct step steps0[] = {
        {0, 2000, 0, 8192, 2000, 1, NOWHERE}, {1, 500, 0, 8192, 2500, 1, NOWHERE},
        {2, 1000, 0, 8192, 3500, 1, NOWHERE}, {3, 500, 0, 8192, 4000, 1, NOWHERE},
        {4, 100, 0, 8192, 4100, 1, NOWHERE},  {4, 0, 0, 8192, 4000, 1, NOWHERE},
        {0, 0, 0, 8192, 2000, 1, NOWHERE},    {2, 0, 0, 8192, 1000, 1, NOWHERE},
        {5, 900, 0, 8192, 1900, 1, 4},        /* the pointer was within the memory that E freed */
        {6, 3292, 0, 8192, 5192, 1, NOWHERE}, /* all of the rest */
        {7, 900, 0, 8192, 6092, 1, 0},        /* round to the start */
    };

    EXAMPLE("next-fit", "segment=8MiB", 0, steps0);
}

TEST(best_fit_takes_the_smallest)
{
    static const struct step steps0[] = {
        {0, 2000, 0, 8192, 2000, 1, NOWHERE}, {1, 500, 0, 8192, 2500, 1, NOWHERE},
        {2, 1000, 0, 8192, 3500, 1, NOWHERE}, {3, 500, 0, 8192, 4000, 1, NOWHERE},
        {4, 100, 0, 8192, 4100, 1, NOWHERE},  {4, 0, 0, 8192, 4000, 1, NOWHERE},
        {0, 0, 0, 8192, 2000, 1, NOWHERE},    {2, 0, 0, 8192, 1000, 1, NOWHERE},
        {5, 900, 0, 8192, 1900, 1, 2},
    };

    EXAMPLE("best-fit", "segment=8MiB", 0, steps0);
}

TEST(worst_fit_takes_the_largest)
{
    static const struct step steps0[] = {
        {0, 2000, 0, 8192, 2000, 1, NOWHERE}, {1, 500, 0, 8192, 2500, 1, NOWHERE},
        {2, 1000, 0, 8192, 3500, 1, NOWHERE}, {3, 500, 0, 8192, 4000, 1, NOWHERE},
        {4, 100, 0, 8192, 4100, 1, NOWHERE},  {4, 0, 0, 8192, 4000, 1, NOWHERE},
        {0, 0, 0, 8192, 2000, 1, NOWHERE},    {2, 0, 0, 8192, 1000, 1, NOWHERE},
        {5, 900, 0, 8192, 1900, 1, 4},
    };

    EXAMPLE("worst-fit", "segment=8MiB", 0, steps0);
}

TEST(buddy_halves_and_merges)
{
    static const struct step steps0[] = {
        {0, 300, 0, 2048, 512, 1, NOWHERE},  {1, 600, 0, 2048, 1536, 1, NOWHERE},
        {2, 100, 0, 2048, 1664, 1, NOWHERE}, {0, 0, 0, 2048, 1152, 1, NOWHERE},
        {2, 0, 0, 2048, 1024, 1, NOWHERE}, /* 128, 256, 512 merge to 1024 */
        {3, 1000, 0, 2048, 2048, 1, 0},      {4, 3000, 0, 6144, 6144, 2, NOWHERE},
    };

    EXAMPLE("buddy", NULL, 0, steps0);
}

TEST(segregated_has_slabs_of_classes)
{
    static const struct step steps0[] = {
        {0, 300, 0, 2048, 320, 1, NOWHERE}, /* the class of 320: six to a slab */
        {1, 300, 0, 2048, 640, 1, NOWHERE},   {0, 0, 0, 2048, 320, 1, NOWHERE},
        {2, 290, 0, 2048, 640, 1, 0},         /* freed last, used first */
        {3, 400, 0, 4096, 1088, 2, NOWHERE},  /* the class of 448 */
        {4, 3000, 0, 8192, 5184, 3, NOWHERE}, /* longer than 1024 */
        {4, 0, 0, 4096, 1088, 3, NOWHERE},
    };

    EXAMPLE("segregated", NULL, 0, steps0);
}

TEST(tlsf_rounds_up_to_a_class)
{
    static const struct step steps0[] = {
        {0, 1000, 0, 2048, 1000, 1, NOWHERE},
        {1, 500, 0, 2048, 1500, 1, NOWHERE},
        {0, 0, 0, 2048, 500, 1, NOWHERE},
        {2, 995, 0, 4096, 1495, 2, NOWHERE}, /* A's 1000 would do, but their class begins at 992 */
        {3, 990, 0, 4096, 2485, 2, 0},       /* the class of 992 and more holds A's */
    };

    EXAMPLE("tlsf", NULL, 0, steps0);
}

TEST(paged_stitches_pages)
{
    static const struct step steps0[] = {
        {0, 3000, 0, 4096, 4096, 2, NOWHERE},
        {1, 100, 0, 6144, 4196, 3, NOWHERE}, /* shares a page */
        {2, 5000, 0, 12288, 10340, 6, NOWHERE},
        {0, 0, 0, 12288, 6244, 6, NOWHERE},
        {3, 1500, 0, 12288, 8292, 6, NOWHERE}, /* one of A's pages */
        {4, 500, 0, 12288, 8792, 6, NOWHERE},  /* in B's page */
        {1, 0, 0, 12288, 8692, 6, NOWHERE},
        {4, 0, 0, 12288, 8192, 6, NOWHERE},     /* that page is free again */
        {5, 4000, 0, 12288, 12288, 6, NOWHERE}, /* A's other page and B's */
    };

    EXAMPLE("paged", NULL, 0, steps0);
}

TEST(rmm_arena_lends_superblocks)
{
    static const struct step steps[] = {
        {0, 300, 0, 8192, 300, 1, NOWHERE},   /* stream 0 gets a superblock of 1024 */
        {1, 2000, 0, 8192, 2300, 1, NOWHERE}, /* a superblock of 2000 */
        {2, 200, 1, 8192, 2500, 1, NOWHERE},  /* stream 1 gets one, too */
        {3, 200, 0, 8192, 2700, 1, NOWHERE},  {1, 0, 0, 8192, 700, 1, NOWHERE},
        {4, 1500, 0, 8192, 2200, 1, 1},     /* 2000 are too short to be cut */
        {5, 5000, 0, 8192, 2200, 1, FAILS}, /* 4144 are left; the streams gave their superblocks
                                               back for nothing */
        {2, 0, 0, 8192, 2000, 1, NOWHERE},  /* its superblock, empty and given back, joins the 4144
                                             */
        {5, 5000, 0, 8192, 7000, 1, 2},
    };

    EXAMPLE("rmm-arena", "arena_size=8MiB", 0, steps);
}

static void check_spelling(const char *name, const char *options, const char *spelling)
{
    struct policy_bench bench;

    policy_bench_open(&bench, name, options, 0);
    assert_string_equal(bench.spelling, spelling);
    policy_bench_close(&bench);
}

TEST(options_are_spelled_canonically)
{
    check_spelling("none", NULL, "none");
    check_spelling("none", "page_size=512", "none");
    check_spelling("none", "page_size:2MiB", "none:page_size=2MiB");
    check_spelling("cupy", "limit=1536MiB", "cupy:limit=1536MiB");
    check_spelling("cupy", "limit=1000", "cupy:limit=1000B");
    check_spelling("bfc", "memory_fraction=.5", "bfc:memory_fraction=0.5,preallocate=False");
    check_spelling("cuda-async", "release_threshold=0,gpu=busy",
                   "cuda-async:release_threshold=0B,gpu=busy");
    check_spelling("cuda-async", "max_size=8GiB", "cuda-async:max_size=8GiB");
    check_spelling("ort", "arena_extend_strategy=kSameAsRequested,gpu_mem_limit=2GiB",
                   "ort:gpu_mem_limit=2GiB,arena_extend_strategy=kSameAsRequested");
    check_spelling("rmm-pool", NULL, "rmm-pool:initial_pool_size=0B");
    check_spelling("rmm-binning", "max_size_exponent=20", "rmm-binning:max_size_exponent=20");
    check_spelling("cub", "max_bin=9", "cub:max_bin=9");
}

TEST(wrong_options_are_refused)
{
    static const char *const wrong[][2] = {
        {"none", "page_size=100"},
        {"none", "page_size=700"},
        {"none", "page=1MiB"},
        {"cupy", "limit=many"},
        {"cupy", "limit"},
        {"cupy", "=,"},
        {"bfc", "memory_fraction=1.5"},
        {"bfc", "preallocate=maybe"},
        {"bfc", "memory_fraction=0.5.5"},
        {"bfc", "memory_fraction="},
        {"ort", "arena_extend_strategy=kOther"},
        {"rmm-pool", "initial_pool_size=2MiB,maximum_pool_size=1MiB"},
        {"rmm-binning", "min_size_exponent=20,max_size_exponent=10"},
        {"cub", "max_bin=40"},
        {"first-fit", "segment=1"},
        {"rmm-arena", NULL},
        {"rmm-arena", "arena_size=1000"},
        {"tlsf", "classes=16"},
    };
    struct mt_trace_header header = {0};
    struct mt_device_model device;

    mt_device_init(&device, 0, 0, false);
    for (size_t i = 0; i < MT_ARRAY_LEN(wrong); i++) {
        const struct mt_policy_ops *ops = mt_policy_find(wrong[i][0], strlen(wrong[i][0]));
        struct mt_policy *policy = NULL;
        struct mt_error error = {0};
        char spelling[160];
        assert_int_equal(
            mt_policy_create(ops,
                             &(struct mt_policy_setup){wrong[i][1], &header, NULL, &device,
                                                       spelling, sizeof spelling},
                             &policy, &error),
            MT_ERR_USAGE);
        assert_true(error.text[0] != '\0');
    }
    mt_device_release(&device);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
