/* Compares the history with a slow model that copies every state: columns have their fullest
 * instants, groups sum to them, and stay exact when they are merged. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "dice.h"
#include "history.h"
#include "phase.h"
#include "util.h"

enum { SITES = 5, SIZES = 6, BLOCKS = 64, MAX_EVENTS = 4000 };

/* All live bytes and blocks by role, site and size. */
struct sums {
    uint64_t bytes[MT_ROLE_COUNT][SITES][SIZES], blocks[MT_ROLE_COUNT][SITES][SIZES], total;
};

struct live {
    bool alive;
    unsigned role, site, size;
};

struct run {
    struct mt_arena arena;
    struct mt_symbols symbols;
    struct mt_history_builder *builder;
    struct mt_history *history;
    struct mt_span spans[2];
    struct live blocks[BLOCKS];
    struct sums now, before;
    const char *sites[SITES], *phase;
    uint64_t times[MAX_EVENTS];
    struct sums *states; /* after each event; [0] before the first */
    unsigned events;
    bool has_window;
    uint64_t *cuts;
    unsigned most_exact; /* after mt_history_shorten; 0: all of the windows */
};

static const uint64_t cuts[] = {0, 3, 7, 59, 60, 61, 200, 201, 305, 900, MAX_EVENTS};
static const struct mt_history_window windows[] = {{5, 60}, {300, 310}};

static const char *const site_names[SITES] = {"a.py:1", "b.py:2", "c.py:3", "d.py:4", "e.py:5"};

static uint64_t size_of(unsigned size)
{
    return UINT64_C(512) << (2 * size);
}

static void start(struct run *run, uint64_t seed, bool by_event)
{
    struct mt_timeline axis = {.spans = run->spans, .span_count = 2, .first_event = 1};
    const struct mt_bytes nothing = {0};

    memset(run, 0, sizeof *run);
    random_state = seed;
    run->spans[0] = (struct mt_span){1000, 51000};
    run->spans[1] = (struct mt_span){90000, 140000}; /* a pause is folded */
    axis.spans = run->spans;
    axis.busy_ns = 100000;
    axis.last_event = MAX_EVENTS;
    assert_int_equal(mt_symbols_init(&run->symbols), MT_OK);
    run->states = calloc(MAX_EVENTS + 1, sizeof *run->states);
    assert_non_null(run->states);
    mt_history_builder_new(&run->arena, &run->symbols, &axis, by_event, &nothing, &run->builder);
    for (unsigned i = 0; i < SITES; i++)
        run->sites[i] = mt_history_word(run->builder, site_names[i]);
    run->phase = mt_history_word(run->builder, "forward");
}

static void finish(struct run *run)
{
    mt_history_builder_release(run->builder);
    mt_symbols_release(&run->symbols);
    mt_arena_release(&run->arena);
    free(run->states);
}

static void toggle(struct run *run, unsigned index)
{
    struct live *block = &run->blocks[index];
    bool birth = !block->alive;

    if (birth)
        *block = (struct live){true, (unsigned)linear_below(3), (unsigned)linear_below(SITES),
                               (unsigned)linear_below(SIZES)};
    block->alive = birth;
    uint64_t bytes = size_of(block->size);
    run->now.bytes[block->role][block->site][block->size] += birth ? bytes : 0 - bytes;
    run->now.blocks[block->role][block->site][block->size] += birth ? 1 : UINT64_MAX;
    run->now.total += birth ? bytes : 0 - bytes;
    if (birth) {
        const struct mt_history_group group = {.site = run->sites[block->site],
                                               .phase = run->phase,
                                               .stack = MT_NO_ID,
                                               .block_bytes = bytes,
                                               .role = (enum mt_role)block->role};
        mt_history_birth(run->builder, index, &group, bytes, false);
    } else {
        mt_history_death(run->builder, index, bytes, false);
    }
}

/* Random events at growing times, some within the pause's edges. */
static void play(struct run *run, unsigned events)
{
    uint64_t t_ns = 1000;

    for (unsigned i = 0; i < events; i++) {
        t_ns += linear_below(2 * 100000 / events + 1);
        if (t_ns > 51000 && t_ns < 90000)
            t_ns = 90000;
        if (t_ns > 140000)
            t_ns = 140000;
        toggle(run, (unsigned)linear_below(BLOCKS));
        struct mt_bytes bytes = {run->now.total, run->now.total, run->now.total, 1 << 30};
        mt_history_state(run->builder, t_ns, i + 1, MT_NO_PHASE, &bytes);
        run->times[i] = t_ns;
        run->states[i + 1] = run->now;
    }
    run->events = events;
    mt_history_finish(run->builder, &run->history);
}

