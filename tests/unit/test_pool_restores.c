/* Restores of private pools by CUDA graph trees. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "memory_source.h"
#include "pool_tracks.h"
#include "replay.h"
#include "util.h"

#define BASE  UINT64_C(0x7f0000000000)
#define AT(n) (BASE + (uint64_t)(n)*64 * MT_MIB)

enum { POOL = 1, STACK = 7, MOST_EVENTS = 64 };

static struct mt_replay_summary summary;
static uint64_t block_addrs[MOST_EVENTS]; /* of the simulated blocks, by event */

static struct mt_event event(uint8_t kind, uint64_t addr, uint64_t mib)
{
    struct mt_event event = {0};

    event.kind = kind;
    event.addr = addr;
    event.size_bytes = mib * MT_MIB;
    event.stack = kind == MT_EVENT_ALLOC ? STACK : MT_NO_ID;
    event.name = MT_NO_ID;
    event.pool = POOL;
    return event;
}

/* Short words for long tables. */
#define TAKE(n, mib)     event(MT_EVENT_SEGMENT_ALLOC, AT(n), mib)
#define GIVE(n, mib)     event(MT_EVENT_SEGMENT_FREE, AT(n), mib)
#define ALLOC(addr, mib) event(MT_EVENT_ALLOC, addr, mib)
#define FREE(addr)       event(MT_EVENT_FREE_REQUESTED, addr, 0), event(MT_EVENT_FREE_COMPLETED, addr, 0)

/* A, B and C of 8, 8 and 12 MiB, in segments of 20 and 12 MiB. At the checkpoint, B and C are
 * alive: the first segment has 8 MiB free, then B, then 4 MiB free. */
#define A_ADDR   AT(0)
#define B_ADDR   (AT(0) + 8 * MT_MIB)
#define END_ADDR (AT(0) + 16 * MT_MIB)
#define C_ADDR   AT(1)
#define CAPTURE                                                                                    \
    TAKE(0, 20), ALLOC(A_ADDR, 8), ALLOC(B_ADDR, 8), TAKE(1, 12), ALLOC(C_ADDR, 12), FREE(A_ADDR), \
        FREE(B_ADDR), FREE(C_ADDR)
enum { B_EVENT = 2, C_EVENT = 4, CAPTURE_EVENTS = 11 };

#define TILE_FIRST                                                                                 \
    ALLOC(A_ADDR, 8), ALLOC(B_ADDR, 8), ALLOC(END_ADDR, 4), FREE(A_ADDR), FREE(END_ADDR)
#define TILE_SECOND ALLOC(C_ADDR, 12)

static enum mt_status see(void *context, const struct mt_event *event,
                          const struct mt_replay_view *view)
{
    (void)context;
    assert_true(event->seq < MOST_EVENTS);
    block_addrs[event->seq] = view->block_addr;
    return MT_OK;
}

static enum mt_status restart(void *context)
{
    (void)context;
    return MT_OK;
}

static const struct mt_replay_result *run(struct mt_event *events, size_t count, const char *policy,
                                          size_t batch)
{
    struct mt_replay_options options = {.policy = policy, .verify = true};
    const struct mt_replay_observer observer = {NULL, see, restart};
    struct memory_source source;
    struct mt_error error;

    memory_source_init(&source, events, count, batch);
    if (mt_replay_run(&source.source, &options, &observer, &summary, &error) != MT_OK)
        fail_msg("%s", error.text);
    memory_source_release(&source);
    return &summary.devices[0];
}

static void expect_exact(struct mt_event *events, size_t count, uint64_t restores)
{
    for (size_t batch = 1; batch <= 64; batch += 21) {
        const struct mt_replay_result *result = run(events, count, "pytorch", batch);
        if (!result->verify.exact)
            fail_msg("batches of %zu: %s", batch, result->verify.first_difference);
        assert_int_equal(result->restores.restores, restores);
        assert_int_equal(result->restores.unplaced, 0);
        assert_int_equal(result->restores.gaps_left_out, 0);
    }
}

