/* The chart of shared devices: heights are bytes, what was not given back is marked, and nothing
 * overlaps. */
#define _GNU_SOURCE
#include "chart_checks.h"

#include "chart_job.h"
#include "dice.h"
#include "units.h"

static const struct mt_job_chart_options usual = {0};

struct drawn {
    struct mt_rank_set set;
    struct mt_job_report *report;
    struct mt_drawing drawing;
};

static void draw(struct drawn *drawn)
{
    drawn->report = report_of(&drawn->set);
    draw_chart(drawn->report, "devices", &usual, &drawn->drawing);
}

static void release(struct drawn *drawn)
{
    mt_drawing_release(&drawn->drawing);
    mt_job_report_free(drawn->report);
    mt_rank_set_release(&drawn->set);
}

static uint32_t count_ops(const struct mt_drawing *drawing, const char *role)
{
    uint32_t count = 0;

    for (size_t i = 0; i < drawing->op_count; i++)
        count += drawing_is(&drawing->ops[i], role);
    return count;
}

/* y of the label of a tick, by two of which heights can be read. */
static double tick_y(const struct mt_drawing *drawing, const char *label)
{
    for (size_t i = 0; i < drawing->op_count; i++)
        if (drawing_is(&drawing->ops[i], "tick-y") && !strcmp(drawing->ops[i].text, label))
            return drawing->ops[i].y - 4.5;
    fail_msg("no tick %s", label);
    return 0;
}

static double y_of(const struct mt_drawing *drawing, double gib)
{
    double base = tick_y(drawing, "0");

    return base - (base - tick_y(drawing, "40 GiB")) * gib / 40;
}

TEST(heights_are_bytes)
{
    struct drawn drawn = {0};
    const struct mt_op *top, *low = NULL, *ring, *bar;

    chart_hand_over(&drawn.set, "GPU-8f2c", 3, 80 * MT_GIB);
    draw(&drawn);
    const struct mt_job_device *device = &drawn.report->devices[0];
    top = drawing_find(&drawn.drawing, "layer"); /* the top layer is drawn first */
    for (size_t i = 0; i < drawn.drawing.op_count; i++)
        if (drawing_is(&drawn.drawing.ops[i], "layer"))
            low = &drawn.drawing.ops[i];
    ring = drawing_find(&drawn.drawing, "ring");
    bar = drawing_find(&drawn.drawing, "bar:kept");
    assert_true(top && low && top != low && ring && bar);
    for (uint32_t c = 0; c < MT_JOB_COLUMNS; c++) {
        double left = top->points[0].x, right = top->points[top->point_count - 1].x;
        double x = left + (right - left) * (c + 0.5) / MT_JOB_COLUMNS;
        double sum = (double)device->columns[c] / (double)MT_GIB;

        assert_true(fabs(drawing_y_at(top, x, 0) - y_of(&drawn.drawing, sum)) < 0.5);
        assert_true(drawing_y_at(low, x, 0) >= drawing_y_at(top, x, 0));
    }
    assert_true(fabs(ring->y - y_of(&drawn.drawing, (double)device->peak_bytes / MT_GIB)) < 0.5);
    assert_true(fabs(bar->points[3].y - y_of(&drawn.drawing, 12)) < 0.5);
    assert_true(fabs(bar->points[0].y - y_of(&drawn.drawing, 0)) < 0.5);
    release(&drawn);
}

TEST(what_did_not_come_back_is_said)
{
    struct drawn drawn = {0};

    chart_hand_over(&drawn.set, "GPU-8f2c", 3, 80 * MT_GIB);
    draw(&drawn);
    assert_true(
        drawing_says(&drawn.drawing, "label:kept", "up to 12.0 GiB still held by the other"));
    assert_true(drawing_says(&drawn.drawing, "label-line", "at the peak of rank 3"));
    assert_true(drawing_says(&drawn.drawing, "label:peak", "at most 82.0 GiB together"));
    assert_true(drawing_says(&drawn.drawing, "others", "12.0 GiB"));
    assert_true(drawing_says(&drawn.drawing, "others", "6.00 GiB"));
    assert_true(drawing_says(&drawn.drawing, "process", "rank 3 of serve"));
    assert_true(drawing_says(&drawn.drawing, "footnote", "\"at most\": a process counts"));
    assert_int_equal(count_ops(&drawn.drawing, "line:total"), 1);
    assert_true(drawing_says(&drawn.drawing, "total", "device 80.0 GiB"));
    release(&drawn);
}

TEST(a_device_that_is_much_larger_is_off_the_scale)
{
    struct drawn drawn = {0};

    chart_hand_over(&drawn.set, "GPU-8f2c", 3, 141 * MT_GIB);
    draw(&drawn);
    assert_int_equal(count_ops(&drawn.drawing, "line:total"), 0);
    assert_true(drawing_says(&drawn.drawing, "total", "141 GiB, off the scale"));
    release(&drawn);
}

TEST(a_total_that_is_not_known_is_left_out)
{
    struct drawn drawn = {0};

    chart_hand_over(&drawn.set, "GPU-8f2c", 3, 0);
    draw(&drawn);
    assert_int_equal(count_ops(&drawn.drawing, "total"), 0);
    release(&drawn);
}