/* The total of each column: the largest of its events and of its initial state, or that after its
 * single event. */
static void find_most(const struct run *run, uint64_t *most)
{
    const struct mt_history_column *columns = run->history->columns;
    uint32_t count = run->history->column_count;
    uint64_t now = 0;
    unsigned event = 0;

    for (uint32_t i = 0; i < count; i++) {
        unsigned first = event;

        for (most[i] = now; event < run->events; event++) {
            if (i + 1 < count && event + 1 >= columns[i + 1].begin_event)
                break;
            now = run->states[event + 1].total;
            most[i] = columns[i].is_exact ? now : mt_max_u64(most[i], now);
        }
        assert_true(!columns[i].is_exact || event == first + 1);
    }
    assert_int_equal(event, run->events);
}

static bool is_in_window(const struct run *run, uint64_t event)
{
    return run->has_window && event >= windows[0].first && event <= windows[0].last
               ? true
               : run->has_window && event >= windows[1].first && event <= windows[1].last;
}

static unsigned site_number(const struct run *run, const char *site)
{
    for (unsigned i = 0; i < SITES; i++)
        if (run->sites[i] == site)
            return i;
    return SITES;
}

static uint64_t of_role(const struct sums *sums, unsigned role)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < SITES * SIZES; i++)
        bytes += sums->bytes[role][i / SIZES][i % SIZES];
    return bytes;
}

static void check_groups(const struct run *run, const int64_t *bytes, const int64_t *blocks,
                         const struct sums *truth)
{
    const struct mt_history *history = run->history;
    int64_t by_role[MT_ROLE_COUNT] = {0};

    for (uint32_t i = 0; i < history->group_count; i++) {
        const struct mt_history_group *group = &history->groups[i];
        unsigned site = site_number(run, group->site), size = 0;

        assert_true(bytes[i] >= 0 && blocks[i] >= 0);
        assert_true((uint64_t)bytes[i] <= group->most_bytes);
        by_role[group->role] += bytes[i];
        if (group->detail != MT_HISTORY_BY_SIZE)
            continue;
        while (size_of(size) != group->block_bytes)
            size++;
        if (!history->small_bytes) /* later, a small group may have been merged into others */
            assert_int_equal(bytes[i], truth->bytes[group->role][site][size]);
        assert_int_equal(bytes[i], blocks[i] * (int64_t)group->block_bytes);
    }
    for (unsigned i = 0; i < MT_ROLE_COUNT; i++)
        assert_int_equal(by_role[i], of_role(truth, i));
}

/* A column that starts at a quarter of the busy time, or at half of the events. */
static bool has_column(const struct mt_history *history, uint64_t t_ns, uint64_t event)
{
    for (uint32_t i = 0; i < history->column_count; i++)
        if (t_ns ? history->columns[i].begin_t_ns == t_ns
                 : history->columns[i].begin_event == event)
            return true;
    return false;
}

/* The state at a cut, to the byte. */
static void check_cuts(const struct run *run)
{
    const struct mt_history *history = run->history;

    assert_int_equal(mt_history_cut_column(history, 8), MT_HISTORY_NO_CUT);
    for (size_t i = 0; run->cuts && i < MT_ARRAY_LEN(cuts); i++) {
        int64_t column = mt_history_cut_column(history, cuts[i]);
        uint64_t event = cuts[i] < run->events ? cuts[i] : run->events;

        assert_true(column >= 0);
        assert_int_equal(history->columns[column].bytes.allocated, run->states[event].total);
    }
}

