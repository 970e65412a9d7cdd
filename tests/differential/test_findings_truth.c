/* Compares findings with real runs: the memory that the program reserved after the advised change
 * (fixtures/findings). There is no finding where the change does not help or nothing is wrong. */
#include "cmocka_all.h"

#include "analyze.h"
#include "finding_runs.h"
#include "units.h"

static struct mt_replay_summary replay;

static uint32_t count_of(const struct mt_report *report, const char *id)
{
    const struct mt_device_report *device = &report->devices[0];
    uint32_t i, count = 0;

    for (i = 0; i < device->finding_count; i++)
        count += strcmp(device->findings[i].id, id) == 0;
    return count;
}

/* The command that the finding prints as proof confirms it. */
static void expect_proof(const char *command, uint64_t peak_bytes)
{
    static const char before[] = "memtrace replay ", options_begin[] = " -p pytorch -p ";
    const char *begin = strstr(command, options_begin), *end;
    struct mt_replay_options options = {0};
    struct mt_error error = {0};
    char policy[256];

    assert_non_null(begin);
    assert_memory_equal(command, before, strlen(before));
    begin += strlen(options_begin);
    end = *begin == '\'' ? strchr(++begin, '\'') : strchr(begin, '\0'); /* quoted if necessary */
    assert_true(end && end > begin);
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
    const struct mt_finding *finding = find(report, "pinned-segments");
    uint64_t before = truth(name, "reserved_peak"), after = truth(name, "reserved_peak_with_pool");

    assert_int_equal(report->devices[0].reserved_peak.bytes, before);
    assert_int_equal(count_of(report, "pinned-segments"), count);
    assert_int_equal(finding->bytes, before - after);
    assert_string_equal(finding->title, title);
    assert_int_equal(finding->evidence_count, 3);
    expect_proof(finding->proved_by, after);
    mt_report_release(report);
    mt_source_close(source);
}

/* To the byte: the memory that the run reserved with a MemPool around that line. */
TEST(the_claim_is_what_a_real_pool_saves)
{
    expect_pinned(
        "pinned", 1,
        "1.72 GiB stays reserved because of 26 blocks (129 MiB) from features pinned.py:12");
    expect_pinned(
        "pinned_more", 2,
        "702 MiB stays reserved because of 23 blocks (107 MiB) from features pinned.py:12");
}

/* No device has a finding of this kind. */
static void expect_silence(const char *folder, const char *name, const char *id)
{
    struct mt_report *report = analyze(folder, name);

    for (uint32_t i = 0; i < report->device_count; i++) {
        const struct mt_device_report *device = &report->devices[i];
        for (uint32_t j = 0; j < device->finding_count; j++)
            if (strcmp(device->findings[j].id, id) == 0)
                fail_msg("%s: %s", name, device->findings[j].title);
    }
    mt_report_release(report);
    mt_source_close(source);
}

/* The same program with other batches: its blocks also pin at least 1 GiB of free memory, but a
 * real pool for them makes it worse. */
TEST(a_pool_that_does_not_help_is_not_claimed)
{
    assert_true(truth("not_pinned", "reserved_peak_with_pool") >
                truth("not_pinned", "reserved_peak"));
    expect_silence("findings", "not_pinned", "pinned-segments");
}

TEST(programs_without_such_blocks_have_no_finding)
{
    static const char *const captures[] = {
        "gpt_default", "gpt_seed2", "gpt_expandable",  "gpt_split64", "gpt_cap",
        "gpt_ring",    "ddp_rank1", "seq2seq",         "oom_adam",    "leak",
        "streams",     "graph",     "churn",           "churn_ring",  "churn_noframes",
        "churn_gc",    "twogpu",    "resnet50_cap1900"};

    for (size_t i = 0; i < MT_ARRAY_LEN(captures); i++)
        expect_silence("captures", captures[i], "pinned-segments");
}

/* The allocator's own counters at the ends of two consecutive steps; `phase` is the last one of a
 * step. */
static uint64_t true_slope(const char *name, const char *phase, int64_t step)
{
    char path[512];
    json_error_t error;
    json_t *row;
    size_t i;
    int64_t before = 0, after = 0;

    snprintf(path, sizeof path, "%s/captures/%s.truth.json", MEMTRACE_FIXTURES, name);
    json_t *root = json_load_file(path, 0, &error);
    assert_non_null(root);
    json_array_foreach(json_object_get(root, "rows"), i, row)
    {
        int64_t at = json_integer_value(json_object_get(row, "step"));
        int64_t bytes = json_integer_value(json_object_get(row, "allocated"));
        if (strcmp(json_string_value(json_object_get(row, "phase")), phase) != 0)
            continue;
        if (at == step)
            before = bytes;
        if (at == step + 1)
            after = bytes;
    }
    json_decref(root);
    assert_true(before > 0 && after > before);
    return (uint64_t)(after - before);
}

