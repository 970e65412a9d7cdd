/* Compares the flame chart model with a naive one on random traces, and checks its invariants and
 * that its size does not depend on the length of the trace. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "dice.h"
#include "flamechart_model.h"
#include "work_kinds.h"

enum { MAX_EVENTS = 400, STACKS = 40, MAX_PHASES = 64, FRAMES = 12 };

struct world {
    struct mt_arena arena;
    struct mt_symbols symbols;
    struct mt_phase phases[MAX_PHASES];
    uint32_t phase_count;
    struct mt_event events[MAX_EVENTS];
    int32_t event_phase[MAX_EVENTS];
    uint64_t after[MAX_EVENTS];
    int64_t delta[MAX_EVENTS];
    size_t count;
    uint64_t begin_allocated, last_t_ns, last_seq;
};

static void make_symbols(struct mt_symbols *symbols)
{
    uint32_t frames[FRAMES], stack;

    assert_int_equal(mt_symbols_init(symbols), MT_OK);
    for (uint32_t i = 0; i < FRAMES; i++) {
        uint32_t function, file;
        char name[2] = {(char)('a' + i % 8), '\0'};
        const char *path = i % 4 == 3 ? "/lib/site-packages/torch/nn/modules/module.py" : "/w/t.py";
        const char *text = i % 4 == 3 ? "_call_impl" : name;

        assert_int_equal(mt_symbols_string(symbols, text, strlen(text), &function), MT_OK);
        assert_int_equal(mt_symbols_string(symbols, path, strlen(path), &file), MT_OK);
        assert_int_equal(mt_symbols_frame(symbols, function, file, i, &frames[i]), MT_OK);
    }
    for (uint32_t i = 0; i < STACKS; i++) {
        uint32_t parent = i && linear_below(8) ? linear_below(symbols->stack_count) : MT_NO_ID;

        assert_int_equal(mt_symbols_stack(symbols, parent, frames[linear_below(FRAMES)], &stack),
                         MT_OK);
    }
}

/* Opens (and later closes) phases among random events; times may stand still. */
static void make_world(struct world *world, bool framed_frees)
{
    int32_t open = MT_NO_PHASE;
    uint64_t seq = linear_below(5), t_ns = 1000;
    uint64_t allocated = 1000000;
    size_t wanted = 1 + linear_below(MAX_EVENTS - 1);

    memset(world, 0, sizeof *world);
    make_symbols(&world->symbols);
    world->begin_allocated = allocated;
    while (world->count < wanted) {
        uint32_t what = linear_below(10);

        t_ns += linear_below(4) ? linear_below(100) : 0;
        if (what == 0 && world->phase_count < MAX_PHASES) {
            struct mt_phase *phase = &world->phases[world->phase_count];

            phase->is_plumbing = linear_below(5) == 0;
            phase->is_step = open == MT_NO_PHASE && linear_below(2);
            phase->parent = open;
            phase->depth = open == MT_NO_PHASE ? 0 : world->phases[open].depth + 1;
            phase->begin_t_ns = t_ns;
            phase->begin_event = seq++;
            phase->end_event = UINT64_MAX; /* open */
            open = (int32_t)world->phase_count++;
        } else if (what == 1 && open != MT_NO_PHASE) {
            world->phases[open].end_t_ns = t_ns;
            world->phases[open].end_event = seq++;
            open = world->phases[open].parent;
        } else {
            size_t i = world->count++;
            uint32_t amount = linear_below(1000);
            bool is_alloc = linear_below(2);

            world->events[i].kind = is_alloc ? MT_EVENT_ALLOC : MT_EVENT_FREE_REQUESTED;
            world->events[i].seq = seq;
            world->events[i].t_ns = t_ns;
            world->events[i].stack = linear_below(6) && (is_alloc || framed_frees)
                                         ? linear_below(world->symbols.stack_count)
                                         : MT_NO_ID;
            world->delta[i] = is_alloc ? (int64_t)amount : -(int64_t)amount;
            allocated += (uint64_t)world->delta[i];
            world->after[i] = allocated;
            world->event_phase[i] = open;
            seq += 1 + linear_below(2);
        }
    }
    for (uint32_t i = 0; i < world->phase_count; i++)
        if (world->phases[i].end_event == UINT64_MAX) {
            world->phases[i].end_event = seq;
            world->phases[i].end_t_ns = t_ns;
            world->phases[i].cut = true;
        }
    world->last_seq = seq;
    world->last_t_ns = t_ns;
}