static void check(const struct run *run)
{
    const struct mt_history *history = run->history;
    int64_t *bytes = calloc((size_t)history->group_count + 1, sizeof *bytes);
    int64_t *blocks = calloc((size_t)history->group_count + 1, sizeof *blocks);
    uint64_t *most = calloc(history->column_count, sizeof *most);
    unsigned exact = 0, wanted = 0;
    uint64_t highest = 0, wanted_highest = 0, before = 0;

    find_most(run, most);
    if (history->by_event)
        assert_int_equal(history->columns[0].begin_event, 1);
    else
        assert_int_equal(history->columns[0].begin_t_ns, 1000);
    if (run->events == MAX_EVENTS)
        assert_true(has_column(history, history->by_event ? 0 : 26000, 2001));
    for (unsigned i = 1; i <= run->events; i++)
        wanted += is_in_window(run, i);
    for (uint32_t i = 0; i < history->column_count; i++) {
        const struct mt_history_column *column = &history->columns[i];
        uint64_t total = 0;

        for (uint32_t j = 0; j < column->change_count; j++) {
            const struct mt_history_change *change = &history->changes[column->first_change + j];

            assert_true(change->group < history->group_count);
            assert_true(change->bytes || change->blocks);
            bytes[change->group] += change->bytes;
            blocks[change->group] += change->blocks;
        }
        for (uint32_t j = 0; j < history->group_count; j++)
            total += (uint64_t)bytes[j];
        assert_int_equal(total, column->bytes.allocated);
        if (run->most_exact) /* the start of a merged column is not one of its instants */
            assert_true(total <= most[i]);
        else
            assert_int_equal(total, most[i]);
        highest = mt_max_u64(highest, total);
        wanted_highest = mt_max_u64(wanted_highest, most[i]);
        assert_true(column->event <= run->events);
        if (column->is_exact) /* its changes are those of its event */
            assert_int_equal(before, run->states[column->event - 1].total);
        before = total;
        check_groups(run, bytes, blocks, &run->states[column->event]);
        assert_true(!column->is_exact || is_in_window(run, column->event));
        exact += column->is_exact;
    }
    assert_int_equal(highest, wanted_highest);
    check_cuts(run);
    if (run->most_exact)
        assert_true(exact <= run->most_exact);
    else
        assert_int_equal(exact, wanted);
    free(most);
    free(bytes);
    free(blocks);
}

TEST(random_runs)
{
    static const unsigned events[] = {1, 2, 10, 100, 383, 1000, MAX_EVENTS};

    for (uint64_t seed = 1; seed <= 28; seed++) {
        struct run *run = malloc(sizeof *run);

        start(run, seed, seed % 2);
        if (seed % 5 == 0) {
            run->cuts = mt_arena_array(&run->arena, MT_ARRAY_LEN(cuts), sizeof *cuts);
            memcpy(run->cuts, cuts, sizeof cuts);
            mt_history_set_cuts(run->builder, run->cuts, MT_ARRAY_LEN(cuts));
        }
        run->has_window = seed % 3 == 0;
        for (unsigned i = 0; run->has_window && i < MT_ARRAY_LEN(windows); i++)
            mt_history_add_window(run->builder, &windows[i]);
        play(run, events[seed % MT_ARRAY_LEN(events)]);
        check(run);
        if (seed % 4 == 0) {
            run->most_exact = 20;
            mt_history_shorten(run->history, run->most_exact);
            check(run);
        }
        for (uint32_t most = 40; most; most /= 2) {
            mt_history_reduce(run->history, most, 3 * MT_HISTORY_COLUMNS + most * 50);
            assert_true(run->history->group_count <= most || most < 3);
            assert_true(run->history->change_count <= 3 * MT_HISTORY_COLUMNS + most * 50);
            check(run);
        }
        finish(run);
        free(run);
    }
}

TEST(no_events)
{
    struct run *run = malloc(sizeof *run);

    start(run, 1, false);
    play(run, 0);
    check(run);
    finish(run);
    free(run);
}

/* Initial blocks exist before the first event, which is in a column of its own. */
static void check_initial(uint64_t t_ns)
{
    struct run *run = malloc(sizeof *run);
    struct mt_history_group group = {.stack = MT_NO_ID, .block_bytes = 512, .is_initial = true};
    const struct mt_bytes bytes = {1024, 1024, 1024, 2048};

    start(run, 1, false);
    group.site = group.phase = run->phase;
    mt_history_birth(run->builder, 0, &group, 512, true);
    group.is_initial = false;
    mt_history_birth(run->builder, 1, &group, 512, false);
    mt_history_state(run->builder, t_ns, 1, MT_NO_PHASE, &bytes);
    mt_history_finish(run->builder, &run->history);
    assert_int_equal(run->history->columns[0].event, 0);
    assert_int_equal(run->history->columns[0].change_count, 1);
    assert_int_equal(run->history->changes[0].bytes, 512);
    assert_int_equal(run->history->change_count, 2);
    finish(run);
    free(run);
}

