/* The picture of a sweep: parts sum to the peak, marks show what a card must have, and nothing
 * overlaps, at any number of runs and any size. */
#include "cmocka_all.h"

#include "dice.h"
#include "drawing_checks.h"
#include "sweep_output.h"
#include "util.h"

static const struct mt_chart_options sizes[] = {{.width = 0},
                                                {.width = 830, .height = 430},
                                                {.width = 480, .height = 320},
                                                {.width = 2000, .height = 500},
                                                {.width = 1000, .height = 1200}};

static uint64_t random_state = 23;
static struct mt_sweep_run runs[MT_MAX_SWEEP_RUNS];
static struct mt_sweep sweep;
static char texts[MT_MAX_SWEEP_RUNS][40];

static void fill_result(struct mt_sweep_result *result, uint64_t scale)
{
    static const enum mt_sweep_outcome outcomes[] = {MT_SWEEP_FINISHED,      MT_SWEEP_FINISHED,
                                                     MT_SWEEP_OUT_OF_MEMORY, MT_SWEEP_FAILED,
                                                     MT_SWEEP_TIMED_OUT,     MT_SWEEP_NOT_RUN};

    memset(result, 0, sizeof *result);
    result->outcome = outcomes[high_below(MT_ARRAY_LEN(outcomes))];
    result->is_measured = result->outcome != MT_SWEEP_NOT_RUN;
    for (int role = 0; role < MT_ROLE_COUNT && result->is_measured; role++) {
        result->role_bytes[role] = high_below(3) ? high_below(scale) : 0;
        result->allocated_peak_bytes += result->role_bytes[role];
    }
    result->reserved_peak_bytes =
        result->allocated_peak_bytes + (high_below(3) ? high_below(scale) : 0);
    result->has_need = result->outcome == MT_SWEEP_FINISHED;
    result->card.allocator_bytes = result->reserved_peak_bytes;
    if (high_below(2)) /* without a limit it reserved more */
        result->card.allocator_bytes = result->allocated_peak_bytes;
    result->card.bytes = result->card.allocator_bytes + high_below(MT_GIB);
    result->card.cuda_from = high_below(2) ? MT_CUDA_TABLE : MT_CUDA_ASSUMED;
}

static void fill_random(void)
{
    uint64_t scale = UINT64_C(1) << (4 + high_below(34));

    memset(&sweep, 0, sizeof sweep);
    sweep.runs = runs;
    sweep.card = &mt_cards[high_below(5)];
    sweep.memory_bytes = sweep.card->memory_bytes;
    sweep.names[0] = "batch";
    sweep.names[1] = "a_rather_long_name_of_32_bytes_x";
    sweep.name_count = 1 + high_below(2);
    sweep.run_count = 1 + high_below(high_below(3) ? 9 : MT_MAX_SWEEP_RUNS);
    for (size_t i = 0; i < sweep.run_count; i++) {
        snprintf(texts[i], sizeof texts[i],
                 high_below(2) ? "%zu" : "a value such as nobody has %zu", i);
        sweep.runs[i].values[0] = sweep.runs[i].values[1] = sweep.runs[i].label = texts[i];
        fill_result(&sweep.runs[i].result, scale);
    }
}

/* Bar heights are proportional to bytes in all runs. */
static void check_bars(const struct mt_drawing *drawing)
{
    size_t run = 0;
    double bytes_a_pixel = 0;

    for (size_t i = 0; i < drawing->op_count; i++) {
        const struct mt_op *op = &drawing->ops[i];
        double height = 0;

        if (!drawing_is(op, "run"))
            continue;
        for (; drawing->ops[i].kind != MT_OP_GROUP_END; i++)
            if (drawing_is(&drawing->ops[i], "role") || drawing_is(&drawing->ops[i], "unused"))
                height += drawing->ops[i].height;
        if (height > 1 && bytes_a_pixel <= 0)
            bytes_a_pixel = (double)sweep.runs[run].result.reserved_peak_bytes / height;
        if (height > 1)
            assert_true(fabs((double)sweep.runs[run].result.reserved_peak_bytes / bytes_a_pixel -
                             height) < 0.5 + height / 50);
        run++;
    }
    assert_int_equal(run, drawing_find(drawing, "nothing") ? 0 : sweep.run_count);
}