static void release_world(struct world *world)
{
    mt_symbols_release(&world->symbols);
    mt_arena_release(&world->arena);
}

static struct mt_flamechart *build_window(struct world *world,
                                          const struct mt_flamechart_window *window)
{
    struct mt_flamechart_builder *builder;
    struct mt_flamechart *chart;

    mt_flamechart_builder_new(&world->arena, window, world->phases, world->phase_count,
                              &world->symbols, &builder);
    for (size_t i = 0; i < world->count; i++)
        mt_flamechart_builder_add(builder, &world->events[i], world->event_phase[i],
                                  world->delta[i], world->after[i]);
    mt_flamechart_builder_finish(builder, &chart);
    return chart;
}

static struct mt_flamechart *build(struct world *world, uint64_t begin_event, uint64_t end_event,
                                   uint64_t begin_t_ns, uint64_t end_t_ns, uint32_t bins)
{
    const struct mt_flamechart_window window = {begin_t_ns, end_t_ns, begin_event, end_event,
                                                MT_NO_STEP, bins,     NULL};

    return build_window(world, &window);
}

static struct mt_flamechart *build_zoomed(struct world *world, const struct mt_phase *phase,
                                          uint32_t bins)
{
    const struct mt_flamechart_window window = {phase->begin_t_ns,
                                                phase->end_t_ns,
                                                phase->begin_event,
                                                phase->end_event,
                                                MT_NO_STEP,
                                                bins,
                                                phase};

    return build_window(world, &window);
}

static struct mt_flamechart *build_whole(struct world *world, uint32_t bins)
{
    return build(world, 0, world->last_seq, 1000, world->last_t_ns, bins);
}

/* Level before the first event with seq >= event. */
static uint64_t level_before(const struct world *world, uint64_t event)
{
    uint64_t level = world->begin_allocated;

    for (size_t i = 0; i < world->count && world->events[i].seq < event; i++)
        level = world->after[i];
    return level;
}

static void check_order(const struct mt_flamechart *chart)
{
    for (uint32_t i = 0; i < chart->cell_count; i++) {
        const struct mt_cell *cell = &chart->cells[i], *next = cell + 1;

        assert_true(cell->begin_t_ns <= cell->end_t_ns && cell->begin_event <= cell->end_event);
        assert_true(cell->begin_t_ns >= chart->begin_t_ns && cell->end_t_ns <= chart->end_t_ns);
        assert_true(cell->merged >= 1);
        assert_true(cell->row < chart->row_count);
        assert_true((cell->kind == MT_CELL_FRAME) == (cell->row >= chart->frame_row));
        assert_true((cell->kind == MT_CELL_NO_STACK) == (cell->row == chart->frame_row - 1));
        if (i + 1 == chart->cell_count)
            break;
        assert_true(cell->row <= next->row);
        if (cell->row == next->row) {
            assert_true(cell->end_event <= next->begin_event);
            assert_true(cell->end_t_ns <= next->begin_t_ns);
        }
    }
}

static bool lies_within(const struct mt_cell *inner, const struct mt_cell *outer, uint64_t slack_ns,
                        uint64_t slack_events)
{
    return inner->begin_event + slack_events >= outer->begin_event &&
           inner->end_event <= outer->end_event + slack_events &&
           inner->begin_t_ns + slack_ns >= outer->begin_t_ns &&
           inner->end_t_ns <= outer->end_t_ns + slack_ns;
}

/* Every cell lies within, or beside, every cell of the rows above; where cells
 * are merged, up to three bins (of both axes: a cell is narrow if it is below
 * both). Frames and cells without stacks are beside each other. */
static void check_nesting(const struct mt_flamechart *chart, uint32_t bins)
{
    uint64_t bin_ns = (chart->end_t_ns - chart->begin_t_ns) / bins;
    uint64_t bin_events = (chart->end_event - chart->begin_event) / bins;

    for (uint32_t i = 0; i < chart->cell_count; i++)
        for (uint32_t j = 0; j < i; j++) {
            const struct mt_cell *inner = &chart->cells[i], *outer = &chart->cells[j];
            bool merged = inner->merged > 1 || outer->merged > 1;

            if (outer->row == inner->row || outer->kind == MT_CELL_NO_STACK ||
                inner->end_event <= outer->begin_event || inner->begin_event >= outer->end_event)
                continue;
            assert_true(
                lies_within(inner, outer, merged ? 3 * bin_ns : 0, merged ? 3 * bin_events : 0));
        }
}