static void expect_growth(const char *name, const char *last_phase, const char *title,
                          const char *advice)
{
    struct mt_report *report = analyze("captures", name);
    const struct mt_finding *growth = find(report, "growth");

    assert_int_equal(count_of(report, "growth"), 1);
    assert_int_equal(growth->bytes_per_step, true_slope(name, last_phase, 4));
    assert_int_equal(growth->bytes_per_step, true_slope(name, last_phase, 7));
    assert_string_equal(growth->title, title);
    assert_memory_equal(growth->advice, advice, strlen(advice));
    mt_report_release(report);
    mt_source_close(source);
}

/* A loss with its graph, in validation and in one of two ranks; outputs in a list. */
TEST(growth_is_found_to_the_byte_and_with_its_line)
{
    expect_growth(
        "leakval", "validate",
        "7.98 MiB more after each step since step 0, 6.98 MiB of it from w_leakval train.py:128",
        "use loss.item()");
    expect_growth(
        "ddp_leak_rank1", "optimizer",
        "7.98 MiB more after each step since step 0, 6.98 MiB of it from <module> ddp_leak.py:19",
        "use loss.item()");
    expect_growth(
        "keeps", "optimizer",
        "0.98 MiB more after each step since step 0, all of it from w_keeps questions.py:20",
        "a list, dict or attribute keeps");
}

static void expect_longer_buffer(const char *name, const char *title)
{
    struct mt_report *report = analyze("findings", name);
    const struct mt_finding *growth = find(report, "growth");

    assert_int_equal(count_of(report, "growth"), 1);
    assert_int_equal(growth->bytes_per_step, truth(name, "requested_per_step"));
    assert_string_equal(growth->title, title);
    assert_memory_equal(growth->advice, "torch.cat", strlen("torch.cat"));
    mt_report_release(report);
    mt_source_close(source);
}

/* Outputs of all steps in one tensor; keys and values that no request ends. */
TEST(buffers_that_are_joined_with_something_new_grow)
{
    expect_longer_buffer(
        "joined",
        "0.98 MiB more after each step since step 0, all of it from w_joined grows.py:25");
    expect_longer_buffer("endless", "8.63 MiB more after each step on average since step 0, all of "
                                    "it from w_endless grows.py:41");
    expect_silence("findings", "longer", "growth"); /* and longer batches do not */
}

/* A cache of keys and values is not a leak: 6 layers x 2 x 16 sequences x 8 heads x 64 x 4 B. */
TEST(a_cache_that_grows_with_its_tokens_is_no_leak)
{
    struct mt_report *report = analyze("meaning", "growing_cache");
    const struct mt_finding *growth = find(report, "growth");

    assert_non_null(growth);
    assert_int_equal(growth->bytes_per_step, UINT64_C(6) * 2 * 16 * 8 * 64 * 4);
    assert_string_equal(growth->severity, "info");
    assert_non_null(strstr(growth->title, "384 KiB more KV cache after each step"));
    mt_report_release(report);
    mt_source_close(source);
}

TEST(programs_without_leak_do_not_grow)
{
    static const char *const captures[] = {
        "leak",           "gpt_default",     "seq2seq",        "streams",      "lengths",
        "lstm",           "accumulate",      "cache",          "graph",        "twogpu",
        "churn",          "churn_cap",       "churn_exp_cap",  "churn_gc",     "churn_noctx",
        "churn_noframes", "churn_split_cap", "churn_exp_ring", "churn_ring",   "churn_expandable",
        "ddp_leak_rank0", "ddp_rank0",       "gpt_cap",        "leakval_ring", "resnet50_cap1900"};

    for (size_t i = 0; i < MT_ARRAY_LEN(captures); i++)
        expect_silence("captures", captures[i], "growth");
}

/* To the byte: the memory of the same program with a `del` at the end of the step. `more`: other
 * memory that the `del` freed. */