/* Initial blocks are no changes of the run, also if an event is at the start of the axis. */
TEST(initial_blocks)
{
    check_initial(1000);
    check_initial(100000);
}

/* Nothing precedes event 0, so no column is only the start. */
TEST(event_0)
{
    struct mt_arena arena = {0};
    struct mt_span span = {1000, 2000};
    const struct mt_timeline axis = {
        .spans = &span, .span_count = 1, .busy_ns = 1000, .last_event = 1};
    const struct mt_history_window window = {0, 9};
    const struct mt_bytes nothing = {0}, reserved = {0, 0, 0, 2048};
    struct mt_history_builder *builder;
    struct mt_symbols symbols;
    struct mt_history *history;

    assert_int_equal(mt_symbols_init(&symbols), MT_OK);
    mt_history_builder_new(&arena, &symbols, &axis, false, &nothing, &builder);
    mt_history_add_window(builder, &window);
    for (uint64_t event = 0; event < 2; event++)
        mt_history_state(builder, 1000 + event, event, MT_NO_PHASE, &reserved);
    mt_history_finish(builder, &history);
    assert_int_equal(history->column_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(history->columns[i].is_exact);
        assert_int_equal(history->columns[i].event, i);
        assert_int_equal(history->columns[i].bytes.reserved, 2048);
    }
    mt_history_builder_release(builder);
    mt_symbols_release(&symbols);
    mt_arena_release(&arena);
}

/* Events of other devices lie between those of one: columns that start there stay in order. */
TEST(sparse_cuts)
{
    struct run *run = malloc(sizeof *run);
    uint64_t between[] = {1001, 2001, 3001};

    start(run, 1, true);
    mt_history_set_cuts(run->builder, between, MT_ARRAY_LEN(between));
    for (uint64_t event = 100; event <= MAX_EVENTS; event += 100) {
        const struct mt_bytes bytes = {.allocated = MAX_EVENTS - event};

        mt_history_state(run->builder, 1000 + event, event, MT_NO_PHASE, &bytes);
    }
    mt_history_finish(run->builder, &run->history);
    for (uint32_t i = 1; i < run->history->column_count; i++) {
        const struct mt_history_column *column = &run->history->columns[i];

        assert_true(column->begin_event >= column[-1].begin_event);
        assert_true(column->begin_t_ns >= column[-1].begin_t_ns);
    }
    finish(run);
    free(run);
}

/* Unlimited sizes: the number of groups is bounded, bytes are exact. */
TEST(many_sizes)
{
    struct run *run = malloc(sizeof *run);
    uint64_t total = 0;

    start(run, 1, false);
    for (uint32_t i = 0; i < 40000; i++) {
        struct mt_history_group group = {.site = run->sites[i % SITES],
                                         .phase = run->phase,
                                         .stack = MT_NO_ID,
                                         .block_bytes = 512 * (i + 1)};

        if (i >= 16) {
            mt_history_death(run->builder, i % 16, 512 * (uint64_t)(i - 15), false);
            total -= 512 * (uint64_t)(i - 15);
        }
        mt_history_birth(run->builder, i % 16, &group, group.block_bytes, false);
        total += group.block_bytes;
        struct mt_bytes bytes = {total, total, total, total};
        mt_history_state(run->builder, 1000 + i, i + 1, MT_NO_PHASE, &bytes);
    }
    mt_history_finish(run->builder, &run->history);
    assert_true(run->history->group_count < 20000);
    mt_history_reduce(run->history, 100, 2000);
    assert_true(run->history->group_count <= 100);
    total = 0;
    for (uint32_t i = 0; i < run->history->column_count; i++) {
        const struct mt_history_column *column = &run->history->columns[i];

        for (uint32_t j = 0; j < column->change_count; j++)
            total += (uint64_t)run->history->changes[column->first_change + j].bytes;
        assert_int_equal(total, column->bytes.allocated);
    }
    finish(run);
    free(run);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
