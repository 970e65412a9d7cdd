/* The memory that the first lines require of the device, compared with real runs under limits
 * (fixtures/captures/capacity.json) and with `memtrace fit`; what avoids a fatal out-of-memory
 * error; and the estimate of growth, which gate, finding and picture share. */
#include "cmocka_all.h"

#include "finding_runs.h"
#include "fit.h"
#include "gate_result.h"
#include "trend.h"
#include "verdict.h"

static struct mt_report *report;

static void open_with_needs(const char *name)
{
    const char *path = capture_path("captures", name, ".pickle.zst");
    const struct mt_analyze_options options = {.path = path, .needs = true};
    const struct capture capture = capture_analyze(path, &options);

    source = capture.source;
    report = capture.report;
}

static void finish(void)
{
    mt_report_release(report);
    mt_source_close(source);
}

static uint64_t fit_need(const char *policy)
{
    const struct mt_fit_options options = {.policy = policy, .orders = MT_BASE_ORDERS};
    struct mt_fit_summary *summary = calloc(1, sizeof *summary);
    struct mt_error error = {0};

    assert_non_null(summary);
    assert_int_equal(mt_source_rewind(source, &error), MT_OK);
    assert_int_equal(mt_fit_run(source, &options, summary, &error), MT_OK);
    uint64_t bytes = mt_fit_need_bytes(&summary->devices[0]);
    mt_fit_release(summary);
    free(summary);
    return bytes;
}

static uint64_t capacity(const char *run, const char *options, const char *key)
{
    json_t *root = json_load_file(MEMTRACE_FIXTURES "/captures/capacity.json", 0, NULL);

    assert_non_null(root);
    uint64_t mib = (uint64_t)json_integer_value(
        json_object_get(json_object_get(json_object_get(root, run), options), key));
    json_decref(root);
    assert_true(mib > 0);
    return mib * MT_MIB;
}

static void expect_between_real_runs(const char *name, const char *run)
{
    open_with_needs(name);
    const struct mt_need *need = report->devices[0].need;
    assert_non_null(need);
    assert_true(need->bytes > capacity(run, "", "fails"));
    assert_true(need->bytes <= capacity(run, "", "fits"));
    assert_true(need->low_bytes <= need->bytes);
    assert_int_equal(need->bytes, fit_need("pytorch"));
    finish();
}

TEST(needs_are_those_of_real_runs_and_of_fit)
{
    expect_between_real_runs("gpt_default", "gpt --kw {\"steps\":8}");
    expect_between_real_runs("seq2seq", "seq2seq");
}

/* Real runs with expandable segments: it fails at 6621 MiB and succeeds at 6623 MiB. */
TEST(the_first_advice_saves_what_it_saved_in_real_runs)
{
    const char *run = "gpt --kw {\"steps\":8}", *setting = "expandable_segments:True";

    open_with_needs("gpt_default");
    const struct mt_finding *first = &report->devices[0].findings[0];
    assert_string_equal(first->id, "allocator-settings");
    assert_int_equal(first->saving, MT_SAVING_EXACT);
    uint64_t under = report->devices[0].need->bytes - first->saves_bytes;
    assert_true(under > capacity(run, setting, "fails"));
    assert_true(under <= capacity(run, setting, "fits"));
    finish();
}

/* Under a limit, the run may make other requests, so numbers are "about". */
TEST(the_need_under_a_setting_is_no_more_exact_than_the_run_s)
{
    open_with_needs("gpt_cap");
    assert_true(report->devices[0].need->depends_on_memory);
    assert_non_null(strstr(find(report, "allocator-settings")->title, "about "));
    finish();
    open_with_needs("gpt_default");
    assert_null(strstr(find(report, "allocator-settings")->title, "about"));
    finish();
}

/* Expandable segments reserve 178 MiB less of that run, but need 362 MiB instead of 350. */
TEST(no_setting_is_advised_that_raises_the_need)
{
    report = analyze("captures", "streams"); /* needs are not asked for */
    assert_int_equal(find(report, "allocator-settings")->bytes, 178 * MT_MIB);
    finish();
    open_with_needs("streams");
    assert_true(fit_need("pytorch:expandable_segments:True") > report->devices[0].need->bytes);
    assert_null(find(report, "allocator-settings"));
    finish();
}

static void expect_verdict(const char *name, const char *begin)
{
    struct mt_buf out = {0};

    open_with_needs(name);
    mt_verdict_add(&out, report, NULL);
    assert_memory_equal(out.data, begin, strlen(begin));
    mt_buf_release(&out);
    finish();
}

/* Pages and Markdown begin with it. */
TEST(a_verdict_begins_with_the_card)
{
    expect_verdict("gpt_cap", "card about 9.14 GiB; ");
    expect_verdict("gpt_default", "card about 8.53 GiB; ");
    expect_verdict("twogpu", "device 1: card about 1.78 GiB; ");
}

