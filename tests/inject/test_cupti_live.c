/* What is alive, against a slow list of it. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "cupti_live.h"
#include "dice.h"

enum { ADDRESSES = 3000, CONTEXTS = 4, STEPS = 200000 };

static struct mt_cupti_live_block
    truth[2][ADDRESSES]; /* by space and address; space NONE = not alive */

static enum mt_cupti_live_space space_of(unsigned which)
{
    return which ? MT_LIVE_PHYSICAL : MT_LIVE_DEVICE;
}

/* Addresses as a driver gives them: few bits differ. */
static uint64_t addr_of(uint32_t index)
{
    return UINT64_C(0x7f0000000000) + (uint64_t)index * 512;
}

static void assert_same(const struct mt_cupti_live_block *expected,
                        const struct mt_cupti_live_block *got)
{
    assert_int_equal(expected->addr, got->addr);
    assert_int_equal(expected->size_bytes, got->size_bytes);
    assert_int_equal(expected->context, got->context);
    assert_int_equal(expected->references, got->references);
    assert_int_equal(expected->mappings, got->mappings);
    assert_int_equal(expected->space, got->space);
}

static void put(unsigned which, uint32_t index)
{
    struct mt_cupti_live_block block = {.addr = addr_of(index),
                                        .size_bytes = linear_below(1000),
                                        .context = 1 + linear_below(CONTEXTS),
                                        .references = linear_below(3),
                                        .space = (uint8_t)space_of(which)},
                               replaced;
    assert_true(mt_cupti_live_put(&block, &replaced));
    assert_int_equal(truth[which][index].space, replaced.space);
    if (replaced.space)
        assert_same(&truth[which][index], &replaced);
    truth[which][index] = block;
}

static void take(unsigned which, uint32_t index)
{
    struct mt_cupti_live_block taken;
    bool found = mt_cupti_live_take(space_of(which), addr_of(index), &taken);
    assert_int_equal(found, truth[which][index].space != MT_LIVE_NONE);
    if (found)
        assert_same(&truth[which][index], &taken);
    truth[which][index].space = MT_LIVE_NONE;
}

static uint32_t changed(uint32_t count, int change)
{
    return change < 0 && count == 0 ? 0 : count + (uint32_t)change;
}

static void count(unsigned which, uint32_t index)
{
    struct mt_cupti_live_block *mine = &truth[which][index], theirs;
    int references = (int)linear_below(3) - 1, mappings = (int)linear_below(3) - 1;
    enum mt_cupti_live_outcome outcome =
        mt_cupti_live_count(space_of(which), addr_of(index), references, mappings, &theirs);
    if (!mine->space) {
        assert_int_equal(outcome, MT_LIVE_UNKNOWN);
        return;
    }
    mine->references = changed(mine->references, references);
    mine->mappings = changed(mine->mappings, mappings);
    assert_same(mine, &theirs);
    bool gone = mine->references == 0 && mine->mappings == 0;
    assert_int_equal(outcome, gone ? MT_LIVE_GONE : MT_LIVE_STAYS);
    if (gone)
        mine->space = MT_LIVE_NONE;
}

static void find(unsigned which, uint32_t index)
{
    struct mt_cupti_live_block found;
    bool is_there = mt_cupti_live_find(space_of(which), addr_of(index), &found);
    assert_int_equal(is_there, truth[which][index].space != MT_LIVE_NONE);
    if (is_there)
        assert_same(&truth[which][index], &found);
}

static void on_taken(void *user, const struct mt_cupti_live_block *taken)
{
    unsigned which = taken->space == MT_LIVE_PHYSICAL;
    uint32_t index = (uint32_t)((taken->addr - addr_of(0)) / 512);
    assert_int_equal(taken->context, *(uint64_t *)user);
    assert_same(&truth[which][index], taken);
    truth[which][index].space = MT_LIVE_NONE;
}

static void end_context(uint64_t context)
{
    mt_cupti_live_take_of_context(context, on_taken, &context);
    for (unsigned which = 0; which < 2; which++)
        for (uint32_t index = 0; index < ADDRESSES; index++)
            assert_true(!truth[which][index].space || truth[which][index].context != context);
}

TEST(test_as_a_list)
{
    random_state = 1;
    for (int step = 0; step < STEPS; step++) {
        /* phases of growth and of shrinking, so that runs of slots form and break */
        unsigned which = linear_below(2);
        unsigned kind = linear_below(step / 20000 % 2 ? 8 : 5);
        uint32_t index = linear_below(ADDRESSES);
        if (kind <= 1)
            put(which, index);
        else if (kind == 2)
            count(which, index);
        else if (kind == 3)
            find(which, index);
        else
            take(which, index);
        if (step % 10007 == 0)
            end_context(1 + linear_below(CONTEXTS));
    }
    for (unsigned which = 0; which < 2; which++)
        for (uint32_t index = 0; index < ADDRESSES; index++)
            find(which, index);
}

static long pages(void)
{
    long count = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld", &count), 1);
    fclose(file);
    return count;
}

/* Memory grows with what is alive, not with what was. */
TEST(test_stays_small)
{
    long before = pages();
    for (int i = 0; i < 1000000; i++) {
        put(0, (uint32_t)i % 10);
        take(0, (uint32_t)i % 10);
    }
    assert_true(pages() - before < 1000);
}

TEST(test_forgets)
{
    put(0, 7);
    mt_cupti_live_forget();
    memset(truth, 0, sizeof truth);
    find(0, 7);
    put(0, 7);
    find(0, 7);
}

/* Forgotten tables are not given back: only a forked child forgets. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
