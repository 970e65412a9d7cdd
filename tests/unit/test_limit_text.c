/* A limit in words: one number if a limit in whole MiB is known, otherwise a range. */
#include "cmocka_all.h"

#include "report_query.h"
#include "util.h"

static void expect(uint64_t least_bytes, uint64_t most_bytes, const char *text)
{
    struct mt_arena arena = {0};

    assert_string_equal(mt_limit_text(&arena, least_bytes, most_bytes), text);
    mt_arena_release(&arena);
}

TEST(limits_are_of_whole_mib)
{
    expect(1200 * MT_MIB, 1200 * MT_MIB, "the limit was 1,200 MiB");
    expect(1690 * MT_MIB, 1714 * MT_MIB - 1, "the limit was 1,690 MiB to 1,713 MiB");
    expect(40 * MT_MIB, 60 * MT_MIB, "the limit was 40.0 MiB to 60.0 MiB");
}

/* Never "1,691 MiB to 1,691 MiB", nor a descending range. */
TEST(one_whole_limit_is_no_range)
{
    expect(1690 * MT_MIB + 1, 1691 * MT_MIB + 1, "the limit was 1,691 MiB");
    expect(1690 * MT_MIB + 1, 1690 * MT_MIB + 2, "the limit was 1,691 MiB");
    expect(1690 * MT_MIB, 1691 * MT_MIB - 1, "the limit was 1,690 MiB");
}

TEST(the_limit_of_a_replay_may_be_deduced)
{
    struct mt_replay_result replay = {.limit_bytes = 700 * MT_MIB};
    struct mt_arena arena = {0};

    assert_string_equal(mt_replay_limit_text(&arena, &replay), "the limit was 700 MiB");
    assert_int_equal(mt_least_limit_bytes(&replay), 700 * MT_MIB);
    assert_int_equal(mt_most_limit_bytes(&replay), 700 * MT_MIB);
    replay.limit_inferred = true;
    replay.limit_low_bytes = 600 * MT_MIB;
    replay.limit_high_bytes = 650 * MT_MIB;
    assert_string_equal(mt_replay_limit_text(&arena, &replay), "the limit was 600 MiB to 649 MiB");
    assert_int_equal(mt_least_limit_bytes(&replay), 600 * MT_MIB);
    assert_int_equal(mt_most_limit_bytes(&replay), 650 * MT_MIB - 1);
    mt_arena_release(&arena);
}

/* What was reserved and free bounds a limit of which only refusals are known. */
TEST(the_device_bounds_a_limit)
{
    const struct mt_oom oom = {.then = {.reserved = 600 * MT_MIB},
                               .device_free_bytes = 50 * MT_MIB};
    struct mt_oom_answer answer = {&oom, .least_limit_bytes = 600 * MT_MIB,
                                   .most_limit_bytes = 650 * MT_MIB};
    struct mt_arena arena = {0};

    assert_string_equal(mt_oom_limit_text(&arena, &answer), "the limit was at most 650 MiB");
    answer.most_limit_bytes = 640 * MT_MIB;
    assert_string_equal(mt_oom_limit_text(&arena, &answer), "the limit was 600 MiB to 640 MiB");
    answer.least_limit_bytes = answer.most_limit_bytes = 650 * MT_MIB;
    assert_string_equal(mt_oom_limit_text(&arena, &answer), "the limit was 650 MiB");
    mt_arena_release(&arena);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
