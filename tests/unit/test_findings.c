/* The input of findings: which blocks lie in which segments at an instant, and which sizes are
 * worth reporting. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "finding.h"
#include "holding.h"
#include "live_blocks.h"
#include "memory_source.h"
#include "util.h"

#define A UINT64_C(0x7f0000000000)
#define B UINT64_C(0x7f0010000000)
#define C UINT64_C(0x7f0020000000)

static struct mt_event event(uint8_t kind, uint64_t addr, uint64_t size_bytes)
{
    struct mt_event made = {.kind = kind, .addr = addr, .size_bytes = size_bytes};

    made.stack = made.name = MT_NO_ID;
    made.heap = 1;
    return made;
}

#define DEVICES 2

static struct mt_pins pins;

/* A survey of the events. The log has a block of the requested size for every request. */
static void survey_events(struct mt_survey *survey, struct mt_arena *arena,
                          const struct memory_source *source)
{
    mt_survey_init(survey, arena, &source->source);
    survey->devices = calloc(DEVICES, sizeof *survey->devices);
    assert_non_null(survey->devices);
    survey->device_count = DEVICES;
    for (size_t i = 0; i < DEVICES; i++) {
        survey->devices[i].device = (uint16_t)i;
        survey->device_slot[i] = (uint8_t)(i + 1);
    }
    for (size_t i = 0; i < source->count; i++)
        if (source->events[i].kind == MT_EVENT_ALLOC)
            mt_alloc_log_add(&survey->log, source->events[i].size_bytes, MT_ROLE_OTHER);
}

static struct mt_pins wanted(uint64_t at)
{
    return (struct mt_pins){.wanted = true, .event = at};
}

static void read_pins_into(struct mt_event *events, size_t count, uint16_t device,
                           struct mt_pins wanted)
{
    const uint64_t at = wanted.event;
    struct mt_snapshot snapshot = {.event = at, .device = device};
    struct mt_arena arena = {0};
    struct mt_live_blocks holders = {.arena = &arena, .snapshots = &snapshot, .snapshot_count = 1};
    struct memory_source source;
    struct mt_survey survey;
    struct mt_event_batch batch;
    struct mt_error error;

    memory_source_init(&source, events, count, 2);
    survey_events(&survey, &arena, &source);
    holders.survey = &survey;
    holders.devices = calloc(DEVICES, sizeof *holders.devices);
    assert_non_null(holders.devices);
    holders.devices[device].pins = wanted;
    mt_live_blocks_begin(&holders, &source.source);
    while (mt_source_next(&source.source, &batch, &error) == MT_OK)
        for (size_t i = 0; i < batch.count; i++)
            mt_live_blocks_event(&holders, &batch.events[i]);
    mt_live_blocks_finish(&holders);
    pins = holders.devices[device].pins;
    memset(&holders.devices[device].pins, 0, sizeof pins);
    mt_live_blocks_release(&holders);
    mt_survey_release(&survey);
    mt_arena_release(&arena);
    memory_source_release(&source);
}

static void read_pins(struct mt_event *events, size_t count, uint16_t device, uint64_t at)
{
    read_pins_into(events, count, device, wanted(at));
}

TEST(free_bytes_of_segments_with_a_live_block_are_stranded)
{
    struct mt_event events[] = {
        event(MT_EVENT_SEGMENT_ALLOC, B, 20 * MT_MIB),
        event(MT_EVENT_ALLOC, B + 4 * MT_MIB, MT_MIB),
        event(MT_EVENT_SEGMENT_ALLOC, A, 40 * MT_MIB), event(MT_EVENT_ALLOC, A, 6 * MT_MIB),
        event(MT_EVENT_ALLOC, A + 6 * MT_MIB, 2 * MT_MIB), event(MT_EVENT_FREE_REQUESTED, A, 1),
        event(MT_EVENT_FREE_COMPLETED, A, 1), event(MT_EVENT_SEGMENT_ALLOC, C, 60 * MT_MIB),
        /* later */
        event(MT_EVENT_ALLOC, C, 50 * MT_MIB)};

    read_pins(events, MT_ARRAY_LEN(events), 0, 7);
    assert_int_equal(pins.segment_count, 2); /* C is free as a whole */
    assert_int_equal(pins.segments[0].base, A);
    assert_int_equal(pins.segments[0].free_bytes, 38 * MT_MIB);
    assert_int_equal(pins.segments[1].base, B);
    assert_int_equal(pins.segments[1].free_bytes, 19 * MT_MIB);
    assert_int_equal(pins.stranded_bytes, 57 * MT_MIB);
    assert_int_equal(pins.block_count, 2);
    assert_int_equal(pins.blocks[0].addr, A + 6 * MT_MIB);
    assert_int_equal(pins.blocks[0].segment, 0);
    assert_int_equal(pins.blocks[1].segment, 1);
    mt_pins_release(&pins);
}

