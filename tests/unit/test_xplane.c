/* Profiles of XLA's profiler: the wire format, and the conversion of events to a source. */
#include "cmocka_all.h"

#include <stdlib.h>

#include "importers.h"
#include "xplane_maker.h"
#include "xplane_read.h"

#define LOW   UINT64_C(0x302000000)
#define HIGH  UINT64_C(0x7f0000000000)
#define LIMIT (UINT64_C(1) << 30)
#define GPU   "GPU_0_bfc"
#define HOST  "bfc_cpu_allocator_for_gpu"

static bool next_of(const char *bytes, size_t length, struct mt_pb_field *field, bool *failed)
{
    struct mt_pb_reader reader =
        mt_pb_reader_of((struct mt_pb_bytes){(const uint8_t *)bytes, length});
    bool found = mt_pb_next(&reader, field);

    *failed = reader.failed;
    assert_true(reader.at <= reader.end);
    return found;
}

TEST(fields_that_are_there)
{
    struct mt_pb_field field;
    bool failed;

    assert_true(next_of("\x08\x96\x01", 3, &field, &failed));
    assert_int_equal(field.number, 1);
    assert_int_equal(field.kind, MT_PB_VARINT);
    assert_int_equal(field.value, 150);
    assert_true(next_of("\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, &field, &failed));
    assert_true(field.value == UINT64_MAX);
    assert_true(next_of("\x12\x02hi", 4, &field, &failed));
    assert_int_equal(field.kind, MT_PB_BYTES);
    assert_int_equal(field.bytes.length, 2);
    assert_true(next_of("\x11\x01\0\0\0\0\0\0\x80", 9, &field, &failed));
    assert_true(field.value == (UINT64_C(1) << 63 | 1));
    assert_true(next_of("\x15\x02\0\0\0", 5, &field, &failed));
    assert_int_equal(field.value, 2);
    assert_false(next_of("", 0, &field, &failed));
    assert_false(failed);
}

TEST(bytes_that_are_no_field)
{
    static const struct {
        const char *bytes;
        size_t length;
    } cases[] = {
        {"\x08", 1},                                              /* no value */
        {"\x08\x80", 2},                                          /* a value that does not end */
        {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11},     /* more than 64 bits */
        {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12}, /* eleven bytes */
        {"\x12\x03hi", 4},                                        /* longer than what is there */
        {"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01hi", 13},
        {"\x11\x01\0\0", 4},
        {"\x15\x01", 2},
        {"\x03\x04", 2},                     /* number 0 */
        {"\x0b\x0c", 2},                     /* a group */
        {"\x0e\x01", 2},                     /* wire type 6 */
        {"\x80\x80\x80\x80\x80\x01\x01", 7}, /* a number of 33 bits */
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff", 9},
    };
    struct mt_pb_field field;
    bool failed;

    for (size_t i = 0; i < MT_ARRAY_LEN(cases); i++) {
        /* on the heap, so that sanitizers detect reads past the end */
        char *copy = malloc(cases[i].length);

        assert_non_null(copy);
        memcpy(copy, cases[i].bytes, cases[i].length);
        if (next_of(copy, cases[i].length, &field, &failed) || !failed)
            fail_msg("case %zu is a field", i);
        free(copy);
    }
}

struct read {
    enum mt_status status;
    struct mt_source *source;
    struct mt_event events[64];
    size_t count;
};

static struct read read_profile(const char *bytes, size_t length)
{
    struct read read = {.status = MT_ERR_FORMAT};
    char *copy = malloc(length + 1);
    struct mt_feed *feed;
    struct mt_event_batch batch;
    struct mt_error error = {.text = ""};

    assert_non_null(copy);
    memcpy(copy, bytes, length);
    assert_int_equal(mt_feed_open_memory(copy, length, &feed, &error), MT_OK);
    read.status = mt_xplane_open(feed, &read.source, &error);
    mt_feed_close(feed);
    free(copy);
    if (read.status) {
        assert_true(error.text[0]);
        return read;
    }
    while (mt_source_next(read.source, &batch, NULL) == MT_OK)
        for (size_t i = 0; i < batch.count; i++) {
            assert_true(read.count < MT_ARRAY_LEN(read.events));
            read.events[read.count++] = batch.events[i];
        }
    assert_int_equal(mt_source_rewind(read.source, NULL), MT_OK);
    return read;
}

static void make_profile(struct mt_buf *profile, const struct made_event *events, size_t count)
{
    struct mt_buf plane = {0};

    pb_host_plane(&plane);
    pb_line(&plane, "python3", 5000, events, count);
    pb_message(profile, 1, &plane);
}

static struct read read_events(const struct made_event *events, size_t count)
{
    struct mt_buf profile = {0};

    make_profile(&profile, events, count);
    assert_true(mt_xplane_probe(profile.data, profile.length));
    struct read read = read_profile(profile.data, profile.length);
    mt_buf_release(&profile);
    return read;
}

static void expect(const struct read *read, size_t at, uint8_t kind, uint64_t addr, uint64_t bytes)
{
    assert_true(at < read->count);
    assert_int_equal(read->events[at].kind, kind);
    assert_int_equal(read->events[at].addr, addr);
    assert_int_equal(read->events[at].size_bytes, bytes);
    assert_int_equal(read->events[at].seq, at);
}

/* The first region has 2 MiB; 3 MiB ask for one of 4. */
TEST(a_growing_arena)
{
    static const struct made_event events[] = {
        {GPU, false, HIGH, 100, 256, 256, LIMIT, 1000, NULL},
        {GPU, false, LOW, 3 << 20, 3 << 20, (3 << 20) + 256, LIMIT, 2000, "dense/MatMul"},
        {"xla_gpu_host_bfc", false, HIGH + 512, 4, 256, 256, LIMIT, 2500, NULL},
        {GPU, true, HIGH, 100, 256, 3 << 20, LIMIT, 3000, NULL}};
    struct read read = read_events(events, MT_ARRAY_LEN(events));

    assert_int_equal(read.status, MT_OK);
    assert_int_equal(read.count, 5);
    expect(&read, 0, MT_EVENT_SEGMENT_ALLOC, HIGH, 2 << 20);
    expect(&read, 1, MT_EVENT_ALLOC, HIGH, 100);
    assert_int_equal(read.events[1].aux_bytes, 256);
    assert_int_equal(read.events[1].t_ns, 5001);
    expect(&read, 2, MT_EVENT_SEGMENT_ALLOC, LOW, 4 << 20);
    expect(&read, 3, MT_EVENT_ALLOC, LOW, 3 << 20);
    assert_int_not_equal(read.events[3].stack, MT_NO_ID);
    expect(&read, 4, MT_EVENT_FREE_REQUESTED, HIGH, 100);
    assert_string_equal(read.source->header.settings,
                        "policy=bfc:memory_fraction=1,preallocate=False");
    assert_int_equal(read.source->header.memory_limit_bytes, LIMIT);
    assert_true(read.source->header.has_segments);
    assert_false(read.source->header.starts_in_middle);
    assert_string_equal(read.source->format, "xla-profile");
    mt_source_close(read.source);
}

/* The second block crosses the end of a region of 2 MiB, so there is one region. */
TEST(a_preallocated_arena)
{
    static const struct made_event events[] = {
        {GPU, false, HIGH, 100, 256, 256, LIMIT, 1000, NULL},
        {GPU, false, HIGH + 256, 3 << 20, 3 << 20, (3 << 20) + 256, LIMIT, 2000, NULL}};
    struct read read = read_events(events, MT_ARRAY_LEN(events));

    assert_int_equal(read.status, MT_OK);
    expect(&read, 0, MT_EVENT_SEGMENT_ALLOC, HIGH, LIMIT);
    expect(&read, 2, MT_EVENT_ALLOC, HIGH + 256, 3 << 20);
    assert_string_equal(read.source->header.settings,
                        "policy=bfc:memory_fraction=1,preallocate=True");
    mt_source_close(read.source);
}

/* An arena aligns blocks to 256 bytes. */
TEST(blocks_of_no_arena)
{
    static const struct made_event events[] = {
        {GPU, false, LOW + 100, 100, 256, 256, LIMIT, 1000, NULL}};
    struct read read = read_events(events, MT_ARRAY_LEN(events));

    assert_int_equal(read.status, MT_OK);
    assert_int_equal(read.count, 1);
    assert_false(read.source->header.has_segments);
    mt_source_close(read.source);
}

/* Two blocks existed before: one ends in the profile, the other is derived from the sum. */
TEST(a_profile_that_begins_late)
{
    static const struct made_event events[] = {
        {GPU, false, LOW, 100, 256, 4096, LIMIT, 1000, NULL},
        {GPU, true, HIGH, 1000, 1024, 3072, LIMIT, 2000, NULL}};
    struct read read = read_events(events, MT_ARRAY_LEN(events));

    assert_int_equal(read.status, MT_OK);
    assert_int_equal(read.count, 4);
    expect(&read, 0, MT_EVENT_ALLOC, HIGH, 1000);
    assert_int_equal(read.events[0].flags, MT_EVENT_INITIAL);
    assert_int_equal(read.events[1].flags, MT_EVENT_INITIAL);
    assert_int_equal(read.events[0].aux_bytes + read.events[1].aux_bytes, 4096 - 256);
    expect(&read, 3, MT_EVENT_FREE_REQUESTED, HIGH, 1000);
    assert_true(read.source->header.starts_in_middle);
    assert_false(read.source->header.has_segments);
    mt_source_close(read.source);
}

/* Events of two threads are sorted by time. A gap in the sums is reported. */
TEST(threads_and_gaps)
{
    static const struct made_event first[] = {{GPU, false, LOW, 256, 256, 256, LIMIT, 9000, NULL}};
    static const struct made_event second[] = {{GPU, true, LOW, 256, 256, 0, LIMIT, 9001, NULL},
                                               {GPU, false, LOW, 256, 256, 1024, LIMIT, 9002, NULL},
                                               {GPU, false, 0, 256, 256, 1280, LIMIT, 9003, NULL}};
    struct mt_buf profile = {0}, plane = {0};

    pb_host_plane(&plane);
    pb_line(&plane, "later", 0, second, 3);
    pb_line(&plane, "sooner", 0, first, 1);
    pb_message(&profile, 1, &plane);
    struct read read = read_profile(profile.data, profile.length);
    assert_int_equal(read.status, MT_OK);
    assert_int_equal(read.count, 4);
    expect(&read, 1, MT_EVENT_ALLOC, LOW, 256);
    expect(&read, 2, MT_EVENT_FREE_REQUESTED, LOW, 256);
    assert_true(read.events[1].thread != read.events[2].thread);
    assert_int_equal(read.source->integrity.events_invalid, 1);
    assert_int_equal(read.source->integrity.events_dropped, 1);
    mt_source_close(read.source);
    mt_buf_release(&profile);
}

/* Threads beyond those that have numbers count as the first thread. */
TEST(more_threads_than_numbers)
{
    static const struct made_event event = {GPU, false, LOW, 256, 256, 256, LIMIT, 9, NULL};
    struct mt_buf profile = {0}, plane = {0};
    struct mt_error error = {.text = ""};
    struct mt_source *source;
    struct mt_feed *feed;

    pb_host_plane(&plane);
    for (int i = 0; i < UINT16_MAX + 2; i++)
        pb_line(&plane, "", 0, &event, 1);
    pb_message(&profile, 1, &plane);
    assert_int_equal(mt_feed_open_memory(profile.data, profile.length, &feed, &error), MT_OK);
    assert_int_equal(mt_xplane_open(feed, &source, &error), MT_OK);
    assert_int_equal(source->symbols.thread_count, UINT16_MAX);
    mt_source_close(source);
    mt_feed_close(feed);
    mt_buf_release(&profile);
}

/* The sizes of initial blocks sum to 2^64, so nothing else was in use at the start. */
TEST(sizes_that_no_sum_holds)
{
    struct made_event events[16];

    for (uint64_t i = 0; i < MT_ARRAY_LEN(events); i++)
        events[i] = (struct made_event){.allocator = GPU,
                                        .is_free = true,
                                        .addr = LOW + 256 * i,
                                        .requested = UINT64_C(1) << 60,
                                        .chunk = UINT64_C(1) << 60,
                                        .in_use = UINT64_C(1) << 60,
                                        .offset_ps = i};
    struct read read = read_events(events, MT_ARRAY_LEN(events));
    assert_int_equal(read.status, MT_OK);
    assert_int_equal(read.count, 2 * MT_ARRAY_LEN(events));
    mt_source_close(read.source);
}

/* The regions of each device follow from its own blocks alone. */
TEST(each_device_has_its_own_arena)
{
    static const struct made_event events[] = {
        {GPU, false, LOW, 256, 256, 256, LIMIT, 1000, NULL},
        {"GPU_1_bfc", false, HIGH, 512, 512, 512, LIMIT, 2000, NULL},
        {"GPU_1_bfc", false, HIGH + LIMIT / 2, 512, 512, 1024, LIMIT, 3000, NULL}};
    struct read read = read_events(events, MT_ARRAY_LEN(events));

    assert_int_equal(read.status, MT_OK);
    assert_int_equal(read.count, 6);
    expect(&read, 0, MT_EVENT_SEGMENT_ALLOC, LOW, 2 << 20);
    expect(&read, 2, MT_EVENT_SEGMENT_ALLOC, HIGH, 2 << 20);
    expect(&read, 4, MT_EVENT_SEGMENT_ALLOC, HIGH + LIMIT / 2, 4 << 20);
    assert_true(read.source->header.has_segments);
    mt_source_close(read.source);
}

/* malloc aligns a region to 64 B, and the blocks in it follow from there. */
TEST(an_arena_of_host_memory)
{
    static const struct made_event events[] = {
        {HOST, false, HIGH + 64, 100, 256, 256, LIMIT, 1000, NULL},
        {HOST, false, HIGH + 64 + 256, 8, 256, 512, LIMIT, 2000, "Cast"},
        {HOST, true, HIGH + 64, 100, 256, 256, LIMIT, 3000, NULL},
        {GPU, false, LOW, 8, 256, 256, LIMIT, 4000, NULL}};
    struct read read = read_events(events, 3);

    assert_int_equal(read.status, MT_OK);
    assert_int_equal(read.count, 4);
    expect(&read, 0, MT_EVENT_SEGMENT_ALLOC, HIGH + 64, 2 << 20);
    expect(&read, 1, MT_EVENT_ALLOC, HIGH + 64, 100);
    expect(&read, 2, MT_EVENT_ALLOC, HIGH + 64 + 256, 8);
    assert_true(read.source->header.has_segments);
    assert_string_equal(read.source->header.framework, "TensorFlow");
    assert_true(mt_header_names_operations(&read.source->header));
    assert_string_equal(
        mt_symbols_text(&read.source->symbols, read.source->symbols.devices[0].name),
        MT_HOST_MEMORY);
    mt_source_close(read.source);
    read = read_events(events, MT_ARRAY_LEN(events)); /* a GPU is there: host memory is left out */
    assert_int_equal(read.status, MT_OK);
    assert_int_equal(read.count, 2);
    expect(&read, 1, MT_EVENT_ALLOC, LOW, 8);
    mt_source_close(read.source);
}

/* A block that crosses the possible borders of regions. */
TEST(blocks_at_odd_places_have_no_region)
{
    static const struct made_event events[] = {
        {HOST, false, HIGH + 64, 100, 256, 256, LIMIT, 1000, NULL},
        {HOST, false, HIGH + 64 + 320, 8, 256, 512, LIMIT, 2000, NULL}};
    struct read read = read_events(events, MT_ARRAY_LEN(events));

    assert_int_equal(read.status, MT_OK);
    assert_int_equal(read.count, 2);
    assert_false(read.source->header.has_segments);
    mt_source_close(read.source);
}

TEST(profiles_without_memory)
{
    struct read read = read_events(NULL, 0);

    assert_int_equal(read.status, MT_ERR_UNSUPPORTED);
    assert_false(mt_xplane_probe("\x80\x04\x95\x00", 4)); /* a pickle */
    assert_false(mt_xplane_probe("\x0a", 1));
}

/* Only a file that ends between two planes is a profile. */
TEST(cut_at_every_byte)
{
    static const struct made_event events[] = {{GPU, false, HIGH, 100, 256, 256, LIMIT, 1000, "op"},
                                               {GPU, true, HIGH, 100, 256, 0, LIMIT, 3000, NULL}};
    struct mt_buf profile = {0}, plane = {0};

    make_profile(&profile, events, 2);
    size_t whole = profile.length;
    pb_text(&plane, 2, "Task Environment");
    pb_message(&profile, 1, &plane);
    for (size_t length = 0; length <= profile.length; length++) {
        struct read read = read_profile(profile.data, length);
        bool is_whole = length == whole || length == profile.length;

        if (is_whole)
            assert_int_equal(read.count, 3);
        else
            assert_int_equal(read.status, length ? MT_ERR_FORMAT : MT_ERR_UNSUPPORTED);
        mt_source_close(read.source);
    }
    mt_buf_release(&profile);
}

/* With any replaced byte, events stay in order and refer to existing definitions. */
TEST(damaged_at_every_byte)
{
    static const struct made_event events[] = {{GPU, false, HIGH, 100, 256, 256, LIMIT, 1000, "op"},
                                               {GPU, true, HIGH, 100, 256, 0, LIMIT, 3000, NULL}};
    struct mt_buf profile = {0};

    make_profile(&profile, events, 2);
    for (size_t at = 0; at < profile.length; at++) {
        for (int bit = 0; bit < 8; bit++) {
            uint64_t t_ns = 0;

            profile.data[at] = (char)(profile.data[at] ^ (1 << bit));
            struct read read = read_profile(profile.data, profile.length);
            for (size_t i = 0; i < read.count; i++) {
                assert_true(read.events[i].t_ns >= t_ns);
                t_ns = read.events[i].t_ns;
                assert_true(read.events[i].device < read.source->symbols.device_count);
                assert_true(read.events[i].thread < read.source->symbols.thread_count);
            }
            mt_source_close(read.source);
            profile.data[at] = (char)(profile.data[at] ^ (1 << bit));
        }
    }
    mt_buf_release(&profile);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
