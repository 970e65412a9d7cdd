/* The model of addresses and its chart, on small histories. */
#include "cmocka_all.h"

#include <stdlib.h>

#include "address_model.h"
#include "chart.h"
#include "drawing_checks.h"

#define MIB  (UINT64_C(1) << 20)
#define BASE UINT64_C(0x7f0000000000)

/* A device whose events are one microsecond apart. */
static struct {
    struct mt_arena arena;
    struct mt_address_builder *builder;
    struct mt_span span;
    struct mt_bytes now;
    uint64_t event;
    struct mt_block_life lives[64];
    uint32_t life_count;
} device;

#define LAST 1000

static void begin(uint64_t reserved_peak)
{
    struct mt_address_options options = {.blocks = MT_ADDRESS_BLOCKS,
                                         .reserved_peak_bytes = reserved_peak,
                                         .columns = 1024,
                                         .first_t_ns = 1000,
                                         .last_t_ns = 1000 * LAST,
                                         .first_event = 1,
                                         .last_event = LAST,
                                         .span_count = 1,
                                         .count_from_t_ns = 1000,
                                         .last_step_event = 500};

    memset(&device, 0, sizeof device);
    device.span = (struct mt_span){1000, 1000 * LAST};
    options.spans = &device.span;
    mt_address_builder_new(&device.arena, &options, &device.builder);
}

static void tell(uint8_t kind, uint64_t addr, uint64_t bytes)
{
    struct mt_event event = {.seq = device.event,
                             .t_ns = 1000 * device.event,
                             .addr = addr,
                             .size_bytes = bytes,
                             .kind = kind};
    struct mt_model_state state = {.event = &event, .now = &device.now};

    mt_address_builder_state(device.builder, &state);
}

static void at(uint64_t event)
{
    device.event = event;
}

static void segment(uint8_t kind, uint64_t addr, uint64_t bytes)
{
    bool takes = kind == MT_EVENT_SEGMENT_ALLOC || kind == MT_EVENT_SEGMENT_MAP;

    device.event++;
    device.now.reserved += takes ? bytes : 0 - bytes;
    tell(kind, addr, bytes);
}

static uint32_t take(uint64_t addr, uint64_t bytes, enum mt_role role)
{
    struct mt_block_life *life = &device.lives[device.life_count];

    device.event++;
    *life = (struct mt_block_life){.addr = addr,
                                   .block_bytes = bytes,
                                   .birth_t_ns = 1000 * device.event,
                                   .birth_event = device.event,
                                   .block = device.life_count,
                                   .role = (uint8_t)role};
    mt_address_builder_birth(device.builder, life);
    device.now.allocated += bytes;
    tell(MT_EVENT_ALLOC, addr, bytes);
    return device.life_count++;
}

static void give(uint32_t number)
{
    struct mt_block_life *life = &device.lives[number];

    device.event++;
    mt_address_builder_end(device.builder, life,
                           (struct mt_block_end){1000 * device.event, device.event});
    device.now.allocated -= life->block_bytes;
    tell(MT_EVENT_FREE_REQUESTED, life->addr, life->block_bytes);
}

static struct mt_address *end(void)
{
    struct mt_address *address = NULL;

    mt_address_builder_finish(device.builder, &address);
    mt_address_builder_release(device.builder);
    return address;
}

/* How a row of a segment looks in the column of an event. */
static struct mt_mosaic_cell cell(const struct mt_address *address, uint32_t place, uint32_t row,
                                  uint64_t event)
{
    const struct mt_address_axis *axis = &address->event;
    uint32_t number = address->places[place].rows[row];
    uint32_t column = (uint32_t)((event - 1) * axis->column_count / LAST);
    struct mt_mosaic_cell nothing = {0, 0, 0};

    for (uint32_t i = axis->first_run[number]; i < axis->first_run[number + 1]; i++)
        if (axis->runs[i].begin <= column && column < axis->runs[i].end)
            return axis->runs[i].cell;
    return nothing;
}

