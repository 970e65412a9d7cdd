/* One example worked by hand for every simulated allocator: the same as in
 * docs/policies.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "policy.h"
#include "util.h"

enum { SLOTS = 16, NOWHERE = -1, FAILS = -2 };

/* One step: take `kib` (0 = free) into a slot; what is reserved, allocated and
 * asked of the device afterwards; and whose place the block got, if anyone's. */
struct step {
    int slot;
    uint64_t kib;
    uint32_t stream;
    uint64_t reserved_kib, allocated_kib, device_allocs;
    int place_of; /* slot, NOWHERE = do not care, FAILS = out of memory */
};

struct bench {
    struct mt_policy_block slots[SLOTS];
    struct mt_device_model device;
    struct mt_symbols symbols;
    const struct mt_policy_ops *ops;
    struct mt_policy *policy;
    char spelling[160];
};

static void set_up(struct bench *bench, const char *name, const char *options, uint64_t limit_bytes,
                   uint64_t memory_bytes)
{
    struct mt_trace_header header = {0};
    struct mt_error error;

    memset(bench, 0, sizeof *bench);
    bench->ops = mt_policy_find(name, strlen(name));
    assert_non_null(bench->ops);
    assert_int_equal(mt_symbols_init(&bench->symbols), MT_OK);
    mt_device_init(&bench->device, limit_bytes, memory_bytes, false);
    if (bench->ops->create(options, &header, &bench->symbols, &bench->device, &bench->policy,
                           bench->spelling, sizeof bench->spelling, &error) != MT_OK)
        fail_msg("%s", error.text);
}

static void tear_down(struct bench *bench)
{
    bench->ops->destroy(bench->policy);
    mt_device_release(&bench->device);
    mt_symbols_release(&bench->symbols);
}

static void do_step(struct bench *bench, const struct step *step)
{
    struct mt_policy_request request = {step->kib * MT_KIB, step->stream, 0, 0, 0};
    struct mt_policy_block *slot = &bench->slots[step->slot], before = {0};
    enum mt_status status;

    if (!step->kib) {
        assert_int_equal(bench->ops->free_requested(bench->policy, slot->handle), MT_OK);
        assert_int_equal(bench->ops->free_completed(bench->policy, slot->handle), MT_OK);
        return;
    }
    if (step->place_of >= 0)
        before = bench->slots[step->place_of];
    status = bench->ops->alloc(bench->policy, &request, slot);
    assert_int_equal(status, step->place_of == FAILS ? MT_ERR_DEVICE_OOM : MT_OK);
    if (step->place_of >= 0)
        assert_int_equal(slot->addr, before.addr);
}

static void play(struct bench *bench, const struct step *steps, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++) {
        const struct mt_counters *counters;
        do_step(bench, &steps[i]);
        counters = bench->ops->counters(bench->policy);
        if (counters->reserved.now != steps[i].reserved_kib * MT_KIB ||
            counters->allocated.now != steps[i].allocated_kib * MT_KIB ||
            counters->device_allocs != steps[i].device_allocs)
            fail_msg("%s, step %zu: reserved %llu B, allocated %llu B, %llu device calls",
                     bench->ops->name, i + 1, (unsigned long long)counters->reserved.now,
                     (unsigned long long)counters->allocated.now,
                     (unsigned long long)counters->device_allocs);
        assert_true(bench->ops->is_valid(bench->policy));
    }
}

static void example(const char *name, const char *options, uint64_t limit_bytes,
                    const struct step *steps, size_t count)
{
    struct bench bench;

    set_up(&bench, name, options, limit_bytes, 0);
    play(&bench, steps, count);
    tear_down(&bench);
}

#define EXAMPLE(name, options, limit_bytes, steps)                                                 \
    example(name, options, limit_bytes, steps, MT_ARRAY_LEN(steps))

static void none_asks_the_device_each_time(void **unused)
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

    (void)unused;
    EXAMPLE("none", NULL, 4000 * MT_KIB, steps);
    EXAMPLE("none", "page_size=2MiB", 0, pages);
}

static void cupy_grows_by_what_is_missing(void **unused)
{
    static const struct step steps[] = {
        {0, 3072, 0, 3072, 3072, 1, NOWHERE}, /* A */
        {1, 1024, 0, 4096, 4096, 2, NOWHERE}, /* B */
        {0, 0, 0, 4096, 1024, 2, NOWHERE},
        {2, 2048, 0, 4096, 3072, 2, 0},       /* low end of A, 1024 left */
        {3, 1024, 1, 5120, 4096, 3, NOWHERE}, /* other stream: other arena */
        {4, 1536, 0, 6656, 5632, 4, NOWHERE}, /* the 1024 do not do */
        {1, 0, 0, 6656, 4608, 4, NOWHERE},
        {5, 2048, 0, 7680, 6656, 5, NOWHERE}, /* 8704 pass the limit: B goes back */
        {6, 2048, 0, 7680, 6656, 5, FAILS},
    };

    (void)unused;
    EXAMPLE("cupy", "limit=8MiB", 0, steps);
    EXAMPLE("cupy", NULL, 8 * MT_MIB, steps);
}

/* ---- options ------------------------------------------------------------------ */

static void check_spelling(const char *name, const char *options, const char *spelling)
{
    struct bench bench;

    set_up(&bench, name, options, 0, 0);
    assert_string_equal(bench.spelling, spelling);
    tear_down(&bench);
}

static void options_are_spelled_canonically(void **unused)
{
    (void)unused;
    check_spelling("none", NULL, "none");
    check_spelling("none", "page_size=512", "none");
    check_spelling("none", "page_size:2MiB", "none:page_size=2MiB");
    check_spelling("cupy", "limit=1536MiB", "cupy:limit=1536MiB");
    check_spelling("cupy", "limit=1000", "cupy:limit=1000B");
}

static void wrong_options_are_refused(void **unused)
{
    static const char *const wrong[][2] = {
        {"none", "page_size=100"}, {"none", "page_size=700"}, {"none", "page=1MiB"},
        {"cupy", "limit=many"},    {"cupy", "limit"},         {"cupy", "=,"},
    };
    struct mt_trace_header header = {0};
    struct mt_device_model device;
    size_t i;

    (void)unused;
    mt_device_init(&device, 0, 0, false);
    for (i = 0; i < MT_ARRAY_LEN(wrong); i++) {
        const struct mt_policy_ops *ops = mt_policy_find(wrong[i][0], strlen(wrong[i][0]));
        struct mt_policy *policy = NULL;
        struct mt_error error = {0};
        char spelling[160];
        assert_int_equal(ops->create(wrong[i][1], &header, NULL, &device, &policy, spelling,
                                     sizeof spelling, &error),
                         MT_ERR_USAGE);
        assert_true(error.text[0] != '\0');
    }
    mt_device_release(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_asks_the_device_each_time),
        cmocka_unit_test(cupy_grows_by_what_is_missing),
        cmocka_unit_test(options_are_spelled_canonically),
        cmocka_unit_test(wrong_options_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