/* PyTorch's limit does not include all memory that the device must have. */
TEST(what_is_mapped_above_the_limit_is_part_of_the_need)
{
    open_with_needs("churn_exp_cap");
    assert_int_equal(report->devices[0].need->above_limit_bytes, 2 * MT_MIB);
    assert_int_equal(report->devices[0].need->bytes, fit_need("pytorch"));
    finish();
    open_with_needs("gpt_default");
    assert_int_equal(report->devices[0].need->above_limit_bytes, 0);
    finish();
}

static void expect_no_need(const char *name)
{
    open_with_needs(name);
    assert_null(report->devices[0].need);
    finish();
}

/* A ring buffer begins with more than its entries need, and the whole run needs more than those. */
TEST(the_end_of_a_run_needs_no_more_than_the_run)
{
    open_with_needs("gpt_default");
    uint64_t whole = report->devices[0].need->bytes;
    finish();
    open_with_needs("gpt_ring");
    uint64_t end = report->devices[0].need->bytes;
    assert_in_range(end, report->devices[0].allocated_peak.bytes, whole);
    assert_true(end < report->devices[0].start.reserved);
    assert_int_equal(end, fit_need("pytorch"));
    finish();
}

/* A failed run did not make all its requests. */
TEST(unknown_needs_are_not_printed)
{
    expect_no_need("oom_adam");
    report = analyze("captures", "gpt_default"); /* not asked for */
    assert_null(report->devices[0].need);
    finish();
}

TEST(a_death_is_the_first_finding)
{
    open_with_needs("oom_adam");
    const struct mt_finding *first = &report->devices[0].findings[0];
    assert_string_equal(first->id, "out-of-memory");
    assert_string_equal(first->severity, "error");
    assert_string_equal(first->advice, "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
    assert_non_null(strstr(first->title, "1,648 MiB")); /* and in a real run */
    finish();
}

/* A limit of 1,426 MiB avoids it. The real limit may have been as low as 1,394 MiB. */
TEST(a_failure_that_no_setting_avoids_has_the_missing_bytes)
{
    open_with_needs("churn_noctx");
    const struct mt_finding *first = &report->devices[0].findings[0];
    assert_string_equal(first->id, "out-of-memory");
    assert_int_equal(first->bytes, 32 * MT_MIB);
    assert_memory_equal(first->title, "About 32.0 MiB more", strlen("About 32.0 MiB more"));
    assert_null(first->proved_by);
    finish();
}

/* A setting that is already in use is not advised. */
TEST(settings_in_use_are_not_advised)
{
    open_with_needs("churn_exp_cap");
    for (uint32_t i = 0; i < report->devices[0].finding_count; i++)
        assert_null(strstr(report->devices[0].findings[i].advice, "expandable_segments:True"));
    finish();
}

TEST(flushes_are_gone_with_the_setting_that_is_advised)
{
    const struct mt_finding *flushes;

    open_with_needs("seq2seq_cap");
    flushes = find(report, "cache-flushes");
    assert_non_null(flushes);
    assert_non_null(strstr(flushes->title, "none does"));
    assert_non_null(strstr(flushes->proved_by, "--limit"));
    finish();
}

/* The bytes of the gate's only result. */
static int64_t gate_growth(void)
{
    struct mt_gate_rules rules = {0};
    struct mt_gates gates = {0};
    struct mt_error error = {0};
    const struct mt_gate_check check = {.rules = &rules, .report = report, .source = source};

    assert_int_equal(mt_gate_rules_add(&rules, MT_GATE_GROWTH, "1MiB/step", &error), MT_OK);
    assert_int_equal(mt_gates_check(&check, &gates, &error), MT_OK);
    int64_t bytes = gates.results[0].actual_bytes;
    mt_gates_release(&gates);
    mt_gate_rules_release(&rules);
    return bytes;
}

TEST(growth_is_one_number)
{
    static const char *const names[] = {"leakval",     "ddp_leak_rank1", "keeps",   "churn",
                                        "gpt_split64", "churn_gc",       "gpt_cap", "lengths"};

    for (size_t i = 0; i < MT_ARRAY_LEN(names); i++) {
        const struct mt_finding *growth;
        struct mt_trend trend;

        report = analyze("captures", names[i]);
        const struct mt_device_report *device = &report->devices[0];
        growth = find(report, "growth");
        assert_true(device->growth.judged);
        assert_int_equal(gate_growth(), growth ? growth->bytes_per_step : 0);
        assert_int_equal(device->growth.bytes_per_step, growth ? growth->bytes_per_step : 0);
        mt_trend_make(report, device, &trend);
        assert_int_equal(trend.verdict, growth ? MT_TREND_GROWS : MT_TREND_STEADY);
        finish();
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