static void expect_kept(const char *name, uint64_t more, const char *title)
{
    struct mt_report *report = analyze("findings", name);
    const struct mt_finding *kept = find(report, "kept-values");
    uint64_t before = truth(name, "allocated_peak");

    assert_non_null(kept);
    assert_int_equal(count_of(report, "kept-values"), 1);
    assert_int_equal(report->devices[0].allocated_peak.bytes, before);
    assert_int_equal(kept->bytes + more, before - truth(name, "allocated_peak_clean"));
    assert_string_equal(kept->title, title);
    if (strcmp(name, "kept") == 0) /* truth: 2361393152 */
        assert_string_equal(kept->evidence[2],
                            "in the same replay: 2.20 GiB reserved instead of 2.69 GiB");
    mt_report_release(report);
    mt_source_close(source);
}

TEST(the_claim_for_an_earlier_del_is_what_it_saved)
{
    expect_kept("kept", 0,
                "250 MiB less at the peak if the results of forward train.py:71 are freed before "
                "the next step");
    expect_kept("names", 0,
                "129 MiB less at the peak if the results of forward worth.py:65 are freed before "
                "the next step");
    /* the graph also kept the batch, which is no result of forward */
    expect_kept("graph_kept", 32768,
                "327 MiB less at the peak if the results of w_graph_kept worth.py:95 are freed "
                "before the next step");
}

TEST(values_that_end_in_time_are_not_found)
{
    static const char *const captures[] = {"gpt_default", "seq2seq", "accumulate", "lstm",
                                           "leakval",     "keeps",   "lengths",    "twogpu",
                                           "cache",       "gpt_cap", "ddp_rank0",  "streams"};

    expect_silence("findings", "kept_clean", "kept-values");
    expect_silence("findings", "names_clean", "kept-values");
    expect_silence("findings", "graph_kept_clean", "kept-values");
    expect_silence("findings", "ahead", "kept-values"); /* the next step reads them */
    for (size_t i = 0; i < MT_ARRAY_LEN(captures); i++)
        expect_silence("captures", captures[i], "kept-values");
}

/* `missing`: bytes that the program holds and the finding does not include. */
static void expect_frames(const char *name, uint64_t missing, const char *title)
{
    struct mt_report *report = analyze("findings", name);
    const struct mt_finding *finding = find(report, "exception-holds-frame");
    char expected[256], n[2][MT_UNITS_TEXT];

    assert_non_null(finding);
    assert_int_equal(count_of(report, "exception-holds-frame"), 1);
    assert_int_equal(finding->bytes, truth(name, "held") - missing);
    assert_string_equal(finding->title, title);
    snprintf(expected, sizeof expected,
             "replay with these blocks freed when the request failed: %s allocated at the peak "
             "instead of %s",
             mt_format_bytes(n[0], truth(name, "allocated_peak_clean")),
             mt_format_bytes(n[1], truth(name, "allocated_peak")));
    assert_int_equal(finding->evidence_count, 3);
    assert_string_equal(finding->evidence[2], expected);
    mt_report_release(report);
    mt_source_close(source);
}

/* In one run the exception also holds the batch, which was not allocated in forward. */
TEST(the_claim_for_an_exception_is_what_it_held)
{
    expect_frames(
        "tried_inside", 0,
        "1.55 GiB from a failed attempt stays allocated while forward train.py:69 runs again");
    expect_frames(
        "stored", 24 * 512 * 8,
        "1.55 GiB from a failed attempt stays allocated while w_stored failures.py:48 runs again");
}

/* Programs that release the exception; libraries that fail and try another way; a run that ends
 * with the failure. */
TEST(programs_that_release_an_exception_have_no_finding)
{
    static const char *const captures[] = {"resnet50_cap1900", "resnet50_cap900", "oom_adam",
                                           "churn_split_cap",  "churn_cap",       "seq2seq_cap"};

    expect_silence("findings", "tried_outside", "exception-holds-frame");
    expect_silence("findings", "stored_text", "exception-holds-frame");
    for (size_t i = 0; i < MT_ARRAY_LEN(captures); i++)
        expect_silence("captures", captures[i], "exception-holds-frame");
}

/* `claimed`: the part of the real saving of foreach=False that the finding claims. */
static void expect_lists(const char *name, uint64_t claimed, const char *replayed)
{
    struct mt_report *report = analyze("findings", name);
    const struct mt_finding *finding = find(report, "foreach-peak");

    assert_non_null(finding);
    assert_int_equal(report->devices[0].allocated_peak.bytes, truth(name, "allocated_peak"));
    assert_int_equal(finding->bytes, claimed);
    assert_string_equal(finding->severity, "warning");
    assert_memory_equal(finding->evidence[1], replayed, strlen(replayed));
    mt_report_release(report);
    mt_source_close(source);
}

