/* Snapshots of several versions of PyTorch (fixtures/versions), and histories in which PyTorch
 * skipped a kind of entry (fixtures/skipped): numbers equal PyTorch's own counters, or the report
 * states that they are not exact. */
#include "cmocka_all.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "capture.h"
#include "report_query.h"
#include "source.h"

static struct mt_source *source;
static struct mt_report *report;
static json_t *truth;

static void analyze(const char *folder, const char *name)
{
    char path[512];
    const struct mt_analyze_options options = {.path = path};

    snprintf(path, sizeof path, "%s/%s/%s.truth.json", MEMTRACE_FIXTURES, folder, name);
    truth = json_load_file(path, 0, NULL);
    assert_non_null(truth);
    snprintf(path, sizeof path, "%s/%s/%s.pickle.zst", MEMTRACE_FIXTURES, folder, name);
    struct capture capture = capture_analyze(path, &options);
    source = capture.source;
    report = capture.report;
    assert_int_equal(report->device_count, 1);
}

static void finish(void)
{
    mt_report_release(report);
    mt_source_close(source);
    json_decref(truth);
}

static uint64_t counter(const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(json_object_get(truth, "counters"), name));
}

static void expect_version(const char *name, const char *not_used)
{
    analyze("versions", name);
    const struct mt_device_report *device = &report->devices[0];
    assert_int_equal(device->allocated_peak.bytes, counter("allocated_bytes.all.peak"));
    assert_int_equal(device->reserved_peak.bytes, counter("reserved_bytes.all.peak"));
    assert_int_equal(device->requested_peak.bytes, counter("requested_bytes.all.peak"));
    assert_int_equal(device->allocations, counter("allocation.all.allocated"));
    assert_true(device->complete && mt_replay_matches_recording(&device->replay.verify));
    assert_null(report->pytorch_difference);
    assert_string_equal(source->header.not_used, not_used);
    finish();
}

TEST(numbers_are_those_of_each_version)
{
    static const char before[] = "segment: segment_type";
    static const char since[] = "entry: compile_context\nsegment: segment_type";

    expect_version("2_2", before);
    expect_version("2_4", before);
    expect_version("2_11", since);
    expect_version("2_15", since);
    expect_version("addresses_2_15", since);
    expect_version("addresses_expandable_2_15", since);
}

TEST(without_a_history_it_is_one_instant)
{
    analyze("versions", "no_history_2_4");
    assert_true(mt_is_one_instant(report, &report->devices[0]));
    assert_int_equal(report->devices[0].end.requested,
                     json_integer_value(json_object_get(truth, "live_bytes")));
    assert_int_equal(report->integrity.events_dropped, 0); /* a missing history lacks no entries */
    finish();
}

static uint64_t lacks(const char *kind)
{
    struct mt_lost_events lost = {.count = 0};
    struct mt_event_batch batch;
    struct mt_error error;
    uint64_t events = 0;
    char why[64];

    snprintf(why, sizeof why, "%s entries missing from the history", kind);
    assert_int_equal(mt_source_rewind(source, &error), MT_OK);
    while (mt_source_next(source, &batch, &error) == MT_OK)
        for (size_t i = 0; i < batch.count; i++)
            mt_lost_events_add(&lost, &batch.events[i]);
    assert_int_equal(lost.count, 1);
    assert_string_equal(mt_lost_events_why(&lost, 0, &source->symbols), why);
    events = lost.reasons[0].events;
    assert_int_equal(events, report->integrity.events_dropped);
    return events;
}

static void expect_skipped(const char *kind, uint64_t least)
{
    analyze("skipped", kind);
    const struct mt_device_report *device = &report->devices[0];
    assert_false(device->complete);
    assert_false(mt_replay_matches_recording(&device->replay.verify));
    uint64_t missing = lacks(kind);
    assert_true(missing >= least);
    assert_true(missing <= counter("allocation.all.allocated"));
    finish();
}

/* A run without entries for completed frees still begins empty. */
TEST(what_is_skipped_is_no_late_start)
{
    analyze("skipped", "free_completed");
    assert_false(report->starts_in_middle);
    assert_int_equal(report->devices[0].start.allocated, 0);
    finish();
    analyze("skipped", "alloc");
    assert_true(report->starts_in_middle);
    finish();
}

/* At most the real number, and at least one. */
TEST(skipped_entries_are_missed)
{
    expect_skipped("alloc", 100);
    expect_skipped("free_requested", 180); /* all of them */
    expect_skipped("free_completed", 180);
    expect_skipped("segment_alloc", 1); /* those whose stack PyTorch has */
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
