/* Compares random histories of blocks with the definition of the model: of the blocks in the
 * window, those with the most bytes x length are kept; at the fullest instant of each bin nothing
 * is missing; the peak is the largest of all. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "../unit/drawing_checks.h"
#include "blocks_model.h"
#include "chart.h"
#include "dice.h"
#include "timeline_model.h"
#include "util.h"

#define MAX_BLOCKS 1500
#define MAX_EVENTS 4096

struct life {
    struct mt_block_life life;
    struct mt_block_end end;
    double score;
    bool there; /* in the window, at some time */
};

struct history {
    struct life blocks[MAX_BLOCKS];
    uint32_t block_count, live[MAX_BLOCKS], live_count;
    uint64_t t_ns[MAX_EVENTS], level[MAX_EVENTS]; /* after event number i */
    uint32_t event_count;
};

static uint64_t seed = 20261120;

static uint64_t dice(uint64_t below)
{
    return (dice_linear(&seed) >> 33) % below;
}

static void one_event(struct history *history, uint32_t event)
{
    bool takes = !history->live_count || (history->block_count < MAX_BLOCKS && dice(9) < 5);
    uint64_t level = event ? history->level[event - 1] : 0;

    history->t_ns[event] = (event ? history->t_ns[event - 1] : 1000) + dice(6) * dice(40);
    if (takes && history->block_count < MAX_BLOCKS) {
        struct life *block = &history->blocks[history->block_count];

        *block = (struct life){.life = {.block_bytes = 1 + dice(dice(3) ? 50 : 5000),
                                        .birth_t_ns = history->t_ns[event],
                                        .birth_event = event,
                                        .stack = history->block_count,
                                        .role = (uint8_t)dice(MT_ROLE_COUNT)},
                               .end = {UINT64_MAX, UINT64_MAX}};
        history->live[history->live_count++] = history->block_count++;
        level += block->life.block_bytes;
    } else if (history->live_count) {
        uint32_t at = (uint32_t)dice(history->live_count);
        struct life *block = &history->blocks[history->live[at]];

        history->live[at] = history->live[--history->live_count];
        block->end.t_ns = history->t_ns[event];
        block->end.event = event;
        level -= block->life.block_bytes;
    }
    history->level[event] = level;
}

static void make_history(struct history *history)
{
    history->block_count = history->live_count = 0;
    history->event_count = 1 + (uint32_t)dice(dice(2) ? MAX_EVENTS : 60);
    for (uint32_t i = 0; i < history->event_count; i++)
        one_event(history, i);
}

/* After an event. */
static void add_roles(const struct history *history, uint64_t event, uint64_t roles[MT_ROLE_COUNT])
{
    memset(roles, 0, MT_ROLE_COUNT * sizeof *roles);
    for (uint32_t i = 0; i < history->block_count; i++) {
        const struct mt_block_life *life = &history->blocks[i].life;

        if (life->birth_event <= event && event < history->blocks[i].end.event)
            roles[life->role] += life->block_bytes;
    }
}

/* As the second reading does: ends, then the state; what is left ends at the end. */
static struct mt_blocks *feed(const struct history *history, struct mt_arena *arena,
                              const struct mt_model_window *window, uint64_t peak, uint32_t bins)
{
    struct mt_blocks_builder *builder = NULL;

    mt_blocks_builder_new(arena, window, peak, bins, &builder);
    for (uint32_t event = 0; event < history->event_count; event++) {
        struct mt_event what = {.seq = event, .t_ns = history->t_ns[event]};
        struct mt_bytes now = {.allocated = history->level[event]};
        uint64_t roles[MT_ROLE_COUNT];
        struct mt_model_state state = {.event = &what, .now = &now, .role_bytes = roles};

        add_roles(history, event, roles);
        for (uint32_t i = 0; i < history->block_count; i++)
            if (history->blocks[i].end.event == event)
                mt_blocks_builder_end(builder, &history->blocks[i].life, history->blocks[i].end);
        mt_blocks_builder_state(builder, &state);
    }
    for (uint32_t i = 0; i < history->block_count; i++)
        if (history->blocks[i].end.event == UINT64_MAX)
            mt_blocks_builder_end(builder, &history->blocks[i].life, history->blocks[i].end);
    return mt_blocks_builder_finish(builder);
}