/* Net and peak of every phase from the plain list of events. */
static void check_phases(const struct world *world, const struct mt_flamechart *chart)
{
    for (uint32_t i = 0; i < chart->cell_count; i++) {
        const struct mt_cell *cell = &chart->cells[i];
        uint64_t enter = level_before(world, cell->begin_event);
        uint64_t leave = level_before(world, cell->end_event), peak = enter;

        if (cell->row + 1 >= chart->frame_row || cell->merged > 1)
            continue;
        assert_false(world->phases[cell->phase].is_plumbing);
        assert_int_equal(cell->net_bytes, (int64_t)(leave - enter));
        for (size_t e = 0; e < world->count; e++)
            if (world->events[e].seq >= cell->begin_event &&
                world->events[e].seq < cell->end_event && world->after[e] > peak)
                peak = world->after[e];
        assert_int_equal(cell->peak_allocated, peak);
    }
}

static void check_curve(const struct world *world, const struct mt_flamechart *chart)
{
    uint64_t peak = world->begin_allocated, time_peak = 0, event_peak = 0;

    for (size_t e = 0; e < world->count; e++)
        peak = world->after[e] > peak ? world->after[e] : peak;
    for (uint32_t i = 0; i < chart->curve_count; i++) {
        assert_true(chart->curve[i].max >= chart->curve[i].last);
        assert_true(chart->curve[i].min <= chart->curve[i].last);
        assert_true(i == 0 || chart->curve[i].t_ns >= chart->curve[i - 1].t_ns);
        time_peak = chart->curve[i].max > time_peak ? chart->curve[i].max : time_peak;
    }
    for (uint32_t i = 0; i < chart->event_curve_count; i++) {
        assert_true(i == 0 || chart->event_curve[i].event >= chart->event_curve[i - 1].event);
        event_peak =
            chart->event_curve[i].max > event_peak ? chart->event_curve[i].max : event_peak;
    }
    assert_int_equal(time_peak, peak);
    assert_int_equal(event_peak, peak);
    assert_int_equal(chart->peak_allocated, peak);
    assert_int_equal(chart->enter_allocated, world->begin_allocated);
    assert_int_equal(chart->exit_allocated, world->after[world->count - 1]);
    assert_int_equal(chart->curve[chart->curve_count - 1].last, chart->exit_allocated);
}

/* Does a shown phase begin or end between two events? */
static bool boundary_between(const struct world *world, const struct mt_flamechart *chart,
                             uint64_t left, uint64_t right)
{
    for (uint32_t i = 0; i < chart->cell_count; i++) {
        const struct mt_cell *cell = &chart->cells[i];

        if (cell->row + 1 >= chart->frame_row)
            break;
        const struct mt_phase *phase = &world->phases[cell->phase];
        if ((phase->begin_event > left && phase->begin_event <= right) ||
            (phase->end_event >= left && phase->end_event < right))
            return true;
    }
    return false;
}

struct naive_row {
    uint64_t cells;
    int64_t net;
};

static bool shares_prefix(const uint32_t *left, uint32_t left_count, const uint32_t *right,
                          uint32_t depth)
{
    return left_count > depth && !memcmp(left, right, (depth + 1) * sizeof *left);
}

/* What stands for no stack in the naive model; rows[] has a row for it. */
enum { NO_STACK_ROW = MT_NAMED_FRAMES_DEPTH, ROWS };

/* Cells and nets by row, the slow way: a cell per run of events that share a
 * prefix and have no boundary between them. Only for traces whose frees have
 * stacks from the beginning. */
static void naive_rows(struct world *world, const struct mt_flamechart *chart,
                       struct naive_row rows[ROWS])
{
    struct mt_named_frames named;
    uint32_t path[MT_NAMED_FRAMES_DEPTH], last[MT_NAMED_FRAMES_DEPTH], count, last_count = 0;
    bool last_was_none = false;

    memset(rows, 0, ROWS * sizeof *rows);
    mt_named_frames_init(&named, &world->arena, &world->symbols);
    for (size_t e = 0; e < world->count; e++) {
        const struct mt_event *event = &world->events[e];

        mt_named_frames_get(&named, event->stack, path, &count);
        if (e && boundary_between(world, chart, event[-1].seq, event->seq))
            last_count = 0, last_was_none = false;
        if (count == 0) {
            rows[NO_STACK_ROW].cells += !last_was_none;
            rows[NO_STACK_ROW].net += world->delta[e];
        }
        last_was_none = count == 0;
        for (uint32_t depth = 0; depth < count; depth++) {
            rows[depth].cells += !shares_prefix(last, last_count, path, depth);
            rows[depth].net += world->delta[e];
        }
        memcpy(last, path, sizeof last);
        last_count = count;
    }
}

