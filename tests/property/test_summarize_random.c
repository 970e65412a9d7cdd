/* Random and hostile traces as summaries: sums close, columns and steps agree with the peaks, files
 * survive reading, and the same trace gives the same bytes. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "analyze.h"
#include "fake_trace.h"
#include "summarize.h"
#include "summary_copy.h"
#include "summary_file.h"

static struct mt_buf encoded(struct mt_rank_set *set)
{
    struct mt_buf out = {0};
    struct mt_error error = {0};

    if (mt_summary_encode(set, &out, &error) != MT_OK)
        fail_msg("%s", error.text);
    return out;
}

static void check_record(const struct mt_rank_record *record, bool wild)
{
    uint64_t allocated = 0, reserved = 0, owned = 0;

    for (uint32_t i = 0; i < record->column_count; i++) {
        allocated = mt_max_u64(allocated, record->columns[i].allocated_bytes);
        reserved = mt_max_u64(reserved, record->columns[i].reserved_bytes);
    }
    for (uint32_t i = 0; i < record->owner_count; i++)
        owned += record->owners[i].bytes;
    assert_int_equal(owned, record->outside_bytes);
    if (record->column_count && !wild) {
        assert_int_equal(allocated, record->allocated_peak.bytes);
        assert_int_equal(reserved, record->reserved_peak.bytes);
    }
    for (uint32_t i = 0; i < record->step_count && !wild; i++) {
        assert_true(record->steps[i].allocated_peak_bytes <= record->allocated_peak.bytes);
        assert_true(record->steps[i].begin_t_ns <= record->steps[i].end_t_ns);
    }
    assert_true(record->needed_bytes >= record->allocated_peak.bytes);
}

static struct mt_buf summarized(struct fake *fake, const char *policy, bool wild)
{
    const struct mt_analyze_options options = {.path = "random",
                                               .replay = {.policy = policy},
                                               .models = MT_MODEL_LEVEL_OVER_TIME,
                                               .bins = MT_RECORD_COLUMNS};
    static struct mt_identity identity;
    struct mt_rank_set set = {0};
    struct mt_report *report = NULL;
    struct mt_error error = {0};
    struct mt_buf bytes = {0};
    const char *why = "";

    assert_int_equal(fake_rewind(&fake->source, NULL), MT_OK);
    if (mt_analyze(&fake->source, &options, &report, &error) == MT_OK) {
        mt_identity_read(&fake->source.header, "run_rank3.trace", &identity);
        assert_int_equal(mt_summarize(report, &identity, &set, &error), MT_OK);
        assert_int_equal(set.record_count, report->device_count);
        bytes = encoded(&set);
        if (!mt_rank_set_is_sound(&set, &why))
            fail_msg("%s", why);
        for (uint32_t i = 0; i < set.record_count; i++)
            check_record(&set.records[i], wild);
    }
    mt_rank_set_release(&set);
    mt_report_release(report);
    return bytes;
}

static void check_file(const struct mt_buf *bytes)
{
    struct mt_rank_set read = {0};
    struct mt_error error = {0};

    if (decode_copy(bytes->data, bytes->length, &read, &error) != MT_OK)
        fail_msg("%s", error.text);
    struct mt_buf again = encoded(&read);
    assert_int_equal(again.length, bytes->length);
    assert_memory_equal(again.data, bytes->data, bytes->length);
    mt_buf_release(&again);
    mt_rank_set_release(&read);
}

static void run(uint64_t round, bool wild, bool middle, bool heaps, const char *policy)
{
    struct fake fake;

    seed = 88172645463325252u + round * 6007 + (uint64_t)wild * 3 + (uint64_t)middle;
    make(&fake, wild, middle, heaps);
    struct mt_buf bytes = summarized(&fake, policy, wild);
    struct mt_buf again = summarized(&fake, policy, wild);
    assert_true(wild || bytes.length);
    assert_int_equal(bytes.length, again.length);
    if (bytes.length) {
        assert_memory_equal(bytes.data, again.data, bytes.length);
        check_file(&bytes);
    }
    mt_buf_release(&bytes);
    mt_buf_release(&again);
    unmake(&fake);
}

/* The second device has blocks from before the history, and no event in it. */
TEST(a_device_with_older_blocks_alone_holds_its_level)
{
    const struct mt_analyze_options options = {.path = "older",
                                               .replay = {.policy = "recorded"},
                                               .models = MT_MODEL_LEVEL_OVER_TIME,
                                               .bins = MT_RECORD_COLUMNS};
    struct mt_report *report = NULL;
    struct mt_identity identity = {.rank = -1};
    struct mt_rank_set set = {0};
    struct mt_error error = {0};
    struct fake fake;

    make(&fake, false, true, false);
    fake.count = 4;
    for (uint64_t i = 0; i < fake.count; i++)
        fake.events[i] = (struct mt_event){.seq = i,
                                           .t_ns = 1000000 + i * 1000,
                                           .kind = MT_EVENT_ALLOC,
                                           .flags = i < 2 ? MT_EVENT_INITIAL : 0,
                                           .device = i == 1,
                                           .stack = MT_NO_ID,
                                           .addr = 0x7f0000000000 + i * MT_MIB,
                                           .size_bytes = MT_MIB,
                                           .aux_bytes = MT_MIB};
    assert_int_equal(mt_analyze(&fake.source, &options, &report, &error), MT_OK);
    assert_int_equal(mt_summarize(report, &identity, &set, &error), MT_OK);
    assert_int_equal(set.record_count, 2);
    assert_int_equal(set.records[1].column_count, MT_RECORD_COLUMNS);
    for (uint32_t i = 0; i < MT_RECORD_COLUMNS; i++)
        assert_int_equal(set.records[1].columns[i].allocated_bytes, MT_MIB);
    mt_rank_set_release(&set);
    mt_report_release(report);
    unmake(&fake);
}

TEST(tame_traces)
{
    for (uint64_t round = 0; round < 60; round++)
        run(round, false, false, false, round % 2 ? "recorded" : "pytorch");
}

TEST(traces_from_the_middle)
{
    for (uint64_t round = 0; round < 40; round++)
        run(round, false, true, false, "recorded");
}

TEST(wild_traces)
{
    for (uint64_t round = 0; round < 60; round++)
        run(round, true, round % 3 == 0, round % 5 > 2, round % 2 ? NULL : "recorded");
}

TEST(traces_of_the_driver)
{
    for (uint64_t round = 0; round < 40; round++)
        run(round, false, false, true, NULL);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
