/* Compares the report with the allocator's own counters: the bytes that each phase left behind and
 * the running maximum over phases, for every truth row of every capture; and the sums that the
 * report guarantees. */
#include "cmocka_all.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "timeline_model.h"

static const char *const captures[] = {
    "churn",       "churn_expandable", "ddp_rank0", "ddp_rank1",        "gpt_cap",
    "gpt_default", "gpt_expandable",   "gpt_ring",  "gpt_split64",      "graph",
    "leak",        "leakval",          "oom_adam",  "resnet50_cap1900", "resnet50_cap900",
    "seq2seq",     "streams",          "twogpu",    "seq2seq_native"};
#define CAPTURES (sizeof captures / sizeof *captures)

static struct capture load_as(const char *capture, const char *policy, bool unnamed)
{
    struct mt_analyze_options options = {.path = capture, .models = MT_MODEL_TIMELINE};
    struct capture loaded = {capture_open(capture_path("captures", capture, ".pickle.zst")), NULL};
    struct mt_error error = {0};

    options.replay.policy = policy;
    loaded.source->overlay.hides_ranges = unnamed;
    if (mt_analyze(loaded.source, &options, &loaded.report, &error) != MT_OK)
        fail_msg("%s: %s", capture, error.text);
    return loaded;
}

static struct capture load(const char *capture, const char *policy)
{
    return load_as(capture, policy, false);
}

/* As if the program had named no ranges. */
static struct capture load_unnamed(const char *capture)
{
    return load_as(capture, NULL, true);
}

static json_t *load_truth(const char *capture)
{
    json_error_t error;
    char path[512];

    snprintf(path, sizeof path, "%s/captures/%s.truth.json", MEMTRACE_FIXTURES, capture);
    json_t *truth = json_load_file(path, 0, &error);
    if (!truth)
        fail_msg("%s: %s", path, error.text);
    return truth;
}

static uint64_t value(const json_t *row, const char *key)
{
    json_t *found = json_object_get(row, key);

    assert_true(json_is_integer(found));
    return (uint64_t)json_integer_value(found);
}

/* The row was read right after the range ended, so it belongs to the last range of that name. */
static int32_t phase_of(const struct mt_report *report, const json_t *row)
{
    const char *name = json_string_value(json_object_get(row, "phase"));
    uint64_t t_us = value(row, "time_us");
    int32_t found = MT_NO_PHASE;

    for (uint32_t i = 0; i < report->phase_count; i++)
        if (!strcmp(report->phases[i].name, name) && report->phases[i].end_t_ns / 1000 <= t_us)
            found = (int32_t)i;
    return found;
}

static void check_row(const char *capture, const struct capture *loaded, const json_t *row,
                      struct mt_bytes *highest, bool whole)
{
    const struct mt_device_report *device = &loaded->report->devices[0];
    int32_t phase = phase_of(loaded->report, row);
    int64_t step = json_integer_value(json_object_get(row, "step"));

    if (phase == MT_NO_PHASE || loaded->report->phases[phase].end_event < device->first_event)
        return;
    const struct mt_phase_use *use = &device->phase_uses[phase];
    if (loaded->report->phases[phase].step != MT_NO_STEP)
        assert_int_equal(loaded->report->phases[phase].step, step);
    if (use->exit.allocated != value(row, "allocated") ||
        use->exit.requested != value(row, "requested") ||
        use->exit.active != value(row, "active") || use->exit.reserved != value(row, "reserved"))
        fail_msg("%s: %s of step %d ends with %llu allocated, the allocator said %llu", capture,
                 loaded->report->phases[phase].path, (int)step,
                 (unsigned long long)use->exit.allocated,
                 (unsigned long long)value(row, "allocated"));
    /* with all phases until here; a pause between them may have been higher */
    for (uint32_t i = 0; i < loaded->report->phase_count; i++) {
        const struct mt_phase_use *other = &device->phase_uses[i];
        const struct mt_bytes *peak = &other->peak;

        if (loaded->report->phases[i].end_event > loaded->report->phases[phase].end_event)
            continue;
#define RAISE(level)                                                                               \
    if (peak->level > highest->level)                                                              \
    highest->level = peak->level
        RAISE(allocated);
        RAISE(requested);
        RAISE(active);
        RAISE(reserved);
#undef RAISE
    }
    if (!whole)
        return;
    if (highest->allocated != value(row, "allocated_peak") ||
        highest->requested != value(row, "requested_peak") ||
        highest->active != value(row, "active_peak") ||
        highest->reserved != value(row, "reserved_peak"))
        fail_msg("%s: until %s of step %d at most %llu allocated, the allocator said %llu", capture,
                 loaded->report->phases[phase].path, (int)step,
                 (unsigned long long)highest->allocated,
                 (unsigned long long)value(row, "allocated_peak"));
}