static void check_rows(struct world *world, const struct mt_flamechart *chart,
                       const struct mt_flamechart *unmerged)
{
    struct naive_row naive[ROWS], rows[ROWS] = {{0, 0}};

    naive_rows(world, unmerged, naive);
    for (uint32_t i = 0; i < chart->cell_count; i++)
        if (chart->cells[i].row + 1 >= chart->frame_row) {
            struct naive_row *row = chart->cells[i].kind == MT_CELL_NO_STACK
                                        ? &rows[NO_STACK_ROW]
                                        : &rows[chart->cells[i].row - chart->frame_row];

            row->cells += chart->cells[i].merged;
            row->net += chart->cells[i].net_bytes;
        }
    for (uint32_t depth = 0; depth < ROWS; depth++) {
        assert_int_equal(rows[depth].cells, naive[depth].cells);
        assert_int_equal(rows[depth].net, naive[depth].net);
    }
}

TEST(random_traces_agree_with_the_naive_model)
{
    static struct world world;

    for (uint64_t seed = 1; seed <= 400; seed++) {
        bool framed_frees = seed % 3 != 0;

        random_state = seed;
        make_world(&world, framed_frees);
        if (framed_frees) { /* known from the first event on */
            world.events[0].kind = MT_EVENT_FREE_REQUESTED;
            world.events[0].stack = 0;
        }
        struct mt_flamechart *unmerged = build_whole(&world, 8192);
        for (uint32_t bins = 1; bins < 600; bins = bins * 3 + 1) {
            struct mt_flamechart *chart = build_whole(&world, bins);

            check_order(chart);
            check_nesting(chart, bins);
            check_phases(&world, chart);
            check_curve(&world, chart);
            if (framed_frees)
                check_rows(&world, chart, unmerged);
        }
        release_world(&world);
    }
}

/* A window shows its own events: levels at its edges, and nets of phases cut at them. */
TEST(windows_cut_what_they_do_not_hold)
{
    static struct world world;

    for (uint64_t seed = 1; seed <= 300; seed++) {
        int64_t top_net = 0, outside = 0;

        random_state = seed;
        make_world(&world, true);
        size_t first = linear_below((uint32_t)world.count);
        size_t last = first + linear_below((uint32_t)(world.count - first));
        uint32_t bins = 1 + linear_below(100);
        struct mt_flamechart *chart =
            build(&world, world.events[first].seq, world.events[last].seq, world.events[first].t_ns,
                  world.events[last].t_ns, bins);
        check_order(chart);
        check_nesting(chart, bins);
        assert_int_equal(chart->enter_allocated,
                         first ? world.after[first - 1] : world.begin_allocated);
        assert_int_equal(chart->exit_allocated, world.after[last]);
        assert_int_equal(chart->events, last - first + 1);
        for (uint32_t i = 0; i < chart->cell_count; i++) {
            bool inside = false;
            const struct mt_cell *cell = &chart->cells[i];

            for (uint32_t j = 0; j < i && !inside; j++)
                inside = chart->cells[j].row < cell->row &&
                         chart->cells[j].begin_event <= cell->begin_event &&
                         chart->cells[j].end_event >= cell->end_event &&
                         chart->cells[j].begin_event < chart->cells[j].end_event;
            if (cell->row + 1 < chart->frame_row && !inside)
                top_net += cell->net_bytes;
        }
        for (size_t e = first; e <= last; e++) {
            bool inside = false;

            for (uint32_t i = 0; i < chart->cell_count && !inside; i++)
                inside = chart->cells[i].row + 1 < chart->frame_row &&
                         chart->cells[i].merged == 1 &&
                         world.events[e].seq >= chart->cells[i].begin_event &&
                         world.events[e].seq <= chart->cells[i].end_event;
            for (uint32_t i = 0; i < chart->cell_count && !inside; i++)
                if (chart->cells[i].row + 1 < chart->frame_row && chart->cells[i].merged > 1)
                    inside = true, outside = INT64_MIN; /* cannot be told apart here */
            if (!inside && outside != INT64_MIN)
                outside += world.delta[e];
        }
        if (outside != INT64_MIN)
            assert_int_equal(top_net + outside,
                             (int64_t)(chart->exit_allocated - chart->enter_allocated));
        release_world(&world);
    }
}