TEST(lists_cost_at_least_the_claim)
{
    const uint64_t adam = 159285248, adagrad = 352518144;

    assert_in_range(adam, 1,
                    truth("adam_lists", "allocated_peak") -
                        truth("adam_lists", "allocated_peak_clean"));
    assert_in_range(adagrad, 1,
                    truth("adagrad_lists", "allocated_peak") -
                        truth("adagrad_lists", "allocated_peak_clean"));
    expect_lists("adam_lists", adam,
                 "replay with at most 3 temporaries, of one parameter at a time");
    expect_lists("adagrad_lists", adagrad,
                 "replay with at most 4 temporaries, of one parameter at a time");
    /* here it saves nothing, and nothing of the kind is claimed */
    assert_true(truth("adam_table", "allocated_peak") <
                truth("adam_table", "allocated_peak_clean"));
    expect_lists("adam_table", 134283264,
                 "replay with at most 3 temporaries, of one parameter at a time");
}

static uint64_t capture_truth(const char *path, const char *key)
{
    char full[512];
    json_error_t error;
    json_t *rows;

    snprintf(full, sizeof full, "%s/%s.truth.json", MEMTRACE_FIXTURES, path);
    json_t *root = json_load_file(full, 0, &error);
    assert_non_null(root);
    rows = json_object_get(root, "rows");
    uint64_t value = (uint64_t)json_integer_value(
        json_object_get(json_array_get(rows, json_array_size(rows) - 1), key));
    json_decref(root);
    assert_true(value > 0);
    return value;
}

