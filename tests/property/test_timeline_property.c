/* Random histories against the definition of a bin: the fullest of the state
 * that it starts with and of the states after the events in it. */
#include "cmocka_all.h"

#include <string.h>

#include "dice.h"
#include "timeline_model.h"
#include "util.h"

#define MAX_EVENTS 400

struct history {
    uint64_t t_ns[MAX_EVENTS];
    uint64_t roles[MAX_EVENTS][MT_ROLE_COUNT];
    struct mt_bytes bytes[MAX_EVENTS];
    size_t count;
};

static uint64_t next_random(uint64_t *seed)
{
    return dice_linear(seed) >> 33;
}

static void make_history(struct history *history, uint64_t *seed)
{
    uint64_t roles[MT_ROLE_COUNT] = {0}, t_ns = 1000000;

    history->count = 1 + next_random(seed) % MAX_EVENTS;
    for (size_t i = 0; i < history->count; i++) {
        struct mt_bytes *bytes = &history->bytes[i];

        t_ns += next_random(seed) % 5 ? next_random(seed) % 50 : next_random(seed) % 5000;
        roles[next_random(seed) % MT_ROLE_COUNT] = next_random(seed) % 1000;
        history->t_ns[i] = t_ns;
        memcpy(history->roles[i], roles, sizeof roles);
        bytes->allocated = 0;
        for (size_t role = 0; role < MT_ROLE_COUNT; role++)
            bytes->allocated += roles[role];
        bytes->reserved = bytes->allocated + next_random(seed) % 500;
    }
}

static void check_bin(const struct mt_bin *bin, size_t index)
{
    uint64_t sum = 0;

    for (size_t role = 0; role < MT_ROLE_COUNT; role++)
        sum += bin->role_bytes[role];
    if (sum != bin->allocated || bin->reserved_max < bin->allocated ||
        bin->allocated_min > bin->allocated)
        fail_msg("bin %zu: layers, minimum and reserved do not fit", index);
}

/* Every state has to be below the bin that it falls into, on both axes. */
static void check_model(const struct history *history, const struct mt_timeline *timeline)
{
    uint64_t time_peak = 0, event_peak = 0, want = 0;

    for (size_t i = 0; i < timeline->bin_count; i++) {
        check_bin(&timeline->time_bins[i], i);
        check_bin(&timeline->event_bins[i], i);
        time_peak = mt_max_u64(time_peak, timeline->time_bins[i].allocated);
        event_peak = mt_max_u64(event_peak, timeline->event_bins[i].allocated);
    }
    for (size_t i = 0; i < history->count; i++) {
        double place = mt_timeline_position(timeline, history->t_ns[i]) * timeline->bin_count;
        size_t bin = (size_t)place < timeline->bin_count ? (size_t)place : timeline->bin_count - 1;
        size_t near = bin ? bin - 1 : 0, last = bin + 1 < timeline->bin_count ? bin + 1 : bin;
        uint64_t most = 0;

        /* A bin to either side for places that round onto an edge. */
        for (; near <= last; near++)
            most = mt_max_u64(most, timeline->time_bins[near].allocated);
        assert_true(most >= history->bytes[i].allocated);
        want = mt_max_u64(want, history->bytes[i].allocated);
    }
    assert_true(time_peak == want);
    assert_true(event_peak == want);
}

TEST(layers_sum_and_peaks_survive)
{
    static struct history history;
    struct mt_gap gaps[MAX_EVENTS];
    uint64_t seed = 20260114;

    for (int round = 0; round < 400; round++) {
        struct mt_arena arena = {0};
        struct mt_timeline_builder *builder;
        struct mt_span *spans;
        uint32_t span_count;
        size_t i, gap_count = 0;

        make_history(&history, &seed);
        for (i = 1; i < history.count; i++) {
            if (history.t_ns[i] > history.t_ns[i - 1] + 500)
                gaps[gap_count++] = (struct mt_gap){history.t_ns[i - 1], history.t_ns[i]};
        }
        mt_timeline_spans(&arena, history.t_ns[0], history.t_ns[history.count - 1], gaps, gap_count,
                          NULL, 0, &spans, &span_count);
        mt_timeline_builder_new(&arena, spans, span_count, 7, 7 + history.count - 1,
                                1 + (uint32_t)(next_random(&seed) % 300), &builder);
        for (i = 0; i < history.count; i++)
            mt_timeline_builder_add(builder, history.t_ns[i], 7 + i, &history.bytes[i],
                                    history.roles[i]);
        check_model(&history, mt_timeline_builder_finish(builder));
        mt_arena_release(&arena);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