TEST(blocks_go_where_the_checkpoint_has_them)
{
    struct mt_event events[] = {CAPTURE, TILE_FIRST, TILE_SECOND, ALLOC(A_ADDR, 5), FREE(B_ADDR)};

    expect_exact(events, MT_ARRAY_LEN(events), 1);
    assert_int_equal(summary.devices[0].restores.blocks, 2);
    assert_int_equal(summary.devices[0].restores.gaps, 2);
    assert_int_equal(summary.devices[0].counters.allocations, 8); /* the gaps are two of them */
    assert_int_equal(summary.devices[0].counters.allocated.peak, 28 * MT_MIB);
}

/* The first segment has 20 MiB free and the second one 12; the program chooses an address in the
 * first one, 4 MiB above its start. */
#define CHOSEN(flag)                                                                               \
    {.kind = MT_EVENT_ALLOC,                                                                       \
     .addr = A_ADDR,                                                                               \
     .size_bytes = 4 * MT_MIB,                                                                     \
     .stack = STACK,                                                                               \
     .name = MT_NO_ID,                                                                             \
     .flags = (flag),                                                                              \
     .pool = POOL},                                                                                \
        ALLOC(A_ADDR + 4 * MT_MIB, 6), FREE(A_ADDR)

TEST(a_block_goes_where_the_program_wants_it)
{
    struct mt_event events[] = {CAPTURE, CHOSEN(MT_EVENT_GAP), ALLOC(A_ADDR, 4)};

    expect_exact(events, MT_ARRAY_LEN(events), 0);
    assert_int_equal(summary.devices[0].counters.allocations, 6); /* the gap is one of them */
}

/* Best fit uses the smaller free block. */
TEST(without_the_mark_it_is_an_ordinary_request)
{
    struct mt_event events[] = {CAPTURE, CHOSEN(0)};

    assert_false(run(events, MT_ARRAY_LEN(events), "pytorch", 1)->verify.exact);
}

TEST(another_pool_lacks_the_address)
{
    struct mt_event events[] = {CAPTURE, CHOSEN(MT_EVENT_GAP)};
    const struct mt_replay_options options = {.policy = "pytorch:max_split_size_mb:20"};
    struct memory_source source;
    const struct mt_replay_result *result = &summary.devices[0];
    struct mt_error error;

    memory_source_init(&source, events, MT_ARRAY_LEN(events), 1);
    assert_int_equal(mt_replay_run(&source.source, &options, NULL, &summary, &error), MT_OK);
    memory_source_release(&source);
    assert_int_equal(result->restores.gaps_left_out, 1);
    assert_int_equal(result->restores.unplaced, 1);
    assert_int_equal(result->failed_requests, 0);
    assert_int_equal(result->counters.allocations, 4);
}

/* Searches among many free blocks end, which is no statement about the pool. */
TEST(a_search_that_ends_is_counted_apart)
{
    enum { FREE_BLOCKS = 300, SEARCHES = 300, MOST = 4 * FREE_BLOCKS + 3 * SEARCHES };
    static struct mt_event events[MOST];
    const struct mt_replay_options options = {.policy = "pytorch"};
    const struct mt_restore_share *share = &summary.devices[0].restores;
    struct memory_source source;
    struct mt_error error;
    size_t count = 0;

    for (int i = 0; i < FREE_BLOCKS; i++) {
        events[count++] = TAKE(i, 20);
        events[count++] = ALLOC(AT(i), 20);
    }
    for (int i = 0; i < FREE_BLOCKS + SEARCHES; i++) {
        if (i >= FREE_BLOCKS) {
            events[count] = ALLOC(AT(i), 20);
            events[count++].flags = MT_EVENT_AT_ADDRESS;
        }
        events[count++] = event(MT_EVENT_FREE_REQUESTED, AT(i), 0);
        events[count++] = event(MT_EVENT_FREE_COMPLETED, AT(i), 0);
    }
    memory_source_init(&source, events, count, 1);
    assert_int_equal(mt_replay_run(&source.source, &options, NULL, &summary, &error), MT_OK);
    memory_source_release(&source);
    assert_true(share->unsearched > 0);
    assert_true(share->unplaced > 0);
    assert_int_equal(share->unplaced + share->unsearched, SEARCHES);
}