TEST(released_memory_turns_white)
{
    begin(40 * MIB);
    segment(MT_EVENT_SEGMENT_ALLOC, BASE, 20 * MIB);
    uint32_t block = take(BASE, 20 * MIB, MT_ROLE_ACTIVATIONS);
    at(100);
    give(block);
    at(200);
    segment(MT_EVENT_SEGMENT_FREE, BASE, 20 * MIB);
    at(300);
    segment(MT_EVENT_SEGMENT_ALLOC, BASE + 500 * MIB, 20 * MIB);
    struct mt_address *address = end();
    assert_int_equal(address->place_count, 1); /* the second takes the place of the first */
    assert_int_equal(address->places[0].segments, 2);
    assert_true(address->places[0].base == BASE + 500 * MIB);
    assert_true(cell(address, 0, 0, 50).covered > 65000);
    assert_int_equal(cell(address, 0, 0, 50).role, MT_ROLE_ACTIVATIONS);
    assert_int_equal(cell(address, 0, 0, 150).covered, 0);
    assert_true(cell(address, 0, 0, 150).reserved > 65000);
    assert_int_equal(cell(address, 0, 0, 250).reserved, 0);
    assert_true(cell(address, 0, 0, 350).reserved > 65000);
    assert_true(address->reserved_end == 20 * MIB && address->segments_end == 1);
    mt_arena_release(&device.arena);
}

TEST(an_expandable_segment_is_one_band_that_grows)
{
    begin(2048 * MIB);
    for (uint64_t i = 0; i < 64; i++) {
        segment(MT_EVENT_SEGMENT_MAP, BASE + 20 * MIB * i, 20 * MIB);
        if (i == 3)
            segment(MT_EVENT_SEGMENT_ALLOC, BASE - 4096 * MIB, 2 * MIB);
    }
    at(500);
    segment(MT_EVENT_SEGMENT_UNMAP, BASE + 20 * MIB * 10, 20 * MIB);
    at(600);
    segment(MT_EVENT_SEGMENT_MAP, BASE + 20 * MIB * 10, 20 * MIB);
    struct mt_address *address = end();
    assert_int_equal(address->place_count, 2);
    assert_true(address->places[0].is_expandable && !address->places[1].is_expandable);
    assert_true(address->places[0].bytes == 64 * 20 * MIB);
    assert_true(address->places[0].reserved_end == 64 * 20 * MIB);
    uint32_t rows = address->places[0].row_count;
    assert_true(rows * address->bytes_per_row >= 64 * 20 * MIB);
    assert_int_equal(cell(address, 0, rows - 1, 20).reserved, 0); /* not mapped yet */
    assert_true(cell(address, 0, rows - 1, 400).reserved > 0);
    assert_int_equal(cell(address, 0, (uint32_t)(210 * MIB / address->bytes_per_row), 550).reserved,
                     0);
    assert_true(cell(address, 0, (uint32_t)(210 * MIB / address->bytes_per_row), 700).reserved >
                65000);
    mt_arena_release(&device.arena);
}

/* Byte-seconds in use and idle. */
TEST(occupancy_is_that_of_the_blocks)
{
    begin(100 * MIB);
    segment(MT_EVENT_SEGMENT_ALLOC, BASE, 40 * MIB);                       /* event 1 */
    segment(MT_EVENT_SEGMENT_ALLOC, BASE + 100 * MIB, 60 * MIB);           /* event 2 */
    uint32_t once = take(BASE, 10 * MIB, MT_ROLE_TEMPORARIES);             /* event 3 */
    uint32_t often = take(BASE + 100 * MIB, 60 * MIB, MT_ROLE_PARAMETERS); /* event 4 */
    at(102);
    give(once); /* event 103 */
    at(503);
    give(often); /* event 504 */
    struct mt_address *address = end();
    assert_true(fabs(address->places[0].used - 10.0 * (double)MIB * 100e-6) < 1);
    assert_true(fabs(address->places[0].held - 40.0 * (double)MIB * 999e-6) < 1);
    assert_true(fabs(address->places[1].used - 60.0 * (double)MIB * 500e-6) < 1);
    assert_true(fabs(address->places[1].held - 60.0 * (double)MIB * 998e-6) < 1);
    assert_true(fabs(address->used - address->places[0].used - address->places[1].used) < 1);
    assert_int_equal(address->idle_segments, 1); /* the other segment was in use in the last step */
    assert_true(address->idle_bytes == 40 * MIB && address->places[0].was_idle);
    assert_int_equal(address->once_segments, 1);
    assert_true(address->reserved_end == 100 * MIB && !address->allocated_end);
    mt_arena_release(&device.arena);
}

/* Frees of unknown blocks, blocks outside of segments, overlapping segments, sizes beyond the
 * address space. */