static void score_all(struct history *history, const struct mt_block_set *set, bool by_event)
{
    for (uint32_t i = 0; i < history->block_count; i++) {
        struct life *block = &history->blocks[i];
        uint64_t from = by_event ? mt_max_u64(block->life.birth_event, set->begin_event)
                                 : mt_max_u64(block->life.birth_t_ns, set->begin_t_ns);
        uint64_t to = by_event ? mt_min_u64(block->end.event, set->end_event)
                               : mt_min_u64(block->end.t_ns, set->end_t_ns);

        block->there =
            block->life.birth_event <= set->end_event && block->end.event > set->begin_event;
        block->score = (double)block->life.block_bytes * (to > from ? (double)(to - from) : 1);
    }
}

static bool is_kept(const struct mt_block_set *set, const struct life *block)
{
    for (uint32_t i = 0; i < set->block_count; i++)
        if (set->blocks[i].life.stack == block->life.stack)
            return true;
    return false;
}

static void check_kept(struct history *history, const struct mt_block_set *set, bool by_event)
{
    double least_kept = 1e300, most_left = -1;
    uint64_t there = 0, kept = 0;

    score_all(history, set, by_event);
    for (uint32_t i = 0; i < history->block_count; i++) {
        const struct life *block = &history->blocks[i];
        bool has_shape = is_kept(set, block);

        if (has_shape && !block->there)
            fail_msg("block %u has a shape in a window in which it was not", i);
        there += block->there;
        kept += has_shape;
        if (block->there && has_shape && block->score < least_kept)
            least_kept = block->score;
        if (block->there && !has_shape && block->score > most_left)
            most_left = block->score;
    }
    assert_int_equal(kept, set->block_count);
    assert_int_equal(there - kept, set->others);
    assert_int_equal(kept, mt_min_u64(there, MT_MAX_KEPT_BLOCKS));
    assert_true(most_left <= least_kept);
    for (uint32_t i = 1; i < set->block_count; i++)
        assert_true(set->blocks[i - 1].life.birth_event < set->blocks[i].life.birth_event);
}

static void check_roles(const struct history *history, const struct mt_curve_bin *bin,
                        const struct mt_role_levels *levels)
{
    uint64_t roles[MT_ROLE_COUNT];

    add_roles(history, bin->event, roles);
    assert_memory_equal(levels->max, roles, sizeof roles);
    add_roles(history, bin->last_event, roles);
    assert_memory_equal(levels->last, roles, sizeof roles);
}

static void check_bins(const struct history *history, const struct mt_block_set *set)
{
    uint64_t most = 0;

    assert_true(set->bin_count > 0);
    for (uint32_t i = 0; i < set->bin_count; i++) {
        const struct mt_curve_bin *bin = &set->bins[i];
        uint64_t sum = 0;

        for (uint32_t j = 0; j < set->block_count; j++)
            if (set->blocks[j].life.birth_event <= bin->event &&
                bin->event < set->blocks[j].end.event)
                sum += set->blocks[j].life.block_bytes;
        if (i % 5 == 0)
            check_roles(history, bin, &set->levels[i]);
        if (sum > bin->max)
            fail_msg("bin %u: the shapes hold more than there is", i);
        if (!set->others && sum != bin->max)
            fail_msg("bin %u: %llu of %llu bytes have shapes", i, (unsigned long long)sum,
                     (unsigned long long)bin->max);
        assert_true(i == 0 || set->bins[i - 1].last_event < bin->event ||
                    set->bins[i - 1].last_event <= bin->last_event);
        most = mt_max_u64(most, bin->max);
    }
    for (uint32_t i = 0; i < history->event_count; i++)
        if (i >= set->begin_event && i <= set->end_event && history->level[i] > most)
            fail_msg("the level after event %u is above every bin", i);
}

static uint64_t true_peak(const struct history *history, const struct mt_model_window *window,
                          uint64_t *event)
{
    uint64_t peak = window->begin_event ? history->level[window->begin_event - 1] : 0;

    *event = window->begin_event;
    for (uint64_t i = window->begin_event; i <= window->end_event; i++)
        if (history->level[i] > peak || (i == window->begin_event && history->level[i] <= peak)) {
            peak = history->level[i];
            *event = i;
        }
    return peak;
}