TEST(phases_match_truth)
{
    size_t rows_checked = 0;

    for (size_t i = 0; i < CAPTURES; i++) {
        struct capture loaded = load(captures[i], NULL);
        json_t *truth = load_truth(captures[i]), *row;
        struct mt_bytes highest = {0, 0, 0, 0};
        size_t index;

        json_array_foreach(json_object_get(truth, "rows"), index, row)
        {
            int32_t phase = phase_of(loaded.report, row);

            check_row(captures[i], &loaded, row, &highest, strcmp(captures[i], "gpt_ring") != 0);
            rows_checked += phase != MT_NO_PHASE;
        }
        json_decref(truth);
        capture_close(&loaded);
    }
    assert_true(rows_checked > 500);
}

static void check_instant(const char *capture, const struct mt_instant *instant)
{
    uint64_t bytes = 0, requested = 0;
    int64_t holders = 0;

    for (uint32_t i = 0; i < instant->holding_count; i++) {
        const struct mt_holding *holding = &instant->holdings[i];

        assert_int_equal(holding->bytes, holding->blocks * holding->block_bytes);
        assert_true(i == 0 || instant->holdings[i - 1].bytes >= holding->bytes);
        bytes += holding->bytes;
        requested += holding->requested_bytes;
    }
    /* requested is counted until the free completes */
    if (bytes != instant->bytes.allocated || requested > instant->bytes.requested)
        fail_msg("%s: event %llu (kind %d): holdings sum to %llu, not %llu", capture,
                 (unsigned long long)instant->event, (int)instant->kind, (unsigned long long)bytes,
                 (unsigned long long)instant->bytes.allocated);
    for (uint32_t i = 0; i < instant->holder_count; i++)
        holders += instant->holders[i].bytes;
    if (instant->holders)
        assert_int_equal(holders, instant->bytes.allocated);
}

static void check_explanation(const char *capture, const struct mt_explanation *why)
{
    int64_t bytes = 0;

    for (uint32_t i = 0; i < why->contribution_count; i++)
        bytes += why->contributions[i].bytes;
    if (bytes != (int64_t)(why->to_bytes - why->from_bytes))
        fail_msg("%s: an explanation of kind %d sums to %lld, not %lld", capture, (int)why->kind,
                 (long long)bytes, (long long)(why->to_bytes - why->from_bytes));
    assert_true(why->to_bytes > why->from_bytes);
}

/* The second reading uses the levels of the first. */
static void check_bins(const struct mt_bin *bins, const struct mt_device_report *device)
{
    uint64_t allocated = 0, reserved = 0;

    for (uint32_t i = 0; i < device->timeline->bin_count; i++) {
        uint64_t roles = 0;

        for (int role = 0; role < MT_ROLE_COUNT; role++)
            roles += bins[i].role_bytes[role];
        assert_int_equal(roles, bins[i].allocated);
        allocated = bins[i].allocated > allocated ? bins[i].allocated : allocated;
        reserved = bins[i].reserved_max > reserved ? bins[i].reserved_max : reserved;
    }
    assert_int_equal(allocated, device->allocated_peak.bytes);
    assert_int_equal(reserved, device->reserved_peak.bytes);
}