TEST(damaged_input_is_counted)
{
    begin(64 * MIB);
    segment(MT_EVENT_SEGMENT_FREE, BASE, 0);
    segment(MT_EVENT_SEGMENT_UNMAP, BASE, 5 * MIB);
    segment(MT_EVENT_SEGMENT_ALLOC, BASE, 2 * MIB);
    segment(MT_EVENT_SEGMENT_ALLOC, BASE, 2 * MIB);
    segment(MT_EVENT_SEGMENT_ALLOC, UINT64_MAX - 100, 2 * MIB);
    segment(MT_EVENT_SEGMENT_ALLOC, 5, UINT64_MAX / 2);
    uint32_t outside = take(BASE + 900 * MIB, MIB, MT_ROLE_OTHER);
    uint32_t beyond = take(BASE + MIB, 64 * MIB, MT_ROLE_OTHER);
    segment(MT_EVENT_SEGMENT_MAP, BASE + 10 * MIB, 2 * MIB);
    segment(MT_EVENT_SEGMENT_UNMAP, BASE + 10 * MIB, 200 * MIB);
    segment(MT_EVENT_SEGMENT_UNMAP, BASE + 10 * MIB, 2 * MIB);
    segment(MT_EVENT_SEGMENT_FREE, BASE, 2 * MIB);
    give(outside);
    give(beyond);
    give(beyond);
    struct mt_address *address = end();
    assert_int_equal(address->outside_blocks, 1);
    assert_true(address->outside_bytes == MIB + 63 * MIB);
    assert_true(address->allocated_end == 0);
    for (uint32_t i = 0; i < address->event.first_run[address->row_count]; i++)
        assert_true(address->event.runs[i].row < address->row_count);
    mt_arena_release(&device.arena);
}

/* Segments that have no row are counted. */
TEST(rows_are_bounded)
{
    begin(16 * MIB);
    for (uint64_t i = 0; i < 2 * MT_ADDRESS_ROWS; i++) {
        device.event = i * LAST / (2 * MT_ADDRESS_ROWS);
        segment(MT_EVENT_SEGMENT_ALLOC, BASE + i * 4 * MIB, 512 * (1 + i % 7));
    }
    struct mt_address *address = end();
    assert_true(address->row_count <= MT_ADDRESS_ROWS);
    assert_int_equal(address->place_count + address->homeless_segments, 2 * MT_ADDRESS_ROWS);
    assert_true(address->homeless_segments > 0 && address->homeless_bytes > 0);
    mt_arena_release(&device.arena);
}

static void draw(struct mt_address *address, const struct mt_chart_options *options,
                 struct mt_drawing *drawing)
{
    static struct mt_report report;
    static struct mt_timeline timeline;
    struct mt_device_report of = {.address = address, .timeline = &timeline};

    timeline = (struct mt_timeline){.spans = &device.span,
                                    .span_count = 1,
                                    .busy_ns = device.span.end_t_ns - device.span.begin_t_ns,
                                    .first_event = 1,
                                    .last_event = LAST};
    report = (struct mt_report){
        .name = "made by hand", .first_t_ns = 1000, .last_t_ns = 1000 * LAST, .device_count = 1};
    of.reserved_peak.bytes = address->reserved_end;
    mt_chart_find("address")->draw(&report, &of, options, drawing);
    const char *fault = drawing_fault(drawing);
    if (fault)
        fail_msg("%s", fault);
}

static uint64_t tinted(const struct mt_drawing *drawing)
{
    uint64_t cells = 0;

    for (size_t i = 0; i < drawing->op_count; i++)
        if (drawing_is(&drawing->ops[i], "map"))
            cells += drawing->ops[i].cell_count;
    return cells;
}

/* 512 bytes in a segment of 2 MiB, among 64 GiB: a row of pixels is 60 MiB. */
TEST(the_smallest_block_tints_its_pixel)
{
    struct mt_chart_options options = {.width = 0};
    struct mt_drawing drawing;

    begin(64 * 1024 * MIB);
    segment(MT_EVENT_SEGMENT_ALLOC, BASE, 32 * 1024 * MIB);
    segment(MT_EVENT_SEGMENT_ALLOC, BASE - 100 * MIB, 2 * MIB);
    segment(MT_EVENT_SEGMENT_ALLOC, BASE + 70000 * MIB, 32 * 1024 * MIB);
    at(400);
    take(BASE - 100 * MIB, 512, MT_ROLE_GRADIENTS);
    struct mt_address *address = end();
    assert_true(cell(address, 1, 0, 500).covered == 1);
    for (int i = 0; i < 2; i++) {
        options.event_axis = i;
        draw(address, &options, &drawing);
        assert_int_equal(tinted(&drawing), 1);
        mt_drawing_release(&drawing);
    }
    mt_arena_release(&device.arena);
}