TEST(the_devices_with_the_highest_sums_are_drawn)
{
    struct drawn drawn = {0};

    for (uint32_t i = 0; i < 512; i++) {
        char uuid[40];

        snprintf(uuid, sizeof uuid, "GPU-%08x", i);
        chart_hand_over(&drawn.set, uuid, (int32_t)i, 141 * MT_GIB);
    }
    for (uint32_t i = 0; i < drawn.set.record_count; i++) {
        struct mt_rank_record *record = &drawn.set.records[i];

        if (record->identity.rank == 300)
            for (uint32_t c = 0; c < record->column_count; c++)
                record->columns[c].reserved_bytes += MT_GIB;
    }
    draw(&drawn);
    assert_int_equal(count_ops(&drawn.drawing, "device"), 3);
    assert_string_equal(drawing_find(&drawn.drawing, "device")->text, "GPU-0000012c on node00");
    assert_true(drawing_says(&drawn.drawing, "rest",
                             "509 more shared devices are not drawn: at most 82.0 GiB together"));
    assert_true(drawing_says(&drawn.drawing, "facts", "512 shared devices"));
    release(&drawn);
}

TEST(many_processes_are_one_layer)
{
    struct drawn drawn = {0};
    uint64_t held = 0;
    char text[MT_UNITS_TEXT];

    for (uint32_t i = 0; i < 2000; i++) {
        struct chart_tenant tenant = {"slurm:77",  "GPU-1", (int32_t)i,       i % 7, 512, i % 500,
                                      i % 500 + 9, MT_MIB,  (9 + i) * MT_MIB, 0};

        chart_tenant(&drawn.set, &tenant);
    }
    draw(&drawn);
    assert_int_equal(count_ops(&drawn.drawing, "layer"), 7);
    assert_int_equal(count_ops(&drawn.drawing, "layer:others"), 1);
    assert_true(drawing_says(&drawn.drawing, "process", "1,993 more"));
    for (uint32_t i = 0; i < 2000; i++)
        if (drawn.report->devices[0].tenants[i].record->identity.rank < 1993)
            held += drawn.report->devices[0].tenants[i].held_bytes;
    assert_true(drawing_says(&drawn.drawing, "held", mt_format_bytes(text, held)));
    release(&drawn);
}

TEST(times_of_one_device_are_told_apart)
{
    struct drawn drawn = {0};

    for (uint32_t i = 0; i < 2; i++) {
        struct chart_tenant tenant = {"serve", "GPU-1", 0,      i * 1000,   i * 1000 + 500,
                                      10,      200,     MT_GIB, 9 * MT_GIB, 0};

        chart_tenant(&drawn.set, &tenant);
        tenant.job = "slurm:77";
        chart_tenant(&drawn.set, &tenant);
    }
    draw(&drawn);
    assert_true(drawing_says(&drawn.drawing, "device", "GPU-1 on node00, period 1 of 2"));
    assert_true(drawing_says(&drawn.drawing, "device", "GPU-1 on node00, period 2 of 2"));
    assert_true(drawing_says(&drawn.drawing, "facts", "1 shared device · "));
    release(&drawn);
}

TEST(random_devices_fit)
{
    struct dice dice = {7};
    static char names[3][10001];

    for (int round = 0; round < 60; round++) {
        struct mt_rank_set set = {0};
        uint64_t count = dice_between(&dice, 2, 14);
        bool is_hostile = round % 4 == 3;

        for (uint64_t i = 0; i < count; i++) {
            uint32_t from = (uint32_t)dice_below(&dice, 500);
            struct chart_tenant tenant = {
                .job = i ? i % 2 || !is_hostile ? "serve" : hostile_name(names[0], (unsigned)round)
                         : "slurm:77",
                .uuid = is_hostile              ? hostile_name(names[1], (unsigned)round / 4)
                        : dice_one_in(&dice, 3) ? "GPU-2"
                                                : "GPU-1",
                .rank = (int32_t)i - (int32_t)(round % 3),
                .begin_s = (uint32_t)dice_below(&dice, 300),
                .end_s = 300 + (uint32_t)dice_below(&dice, 100000),
                .from = from,
                .to = from + 1 + (uint32_t)dice_below(&dice, 300),
                .low = dice_below(&dice, UINT64_C(1) << dice_below(&dice, 36)),
                .high = dice_below(&dice, UINT64_C(1) << dice_between(&dice, 20, 38)),
                .device_bytes = dice_one_in(&dice, 2) ? 80 * MT_GIB : 0};

            chart_tenant(&set, &tenant);
        }
        draw_all_sizes(&set, "devices");
    }
}

TEST(largest_numbers_do_not_overflow)
{
    struct mt_rank_set set = {0};

    for (int32_t i = 0; i < 12; i++) {
        const struct chart_tenant tenant = {"slurm:77", "GPU-1",    i,          0,         512, 0,
                                            512,        UINT64_MAX, UINT64_MAX, UINT64_MAX};

        chart_tenant(&set, &tenant);
    }
    draw_all_sizes(&set, "devices");
}

TEST(no_shared_device_is_said)
{
    struct drawn drawn = {0};

    chart_job(&drawn.set, 8);
    draw(&drawn);
    assert_false(chart_named("devices")->called_for(drawn.report));
    assert_true(drawing_says(&drawn.drawing, "nothing", "No device is shared"));
    release(&drawn);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