TEST(nothing_covers_anything)
{
    struct mt_drawing drawing;

    for (int round = 0; round < 60; round++) {
        fill_random();
        for (size_t i = 0; i < MT_ARRAY_LEN(sizes); i++) {
            struct mt_buf svg = {0};

            mt_sweep_draw(&sweep, &sizes[i], &drawing);
            const char *fault = drawing_fault(&drawing);
            if (fault)
                fail_msg("%s (%dx%d, %zu runs)", fault, (int)drawing.width, (int)drawing.height,
                         sweep.run_count);
            check_bars(&drawing);
            mt_svg_write(&drawing, MT_THEME_AUTO, &svg);
            assert_true(svg.length < 200 * 1024);
            mt_buf_release(&svg);
            mt_drawing_release(&drawing);
        }
    }
}

/* A sweep of one run, on the first card. */
static void begin_one_run(void)
{
    memset(&sweep, 0, sizeof sweep);
    sweep.runs = runs;
    sweep.card = &mt_cards[0];
    sweep.names[0] = "batch";
    sweep.name_count = sweep.run_count = 1;
}

/* Without a limit, an allocator keeps more than a card must have: the two numbers must not be
 * confused. */
TEST(reserved_bytes_are_not_the_need)
{
    static const struct {
        bool has_need, is_known;
        const char *amount;
    } cases[] = {{true, true, "12.0 GiB"}, {true, false, "~12.0 GiB"}, {false, false, "20.0 GiB"}};
    struct mt_drawing drawing;

    begin_one_run();
    sweep.runs[0] = (struct mt_sweep_run){.values = {"4"}, .label = "batch=4"};
    for (size_t i = 0; i < MT_ARRAY_LEN(cases); i++) {
        sweep.runs[0].result = (struct mt_sweep_result){
            .outcome = MT_SWEEP_FINISHED,
            .is_measured = true,
            .allocated_peak_bytes = 10 * MT_GIB,
            .reserved_peak_bytes = 20 * MT_GIB,
            .has_need = cases[i].has_need,
            .card = {.allocator_bytes = 11 * MT_GIB,
                     .bytes = 12 * MT_GIB,
                     .cuda_from = cases[i].is_known ? MT_CUDA_TABLE : MT_CUDA_ASSUMED}};
        mt_sweep_draw(&sweep, &sizes[0], &drawing);
        assert_null(drawing_fault(&drawing));
        assert_string_equal(drawing_find(&drawing, "amount")->text, cases[i].amount);
        mt_drawing_release(&drawing);
    }
}

/* The mark is where the title says, between the lines of the cards. */
TEST(marks_are_among_cards)
{
    const struct mt_op *need, *card;
    struct mt_drawing drawing;

    begin_one_run();
    sweep.runs[0] = (struct mt_sweep_run){.values = {"4"}, .label = "batch=4"};
    sweep.runs[0].result = (struct mt_sweep_result){
        .outcome = MT_SWEEP_FINISHED,
        .is_measured = true,
        .allocated_peak_bytes = 10 * MT_GIB,
        .reserved_peak_bytes = 11 * MT_GIB,
        .role_bytes = {[MT_ROLE_ACTIVATIONS] = 10 * MT_GIB},
        .has_need = true,
        .card = {.allocator_bytes = 11 * MT_GIB, .bytes = 12 * MT_GIB, .cuda_from = MT_CUDA_TABLE}};
    mt_sweep_draw(&sweep, &sizes[0], &drawing);
    assert_null(drawing_fault(&drawing));
    need = drawing_find(&drawing, "need");
    card = drawing_find(&drawing, "card");
    assert_string_equal(card->title, "RTX 3060 12 GB: 12,616,466,432 B");
    assert_true(need->points[0].y < card->points[0].y); /* above it: it does not fit */
    assert_string_equal(drawing_find(&drawing, "amount")->text, "12.0 GiB");
    assert_string_equal(drawing_find(&drawing, "run")->title,
                        "batch=4: finished; allocated peak 10,737,418,240 B, reserved peak "
                        "11,811,160,064 B; smallest limit 11,811,160,064 B, a card must have "
                        "12,884,901,888 B");
    mt_drawing_release(&drawing);
}

/* A plan runs several ranks of a point, and draws one of them. */
TEST(points_are_not_dry_runs)
{
    struct mt_drawing drawing;

    begin_one_run();
    for (uint64_t world = 0; world < 2; world++) {
        runs[0] =
            (struct mt_sweep_run){.values = {"4"}, .label = "batch=4", .rank = {.world = world}};
        mt_sweep_draw(&sweep, &sizes[0], &drawing);
        assert_int_equal(strncmp(drawing.description, world ? "1 point " : "1 dry run ", 8), 0);
        mt_drawing_release(&drawing);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