/* `other`: a real run of the same program with expandable segments. */
static void expect_setting(const char *name, const char *other)
{
    struct mt_report *report = analyze("captures", name);
    const struct mt_finding *setting = find(report, "allocator-settings");
    uint64_t before = report->devices[0].reserved_peak.bytes;

    assert_non_null(setting);
    assert_int_equal(setting->bytes, before - capture_truth(other, "reserved_peak"));
    assert_string_equal(setting->advice, "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
    expect_proof(setting->proved_by, capture_truth(other, "reserved_peak"));
    mt_report_release(report);
    mt_source_close(source);
}

/* One program in three real runs: with a harmful setting, with the default, and with the best. */
TEST(settings_save_what_they_saved_in_a_real_run)
{
    struct mt_report *report = NULL;

    expect_setting("gpt_split64", "captures/gpt_expandable");
    expect_setting("gpt_default", "captures/gpt_expandable");
    report = analyze("captures", "gpt_split64");
    const struct mt_finding *setting = find(report, "allocator-settings");
    assert_int_equal(capture_truth("captures/gpt_default", "reserved_peak"), 8086618112);
    assert_string_equal(setting->evidence[1],
                        "replay with the allocator's defaults: 7.53 GiB reserved");
    mt_report_release(report);
    mt_source_close(source);
}

TEST(good_settings_are_not_found)
{
    static const char *const captures[] = {"gpt_expandable", "seq2seq", "leak",   "graph",
                                           "keeps",          "cache",   "twogpu", "gpt_ring",
                                           "gpt_seed2",      "oom_adam"};

    for (size_t i = 0; i < MT_ARRAY_LEN(captures); i++)
        expect_silence("captures", captures[i], "allocator-settings");
}

struct said {
    const char *folder, *name, *id, *title;
};

TEST(texts_of_findings_of_real_runs)
{
    static const struct said list[] = {
        {"captures", "gpt_default", "optimizer-state",
         "1.01 GiB (15.7%) of the peak: optimizer state"},
        {"captures", "gpt_default", "loss-peak",
         "2.26 GiB (35.2%) of the peak: the loss and its backward pass, train train.py:77"},
        {"captures", "seq2seq_native", "loss-peak",
         "1.34 GiB (30.2%) of the peak: the loss and its backward pass, train train.py:77"},
        {"captures", "gpt_default", "held-activations",
         "2.36 GiB (36.7%) of the peak: activations waiting for backward, 1.41 GiB of it from "
         "forward train.py:58"},
        {"captures", "twogpu", "foreach-peak",
         "At least 80.0 MiB less at the peak if the optimizer step is fused and has no "
         "temporaries"},
        {"captures", "seq2seq", "idle-state",
         "561 MiB less at the peak if the optimizer state is on the device only during the "
         "optimizer step"},
        {"captures", "accumulate", "idle-state",
         "356 MiB less at the peak if the optimizer state is on the device only during the "
         "optimizer step"},
        {"captures", "seq2seq", "kept-gradients",
         "280 MiB of gradients (6.2% of the peak) stays allocated during forward: "
         "zero_grad(set_to_none=False)"},
        {"captures", "seq2seq_cap", "cache-flushes",
         "4 requests needed a cache flush, which synchronizes the device; with expandable segments "
         "none does"},
        {"findings", "first", "first-steps",
         "155 MiB extra is needed only in the first steps: 559 MiB, then 404 MiB"},
        {"findings", "benchmark", "first-steps", /* cuDNN tries its algorithms */
         "2.32 GiB extra is needed only in the first steps: 2.59 GiB, then 276 MiB"},
        {"findings", "warmup", "first-steps",
         "741 MiB extra is needed only in the first steps: 1.06 GiB, then 347 MiB"}};

    for (size_t i = 0; i < MT_ARRAY_LEN(list); i++) {
        struct mt_report *report = analyze(list[i].folder, list[i].name);
        const struct mt_finding *finding = find(report, list[i].id);
        if (!finding)
            fail_msg("%s: no %s", list[i].name, list[i].id);
        assert_string_equal(finding->title, list[i].title);
        assert_true(finding->evidence_count > 0);
        mt_report_release(report);
        mt_source_close(source);
    }
}

/* The first steps of the second run have no separate peak. */
static void expect_first(const char *name)
{
    struct mt_report *report = analyze("findings", name);
    const struct mt_finding *first = find(report, "first-steps");

    assert_non_null(first);
    assert_int_equal(first->bytes,
                     truth(name, "allocated_peak") - truth(name, "allocated_peak_clean"));
    mt_report_release(report);
    mt_source_close(source);
}

TEST(the_claim_for_a_first_peak_is_what_the_change_saved)
{
    expect_first("first");
    expect_first("warmup");
}

TEST(there_are_no_findings_where_nothing_is_wrong)
{
    static const struct said list[] = {
        {"captures", "leak", "optimizer-state", NULL}, /* SGD has none */
        {"captures", "cache", "optimizer-state", NULL},
        {"captures", "twogpu", "idle-state", NULL}, /* the peak is in its step */
        {"captures", "gpt_ring", "idle-state", NULL},
        {"captures", "leak", "idle-state", NULL},
        {"captures", "cache", "idle-state", NULL},
        {"captures", "lstm", "loss-peak", NULL},
        {"captures", "leakval", "loss-peak", NULL},
        {"captures", "leakval", "held-activations", NULL}, /* they wait for nothing */
        {"captures", "ddp_leak_rank1", "held-activations", NULL},
        {"captures", "twogpu", "held-activations", NULL},
        {"captures", "gpt_default", "foreach-peak", NULL},
        {"captures", "seq2seq", "foreach-peak", NULL},
        {"captures", "gpt_default", "kept-gradients", NULL},
        {"findings", "ahead", "kept-gradients", NULL}, /* no zero_grad: they add up */
        {"captures", "accumulate", "kept-gradients", NULL},
        {"captures", "ddp_leak_rank0", "kept-gradients", NULL}, /* buckets */
        {"captures", "seq2seq", "cache-flushes", NULL},
        {"captures", "oom_adam", "cache-flushes", NULL}, /* flushed in vain */
        {"captures", "resnet50_cap1900", "cache-flushes", NULL},
        {"findings", "first_clean", "first-steps", NULL},
        {"findings", "host_state", "first-steps", NULL},
        {"captures", "gpt_default", "first-steps", NULL},
        {"captures", "gpt_gc", "first-steps", NULL},
        {"captures", "lengths", "first-steps", NULL},
        {"captures", "seq2seq", "first-steps", NULL}};

    for (size_t i = 0; i < MT_ARRAY_LEN(list); i++)
        expect_silence(list[i].folder, list[i].name, list[i].id);
}

static void expect_outside(const char *name, uint64_t bytes)
{
    struct mt_analyze_options options = {0};
    struct mt_report *report = NULL;
    struct mt_error error = {0};
    const struct mt_finding *outside;
    char path[512];

    snprintf(path, sizeof path, "%s/recorded/%s.trace.zst", MEMTRACE_FIXTURES, name);
    if (mt_import_open_any(path, &source, &error) != MT_OK ||
        mt_analyze(source, &options, &report, &error) != MT_OK)
        fail_msg("%s: %s", path, error.text);
    outside = find(report, "outside-memory");
    assert_int_equal(outside ? outside->bytes : 0, bytes);
    mt_report_release(report);
    mt_source_close(source);
}

/* A library allocates driver memory once or twice, or less than is worth reporting. */
TEST(memory_outside_of_the_framework_is_found)
{
    expect_outside("streams", 67240960);
    expect_outside("graph", 2 * (uint64_t)67240960);
    expect_outside("churn_expandable", 0);
    expect_outside("driver_only", 0);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
