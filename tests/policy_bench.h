/* One simulated allocator on a device of its own, driven by hand. */
#ifndef TESTS_POLICY_BENCH_H
#define TESTS_POLICY_BENCH_H

#include <string.h>

#include "policy.h"

struct policy_bench {
    struct mt_device_model device;
    struct mt_symbols symbols;
    const struct mt_policy_ops *ops;
    struct mt_policy *policy;
    char spelling[160];
};

static inline void policy_bench_open(struct policy_bench *bench, const char *name,
                                     const char *options, uint64_t limit_bytes)
{
    struct mt_trace_header header = {0};
    struct mt_error error;

    memset(bench, 0, sizeof *bench);
    bench->ops = mt_policy_find(name, strlen(name));
    assert_non_null(bench->ops);
    assert_int_equal(mt_symbols_init(&bench->symbols), MT_OK);
    mt_device_init(&bench->device, limit_bytes, 0, false);
    if (mt_policy_create(bench->ops,
                         &(struct mt_policy_setup){options, &header, &bench->symbols,
                                                   &bench->device, bench->spelling,
                                                   sizeof bench->spelling},
                         &bench->policy, &error) != MT_OK)
        fail_msg("%s", error.text);
}

static inline void policy_bench_close(struct policy_bench *bench)
{
    bench->ops->destroy(bench->policy);
    mt_device_release(&bench->device);
    mt_symbols_release(&bench->symbols);
}

static inline enum mt_status policy_bench_take(struct policy_bench *bench, uint64_t bytes,
                                               uint32_t stream, struct mt_policy_block *block)
{
    struct mt_policy_request request = {bytes, stream, 0, 0, 0};

    mt_device_clear(&bench->device);
    return bench->ops->alloc(bench->policy, &request, block);
}

static inline void policy_bench_give(struct policy_bench *bench,
                                     const struct mt_policy_block *block)
{
    mt_device_clear(&bench->device);
    assert_int_equal(bench->ops->free_requested(bench->policy, block->handle), MT_OK);
    assert_int_equal(bench->ops->free_completed(bench->policy, block->handle), MT_OK);
}

static inline bool policy_bench_is_sound(const struct policy_bench *bench)
{
    const char *why = "";

    if (!bench->ops->is_sound(bench->policy, &why))
        print_message("%s is broken: %s\n", bench->ops->name, why);
    return !*why;
}

static inline const struct mt_counters *policy_bench_counters(const struct policy_bench *bench)
{
    return bench->ops->counters(bench->policy);
}

#endif
