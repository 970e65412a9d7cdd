/* Compares the recommendation of tune with real runs under that setting, and its front with replays
 * one by one. */
#include "cmocka_all.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "fit.h"
#include "replay.h"
#include "tune.h"

static struct mt_tune_summary summary;
static struct mt_replay_summary replay;

static struct mt_source *open_capture(const char *name)
{
    return capture_open(capture_path("captures", name, ".pickle.zst"));
}

static struct mt_source *tune(const char *name, uint64_t limit_bytes, bool fits)
{
    const struct mt_tune_options options = {limit_bytes, fits, NULL, NULL};
    struct mt_source *source = open_capture(name);
    struct mt_error error = {0};

    if (mt_tune_run(source, &options, &summary, &error) != MT_OK)
        fail_msg("%s: %s", name, error.text);
    return source;
}

static uint64_t measured_peak(const char *truth)
{
    char path[512];
    json_t *rows, *row;
    json_error_t error;
    uint64_t peak = 0;
    size_t i;

    snprintf(path, sizeof path, "%s/%s.truth.json", MEMTRACE_FIXTURES, truth);
    json_t *root = json_load_file(path, 0, &error);
    assert_non_null(root);
    rows = json_object_get(root, "rows");
    json_array_foreach(rows, i, row)
    {
        uint64_t value = (uint64_t)json_integer_value(json_object_get(row, "reserved_peak"));
        peak = value > peak ? value : peak;
    }
    json_decref(root);
    return peak;
}

static void expect_real(const char *capture, const char *conf, const char *truth)
{
    struct mt_source *source = tune(capture, 0, false);

    assert_int_not_equal(summary.best, MT_TUNE_CURRENT);
    assert_string_equal(summary.front[summary.best].conf, conf);
    assert_int_equal(summary.front[summary.best].reserved_peak_bytes, measured_peak(truth));
    mt_source_close(source);
}

TEST(real_runs_have_the_predicted_peak)
{
    expect_real("gpt_default", "expandable_segments:True", "captures/gpt_expandable");
    expect_real("gpt_split64", "expandable_segments:True", "captures/gpt_expandable");
    expect_real("seq2seq", "expandable_segments:True", "other_options/seq2seq_exp");
}

static uint64_t calls(const struct mt_tune_row *row)
{
    return row->device_allocs + row->device_frees;
}

/* A whole replay of a setting. */
static void measure(struct mt_source *source, const char *conf, uint64_t limit_bytes,
                    uint64_t *peak, uint64_t *made)
{
    char policy[256];
    const struct mt_replay_options options = {.policy = policy, .limit_bytes = limit_bytes};
    struct mt_error error = {0};

    snprintf(policy, sizeof policy, "pytorch:%s", conf);
    *peak = *made = 0;
    assert_int_equal(mt_source_rewind(source, &error), MT_OK);
    assert_int_equal(mt_replay_run(source, &options, NULL, &replay, &error), MT_OK);
    for (size_t i = 0; i < replay.device_count; i++) {
        const struct mt_counters *counters = &replay.devices[i].counters;

        *peak = counters->reserved.peak > *peak ? counters->reserved.peak : *peak;
        *made += counters->device_allocs + counters->device_frees;
    }
}

/* The run's own replays and 20 readings of four settings, each up to its end. */
TEST(settings_share_readings)
{
    struct mt_source *source = tune("gpt_default", 0, false);

    assert_in_range(source->readings, 20, 26);
    mt_source_close(source);
}

/* Every row equals a replay of that setting, and no row dominates another. */
static void check_front(struct mt_source *source, uint64_t limit_bytes)
{
    assert_true(summary.front_count > 0);
    for (size_t i = 0; i < summary.front_count; i++) {
        const struct mt_tune_row *row = &summary.front[i];
        uint64_t peak, made;

        measure(source, row->conf, limit_bytes, &peak, &made);
        assert_int_equal(row->reserved_peak_bytes, peak);
        assert_int_equal(calls(row), made);
        assert_true(row->serves);
        for (size_t k = 0; k < i; k++) {
            assert_true(summary.front[k].reserved_peak_bytes < row->reserved_peak_bytes);
            assert_true(calls(&summary.front[k]) > calls(row));
        }
    }
}