static void check_device(const char *capture, const struct mt_device_report *device)
{
    uint64_t roles = 0, sites = 0;

    assert_true(device->instant_count > 0);
    assert_int_equal(device->instants[0].kind, MT_INSTANT_PEAK_ALLOCATED);
    assert_int_equal(device->instants[0].bytes.allocated, device->allocated_peak.bytes);
    for (uint32_t i = 0; i < device->instant_count; i++)
        check_instant(capture, &device->instants[i]);
    for (uint32_t i = 0; i < device->explanation_count; i++)
        check_explanation(capture, &device->explanations[i]);
    for (int i = 0; i < MT_ROLE_COUNT; i++)
        roles += device->peak_role_bytes[i];
    for (uint32_t i = 0; i < device->peak_site_count; i++)
        sites += device->peak_sites[i].bytes;
    check_bins(device->timeline->time_bins, device);
    check_bins(device->timeline->event_bins, device);
    assert_int_equal(roles, device->allocated_peak.bytes);
    assert_int_equal(sites, device->allocated_peak.bytes);
    assert_int_equal(device->reserved_peak.bytes, device->replay.counters.reserved.peak);
    assert_int_equal(device->allocated_peak.bytes, device->replay.counters.allocated.peak);
    assert_int_equal(device->requested_peak.bytes, device->replay.counters.requested.peak);
    assert_int_equal(device->active_peak.bytes, device->replay.counters.active.peak);
}

TEST(sums_hold)
{
    static const char *const policies[] = {NULL, "recorded", "pytorch:max_split_size_mb:64"};

    for (size_t i = 0; i < CAPTURES; i++) {
        for (size_t policy = 0; policy < 3; policy++) {
            struct capture loaded = load(captures[i], policies[policy]);

            for (uint32_t d = 0; d < loaded.report->device_count; d++)
                check_device(captures[i], &loaded.report->devices[d]);
            capture_close(&loaded);
        }
    }
}

static const struct mt_explanation *find(const struct capture *loaded,
                                         enum mt_explanation_kind kind, const char *phase,
                                         int64_t step)
{
    const struct mt_device_report *device = &loaded->report->devices[0];

    for (uint32_t i = 0; i < device->explanation_count; i++) {
        const struct mt_explanation *why = &device->explanations[i];

        if (why->kind == kind && why->step == step && why->phase != MT_NO_PHASE &&
            !strcmp(loaded->report->phases[why->phase].name, phase))
            return why;
    }
    fail_msg("no explanation of %s in step %d", phase, (int)step);
    return NULL;
}

static void assert_from(const struct mt_explanation *why, const char *site, enum mt_role role,
                        const char *phase, int64_t bytes)
{
    for (uint32_t i = 0; i < why->contribution_count; i++) {
        const struct mt_contribution *part = &why->contributions[i];

        if (part->site && strstr(part->site, site) && part->role == role &&
            !strcmp(part->phase, phase) && part->bytes == bytes)
            return;
    }
    fail_msg("no %lld bytes from %s, %s", (long long)bytes, site, phase);
}