/* Zoomed to a phase: the phase is the only cell that is not inside it, it spans the window, and its
 * net is that of the curve: the cells directly in it, and the changes between them. */
static void check_zoom(struct world *world, uint32_t index)
{
    const struct mt_phase *phase = &world->phases[index];
    struct mt_flamechart *chart = build_zoomed(world, phase, 1u << 13);
    int64_t net = (int64_t)(chart->exit_allocated - chart->enter_allocated), inner = 0;
    const struct mt_cell *own = NULL;

    assert_int_equal(chart->phase, index);
    check_order(chart);
    check_nesting(chart, 1u << 13);
    assert_int_equal(chart->enter_allocated, level_before(world, phase->begin_event));
    assert_int_equal(chart->exit_allocated, level_before(world, phase->end_event + 1));
    for (uint32_t i = 0; i < chart->cell_count && chart->cells[i].row + 1 < chart->frame_row; i++) {
        const struct mt_cell *cell = &chart->cells[i];

        if (own && cell->merged == 1)
            assert_true(cell->row > own->row &&
                        world->phases[cell->phase].begin_event >= phase->begin_event);
        own = own ? own : cell;
        if (cell->row == own->row + 1)
            inner += cell->net_bytes;
    }
    assert_non_null(own);
    assert_int_equal(own->phase, index);
    assert_int_equal(own->begin_event, phase->begin_event);
    assert_int_equal(own->net_bytes, net);
    assert_int_equal(own->peak_allocated, chart->peak_allocated);
    for (size_t e = 0; e < world->count; e++) { /* in no cell of the row below */
        bool inside =
            world->events[e].seq < phase->begin_event || world->events[e].seq > phase->end_event;

        for (uint32_t i = 0; i < chart->cell_count && !inside; i++)
            inside = chart->cells[i].row == own->row + 1 &&
                     chart->cells[i].row + 1 < chart->frame_row &&
                     world->events[e].seq >= chart->cells[i].begin_event &&
                     world->events[e].seq < chart->cells[i].end_event;
        inner += inside ? 0 : world->delta[e];
    }
    assert_int_equal(inner, net);
}

TEST(a_phase_can_be_zoomed)
{
    static struct world world;
    unsigned looked_at = 0;

    for (uint64_t seed = 1; seed <= 120; seed++) {
        random_state = seed;
        make_world(&world, true);
        for (uint32_t i = 0; i < world.phase_count; i++)
            if (!world.phases[i].is_plumbing && !world.phases[i].is_step) {
                check_zoom(&world, i);
                looked_at++;
            }
        release_world(&world);
    }
    assert_true(looked_at > 300);
}

TEST(size_depends_on_the_resolution_alone)
{
    enum { EVENTS = 1000000, BINS = 256 };
    static struct world world;
    struct mt_flamechart_window window = {0,   (uint64_t)EVENTS * 10, 0, EVENTS, MT_NO_STEP, BINS,
                                          NULL};
    struct mt_flamechart_builder *builder;
    struct mt_flamechart *chart;
    uint64_t allocated = 1u << 30, merged = 0;

    random_state = 7;
    memset(&world, 0, sizeof world);
    make_symbols(&world.symbols);
    mt_flamechart_builder_new(&world.arena, &window, NULL, 0, &world.symbols, &builder);
    for (uint64_t i = 0; i < EVENTS; i++) {
        struct mt_event event = {.seq = i,
                                 .t_ns = i * 10 + linear_below(10),
                                 .stack = linear_below(STACKS + 2),
                                 .kind = MT_EVENT_ALLOC};
        int64_t delta = (int64_t)linear_below(2000) - 1000;

        event.stack = event.stack < world.symbols.stack_count ? event.stack : MT_NO_ID;
        allocated += (uint64_t)delta;
        mt_flamechart_builder_add(builder, &event, MT_NO_PHASE, delta, allocated);
    }
    mt_flamechart_builder_finish(builder, &chart);
    assert_true(chart->curve_count <= BINS + 1 && chart->event_curve_count <= BINS + 1);
    assert_true(chart->cell_count <= chart->row_count * 4 * BINS);
    assert_true(world.arena.total_bytes < 4u << 20);
    check_order(chart);
    for (uint32_t i = 0; i < chart->cell_count && chart->cells[i].row <= chart->frame_row; i++)
        merged += chart->cells[i].merged;
    assert_true(merged > EVENTS / 2);
    release_world(&world);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