static const struct mt_op *op_of_key(const struct mt_drawing *drawing, const char *key)
{
    for (size_t i = 0; i < drawing->op_count; i++)
        if (drawing->ops[i].key && strcmp(drawing->ops[i].key, key) == 0)
            return &drawing->ops[i];
    fail_msg("no shape has the key %s", key);
    return NULL;
}

/* A block is drawn at its address over its life, in a segment that reuses the place of another one.
 * A block that is alive at the end reaches the edge. */
TEST(blocks_lie_where_they_were)
{
    struct mt_chart_options options = {.keyed = true};
    struct mt_drawing drawing;

    begin(40 * MIB);
    segment(MT_EVENT_SEGMENT_ALLOC, BASE, 20 * MIB);
    segment(MT_EVENT_SEGMENT_ALLOC, BASE + 100 * MIB, 20 * MIB);
    at(100);
    uint32_t block = take(BASE + 110 * MIB, 10 * MIB, MT_ROLE_ACTIVATIONS); /* event 101 */
    at(600);
    give(block);
    segment(MT_EVENT_SEGMENT_FREE, BASE + 100 * MIB, 20 * MIB);
    segment(MT_EVENT_SEGMENT_ALLOC, BASE + 900 * MIB, 20 * MIB);
    at(800);
    block = take(BASE + 900 * MIB, 5 * MIB, MT_ROLE_GRADIENTS); /* event 801 */
    mt_address_builder_end(device.builder, &device.lives[block],
                           (struct mt_block_end){UINT64_MAX, UINT64_MAX});
    struct mt_address *address = end();
    assert_int_equal(address->block_count, 2);
    assert_int_equal(address->blocks[0].place, 1);
    assert_true(address->blocks[0].offset == 10 * MIB);
    assert_int_equal(address->blocks[1].place, 1);
    assert_true(address->blocks[1].offset == 0);
    draw(address, &options, &drawing);
    const struct mt_op *early = op_of_key(&drawing, "7f0006e00000.101");
    const struct mt_op *late = op_of_key(&drawing, "7f0038400000.801");
    assert_true(early->paint.unseen && late->paint.unseen);
    assert_true(fabs(early->height - 2 * late->height) < 0.1);
    assert_true(fabs(early->y + early->height - (late->y + late->height - early->height)) < 0.1);
    assert_true(early->x < late->x && early->x + early->width < late->x);
    assert_true(fabs(early->width / late->width - 500.0 / 199.0) < 0.05);
    mt_drawing_release(&drawing);
    options.keyed = false;
    draw(address, &options, &drawing);
    for (size_t i = 0; i < drawing.op_count; i++)
        assert_null(drawing.ops[i].key);
    mt_drawing_release(&drawing);
    mt_arena_release(&device.arena);
}

/* If scores are equal, the older block is kept. */
TEST(the_largest_blocks_are_kept)
{
    begin(40 * MIB);
    segment(MT_EVENT_SEGMENT_ALLOC, BASE, 20 * MIB);
    for (uint32_t i = 0; i < MT_ADDRESS_BLOCKS / 10 * 11; i++) {
        struct mt_block_life life = {.addr = BASE,
                                     .block_bytes = i % 11 ? 1024 : 512,
                                     .birth_event = device.event,
                                     .birth_t_ns = 1000 * device.event};
        struct mt_block_end end = {1000 * device.event + 1000, device.event + 1};

        mt_address_builder_birth(device.builder, &life);
        mt_address_builder_end(device.builder, &life, end);
        device.event++;
    }
    struct mt_address *address = end();
    assert_int_equal(address->block_count, MT_ADDRESS_BLOCKS);
    for (uint32_t i = 0; i < address->block_count; i++)
        assert_int_equal(address->blocks[i].life.block_bytes, 1024);
    mt_arena_release(&device.arena);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