/* The start of a free block needs no gap. */
TEST(the_start_of_a_free_block_needs_no_gap)
{
    struct mt_event events[] = {CAPTURE, ALLOC(A_ADDR, 6)};

    assert_false(run(events, MT_ARRAY_LEN(events), "pytorch", 1)->verify.exact);
    events[CAPTURE_EVENTS].flags = MT_EVENT_AT_ADDRESS;
    expect_exact(events, MT_ARRAY_LEN(events), 0);
}

/* As for a graph without outputs: best fit uses the lower of two equal segments. */
TEST(a_pool_is_restored_to_empty)
{
    struct mt_event events[] = {TAKE(0, 20),      ALLOC(AT(0), 20), TAKE(1, 20),
                                ALLOC(AT(1), 20), FREE(AT(0)),      FREE(AT(1)),
                                ALLOC(AT(1), 20), FREE(AT(1)),      ALLOC(AT(0), 20),
                                FREE(AT(0)),      ALLOC(AT(0), 5)};

    expect_exact(events, MT_ARRAY_LEN(events), 1);
    assert_int_equal(summary.devices[0].restores.blocks, 0);
    assert_int_equal(summary.devices[0].restores.gaps, 2);
}

TEST(the_order_of_segments_is_the_allocators)
{
    struct mt_event events[] = {CAPTURE, TILE_SECOND, TILE_FIRST};

    expect_exact(events, MT_ARRAY_LEN(events), 1);
}

TEST(a_pool_may_be_restored_repeatedly)
{
    struct mt_event events[] = {CAPTURE,      TILE_FIRST, TILE_SECOND, FREE(B_ADDR),
                                FREE(C_ADDR), TILE_FIRST, TILE_SECOND};

    expect_exact(events, MT_ARRAY_LEN(events), 2);
}

TEST(a_block_that_dies_at_once_is_no_gap)
{
    struct mt_event events[] = {CAPTURE, TILE_SECOND, TILE_FIRST, FREE(B_ADDR), ALLOC(A_ADDR, 14)};

    expect_exact(events, MT_ARRAY_LEN(events), 1);
    assert_int_equal(summary.devices[0].restores.blocks, 2);
}

TEST(segments_made_after_the_checkpoint_are_not_tiled)
{
    struct mt_event events[] = {CAPTURE,    TAKE(2, 30), ALLOC(AT(2), 30), FREE(AT(2)),
                                TILE_FIRST, TILE_SECOND, ALLOC(AT(2), 30)};

    expect_exact(events, MT_ARRAY_LEN(events), 1);
}

TEST(a_flush_before_a_restore_is_the_programs)
{
    struct mt_event events[] = {TAKE(5, 20), ALLOC(AT(5), 20), FREE(AT(5)), CAPTURE,
                                GIVE(5, 20), TILE_FIRST,       TILE_SECOND};

    for (size_t i = 0; i < 4; i++)
        events[i].pool = 0;
    events[4 + CAPTURE_EVENTS].pool = 0;
    expect_exact(events, MT_ARRAY_LEN(events), 1);
    assert_int_equal(summary.devices[0].counters.device_frees, 1);
    assert_int_equal(summary.devices[0].counters.retries, 0);
}

/* Only at the end of the group does the pool have no more segments than the checkpoint, but its
 * request is already served. The next restore is found. */
