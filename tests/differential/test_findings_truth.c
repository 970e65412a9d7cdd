/* Findings against real runs: what the program reserved when it did what the
 * finding says (fixtures/findings), and silence where that does not help or where
 * nothing is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <jansson.h>

#include "import.h"
#include "report.h"
#include "util.h"

static struct mt_replay_summary replay;
static struct mt_source *source;

static struct mt_report *analyze(const char *folder, const char *name)
{
    struct mt_analyze_options options = {.flamechart_step = MT_NO_STEP};
    struct mt_report *report = NULL;
    struct mt_error error = {0};
    char path[512];

    snprintf(path, sizeof path, "%s/%s/%s.pickle.zst", MEMTRACE_FIXTURES, folder, name);
    options.path = path;
    if (mt_open_any(path, NULL, &source, &error) != MT_OK ||
        mt_analyze(source, &options, &report, &error) != MT_OK)
        fail_msg("%s: %s", path, error.text);
    return report;
}

static uint64_t truth(const char *name, const char *key)
{
    json_error_t error;
    json_t *root = json_load_file(MEMTRACE_FIXTURES "/findings/truth.json", 0, &error);
    uint64_t value;

    assert_non_null(root);
    value = (uint64_t)json_integer_value(json_object_get(json_object_get(root, name), key));
    json_decref(root);
    assert_true(value > 0);
    return value;
}

/* The command that is said to prove it really does. */
static void expect_proof(const char *command, uint64_t peak_bytes)
{
    const char *begin = strstr(command, " -p pytorch -p '"), *end = strrchr(command, '\'');
    struct mt_replay_options options = {0};
    struct mt_error error = {0};
    char policy[256];

    assert_non_null(begin);
    assert_memory_equal(command, "memtrace replay ", strlen("memtrace replay "));
    begin += strlen(" -p pytorch -p '");
    assert_true(end > begin);
    snprintf(policy, sizeof policy, "%.*s", (int)(end - begin), begin);
    options.policy = policy;
    assert_int_equal(mt_source_rewind(source, &error), MT_OK);
    if (mt_replay_run(source, &options, NULL, &replay, &error) != MT_OK)
        fail_msg("%s: %s", policy, error.text);
    assert_int_equal(replay.devices[0].counters.reserved.peak, peak_bytes);
}

static void expect_pinned(const char *name, uint32_t count, const char *title)
{
    struct mt_report *report = analyze("findings", name);
    const struct mt_device_report *device = &report->devices[0];
    uint64_t before = truth(name, "reserved_peak"), after = truth(name, "reserved_peak_with_pool");

    assert_int_equal(device->reserved_peak.bytes, before);
    assert_int_equal(device->finding_count, count);
    assert_string_equal(device->findings[0].id, "pinned-segments");
    assert_int_equal(device->findings[0].bytes, before - after);
    assert_string_equal(device->findings[0].title, title);
    assert_int_equal(device->findings[0].evidence_count, 3);
    expect_proof(device->findings[0].proved_by, after);
    mt_report_release(report);
    mt_source_close(source);
}

/* To the byte: what the run reserved with a MemPool around that very line. */
static void what_is_claimed_is_what_a_real_pool_saves(void **unused)
{
    (void)unused;
    expect_pinned("pinned", 1,
                  "26 blocks, 129 MiB, from features pinned.py:12 keep 1.72 GiB reserved");
    expect_pinned("pinned_more", 2,
                  "23 blocks, 107 MiB, from features pinned.py:12 keep 702 MiB reserved");
}

static void expect_silence(const char *folder, const char *name)
{
    struct mt_report *report = analyze(folder, name);
    uint32_t i;

    for (i = 0; i < report->device_count; i++) {
        if (report->devices[i].finding_count)
            fail_msg("%s: %s", name, report->devices[i].findings[0].title);
    }
    mt_report_release(report);
    mt_source_close(source);
}

/* The same program with other batches: its blocks lie among 1 GiB and more of free
 * memory, too, but a real pool for them makes it worse. */
static void a_pool_that_does_not_help_is_not_claimed(void **unused)
{
    (void)unused;
    assert_true(truth("not_pinned", "reserved_peak_with_pool") >
                truth("not_pinned", "reserved_peak"));
    expect_silence("findings", "not_pinned");
}

static void programs_without_such_blocks_hear_nothing(void **unused)
{
    static const char *const captures[] = {
        "gpt_default", "gpt_seed2", "gpt_expandable",  "gpt_split64", "gpt_cap",
        "gpt_ring",    "ddp_rank1", "seq2seq",         "oom_adam",    "leak",
        "streams",     "graph",     "churn",           "churn_ring",  "churn_noframes",
        "churn_gc",    "twogpu",    "resnet50_cap1900"};
    size_t i;

    (void)unused;
    for (i = 0; i < MT_ARRAY_LEN(captures); i++)
        expect_silence("captures", captures[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_claimed_is_what_a_real_pool_saves),
        cmocka_unit_test(a_pool_that_does_not_help_is_not_claimed),
        cmocka_unit_test(programs_without_such_blocks_hear_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
