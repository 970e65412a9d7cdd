/* Random requests to one policy until the input ends, then all blocks are given
 * back, watched from outside (property/policy_observer.h):
 * blocks do not overlap, lie in memory that the policy holds, and counters agree. */
#include "fuzz.h"
#include "property/policy_observer.h"
#include "util.h"

enum { STREAMS = 3, POOLS = 3, LIVE = 100 };

/* An input chooses a row by its number: add new rows at the end. */
static const struct {
    const char *name, *options;
    bool unlogged;
} variants[] = {
    {"pytorch", "", false},
    {"pytorch", "expandable_segments:True", false},
    {"pytorch", "max_split_size_mb:32", false},
    {"pytorch", "max_split_size_mb:20,garbage_collection_threshold:0.8", false},
    {"pytorch", "roundup_power2_divisions:[1:2,16:4,>:1]", false},
    {"pytorch", "expandable_segments:True,max_split_size_mb:40,large_segment_size_mb:40", false},
    {"none", "page_size=2MiB", false},
    {"cuda-async", "gpu=busy,max_size=1GiB", true},
    {"cuda-async", "release_threshold=0", true},
    {"cupy", "limit=300MiB", false},
    {"bfc", "preallocate=False,garbage_collection=True,fragmentation_fraction=0.01", false},
    {"ort", "gpu_mem_limit=200MiB,max_dead_bytes_per_chunk=1MiB", false},
    {"rmm-pool", "initial_pool_size=1MiB,maximum_pool_size=200MiB", false},
    {"rmm-binning", "min_size_exponent=9,max_size_exponent=16", false},
    {"rmm-arena", "arena_size=40MiB", false},
    {"cub", "bin_growth=2,min_bin=9,max_bin=24,max_cached_bytes=64MiB", false},
    {"first-fit", NULL, false},
    {"next-fit", NULL, false},
    {"best-fit", "segment=20MiB", false},
    {"worst-fit", NULL, false},
    {"buddy", NULL, false},
    {"segregated", NULL, false},
    {"tlsf", NULL, false},
    {"paged", NULL, true},
};

struct play {
    struct policy_observer observer;
    struct mt_policy *policy;
    struct mt_device_model device;
};

static void take(struct play *play, struct fuzz_input *input)
{
    unsigned code = (unsigned)fuzz_number(input, 1), who = (unsigned)fuzz_number(input, 1);
    uint64_t bytes = (uint64_t)1 << code % 28;
    struct mt_policy_request request = {.stream = who % STREAMS,
                                        .pool = (uint16_t)(who >> 4) % POOLS};
    struct mt_policy_block block;

    request.size_bytes = bytes + (code >= 192 ? fuzz_number(input, 2) : code / 28 % 3) - 1;
    if (!request.size_bytes)
        request.size_bytes = 1;
    enum mt_status status = play->observer.ops->alloc(play->policy, &request, &block);
    FUZZ_CHECK(status == MT_OK || status == MT_ERR_DEVICE_OOM);
    if (status == MT_OK)
        observer_took(&play->observer, request.size_bytes, &block);
}

static void give(struct play *play, size_t i, bool waits)
{
    struct observed_block held = play->observer.blocks[i];

    if (!held.pending) {
        FUZZ_CHECK(play->observer.ops->free_requested(play->policy, held.block.handle) == MT_OK);
        observer_free_requested(&play->observer, i);
        if (waits)
            return;
    }
    FUZZ_CHECK(play->observer.ops->free_completed(play->policy, held.block.handle) == MT_OK);
    observer_free_completed(&play->observer, i);
}

static void check(struct play *play, bool thorough)
{
    if (thorough)
        observer_look_inside(&play->observer);
    else
        observer_compare(&play->observer);
    if (play->observer.trouble[0])
        fprintf(stderr, "%s: %s\n", play->observer.ops->name, play->observer.trouble);
    FUZZ_CHECK(!play->observer.trouble[0]);
}

static void run(struct play *play, struct fuzz_input *input)
{
    for (unsigned step = 0; input->left || play->observer.count; step++) {
        bool ends = !input->left;
        unsigned what = (unsigned)fuzz_number(input, 1);
        size_t held = play->observer.count;
        mt_device_clear(&play->device);
        observer_new_log(&play->observer);
        if (ends)
            give(play, 0, false);
        else if (what == 255)
            FUZZ_CHECK(play->observer.ops->empty_cache(play->policy) == MT_OK);
        else if (!held || (what & 1 && held < LIVE))
            take(play, input);
        else
            give(play, (what >> 2) % held, what & 2);
        check(play, step % 16 == 0);
    }
    check(play, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    unsigned variant = (unsigned)fuzz_number(&input, 1) % MT_ARRAY_LEN(variants);
    uint64_t limit = fuzz_number(&input, 1) * 8 * MT_MIB;
    const struct mt_policy_ops *ops =
        mt_policy_find(variants[variant].name, strlen(variants[variant].name));
    const char *options = variants[variant].options;
    struct mt_trace_header header = {.rank = -1, .world_size = -1};
    struct play play = {0};
    struct mt_symbols symbols;
    char spelling[400];
    uint32_t id;

    FUZZ_CHECK(ops && mt_symbols_init(&symbols) == MT_OK);
    for (uint64_t i = 1; i < STREAMS; i++)
        FUZZ_CHECK(mt_symbols_stream(&symbols, i << 12, &id) == MT_OK &&
                   mt_symbols_pool(&symbols, 0, i, &id) == MT_OK);
    mt_device_init(&play.device, limit, 80 * MT_GIB, false);
    FUZZ_CHECK(mt_policy_create(ops,
                                &(struct mt_policy_setup){options, &header, &symbols, &play.device,
                                                          spelling, sizeof spelling},
                                &play.policy, NULL) == MT_OK);
    play.observer = (struct policy_observer){.ops = ops,
                                             .policy = play.policy,
                                             .device = &play.device,
                                             .alignment = 256,
                                             .unlogged = variants[variant].unlogged};
    if (options && strstr(options, "expandable")) /* it maps whole chunks */
        play.observer.overshoot = 40 * MT_MIB;
    run(&play, &input);
    ops->destroy(play.policy);
    mt_device_release(&play.device);
    mt_symbols_release(&symbols);
    return 0;
}
