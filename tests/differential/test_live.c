/* `live` on real runs: at the peak it equals the result of `analyze`, and at every instant the
 * counters of the replay. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "capture.h"
#include "util.h"

static const char *const captures[] = {"gpt_ring", "twogpu", "streams",     "churn_ring",
                                       "graph",    "lstm",   "leakval_ring"};

static struct capture read_capture(const char *capture, const struct mt_question *question)
{
    const struct mt_analyze_options options = {.question = question};

    return capture_analyze(capture_path("captures", capture, ".pickle.zst"), &options);
}

static void check_totals(const struct mt_answer *answer)
{
    const struct mt_bytes *wanted = &answer->instant.bytes;
    uint64_t bytes = 0, requested = 0;

    for (uint32_t i = 0; i < answer->row_count; i++) {
        bytes += answer->rows[i].bytes;
        requested += answer->rows[i].requested_bytes;
    }
    assert_int_equal(bytes, wanted->allocated);
    assert_int_equal(bytes + answer->waiting_bytes, wanted->active);
    assert_int_equal(requested + answer->waiting_requested_bytes, wanted->requested);
    assert_true(wanted->reserved >= wanted->active);
}

/* The rows of the table that analyze prints. */
static void check_holders(const struct mt_instant *peak, const struct mt_answer *answer)
{
    uint64_t rest = 0, told = 0;

    for (uint32_t i = answer->told_count; i < answer->row_count; i++)
        rest += answer->rows[i].bytes;
    for (uint32_t i = 0; i < peak->holder_count; i++) {
        const struct mt_contribution *holder = &peak->holders[i];
        const struct mt_live_row *row = &answer->rows[i];

        if (!holder->site) {
            assert_int_equal(holder->bytes, rest);
            continue;
        }
        told++;
        assert_string_equal(holder->site, row->label);
        assert_string_equal(holder->phase, row->phase);
        assert_int_equal(holder->step, row->step);
        assert_int_equal(holder->role, row->role);
        assert_int_equal(holder->bytes, row->bytes);
        assert_int_equal(holder->blocks, row->blocks);
    }
    assert_int_equal(told, answer->told_count);
}

/* The same by site and phase: "peak_sites". */
static void check_sites(const struct mt_device_report *whole, const struct mt_answer *answer)
{
    for (uint32_t i = 0; i < whole->peak_site_count; i++) {
        const struct mt_site_use *site = &whole->peak_sites[i];
        uint64_t wanted = 0, bytes = 0;

        for (uint32_t j = 0; j < whole->peak_site_count; j++)
            if (!strcmp(whole->peak_sites[j].site, site->site) &&
                !strcmp(whole->peak_sites[j].phase, site->phase))
                wanted += whole->peak_sites[j].bytes;
        for (uint32_t j = 0; j < answer->row_count; j++)
            if (!strcmp(answer->rows[j].site, site->site) &&
                !strcmp(answer->rows[j].phase, site->phase))
                bytes += answer->rows[j].bytes;
        assert_int_equal(bytes, wanted);
    }
}

TEST(the_peak_is_that_of_analyze)
{
    static const struct mt_question question = {.at = MT_AT_PEAK, .by = MT_BY_SITE};

    for (size_t i = 0; i < MT_ARRAY_LEN(captures); i++) {
        struct capture whole = read_capture(captures[i], NULL);
        struct capture live = read_capture(captures[i], &question);

        assert_int_equal(whole.report->device_count, live.report->device_count);
        for (uint32_t d = 0; d < whole.report->device_count; d++) {
            const struct mt_device_report *device = &whole.report->devices[d];
            const struct mt_answer *answer = live.report->devices[d].answer;

            assert_int_equal(answer->instant.event, device->allocated_peak.event);
            assert_memory_equal(&answer->instant.bytes, &device->allocated_peak.then,
                                sizeof answer->instant.bytes);
            assert_int_equal(answer->instant.phase, device->allocated_peak.phase);
            check_totals(answer);
            check_holders(&device->instants[0], answer);
            check_sites(device, answer);
        }
        capture_close(&whole);
        capture_close(&live);
    }
}

/* One program, recorded with Python stacks, and also with C++ stacks: the same sites hold the same
 * bytes, and blocks of backward's threads are tied alike. */
