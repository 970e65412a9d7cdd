/* The order in which PyTorch uses equal free blocks changed in 2.12 and in 2.13
 * (fixtures/free_order). The replay finds the rule of each run, and no other rule is exact. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "replay.h"
#include "util.h"

static const struct {
    const char *name;
    enum mt_free_order order;
} runs[] = {
    {"2_11", MT_FREE_LOWEST},
    {"2_12", MT_FREE_OLDEST_BLOCK},
    {"2_12_expandable", MT_FREE_OLDEST_BLOCK},
    {"2_13", MT_FREE_OLDEST_SEGMENT},
    {"2_15_max_split", MT_FREE_OLDEST_SEGMENT},
};

static struct mt_replay_summary summary;

static struct mt_source *open_run(size_t run)
{
    char path[512];

    snprintf(path, sizeof path, "%s/free_order/%s.pickle.zst", MEMTRACE_FIXTURES, runs[run].name);
    return capture_open(path);
}

static void replay(struct mt_source *source, const struct mt_replay_options *options)
{
    struct mt_error error;

    if (mt_replay_run(source, options, NULL, &summary, &error) != MT_OK)
        fail_msg("%s", error.text);
}

TEST(the_rule_of_each_version_is_found)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(runs); i++) {
        struct mt_source *source = open_run(i);

        replay(source, &(struct mt_replay_options){.verify = true});
        print_message("%s\n", runs[i].name);
        assert_true(mt_replay_is_exact(&summary));
        assert_true(summary.devices[0].verify.allocations > 600);
        assert_int_equal(summary.devices[0].free_order, runs[i].order);
        mt_source_close(source);
    }
}

/* So the fixtures distinguish the rules. */
TEST(no_other_rule_is_exact)
{
    for (size_t i = 0; i < MT_ARRAY_LEN(runs); i++) {
        for (int order = MT_FREE_LOWEST; order <= MT_FREE_OLDEST_SEGMENT; order++) {
            struct mt_source *source = open_run(i);

            source->header.free_order = (enum mt_free_order)order;
            replay(source, &(struct mt_replay_options){.verify = true});
            print_message("%s by rule %d\n", runs[i].name, order);
            assert_int_equal(mt_replay_is_exact(&summary), order == (int)runs[i].order);
            mt_source_close(source);
        }
    }
}

TEST(the_version_says_it)
{
    static const struct {
        const char *framework;
        enum mt_free_order order;
    } versions[] = {{"PyTorch 2.11.0+cu130", MT_FREE_LOWEST},
                    {"PyTorch 2.12.1", MT_FREE_OLDEST_BLOCK},
                    {"PyTorch 2.13.0+cu130", MT_FREE_OLDEST_SEGMENT},
                    {"PyTorch 2.14 or later", MT_FREE_OLDEST_SEGMENT}};

    for (size_t i = 0; i < MT_ARRAY_LEN(versions); i++) {
        struct mt_source *source = open_run(3);

        source->header.framework = versions[i].framework;
        replay(source, &(struct mt_replay_options){.policy = "pytorch", .verify = true});
        assert_int_equal(summary.devices[0].free_order, versions[i].order);
        assert_false(summary.devices[0].free_order_found);
        mt_source_close(source);
    }
}

/* Options that the run did not have use its rule, which a replay of the run has to find first. */
TEST(other_options_follow_the_run)
{
    const struct mt_replay_options options = {.policy = "pytorch:max_split_size_mb:64"};
    struct mt_source *source = open_run(3);

    replay(source, &options);
    assert_int_equal(summary.devices[0].free_order, MT_FREE_OLDEST_SEGMENT);
    assert_int_equal(summary.devices[0].address_ties, 0);
    uint64_t reserved_bytes = summary.devices[0].counters.reserved.peak;
    mt_source_close(source);
    source = open_run(3);
    source->header.free_order = MT_FREE_OLDEST_SEGMENT;
    replay(source, &options);
    assert_int_equal(summary.devices[0].counters.reserved.peak, reserved_bytes);
    mt_source_close(source);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
