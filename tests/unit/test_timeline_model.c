/* Memory over time: folding, bins, and peaks that are never lost. */
#include "cmocka_all.h"

#include <math.h>
#include <string.h>

#include "report_query.h"
#include "timeline_model.h"
#include "util.h"

#define MS 1000000ull

static struct mt_timeline_builder *new_builder(struct mt_arena *arena, uint64_t begin_t_ns,
                                               uint64_t end_t_ns, uint64_t events, uint32_t bins)
{
    struct mt_span *span = mt_arena_alloc(arena, sizeof *span);
    struct mt_timeline_builder *builder;

    span->begin_t_ns = begin_t_ns;
    span->end_t_ns = end_t_ns;
    mt_timeline_builder_new(arena, span, 1, 0, events - 1, bins, &builder);
    return builder;
}

static void add(struct mt_timeline_builder *builder, uint64_t t_ns, uint64_t event,
                uint64_t allocated, uint64_t reserved)
{
    struct mt_bytes bytes = {allocated, allocated, allocated, reserved};
    uint64_t roles[MT_ROLE_COUNT] = {0};

    roles[event % MT_ROLE_COUNT] = allocated;
    mt_timeline_builder_add(builder, t_ns, event, &bytes, roles);
}

TEST(bins_hold_the_fullest_instant)
{
    struct mt_arena arena = {0};
    struct mt_timeline_builder *builder = new_builder(&arena, 1000, 1100, 10, 10);

    add(builder, 1000, 0, 5, 8);
    add(builder, 1012, 1, 70, 80);
    add(builder, 1013, 2, 10, 90);
    add(builder, 1055, 3, 0, 20);
    add(builder, 1100, 4, 3, 20);
    struct mt_timeline *timeline = mt_timeline_builder_finish(builder);
    assert_int_equal(timeline->time_bins[0].allocated, 5);
    assert_int_equal(timeline->time_bins[1].allocated, 70);
    assert_int_equal(timeline->time_bins[1].event, 1);
    assert_int_equal(timeline->time_bins[1].t_ns, 1012);
    assert_int_equal(timeline->time_bins[1].reserved_max, 90);
    assert_int_equal(timeline->time_bins[1].allocated_min, 5);
    assert_int_equal(timeline->time_bins[2].allocated, 10); /* from the bin before */
    assert_int_equal(timeline->time_bins[5].allocated, 10); /* before it falls */
    assert_int_equal(timeline->time_bins[5].allocated_min, 0);
    assert_int_equal(timeline->time_bins[6].allocated, 0);
    assert_int_equal(timeline->time_bins[9].allocated, 3);
    assert_int_equal(timeline->event_bins[1].allocated, 70);
    assert_int_equal(timeline->event_bins[2].allocated, 70); /* until event 2 */
    assert_int_equal(timeline->event_bins[9].allocated, 3);
    mt_arena_release(&arena);
}

static uint64_t highest(const struct mt_bin *bins, uint32_t count)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < count; i++)
        most = mt_max_u64(most, bins[i].allocated);
    return most;
}

TEST(a_spike_of_one_event_survives)
{
    const uint64_t events = 1000000, spike = 654321;
    struct mt_arena arena = {0};
    struct mt_timeline_builder *builder = new_builder(&arena, 0, events, events, 100);

    for (uint64_t i = 0; i < events; i++)
        add(builder, i, i, i == spike ? 999 : i % 7, 1000);
    struct mt_timeline *timeline = mt_timeline_builder_finish(builder);
    assert_int_equal(highest(timeline->time_bins, 100), 999);
    assert_int_equal(highest(timeline->event_bins, 100), 999);
    assert_int_equal(timeline->time_bins[65].event, spike);
    assert_int_equal(timeline->event_bins[65].role_bytes[spike % MT_ROLE_COUNT], 999);
    mt_arena_release(&arena);
}

