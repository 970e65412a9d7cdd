/* Copies of weights that autocast keeps: lines, sizes, and how many of them exist at a time. */
#include "cmocka_all.h"

#include "util.h"
#include "weight_copies.h"

#define MIB (UINT64_C(1) << 20)

enum { LINEAR = 1, NORM = 2, CAST = 3 };

struct run {
    struct mt_weight_copies copies;
    uint64_t blocks;
    uint32_t call;
    bool is_early;
};

static uint64_t made(struct run *run, uint32_t stack, uint64_t bytes)
{
    struct mt_copy_birth birth = {.allocation = run->blocks,
                                  .bytes = bytes,
                                  .stack = stack,
                                  .call = run->call,
                                  .is_early = run->is_early,
                                  .in_forward = !run->is_early,
                                  .casts = stack == CAST};

    mt_weight_copies_birth(&run->copies, &birth);
    return run->blocks++;
}

static void gone(struct run *run, uint64_t block)
{
    mt_weight_copies_end(&run->copies, block);
}

/* Weights of 8, 4 and 2 MiB, and biases. */
static void begin(struct run *run)
{
    *run = (struct run){.is_early = true};
    for (int i = 0; i < 3; i++)
        (void)made(run, 0, (UINT64_C(2) << i) * MIB);
    for (int i = 0; i < 3; i++)
        (void)made(run, 0, 4096);
    run->is_early = false;
    run->call = 1;
}

static bool any(const void *context, uint64_t allocation)
{
    (void)context;
    (void)allocation;
    return true;
}

static void expect(struct run *run, uint32_t stack, uint64_t bytes, bool are_copies)
{
    mt_weight_copies_finish(&run->copies, any, NULL);
    assert_int_equal(mt_weight_copies_has(&run->copies, stack, bytes), are_copies);
    mt_weight_copies_release(&run->copies);
}

/* An operator on the line casts a weight, and then makes its result. */
static uint64_t cast(struct run *run, uint64_t bytes)
{
    uint64_t copy = made(run, LINEAR, bytes);

    (void)made(run, LINEAR, 1000);
    (void)made(run, NORM, 1000);
    return copy;
}

TEST(a_line_that_casts_all_weights)
{
    struct run run;

    begin(&run);
    for (int i = 0; i < 3; i++)
        (void)cast(&run, (UINT64_C(1) << i) * MIB);
    expect(&run, LINEAR, 4 * MIB, true);
}

/* They end at once, so no two exist together: without the cache, or inputs of such a size. */
TEST(copies_stay)
{
    struct run run;

    begin(&run);
    for (int i = 0; i < 3; i++) {
        uint64_t copy = made(&run, LINEAR, (UINT64_C(1) << i) * MIB);

        (void)made(&run, LINEAR, 1000);
        gone(&run, copy);
        (void)made(&run, NORM, 1000);
    }
    expect(&run, LINEAR, 4 * MIB, false);
}

/* A result comes first in its run, and the workspace behind it ends in the run. */
TEST(a_result_is_no_copy)
{
    struct run run;

    begin(&run);
    for (int i = 0; i < 3; i++) {
        (void)made(&run, LINEAR, (UINT64_C(1) << i) * MIB);
        gone(&run, made(&run, LINEAR, 3 * MIB));
        (void)made(&run, NORM, 1000);
    }
    expect(&run, LINEAR, 4 * MIB, false);
}

/* A native stack shows the cast. */
TEST(a_native_cast_needs_no_line)
{
    struct run run;

    begin(&run);
    for (int i = 0; i < 3; i++)
        (void)made(&run, CAST, (UINT64_C(1) << i) * MIB);
    (void)made(&run, NORM, 1000);
    expect(&run, CAST, 4 * MIB, true);
}

/* The graph of the call before exists while the next one casts. */
TEST(copies_of_two_calls_may_live_together)
{
    struct run run;

    begin(&run);
    for (run.call = 1; run.call < 3; run.call++)
        for (int i = 0; i < 3; i++)
            (void)cast(&run, (UINT64_C(1) << i) * MIB);
    expect(&run, LINEAR, 4 * MIB, true);
}

/* Parts of the model that are called one by one. */
TEST(copies_of_one_run_may_be_of_several_calls)
{
    struct run run;

    begin(&run);
    for (int i = 0; i < 3; i++, run.call++)
        (void)cast(&run, (UINT64_C(1) << i) * MIB);
    expect(&run, LINEAR, MIB, true);
}

TEST(more_than_there_are_weights_are_no_copies)
{
    struct run run;

    begin(&run);
    for (int i = 0; i < 3; i++)
        (void)cast(&run, (UINT64_C(1) << i) * MIB);
    (void)cast(&run, 4 * MIB);
    expect(&run, LINEAR, 4 * MIB, false);
}

/* Small blocks have such sizes by chance, except where weights are cast. */
TEST(biases_are_cast_with_weights)
{
    static const uint32_t lines[] = {LINEAR, NORM};

    for (size_t i = 0; i < MT_ARRAY_LEN(lines); i++) {
        struct run run;

        begin(&run);
        for (int j = 0; j < 3; j++) {
            (void)made(&run, LINEAR, (UINT64_C(1) << j) * MIB);
            (void)made(&run, LINEAR, 1000);
            (void)made(&run, lines[i], 2048);
            (void)made(&run, lines[i], 1000);
        }
        (void)made(&run, NORM + 10, 1000);
        expect(&run, lines[i], 2048, lines[i] == LINEAR);
    }
}

/* An OOM, or another thread, parts a run. */
TEST(one_run_may_be_parted)
{
    struct run run;

    begin(&run);
    for (run.call = 1; run.call < 9; run.call++)
        for (int i = 0; i < 3; i++)
            gone(&run, cast(&run, (UINT64_C(1) << i) * MIB));
    for (int i = 0; i < 3; i++)
        (void)cast(&run, (UINT64_C(1) << i) * MIB);
    (void)made(&run, LINEAR, 4 * MIB);
    (void)made(&run, NORM, 1000);
    expect(&run, LINEAR, 4 * MIB, true);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