TEST(seq2seq_is_explained)
{
    struct capture loaded = load("seq2seq", NULL);
    const struct mt_explanation *why = find(&loaded, MT_WHY_PHASE_RAISED_PEAK, "loss", 0);

    assert_int_equal(why->to_bytes - why->from_bytes, 2900496896 - 2420568064);
    assert_from(why, "train train.py:77", MT_ROLE_ACTIVATIONS, "loss", 480248832);
    why = find(&loaded, MT_WHY_PHASE_RAISED_PEAK, "backward", 0);
    assert_int_equal(why->to_bytes - why->from_bytes, 3860992512 - 2900496896);
    /* the gradients of the log-softmax and of its loss: what the run with native stacks
     * (seq2seq_native) calls _log_softmax_backward_data and nll_loss_backward */
    assert_from(why, "backward of train train.py:77", MT_ROLE_TEMPORARIES, "backward", 960495616);
    why = find(&loaded, MT_WHY_PHASE_LEFT_MORE, "optimizer", 0);
    assert_int_equal(why->to_bytes - why->from_bytes, 1731091968 - 1138790912);
    assert_from(why, "_init_group adam.py:178", MT_ROLE_OPTIMIZER_STATE, "optimizer", 296730624);
    why = find(&loaded, MT_WHY_STEP_PEAK_ROSE, "step#1", 1);
    assert_int_equal(why->other_step, 0);
    assert_int_equal(why->to_bytes - why->from_bytes, 4776865280 - 3860992512);
    assert_from(why, "_init_group adam.py:178", MT_ROLE_OPTIMIZER_STATE, "optimizer", 296730624);
    capture_close(&loaded);
}

static uint64_t role_bytes(const struct capture *loaded, enum mt_role role)
{
    return loaded->report->devices[0].peak_role_bytes[role];
}

TEST(roles_of_known_runs)
{
    struct capture loaded = load("seq2seq", NULL);

    /* all parameters but what set-up left as temporaries: the sum of the model */
    assert_int_equal(role_bytes(&loaded, MT_ROLE_PARAMETERS), 296272896);
    assert_int_equal(role_bytes(&loaded, MT_ROLE_OPTIMIZER_STATE), 592301056);
    /* cuBLAS twice, cuBLASLt once: seq2seq_native has their names */
    assert_int_equal(role_bytes(&loaded, MT_ROLE_WORKSPACE), 2 * 33554432 + 1048576);
    assert_true(role_bytes(&loaded, MT_ROLE_GRADIENTS) > 280000000); /* kept: set_to_none=False */
    capture_close(&loaded);
    /* died in forward: what unwinding frees in the same phase is no temporary */
    loaded = load("oom_adam", NULL);
    assert_int_equal(role_bytes(&loaded, MT_ROLE_TEMPORARIES), 0);
    assert_true(role_bytes(&loaded, MT_ROLE_ACTIVATIONS) > 900000000);
    assert_true(loaded.report->devices[0].oom_list[0].fatal);
    capture_close(&loaded);
    loaded = load("resnet50_cap1900", NULL);
    assert_int_equal(loaded.report->devices[0].oom_count, 4);
    assert_false(loaded.report->devices[0].oom_list[3].fatal);
    capture_close(&loaded);
    /* cycles without step numbers */
    loaded = load("twogpu", NULL);
    assert_int_equal(role_bytes(&loaded, MT_ROLE_OPTIMIZER_STATE),
                     2 * role_bytes(&loaded, MT_ROLE_PARAMETERS));
    assert_int_equal(role_bytes(&loaded, MT_ROLE_GRADIENTS),
                     role_bytes(&loaded, MT_ROLE_PARAMETERS));
    capture_close(&loaded);
}

/* Without any names, the roles of all bytes at the peak are the same. */
TEST(roles_without_annotations)
{
    static const char *const names[] = {"seq2seq",   "gpt_default", "resnet50_cap1900",
                                        "ddp_rank0", "ddp_rank1",   "seq2seq_native",
                                        "leakval",   "twogpu"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct capture with = load(names[i], NULL), without = load_unnamed(names[i]);

        for (int role = 0; role < MT_ROLE_COUNT; role++) {
            int64_t difference = (int64_t)(role_bytes(&without, (enum mt_role)role) -
                                           role_bytes(&with, (enum mt_role)role));

            if (difference)
                fail_msg("%s: %s differ by %lld", names[i], mt_role_name((enum mt_role)role),
                         (long long)difference);
        }
        capture_close(&without);
        capture_close(&with);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