TEST(one_instant_and_no_event_are_sensible)
{
    struct mt_arena arena = {0};
    struct mt_timeline_builder *builder = new_builder(&arena, 500, 500, 1, 8);

    add(builder, 500, 0, 42, 50);
    struct mt_timeline *timeline = mt_timeline_builder_finish(builder);
    assert_int_equal(timeline->busy_ns, 0);
    assert_true(mt_timeline_position(timeline, 500) == 0);
    assert_int_equal(highest(timeline->time_bins, 8), 42);
    assert_int_equal(highest(timeline->event_bins, 8), 42);
    timeline = mt_timeline_builder_finish(new_builder(&arena, 500, 600, 1, 8));
    assert_int_equal(highest(timeline->time_bins, 8), 0);
    mt_arena_release(&arena);
}

TEST(long_pauses_are_folded)
{
    /* 0.1 s of work, 3 s of nothing, 0.1 s, 40 ms of nothing, 0.1 s */
    static const struct mt_gap gaps[] = {{100 * MS, 3100 * MS}, {3200 * MS, 3240 * MS}};
    struct mt_phase phase = {.begin_t_ns = 3100 * MS, .end_t_ns = 3340 * MS, .is_step = true};
    struct mt_arena arena = {0};
    struct mt_timeline timeline = {0};

    mt_timeline_spans(&arena, 0, 3340 * MS, gaps, 2, &phase, 1, &timeline.spans,
                      &timeline.span_count);
    assert_int_equal(timeline.span_count, 3);
    assert_int_equal(timeline.spans[0].begin_t_ns, 0);
    assert_true(timeline.spans[0].end_t_ns >= 100 * MS);
    assert_true(timeline.spans[0].end_t_ns <= 105 * MS);
    assert_true(timeline.spans[1].begin_t_ns <= 3100 * MS);
    assert_int_equal(timeline.spans[2].end_t_ns, 3340 * MS);

    timeline.busy_ns = 300 * MS;
    assert_true(fabs(mt_timeline_position(&timeline, 50 * MS) - 1 / 6.0) < 0.01);
    assert_true(mt_timeline_position(&timeline, 1000 * MS) ==
                mt_timeline_position(&timeline, 2000 * MS));

    /* In a phase that is no step, 40 ms of 340 ms are not enough. */
    phase.is_step = false;
    mt_timeline_spans(&arena, 0, 3340 * MS, gaps, 2, &phase, 1, &timeline.spans,
                      &timeline.span_count);
    assert_int_equal(timeline.span_count, 2);
    mt_arena_release(&arena);
}

TEST(a_pause_with_the_end_of_a_phase_stays)
{
    static const struct mt_gap gaps[] = {{100 * MS, 3100 * MS}};
    struct mt_phase phase = {.begin_t_ns = 10 * MS, .end_t_ns = 200 * MS};
    struct mt_arena arena = {0};
    struct mt_span *spans;
    uint32_t count;

    mt_timeline_spans(&arena, 0, 3340 * MS, gaps, 1, &phase, 1, &spans, &count);
    assert_int_equal(count, 1);
    mt_timeline_spans(&arena, 0, 3340 * MS, NULL, 0, NULL, 0, &spans, &count);
    assert_int_equal(count, 1);
    mt_arena_release(&arena);
}

/* What follows the last error is drawn only if the run went on. */
TEST(pictures_end_after_the_fatal_error)
{
    struct mt_oom ooms[2] = {{.t_ns = 500, .event = 50, .fatal = true},
                             {.t_ns = 9000, .event = 900, .fatal = true}};
    const struct mt_shown_end all = {20000, 2000, false};
    struct mt_shown_end end = mt_shown_end(ooms, 2, 0, all);

    assert_true(end.is_cut && end.t_ns == 9000);
    assert_in_range(end.event, 901, 930);
    end = mt_shown_end(ooms, 2, 0, (struct mt_shown_end){9100, 910, false});
    assert_true(!end.is_cut && end.t_ns == 9100 && end.event == 910);
    ooms[1].fatal = false;
    end = mt_shown_end(ooms, 2, 0, all);
    assert_true(!end.is_cut && end.t_ns == 20000 && end.event == 2000);
    assert_false(mt_shown_end(NULL, 0, 0, all).is_cut);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
