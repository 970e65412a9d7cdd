/* What findings save. What a device must have under a setting, for a recording that begins with
 * reserved memory: memtrace never claims less. What a change without a replay saves: at most what
 * stays below the next level, and each byte once. */
#include "cmocka_all.h"

#include "finding.h"
#include "finding_program.h"

enum { PAIRS = 5, BLOCK_MIB = 9, WIDE_MIB = 14, SEGMENT_MIB = 20, OTHER_STREAM = 7 };

static uint64_t segment(uint64_t mib, uint32_t stream, uint8_t flags)
{
    const uint64_t addr = program.next_addr;

    program.next_addr += mib * MT_MIB;
    program_add(MT_EVENT_SEGMENT_ALLOC, (struct mt_event){.addr = addr,
                                                          .size_bytes = mib * MT_MIB,
                                                          .stream = stream,
                                                          .flags = flags,
                                                          .name = MT_NO_ID,
                                                          .stack = MT_NO_ID});
    return addr;
}

static void block(uint64_t addr, uint64_t mib, uint32_t stream, uint8_t flags)
{
    program_add(MT_EVENT_ALLOC, (struct mt_event){.addr = addr,
                                                  .size_bytes = mib * MT_MIB,
                                                  .aux_bytes = mib * MT_MIB,
                                                  .stream = stream,
                                                  .flags = flags,
                                                  .name = MT_NO_ID,
                                                  .stack = MT_NO_ID});
}

/* The middle two of four blocks in two segments are freed. Default segments leave two holes; an
 * expandable segment leaves one hole that a wide block fits. */
static void fragment(void)
{
    uint64_t blocks[PAIRS][4];

    for (int i = 0; i < PAIRS; i++)
        for (int k = 0; k < 4; k += 2) {
            blocks[i][k] = segment(SEGMENT_MIB, 0, 0);
            blocks[i][k + 1] = blocks[i][k] + BLOCK_MIB * MT_MIB;
            block(blocks[i][k], BLOCK_MIB, 0, 0);
            block(blocks[i][k + 1], BLOCK_MIB, 0, 0);
        }
    for (int i = 0; i < PAIRS; i++) {
        give(blocks[i][1]);
        give(blocks[i][2]);
    }
    for (int i = 0; i < PAIRS; i++)
        block(segment(WIDE_MIB, 0, 0), WIDE_MIB, 0, 0);
}

/* The same on each device. Initially reserved memory is released first. */
static struct mt_report *analyze_program(uint64_t reserved_at_start_mib, uint16_t device_count)
{
    const struct mt_analyze_options options = {.needs = true};

    program_begin();
    if (reserved_at_start_mib) {
        const uint64_t start = segment(reserved_at_start_mib, OTHER_STREAM, MT_EVENT_INITIAL);
        block(start, reserved_at_start_mib, OTHER_STREAM, MT_EVENT_INITIAL);
        give(start);
    }
    fragment();
    size_t count = program.count;
    for (uint16_t device = 1; device < device_count; device++)
        for (size_t i = 0; i < count; i++) {
            program.events[program.count] = program.events[i];
            program.events[program.count++].device = device;
        }
    struct mt_report *report = program_report_with(&options);
    assert_int_equal(report->device_count, device_count);
    return report;
}

/* Expandable segments serve it with 180 MiB. */
TEST(a_setting_saves_as_much_as_in_the_replays)
{
    struct mt_report *report = analyze_program(0, 1);
    const struct mt_finding *finding = finding_of(report, "allocator-settings");

    assert_non_null(finding);
    assert_int_equal(report->devices[0].need->bytes, 270 * MT_MIB);
    assert_int_equal(finding->saving, MT_SAVING_EXACT);
    assert_int_equal(finding->saves_bytes, 90 * MT_MIB);
    program_end(report);
}

/* Limits below the initial 220 MiB are not tried, so 220 MiB is not the answer. */
TEST(a_need_bounded_by_the_start_is_not_claimed_of_a_setting)
{
    struct mt_report *report = analyze_program(220, 1);
    const struct mt_finding *finding = finding_of(report, "allocator-settings");

    assert_non_null(finding);
    assert_int_equal(report->devices[0].need->bytes, 270 * MT_MIB);
    assert_int_equal(finding->saves_bytes, finding->bytes); /* of the reserved peak */
    assert_null(strstr(finding->title, "must have"));
    program_end(report);
}

TEST(a_need_bounded_by_the_start_is_not_claimed_of_the_run)
{
    struct mt_report *report = analyze_program(272, 1);

    assert_null(report->devices[0].need);
    program_end(report);
}

static uint64_t readings_of(const struct mt_report *report, const char *pass)
{
    for (uint32_t i = 0; i < report->passes.count; i++)
        if (strcmp(report->passes.costs[i].name, pass) == 0)
            return report->passes.costs[i].readings;
    return 0;
}

/* One search covers all devices. A second device with the same setting adds its own replays, but no
 * search. */
TEST(each_setting_is_searched_once)
{
    struct mt_report *one = analyze_program(0, 1), *two;
    const uint64_t readings = readings_of(one, "finding better_settings");

    program_end(one);
    two = analyze_program(0, 2);
    assert_true(readings > 1);
    assert_true(readings_of(two, "finding better_settings") < 2 * readings);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(two->devices[i].findings[0].saves_bytes, 90 * MT_MIB);
    program_end(two);
}

