/* Estimates of real runs: the measured numbers of the rows sum to the allocated peak, and are those
 * of `analyze`. The estimated numbers sum to the total of the estimate. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "capture.h"
#include "estimate.h"
#include "module_table.h"
#include "util.h"

static const char *const captures[] = {"gpt_ring", "twogpu", "streams", "churn_ring",
                                       "graph",    "lstm",   "leak",    "seq2seq"};

/* Some roles are alone, some are together, and "weight copies", "other" and "inputs" are not in
 * it. */
#define ROLES                                                                                      \
    "\"roles\": {\"parameters\": 1000, \"optimizer state +gradients\": 20000000000,"               \
    " \"activations+temporaries + KV cache\": 7, \"workspace\": null}"

static struct mt_estimate read_text(const char *members)
{
    struct mt_settings settings;
    struct mt_estimate estimate = {0};
    struct mt_error error = {0};
    char text[4096];
    int length = snprintf(text, sizeof text, "{\"schema\": \"memtrace.estimate/1\", %s}", members);

    assert_in_range(length, 1, sizeof text - 1);
    if (mt_settings_parse_members(text, (size_t)length, &settings, &error) ||
        mt_estimate_read(&estimate, &settings, &error))
        fail_msg("%s", error.text);
    mt_settings_release(&settings);
    return estimate;
}

static struct capture read_capture(const char *capture, const struct mt_question *question)
{
    const struct mt_analyze_options options = {.question = question};

    return capture_analyze(capture_path("captures", capture, ".pickle.zst"), &options);
}

static void check_sums(const struct mt_estimate_table *table, const struct mt_estimate *estimate,
                       uint64_t allocated_bytes)
{
    uint64_t measured = 0, estimated = table->rest_bytes;

    for (uint32_t i = 0; i < table->count; i++) {
        measured += table->lines[i].measured_bytes;
        estimated += table->lines[i].estimated_bytes;
        assert_true(table->lines[i].is_estimated || !table->lines[i].estimated_bytes);
    }
    assert_int_equal(measured, allocated_bytes);
    assert_int_equal(estimated, estimate->total_bytes);
}

static void check_roles(const struct mt_estimate_table *table,
                        const struct mt_device_report *device)
{
    unsigned roles = 0;

    for (uint32_t i = 0; i < table->count; i++) {
        const struct mt_estimate_line *line = &table->lines[i];
        uint64_t bytes = 0;

        assert_int_equal(roles & line->roles, 0);
        roles |= line->roles;
        for (unsigned role = 0; role < MT_ROLE_COUNT; role++)
            bytes += line->roles >> role & 1 ? device->peak_role_bytes[role] : 0;
        assert_int_equal(line->measured_bytes, bytes);
    }
}

TEST(roles_sum_to_the_peak)
{
    static const struct mt_question question = {.at = MT_AT_PEAK, .by = MT_BY_ROLE};
    struct mt_estimate estimate = read_text(ROLES ", \"total_bytes\": 30000000000");
    struct mt_arena arena = {0};

    for (size_t i = 0; i < MT_ARRAY_LEN(captures); i++) {
        struct capture run = read_capture(captures[i], &question);

        for (uint32_t d = 0; d < run.report->device_count; d++) {
            const struct mt_device_report *device = &run.report->devices[d];
            struct mt_estimate_table table;

            mt_estimate_by_role(&arena, &estimate, device->answer, &table);
            check_sums(&table, &estimate, device->allocated_peak.bytes);
            check_roles(&table, device);
            assert_int_equal(table.rest_bytes, 9999998993);
        }
        capture_close(&run);
    }
    mt_arena_release(&arena);
    mt_estimate_release(&estimate);
}

static uint64_t measured_of(const struct mt_estimate_table *table, const char *name)
{
    for (uint32_t i = 0; i < table->count; i++)
        if (!strcmp(table->lines[i].name, name))
            return table->lines[i].measured_bytes;
    fail_msg("no line '%s'", name);
    return 0;
}

/* One layer has a row of its own; all others are in the row of their path. */
static void check_modules(struct mt_arena *arena, const struct mt_device_report *device)
{
    const struct mt_modules *modules = device->modules;
    const struct mt_module_row *layer = &modules->rows[1];
    struct mt_estimate_table table;
    uint64_t others = 0;
    char text[600];

    assert_in_range(modules->layer_count, 3, 1000);
    for (uint32_t i = 0; i < modules->row_count; i++)
        if (i != 1 && !strcmp(modules->rows[i].path, layer->path))
            others += modules->rows[i].bytes;
    (void)snprintf(text, sizeof text, "\"modules\": {\"%s\": 5, \"%s\": 6, \"no such\": 7}",
                   layer->path, layer->label);
    struct mt_estimate estimate = read_text(text);
    mt_estimate_by_module(arena, &estimate, device->answer, &table);
    check_sums(&table, &estimate, device->allocated_peak.bytes);
    assert_int_equal(measured_of(&table, layer->path), others);
    assert_int_equal(measured_of(&table, layer->label), layer->bytes);
    assert_int_equal(measured_of(&table, "no such"), 0);
    mt_estimate_release(&estimate);
}

TEST(modules_sum_to_the_peak)
{
    static const struct mt_question question = {.at = MT_AT_PEAK, .by = MT_BY_MODULE};
    static const char *const with_layers[] = {"gpt_default", "leak", "twogpu", "cache"};
    struct mt_estimate all = read_text("\"modules\": {\"x\": 1}");
    struct mt_arena arena = {0};

    for (size_t i = 0; i < MT_ARRAY_LEN(with_layers); i++) {
        struct capture run = read_capture(with_layers[i], &question);

        check_modules(&arena, &run.report->devices[0]);
        capture_close(&run);
    }
    for (size_t i = 0; i < MT_ARRAY_LEN(captures); i++) {
        struct capture run = read_capture(captures[i], &question);
        struct mt_estimate_table table;

        mt_estimate_by_module(&arena, &all, run.report->devices[0].answer, &table);
        check_sums(&table, &all, run.report->devices[0].allocated_peak.bytes);
        capture_close(&run);
    }
    mt_arena_release(&arena);
    mt_estimate_release(&all);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