TEST(a_request_that_was_served_ahead_begins_no_restore)
{
    struct mt_event events[] = {TAKE(5, 20),  ALLOC(AT(5), 20), FREE(AT(5)), CAPTURE,
                                GIVE(5, 20),  TILE_FIRST,       TILE_SECOND, FREE(B_ADDR),
                                FREE(C_ADDR), TILE_FIRST,       TILE_SECOND};
    const struct mt_replay_result *result = run(events, MT_ARRAY_LEN(events), "pytorch", 64);

    assert_int_equal(result->restores.restores, 1);
    assert_int_equal(result->restores.blocks, 2);
    assert_int_equal(result->restores.gaps, 2);
}

TEST(under_other_options_blocks_keep_their_simulated_place)
{
    struct mt_event events[] = {CAPTURE, TILE_FIRST, TILE_SECOND};
    const struct mt_replay_result *result =
        run(events, MT_ARRAY_LEN(events), "pytorch:expandable_segments:True", 5);

    assert_int_equal(result->restores.restores, 1);
    assert_int_equal(result->restores.blocks, 2);
    assert_int_equal(result->restores.unplaced, 0);
    assert_int_equal(result->restores.gaps_left_out, 2);
    assert_true(block_addrs[B_EVENT] && block_addrs[C_EVENT]);
    assert_int_equal(block_addrs[CAPTURE_EVENTS + 1], block_addrs[B_EVENT]);
    assert_int_equal(block_addrs[CAPTURE_EVENTS + 7], block_addrs[C_EVENT]);
    assert_int_equal(result->counters.allocations, 5); /* no gaps */
    assert_int_equal(result->counters.allocated.now, 20 * MT_MIB);
    assert_int_equal(result->counters.reserved.peak, 40 * MT_MIB);
}

TEST(other_allocators_have_no_checkpoints)
{
    struct mt_event events[] = {CAPTURE, TILE_FIRST, TILE_SECOND};
    const struct mt_replay_result *result = run(events, MT_ARRAY_LEN(events), "none", 5);

    assert_int_equal(result->restores.unplaced, 2);
    assert_int_equal(result->restores.gaps_left_out, 2);
    assert_int_equal(result->counters.allocations, 5);
    assert_int_equal(result->counters.allocated.now, 20 * MT_MIB);
    assert_int_equal(result->counters.reserved.peak, 28 * MT_MIB);
    result = run(events, MT_ARRAY_LEN(events), "recorded", 5);
    assert_int_equal(result->restores.restores, 0); /* it follows the trace */
    assert_true(result->verify.exact);
}

/* C fills the second segment, as it did when alone. The first segment, which is older, is omitted.
 */
TEST(an_ordinary_request_for_a_whole_segment_is_no_restore)
{
    struct mt_event events[] = {CAPTURE, ALLOC(C_ADDR, 12)};

    expect_exact(events, MT_ARRAY_LEN(events), 0);
}

/* A program that allocates the only buffer of its pool in each iteration. */
TEST(a_buffer_that_is_made_again_is_no_restore)
{
    struct mt_event events[] = {TAKE(0, 64),      ALLOC(AT(0), 64), FREE(AT(0)),
                                ALLOC(AT(0), 64), FREE(AT(0)),      ALLOC(AT(0), 64)};

    expect_exact(events, MT_ARRAY_LEN(events), 0);
}

/* Replays `events`, of which none are a restore. */
static void expect_none(struct mt_event *events, size_t count)
{
    const struct mt_replay_result *result = run(events, count, "pytorch", 64);

    assert_int_equal(result->restores.restores, 0);
}