/* Replays that stopped early stopped rightly: a row is at least as good as each setting. */
static void check_that_none_is_missing(struct mt_source *source)
{
    static const char *const splits[] = {"", ",max_split_size_mb:21", ",max_split_size_mb:64",
                                         ",max_split_size_mb:256"};
    static const char *const divisions[] = {"", ",roundup_power2_divisions:2",
                                            ",roundup_power2_divisions:4",
                                            ",roundup_power2_divisions:16"};

    for (size_t i = 0; i < 32; i++) {
        uint64_t peak, made;
        char conf[200];
        bool found = false;

        snprintf(conf, sizeof conf, "expandable_segments:%s%s%s", i % 2 ? "True" : "False",
                 divisions[i / 2 % 4], splits[i / 8]);
        measure(source, conf, 0, &peak, &made);
        for (size_t k = 0; k < summary.front_count; k++)
            found |=
                summary.front[k].reserved_peak_bytes <= peak && calls(&summary.front[k]) <= made;
        if (!found)
            fail_msg("the front lacks %s", conf);
    }
}

TEST(no_row_beats_another)
{
    static const char *const names[] = {"gpt_default", "churn", "twogpu", "streams"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct mt_source *source = tune(names[i], 0, false);
        check_front(source, 0);
        check_that_none_is_missing(source);
        mt_source_close(source);
    }
}

TEST(a_limit_asks_for_settings_that_serve)
{
    const uint64_t limit_bytes = UINT64_C(7) << 30;
    struct mt_source *source = tune("gpt_default", limit_bytes, true);

    assert_false(summary.current.serves); /* it needs 7,712 MiB */
    assert_int_equal(summary.current.fit_bytes, UINT64_C(7712) << 20);
    check_front(source, limit_bytes);
    for (size_t i = 0; i < summary.front_count; i++) {
        assert_true(calls(&summary.front[summary.best]) <= calls(&summary.front[i]));
        assert_in_range(summary.front[i].fit_bytes, 1, limit_bytes);
    }
    mt_source_close(source);
    source = tune("gpt_default", UINT64_C(5) << 30, false);
    assert_int_equal(summary.front_count, 0);
    assert_int_equal(summary.best, MT_TUNE_CURRENT);
    mt_source_close(source);
}

/* If `tune` reports that a setting fits a limit, `fit` agrees in every order of addresses. The
 * defaults fit `keeps` under this limit in some orders only. */
TEST(a_setting_serves_in_every_order)
{
    static const struct {
        const char *name;
        uint64_t limit_mib;
    } runs[] = {{"keeps", 142}, {"graph", 590}};
    struct mt_error error = {0};

    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        uint64_t limit_bytes = runs[i].limit_mib << 20;
        struct mt_source *source = tune(runs[i].name, limit_bytes, false);
        struct mt_fit_summary *fit = calloc(1, sizeof *fit);

        assert_non_null(fit);
        for (size_t k = 0; k < summary.front_count; k++) {
            char policy[256];
            const struct mt_fit_options options = {
                .policy = policy, .limit_bytes = limit_bytes, .orders = MT_BASE_ORDERS};

            snprintf(policy, sizeof policy, "pytorch:%s", summary.front[k].conf);
            assert_int_equal(mt_source_rewind(source, &error), MT_OK);
            assert_int_equal(mt_fit_run(source, &options, fit, &error), MT_OK);
            if (!fit->devices[0].limit_fits)
                fail_msg("%s under %llu MiB: %s does not serve in every order", runs[i].name,
                         (unsigned long long)runs[i].limit_mib, policy);
            mt_fit_release(fit);
        }
        free(fit);
        mt_source_close(source);
    }
}

/* A source that shows at its end that it was cut, as a trace without its last bytes does. */
static const struct mt_source_ops *whole_ops;
static bool at_end;

static enum mt_status next_until_cut(struct mt_source *source, struct mt_event_batch *batch,
                                     struct mt_error *error)
{
    enum mt_status status = whole_ops->next(source, batch, error);

    at_end = status == MT_END;
    source->integrity.cut |= at_end;
    return status;
}

static enum mt_status rewind_cut(struct mt_source *source, struct mt_error *error)
{
    source->integrity.cut = at_end = false;
    return whole_ops->rewind(source, error);
}

/* The last settings stop early, and nothing is replayed after them. */
TEST(settings_that_stop_early_hide_no_damage)
{
    const struct mt_tune_options options = {0, false, NULL, NULL};
    struct mt_source *source = open_capture("gpt_expandable");
    struct mt_source_ops ops = *source->ops;
    struct mt_error error = {0};

    whole_ops = source->ops;
    ops.next = next_until_cut;
    ops.rewind = rewind_cut;
    source->ops = &ops;
    assert_int_equal(mt_tune_run(source, &options, &summary, &error), MT_OK);
    assert_false(at_end); /* the last reading */
    assert_true(source->integrity.cut);
    mt_source_close(source);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