/* A block that was freed but waits for a stream keeps its place. */
TEST(waiting_blocks_pin_segments)
{
    struct mt_event events[] = {
        event(MT_EVENT_SEGMENT_ALLOC, A, 20 * MT_MIB), event(MT_EVENT_ALLOC, A, MT_MIB),
        event(MT_EVENT_FREE_REQUESTED, A, MT_MIB), event(MT_EVENT_FREE_COMPLETED, A, MT_MIB)};

    read_pins(events, MT_ARRAY_LEN(events), 0, 2);
    assert_int_equal(pins.stranded_bytes, 19 * MT_MIB);
    mt_pins_release(&pins);
    read_pins(events, MT_ARRAY_LEN(events), 0, 3);
    assert_int_equal(pins.stranded_bytes, 0);
    assert_int_equal(pins.block_count, 0);
    mt_pins_release(&pins);
}

/* Expandable segments, private pools, other devices and released segments. */
TEST(other_segments_are_ignored)
{
    struct mt_event events[] = {event(MT_EVENT_SEGMENT_MAP, A, 20 * MT_MIB),
                                event(MT_EVENT_ALLOC, A, MT_MIB),
                                event(MT_EVENT_SEGMENT_ALLOC, B, 20 * MT_MIB),
                                event(MT_EVENT_ALLOC, B, MT_MIB),
                                event(MT_EVENT_SEGMENT_ALLOC, C, 20 * MT_MIB),
                                event(MT_EVENT_ALLOC, C, MT_MIB),
                                event(MT_EVENT_SEGMENT_ALLOC, C + 64 * MT_MIB, 20 * MT_MIB),
                                event(MT_EVENT_ALLOC, C + 64 * MT_MIB, 3 * MT_MIB),
                                event(MT_EVENT_FREE_REQUESTED, C + 64 * MT_MIB, 3 * MT_MIB),
                                event(MT_EVENT_FREE_COMPLETED, C + 64 * MT_MIB, 3 * MT_MIB),
                                event(MT_EVENT_SEGMENT_FREE, C + 64 * MT_MIB, 20 * MT_MIB)};

    events[0].flags = events[1].flags = MT_EVENT_EXPANDABLE;
    events[2].pool = events[3].pool = 1;
    events[4].device = events[5].device = 1;
    read_pins(events, MT_ARRAY_LEN(events), 0, 20);
    assert_int_equal(pins.segment_count, 0);
    assert_int_equal(pins.stranded_bytes, 0);
    mt_pins_release(&pins);
    read_pins(events, MT_ARRAY_LEN(events), 1, 20);
    assert_int_equal(pins.segment_count, 1); /* the block of the other device has its own size */
    assert_int_equal(pins.stranded_bytes, 19 * MT_MIB);
    mt_pins_release(&pins);
}

static void assert_segment(uint32_t at, uint64_t base, uint64_t bytes, uint64_t free_bytes)
{
    assert_true(at < pins.segment_count);
    assert_int_equal(pins.segments[at].base, base);
    assert_int_equal(pins.segments[at].bytes, bytes);
    assert_int_equal(pins.segments[at].free_bytes, free_bytes);
}

/* For the reserved memory, ranges of expandable segments and private pools also count, and a block
 * may be in two ranges. */
TEST(all_segments_are_counted_if_wanted)
{
    struct mt_event events[] = {event(MT_EVENT_SEGMENT_MAP, A, 20 * MT_MIB),
                                event(MT_EVENT_SEGMENT_MAP, A + 20 * MT_MIB, 40 * MT_MIB),
                                event(MT_EVENT_ALLOC, A + 16 * MT_MIB, 8 * MT_MIB),
                                event(MT_EVENT_SEGMENT_UNMAP, A + 30 * MT_MIB, 10 * MT_MIB),
                                event(MT_EVENT_SEGMENT_ALLOC, B, 20 * MT_MIB),
                                event(MT_EVENT_ALLOC, B, MT_MIB),
                                event(MT_EVENT_SEGMENT_ALLOC, C, 2 * MT_MIB),
                                event(MT_EVENT_SEGMENT_UNMAP, A + MT_MIB, 58 * MT_MIB)};
    struct mt_pins all = wanted(6);

    events[4].pool = events[5].pool = 1;
    all.all = true;
    read_pins_into(events, MT_ARRAY_LEN(events), 0, all);
    assert_int_equal(pins.segment_count, 5);
    assert_segment(0, A, 20 * MT_MIB, 16 * MT_MIB);
    assert_segment(1, A + 20 * MT_MIB, 10 * MT_MIB, 6 * MT_MIB);
    assert_segment(2, A + 40 * MT_MIB, 20 * MT_MIB, 20 * MT_MIB);
    assert_segment(3, B, 20 * MT_MIB, 19 * MT_MIB);
    assert_segment(4, C, 2 * MT_MIB, 2 * MT_MIB);
    mt_pins_release(&pins);
    all.event = 7;
    read_pins_into(events, MT_ARRAY_LEN(events), 0, all);
    assert_int_equal(pins.segment_count, 4);
    assert_segment(0, A, MT_MIB, MT_MIB);
    assert_segment(1, A + 59 * MT_MIB, MT_MIB, MT_MIB);
    mt_pins_release(&pins);
}

TEST(few_bytes_are_not_reported)
{
    assert_true(mt_finding_matters(64 * MT_MIB, 0));
    assert_false(mt_finding_matters(64 * MT_MIB - 1, 0));
    assert_true(mt_finding_matters(500 * MT_MIB, 10000 * MT_MIB));
    assert_false(mt_finding_matters(500 * MT_MIB - 1, 10000 * MT_MIB));
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