TEST(similar_sequences_are_no_restore)
{
    struct mt_event whole[] = {CAPTURE, TILE_FIRST, TILE_SECOND};
    struct mt_event other_stack[] = {CAPTURE, TILE_FIRST, TILE_SECOND};
    struct mt_event odd_size[] = {CAPTURE, TILE_FIRST, TILE_SECOND};
    struct mt_event one_segment[] = {CAPTURE, TILE_FIRST};
    struct mt_event a_lives[] = {CAPTURE,          ALLOC(A_ADDR, 8),
                                 ALLOC(B_ADDR, 8), ALLOC(END_ADDR, 4),
                                 FREE(END_ADDR),   TILE_SECOND};
    struct mt_event gaps_touch[] = {CAPTURE,
                                    ALLOC(A_ADDR, 4),
                                    ALLOC(A_ADDR + 4 * MT_MIB, 4),
                                    ALLOC(B_ADDR, 8),
                                    ALLOC(END_ADDR, 4),
                                    FREE(A_ADDR),
                                    FREE(A_ADDR + 4 * MT_MIB),
                                    FREE(END_ADDR),
                                    TILE_SECOND};
    struct mt_event downwards[] = {
        CAPTURE,        ALLOC(A_ADDR, 8), ALLOC(B_ADDR, 8), ALLOC(END_ADDR, 4),
        FREE(END_ADDR), FREE(A_ADDR),     TILE_SECOND};
    struct mt_event inhabited[] = {CAPTURE, TILE_SECOND, TILE_FIRST};

    other_stack[CAPTURE_EVENTS + 1].stack = STACK + 1;
    odd_size[CAPTURE_EVENTS].size_bytes -= 1;
    inhabited[CAPTURE_EVENTS - 2].addr = inhabited[CAPTURE_EVENTS - 1].addr = AT(9); /* C lives */
    expect_none(other_stack, MT_ARRAY_LEN(other_stack));
    expect_none(odd_size, MT_ARRAY_LEN(odd_size));
    expect_none(one_segment, MT_ARRAY_LEN(one_segment));
    expect_none(gaps_touch, MT_ARRAY_LEN(gaps_touch));
    expect_none(inhabited, MT_ARRAY_LEN(inhabited));
    run(a_lives, MT_ARRAY_LEN(a_lives), "pytorch", 64);
    assert_int_equal(summary.devices[0].restores.restores, 1); /* A, B and C lived once */
    run(downwards, MT_ARRAY_LEN(downwards), "pytorch", 64);
    assert_int_equal(summary.devices[0].restores.restores, 1); /* A and B lived once */
    assert_int_equal(summary.devices[0].restores.gaps, 1);
    expect_exact(whole, MT_ARRAY_LEN(whole), 1);
}

TEST(without_stacks_two_tiles_prove_nothing)
{
    struct mt_event two[] = {TAKE(0, 12), ALLOC(AT(0), 12), FREE(AT(0)), ALLOC(AT(0), 12)};
    struct mt_event four[] = {CAPTURE, TILE_FIRST, TILE_SECOND};

    for (size_t i = 0; i < MT_ARRAY_LEN(two); i++)
        two[i].stack = MT_NO_ID;
    for (size_t i = 0; i < MT_ARRAY_LEN(four); i++)
        four[i].stack = MT_NO_ID;
    expect_exact(two, MT_ARRAY_LEN(two), 0);
    expect_exact(four, MT_ARRAY_LEN(four), 1);
}

/* A MemPool of 12, 12 and 12 MiB that is filled again by the same requests. A restore would request
 * the 3.5 MiB of a block where the program had requested less. */