TEST(native_frames_change_no_site)
{
    struct capture python = read_capture("seq2seq", NULL);
    struct capture both = read_capture("seq2seq_native", NULL);
    const struct mt_device_report *a = &python.report->devices[0], *b = &both.report->devices[0];

    assert_int_equal(a->peak_site_count, b->peak_site_count);
    for (uint32_t i = 0; i < a->peak_site_count; i++) {
        assert_string_equal(a->peak_sites[i].site, b->peak_sites[i].site);
        assert_string_equal(a->peak_sites[i].phase, b->peak_sites[i].phase);
        assert_int_equal(a->peak_sites[i].role, b->peak_sites[i].role);
        assert_int_equal(a->peak_sites[i].bytes, b->peak_sites[i].bytes);
        assert_int_equal(a->peak_sites[i].blocks, b->peak_sites[i].blocks);
    }
    assert_int_equal(a->frameless_peak_bytes, b->frameless_peak_bytes);
    capture_close(&python);
    capture_close(&both);
}

/* Roles at the peak are also those of analyze. */
TEST(roles_are_those_of_analyze)
{
    static const struct mt_question question = {.at = MT_AT_PEAK, .by = MT_BY_ROLE};
    struct capture live = read_capture("graph", &question);
    const struct mt_device_report *device = &live.report->devices[0];

    assert_true(device->answer->row_count > 3);
    for (uint32_t i = 0; i < device->answer->row_count; i++) {
        const struct mt_live_row *row = &device->answer->rows[i];

        assert_false(row->several_roles);
        assert_string_equal(row->label, mt_role_name(row->role));
        assert_int_equal(row->bytes, device->peak_role_bytes[row->role]);
    }
    capture_close(&live);
}

TEST(every_instant_closes)
{
    static const struct mt_question questions[] = {
        {.at = MT_AT_RESERVED_PEAK, .by = MT_BY_STACK},
        {.at = MT_AT_END, .by = MT_BY_PHASE},
        {.at = MT_AT_EVENT, .value = 701, .by = MT_BY_SIZE},
        {.at = MT_AT_EVENT, .value = 377, .by = MT_BY_SITE},
        {.at = MT_AT_TIME, .value = 50000000, .by = MT_BY_STACK}};

    for (size_t i = 0; i < MT_ARRAY_LEN(captures); i++)
        for (size_t q = i % 2; q < MT_ARRAY_LEN(questions); q += 2) {
            struct capture live = read_capture(captures[i], &questions[q]);

            for (uint32_t d = 0; d < live.report->device_count; d++)
                if (!live.report->devices[d].answer->missing)
                    check_totals(live.report->devices[d].answer);
            capture_close(&live);
        }
}

TEST(the_peak_within_a_phase)
{
    static const struct mt_question question = {.at = MT_AT_PHASE, .phase = "backward"};
    struct capture live = read_capture("lstm", &question);
    const struct mt_device_report *device = &live.report->devices[0];
    const struct mt_answer *answer = device->answer;
    uint32_t instances = 0;

    for (uint32_t i = 0; i < live.report->phase_count; i++) {
        const char *name = live.report->phases[i].name;

        if (strcmp(name, "backward"))
            continue;
        if ((int32_t)i == answer->selected_phase)
            assert_int_equal(instances, answer->selected_number);
        instances++;
        assert_true(device->phase_uses[i].peak.allocated <= answer->instant.bytes.allocated);
    }
    assert_true(instances > 1);
    assert_int_equal(answer->selected_count, instances);
    assert_int_equal(device->phase_uses[answer->selected_phase].peak.allocated,
                     answer->instant.bytes.allocated);
    check_totals(answer);
    capture_close(&live);
}

TEST(missing_parts)
{
    static const struct {
        struct mt_question question;
        enum mt_no_answer missing;
    } cases[] = {{{.at = MT_AT_OOM}, MT_NO_OOM},
                 {{.at = MT_AT_PHASE, .phase = "ackward"}, MT_NO_SUCH_PHASE},
                 {{.at = MT_AT_EVENT, .value = 10000000}, MT_BEYOND_END},
                 {{.at = MT_AT_TIME, .value = UINT64_MAX}, MT_BEYOND_END}};

    for (size_t i = 0; i < MT_ARRAY_LEN(cases); i++) {
        struct capture live = read_capture("graph", &cases[i].question);

        assert_int_equal(live.report->devices[0].answer->missing, cases[i].missing);
        capture_close(&live);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