/* A block of 200 MiB waits for backward; later, `later` bytes more than the model are allocated. */
static void one_pass(const char *line, uint64_t later)
{
    begin();
    uint64_t hidden = take_in("forward", line, 200 * MT_MIB);
    phase_begins("backward");
    give(take(NULL, 20 * MT_MIB));
    give(hidden);
    phase_ends("backward");
    give(take_in("optimizer", "clip.py:f:1", later));
}

static void expect_saving(const char *id, uint64_t bytes)
{
    struct mt_report *report = program_report();
    const struct mt_finding *finding = finding_of(report, id);

    assert_non_null(finding);
    assert_int_equal(finding->saving, MT_SAVING_AT_MOST);
    assert_int_equal(finding->saves_bytes, bytes);
    program_end(report);
}

TEST(the_peak_falls_to_the_next_level)
{
    one_pass("model.py:hidden:9", 10 * MT_MIB);
    expect_saving("held-activations", 200 * MT_MIB);
    one_pass("model.py:hidden:9", 150 * MT_MIB); /* 200 of 270 MiB */
    expect_saving("held-activations", 70 * MT_MIB);
}

/* Blocks of the same line do not make the next level. */
TEST(later_blocks_of_the_change_do_not_count)
{
    uint64_t hidden;

    one_pass("model.py:hidden:9", 10 * MT_MIB);
    hidden = take_in("forward", "model.py:hidden:9", 190 * MT_MIB);
    phase_begins("backward");
    give(hidden);
    phase_ends("backward");
    expect_saving("held-activations", 200 * MT_MIB);
}

/* Nor do blocks of other lines that the change may remove. */
TEST(later_blocks_of_other_lines_do_not_count)
{
    static const char *const lines[][2] = {
        {"held-activations", "model.py:other:10"},
        {"loss-peak", "torch/nn/functional.py:cross_entropy:3 < eval.py:loss:8"},
        {"loss-peak", "eval.py:loss:8"}, /* in the line of a loss: logits.float() */
        {"attention-matrices", "nn.py:softmax:4 < model.py:attention:12"}};
    static const char *const firsts[] = {"model.py:hidden:9",
                                         "torch/nn/functional.py:cross_entropy:3 < model.py:loss:9",
                                         "torch/nn/functional.py:cross_entropy:3 < model.py:loss:9",
                                         "nn.py:softmax:3 < model.py:attention:9"};

    for (size_t i = 0; i < MT_ARRAY_LEN(lines); i++) {
        one_pass(firsts[i], 10 * MT_MIB);
        (void)program_stack("torch/nn/functional.py:cross_entropy:3 < eval.py:loss:8");
        uint64_t other = take_in("forward", lines[i][1], 190 * MT_MIB);
        phase_begins("backward");
        give(other);
        phase_ends("backward");
        expect_saving(lines[i][0], 200 * MT_MIB);
    }
}

/* The matrices of attention are also activations that wait for backward. */
TEST(bytes_of_two_findings_count_once)
{
    one_pass("nn.py:softmax:3 < model.py:attention:9", 10 * MT_MIB);
    struct mt_report *report = program_report();
    const struct mt_finding *findings = report->devices[0].findings;
    assert_string_equal(findings[0].id, "held-activations");
    assert_int_equal(findings[0].counted_before_bytes, 0);
    assert_string_equal(findings[1].id, "attention-matrices");
    assert_int_equal(findings[1].counted_before_bytes, 200 * MT_MIB);
    assert_true(has_evidence(&findings[1], "advice before this one also counts 200 MiB of it"));
    program_end(report);
}

/* Activations are larger at the peak, but a later level is near the rest. */
TEST(the_larger_saving_comes_first)
{
    uint64_t hidden;

    begin();
    for (unsigned i = 0; i < 2; i++) {
        step_begins(i);
        hidden = take_in("forward", "model.py:hidden:9", 220 * MT_MIB);
        phase_begins("backward");
        give(take(NULL, 20 * MT_MIB));
        give(hidden);
        phase_ends("backward");
        phase_begins("optimizer");
        if (!i)
            (void)take("torch/optim/adam.py:_init_group:5", 200 * MT_MIB);
        phase_ends("optimizer");
        step_ends(i);
    }
    give(take_in("optimizer", "clip.py:f:1", 150 * MT_MIB));
    struct mt_report *report = program_report();
    assert_int_equal(finding_of(report, "optimizer-state")->saves_bytes, 200 * MT_MIB);
    assert_int_equal(finding_of(report, "held-activations")->saves_bytes, 90 * MT_MIB);
    assert_string_equal(report->devices[0].findings[0].id, "optimizer-state");
    program_end(report);
}

/* A proved saving is in front only if it is a tenth of what the device needs. */
TEST(a_small_proved_saving_is_not_in_front)
{
    for (uint64_t saves = 99; saves <= 100; saves++) {
        struct mt_arena arena = {0};
        struct mt_finding findings[] = {{.id = "attention-matrices",
                                         .severity = "info",
                                         .saving = MT_SAVING_AT_MOST,
                                         .saves_bytes = 190 * MT_MIB},
                                        {.id = "cached-memory",
                                         .severity = "warning",
                                         .saving = MT_SAVING_EXACT,
                                         .saves_bytes = saves * MT_MIB}};
        struct mt_device_report device = {.findings = findings, .finding_count = 2};

        device.reserved_peak.bytes = 1000 * MT_MIB;
        mt_findings_rank(&arena, &device);
        assert_string_equal(findings[0].id, saves < 100 ? "attention-matrices" : "cached-memory");
        mt_arena_release(&arena);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