TEST(a_pool_that_is_filled_again_is_no_restore)
{
    struct mt_event again[] = {TAKE(0, 12), ALLOC(AT(0), 12), TAKE(1, 12),      ALLOC(AT(1), 12),
                               TAKE(2, 12), ALLOC(AT(2), 12), FREE(AT(0)),      FREE(AT(1)),
                               FREE(AT(2)), ALLOC(AT(0), 12), ALLOC(AT(1), 12), ALLOC(AT(2), 12)};
    enum { LAST_OF_FIRST = 5 };

    for (size_t i = 0; i < MT_ARRAY_LEN(again); i++)
        again[i].stack = MT_NO_ID;
    expect_exact(again, MT_ARRAY_LEN(again), 0);
    again[LAST_OF_FIRST].size_bytes -= 100;
    expect_exact(again, MT_ARRAY_LEN(again), 1);
    again[LAST_OF_FIRST].size_bytes += 100;
    for (size_t i = 0; i < MT_ARRAY_LEN(again); i++)
        again[i].stack = again[i].kind == MT_EVENT_ALLOC ? STACK : MT_NO_ID;
    expect_exact(again, MT_ARRAY_LEN(again), 1); /* one call made all of them */
}

/* Omitted segments are counted, and the result has the count. */
TEST(segments_beyond_the_bound_are_counted)
{
    enum { BEYOND = 3, COUNT = MT_MAX_SEGMENT_TRACKS + BEYOND };
    struct mt_event *events = calloc(COUNT, sizeof *events);
    struct mt_replay_options options = {.policy = "pytorch"};
    struct memory_source source;
    struct mt_error error;

    assert_non_null(events);
    for (size_t i = 0; i < COUNT; i++) {
        events[i] = event(MT_EVENT_SEGMENT_ALLOC, BASE + i * 2 * MT_MIB, 2);
        events[i].flags = MT_EVENT_INITIAL;
    }
    memory_source_init(&source, events, COUNT, 4096);
    if (mt_replay_run(&source.source, &options, NULL, &summary, &error) != MT_OK)
        fail_msg("%s", error.text);
    assert_int_equal(summary.devices[0].restores.segments_unwatched, BEYOND);
    memory_source_release(&source);
    free(events);
}

/* If there are more moments than are kept, live blocks are still known. */
TEST(old_moments_are_forgotten)
{
    struct mt_pool_tracks tracks = {0};
    struct mt_block_track track = {.addr = BASE, .block_bytes = 512, .pool = POOL};
    const char *why = "";

    mt_pool_tracks_begin(&tracks, &track);
    uint32_t first = tracks.now;
    for (uint32_t i = 1; i <= 300000; i++) {
        track.addr = BASE + 512 * (1 + i % 1000);
        mt_pool_tracks_begin(&tracks, &track);
        mt_pool_tracks_end(&tracks, track.addr);
    }
    assert_true(tracks.block_count < 1 << 18);
    assert_true(mt_pool_tracks_is_sound(&tracks, &why));
    assert_int_equal(tracks.pools[POOL].live, 1);
    assert_non_null(mt_pool_tracks_block(&tracks, BASE, first));
    assert_null(mt_pool_tracks_block(&tracks, track.addr, first));
    mt_pool_tracks_release(&tracks);
}

/* A walk to ever earlier moments finds the same as a search from the newest block. */
TEST(a_walk_back_goes_on_where_it_stopped)
{
    struct mt_pool_tracks tracks = {0};
    struct mt_block_track track = {.addr = BASE, .block_bytes = 512, .pool = POOL};
    uint32_t id, moment, found = 0;

    for (track.size_bytes = 1; track.size_bytes <= 20; track.size_bytes++) {
        mt_pool_tracks_begin(&tracks, &track);
        mt_pool_tracks_end(&tracks, BASE);
    }
    id = mt_map_get(&tracks.newest, BASE);
    for (moment = tracks.now; moment > 0; moment--) {
        const struct mt_block_track *block = mt_pool_tracks_back(&tracks, &id, moment);

        assert_ptr_equal(block, mt_pool_tracks_block(&tracks, BASE, moment));
        if (block)
            assert_int_equal(block->size_bytes, 20 - found++);
    }
    assert_int_equal(found, 20);
    assert_null(mt_pool_tracks_back(&tracks, &id, 0));
    assert_int_equal(id, MT_NO_TRACK);
    mt_pool_tracks_release(&tracks);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
