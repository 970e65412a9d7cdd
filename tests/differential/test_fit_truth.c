/* Compares smallest limits with real runs: fixtures/captures/capacity.json has a limit at which the
 * run failed and one at which it did not, and runs under a limit must fit that limit. */
#include "cmocka_all.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "capture.h"
#include "fit.h"
#include "util.h"

static struct mt_fit_summary summary;

static json_t *load(const char *name)
{
    char path[512];

    snprintf(path, sizeof path, "%s/captures/%s.json", MEMTRACE_FIXTURES, name);
    json_t *json = json_load_file(path, 0, NULL);
    assert_non_null(json);
    return json;
}

static struct mt_source *open_capture(const char *name)
{
    return capture_open(capture_path("captures", name, ".pickle.zst"));
}

static const struct mt_fit_result *fit(const char *name, const char *policy)
{
    const struct mt_fit_options options = {.policy = policy, .orders = 1};
    struct mt_source *source = open_capture(name);
    struct mt_error error;

    mt_fit_release(&summary);
    if (mt_fit_run(source, &options, &summary, &error) != MT_OK)
        fail_msg("%s: %s", name, error.text);
    mt_source_close(source);
    assert_true(summary.devices[0].fits);
    return &summary.devices[0];
}

static void lies_between(const char *name, const char *options, const json_t *bounds)
{
    uint64_t fails = (uint64_t)json_integer_value(json_object_get(bounds, "fails"));
    uint64_t fits = (uint64_t)json_integer_value(json_object_get(bounds, "fits"));
    char policy[128];

    snprintf(policy, sizeof policy, "pytorch:%s", options);
    const struct mt_fit_result *result = fit(name, policy);
    if (result->fit_bytes <= fails * MT_MIB || result->fit_bytes > fits * MT_MIB)
        fail_msg("%s under '%s': %llu MiB, but the run failed at %llu and passed at %llu MiB", name,
                 options, (unsigned long long)(result->fit_bytes / MT_MIB),
                 (unsigned long long)fails, (unsigned long long)fits);
}

TEST(measured_limits_are_found)
{
    json_t *capacity = load("capacity"), *entry, *bounds;
    const char *run, *options;
    size_t checked = 0;

    json_object_foreach(capacity, run, entry)
    {
        const char *trace = json_string_value(json_object_get(entry, "trace"));
        json_object_foreach(entry, options, bounds)
        {
            if (!json_is_object(bounds))
                continue;
            lies_between(trace, options, bounds);
            checked++;
        }
    }
    assert_int_equal(checked, 3);
    json_decref(capacity);
}

/* A run served its requests under a limit, so the smallest limit is not larger. */
TEST(runs_under_a_limit_fit_it)
{
    static const char *const captures[] = {
        "churn_cap",       "churn_exp_cap", "churn_gc",   "churn_split_cap",  "churn_noctx",
        "oom_adam",        "gpt_cap",       "gpt_gc",     "gpt_split200_cap", "resnet50_cap1900",
        "resnet50_cap900", "seq2seq_cap",   "streams_cap"};

    for (size_t i = 0; i < MT_ARRAY_LEN(captures); i++) {
        char name[64];
        uint64_t cap_mib;

        snprintf(name, sizeof name, "%s.truth", captures[i]);
        json_t *truth = load(name);
        cap_mib = (uint64_t)json_integer_value(json_object_get(truth, "cap_mib"));
        bool died = json_is_string(json_object_get(truth, "oom"));
        json_decref(truth);
        assert_true(cap_mib > 0);
        if (died != (fit(captures[i], "pytorch")->fit_bytes > cap_mib * MT_MIB))
            fail_msg("%s %s under %llu MiB", captures[i], died ? "died" : "ran",
                     (unsigned long long)cap_mib);
    }
}

TEST(dependence_on_memory_is_seen)
{
    assert_int_equal(fit("resnet50_cap1900", "pytorch:")->recorded_ooms, 4);
    assert_int_equal(fit("seq2seq_cap", "pytorch:")->recorded_retries, 4);
    assert_false(mt_fit_depends_on_memory(fit("seq2seq", "pytorch:")));
}

static uint64_t failures_at(const char *name, const char *policy, uint16_t device,
                            uint64_t limit_bytes)
{
    static struct mt_replay_summary replayed;
    const struct mt_replay_options options = {
        .policy = policy, .limit_bytes = limit_bytes, .no_inferred_pools = true};
    struct mt_source *source = open_capture(name);
    struct mt_error error;
    size_t i;

    assert_int_equal(mt_replay_run(source, &options, NULL, &replayed, &error), MT_OK);
    mt_source_close(source);
    for (i = 0; replayed.devices[i].device != device; i++)
        assert_true(i + 1 < replayed.device_count);
    return replayed.devices[i].failed_requests;
}

TEST(replays_agree)
{
    static const struct {
        const char *capture, *policy;
    } cases[] = {{"churn", "pytorch"},       {"churn_gc", "pytorch"},
                 {"gpt_split64", "pytorch"}, {"seq2seq", "pytorch:expandable_segments:True"},
                 {"streams", "pytorch:"},    {"twogpu", "pytorch"}};

    for (size_t i = 0; i < MT_ARRAY_LEN(cases); i++) {
        fit(cases[i].capture, cases[i].policy);
        for (size_t d = 0; d < summary.device_count; d++) {
            const struct mt_fit_result *result = &summary.devices[d];
            assert_int_equal(
                failures_at(cases[i].capture, cases[i].policy, result->device, result->fit_bytes),
                0);
            assert_true(failures_at(cases[i].capture, cases[i].policy, result->device,
                                    result->fails_at_bytes) > 0);
            assert_true(result->first_failure.known && result->first_failure.site_count > 0);
        }
    }
}

int main(void)
{
    int failures = run_tests_of_file(NULL, NULL);

    mt_fit_release(&summary);
    return failures;
}