TEST(the_largest_are_kept_and_nothing_is_lost)
{
    static struct history history;

    for (int round = 0; round < 60; round++) {
        struct mt_model_window window = {.step = 3, .phase = 5};
        struct mt_arena arena = {0};
        uint64_t event;

        make_history(&history);
        window.begin_event = dice(history.event_count);
        window.end_event = window.begin_event + dice(history.event_count - window.begin_event);
        window.begin_t_ns = history.t_ns[window.begin_event];
        window.end_t_ns = history.t_ns[window.end_event];
        uint64_t peak = true_peak(&history, &window, &event);
        struct mt_blocks *blocks = feed(&history, &arena, &window, event, 1 + (uint32_t)dice(300));
        assert_non_null(blocks);
        assert_true(blocks->peak_allocated == peak);
        assert_true(blocks->peak_event == event);
        assert_int_equal(blocks->events, window.end_event - window.begin_event + 1);
        check_kept(&history, &blocks->time, false);
        check_kept(&history, &blocks->event, true);
        check_kept(&history, &blocks->around, true);
        check_bins(&history, &blocks->time);
        check_bins(&history, &blocks->event);
        check_bins(&history, &blocks->around);
        mt_arena_release(&arena);
    }
}

/* As much as the chart reads of a report. */
static void draw(struct mt_blocks *blocks, const struct mt_chart_options *options)
{
    struct mt_phase phase = {.name = "a rather long name of a phase", .path = "a/b", .step = 3};
    bool main_phase = true;
    struct mt_span span = {blocks->time.begin_t_ns, blocks->time.end_t_ns + 1};
    struct mt_timeline timeline = {.spans = &span,
                                   .span_count = 1,
                                   .busy_ns = span.end_t_ns - span.begin_t_ns,
                                   .first_event = blocks->time.begin_event,
                                   .last_event = blocks->time.end_event};
    struct mt_device_report device = {.blocks = blocks, .timeline = &timeline};
    struct mt_report report = {.name = "random",
                               .first_t_ns = 1000,
                               .last_t_ns = 1000000,
                               .phases = &phase,
                               .main_phase = &main_phase,
                               .phase_count = 1};
    struct mt_drawing drawing;
    struct mt_buf svg = {0};

    blocks->phase = 0;
    phase.begin_event = blocks->time.begin_event;
    phase.end_event = blocks->time.end_event;
    phase.begin_t_ns = blocks->time.begin_t_ns;
    phase.end_t_ns = blocks->time.end_t_ns;
    mt_chart_find("blocks")->draw(&report, &device, options, &drawing);
    const char *fault = drawing_fault(&drawing);
    if (fault)
        fail_msg("%s", fault);
    mt_svg_write(&drawing, MT_THEME_AUTO, &svg);
    if (svg.length > 250 * 1024)
        fail_msg("%zu bytes of SVG", svg.length);
    mt_buf_release(&svg);
    mt_drawing_release(&drawing);
}

TEST(any_model_makes_a_sound_picture)
{
    static const struct mt_chart_options sizes[] = {{.width = 0},
                                                    {.width = 830, .event_axis = true},
                                                    {.event_axis = true},
                                                    {.width = 480, .height = 320}};
    static struct history history;

    for (int round = 0; round < 30; round++) {
        struct mt_model_window window = {.step = 3};
        struct mt_arena arena = {0};
        uint64_t event;

        make_history(&history);
        window.end_event = history.event_count - 1;
        window.begin_t_ns = history.t_ns[0];
        window.end_t_ns = history.t_ns[window.end_event];
        (void)true_peak(&history, &window, &event);
        struct mt_blocks *blocks = feed(&history, &arena, &window, event, 1 + (uint32_t)dice(4096));
        draw(blocks, &sizes[round % 4]);
        mt_arena_release(&arena);
    }
}

/* Ten million blocks need no more memory than ten thousand. */
TEST(size_does_not_depend_on_length)
{
    const struct mt_model_window window = {0, 1000000, 0, 1000000, MT_NO_STEP, MT_NO_PHASE, false};
    size_t used[2];

    for (int round = 0; round < 2; round++) {
        struct mt_arena arena = {0};
        struct mt_blocks_builder *builder = NULL;
        uint64_t count = round ? 1000000 : 10000;

        mt_blocks_builder_new(&arena, &window, 500, 4096, &builder);
        for (uint64_t i = 0; i < count; i++) {
            struct mt_block_life life = {
                .block_bytes = 512 + dice(1000), .birth_t_ns = i, .birth_event = i};
            struct mt_block_end end = {i + 1 + dice(1000), i + 1 + dice(1000)};

            mt_blocks_builder_end(builder, &life, end);
        }
        assert_non_null(mt_blocks_builder_finish(builder));
        used[round] = arena.total_bytes;
        mt_arena_release(&arena);
    }
    assert_int_equal(used[0], used[1]);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
