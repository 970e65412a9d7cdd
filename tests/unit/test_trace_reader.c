/* The reader and frames: definitions lost with a frame, definitions of frames that are decoded
 * ahead, and seeking to an instant on the border of two frames. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "container.h"
#include "trace.h"

enum { FRAMES = 4, MARKS_A_FRAME = 3 };

/* FRAMES frames of marks. Each frame brings a new name; its first mark has that
 * name, the second the name of the frame before, the third none. */
struct sample {
    struct mt_symbols symbols;
    uint32_t names[FRAMES];
    uint8_t *bytes;
    size_t length;
};

static struct mt_event mark(uint64_t seq, uint64_t t_ns, uint32_t name)
{
    return (struct mt_event){
        .seq = seq, .t_ns = t_ns, .stack = MT_NO_ID, .name = name, .kind = MT_EVENT_MARK};
}

static void write_frame(struct sample *sample, struct mt_writer *writer, uint32_t frame,
                        uint64_t t_ns)
{
    struct mt_error error;
    char name[] = "name 0";

    name[5] = (char)('0' + frame);
    assert_int_equal(mt_symbols_string(&sample->symbols, name, strlen(name), &sample->names[frame]),
                     MT_OK);
    for (uint32_t i = 0; i < MARKS_A_FRAME; i++) {
        uint32_t which = i == 0 ? frame : frame ? frame - 1 : 0;
        struct mt_event event =
            mark(frame * MARKS_A_FRAME + i, t_ns, i == 2 ? MT_NO_ID : sample->names[which]);
        assert_int_equal(mt_writer_add(writer, &event, &error), MT_OK);
    }
    assert_int_equal(mt_writer_flush(writer, &error), MT_OK);
}

static struct mt_writer *begin_sample(struct sample *sample, FILE *file)
{
    const struct mt_trace_header header = {.rank = -1, .world_size = -1};
    struct mt_writer *writer = NULL;
    struct mt_error error;

    assert_non_null(file);
    assert_int_equal(mt_symbols_init(&sample->symbols), MT_OK);
    assert_int_equal(mt_writer_new(fileno(file), &header, &sample->symbols, NULL, &writer, &error),
                     MT_OK);
    return writer;
}

static void end_sample(struct sample *sample, FILE *file, struct mt_writer *writer)
{
    struct mt_error error;

    assert_int_equal(mt_writer_finish(writer, &error), MT_OK);
    mt_writer_free(writer);
    sample->length = (size_t)lseek(fileno(file), 0, SEEK_END);
    sample->bytes = malloc(sample->length);
    assert_non_null(sample->bytes);
    assert_int_equal(pread(fileno(file), sample->bytes, sample->length, 0), sample->length);
    fclose(file);
}

/* Frame f has the time begin_ns + f * step_ns, all of its events. */
static void make_sample(struct sample *sample, uint64_t begin_ns, uint64_t step_ns)
{
    FILE *file = tmpfile();
    struct mt_writer *writer = begin_sample(sample, file);

    for (uint32_t frame = 0; frame < FRAMES; frame++)
        write_frame(sample, writer, frame, begin_ns + frame * step_ns);
    end_sample(sample, file, writer);
}

static void free_sample(struct sample *sample)
{
    mt_symbols_release(&sample->symbols);
    free(sample->bytes);
}

static struct mt_source *open_sample(const struct sample *sample)
{
    struct mt_source *source = NULL;
    struct mt_error error;

    assert_int_equal(mt_trace_open_memory(sample->bytes, sample->length, &source, &error), MT_OK);
    return source;
}

static size_t offset_of_frame(const struct sample *sample, size_t frame)
{
    struct mt_source *source = open_sample(sample);
    const struct mt_zstd_frame_info *frames;
    struct mt_error error;
    size_t count;

    assert_int_equal(mt_trace_frames(source, &frames, &count, &error), MT_OK);
    assert_in_range(count, FRAMES, FRAMES + 1);
    size_t offset = (size_t)(frames[frame].offset + frames[frame].compressed_bytes / 2);
    mt_source_close(source);
    return offset;
}

/* The next event; fails if there is none. */
static struct mt_event next_event(struct mt_source *source, struct mt_event_batch *batch)
{
    struct mt_error error;

    if (!batch->count)
        assert_int_equal(mt_source_next(source, batch, &error), MT_OK);
    struct mt_event event = *batch->events++;
    batch->count--;
    return event;
}

static void expect(struct mt_source *source, struct mt_event_batch *batch, uint64_t seq,
                   const char *name)
{
    struct mt_event event = next_event(source, batch);

    assert_int_equal(event.seq, seq);
    if (name)
        assert_string_equal(mt_symbols_text(&source->symbols, event.name), name);
    else
        assert_int_equal(event.name, MT_NO_ID);
}

static void drain(struct mt_source *source)
{
    struct mt_event_batch batch;
    struct mt_error error;

    while (mt_source_next(source, &batch, &error) == MT_OK)
        continue;
}

/* Frame 1 is lost, and "name 1" with it. The names of frames 2 and 3 must still be right, and the
 * one event that refers to the lost name is reported. */
TEST(test_lost_definition)
{
    struct sample sample;
    struct mt_event_batch batch = {0};

    make_sample(&sample, 1000, 10);
    sample.bytes[offset_of_frame(&sample, 1)] ^= 0x55;
    struct mt_source *source = open_sample(&sample);
    expect(source, &batch, 0, "name 0");
    expect(source, &batch, 1, "name 0");
    expect(source, &batch, 2, NULL);
    expect(source, &batch, 6, "name 2");
    expect(source, &batch, 7, "?");
    expect(source, &batch, 8, NULL);
    expect(source, &batch, 9, "name 3");
    expect(source, &batch, 10, "name 2");
    drain(source);
    assert_int_equal(source->integrity.frames_damaged, 1);
    assert_int_equal(source->integrity.events_invalid, 1);
    assert_int_equal(source->integrity.first_error.offset > 0, 1);
    mt_source_close(source);
    free_sample(&sample);
}

static void expect_first(struct mt_source *source, uint64_t target, bool by_time, uint64_t seq)
{
    struct mt_event_batch batch = {0};
    struct mt_error error;

    assert_int_equal(source->ops->seek(source, target, by_time, &error), MT_OK);
    assert_int_equal(next_event(source, &batch).seq, seq);
}

/* Events of one instant on both sides of a border: a seek finds the first. */
TEST(test_seek_to_one_instant)
{
    struct sample sample;

    make_sample(&sample, 1000, 0);
    struct mt_source *source = open_sample(&sample);
    expect_first(source, 1000, true, 0);
    expect_first(source, 4, false, 4);
    expect_first(source, 1, true, 0);
    mt_source_close(source);
    free_sample(&sample);
}

TEST(test_seek_between_frames)
{
    struct sample sample;
    struct mt_event_batch batch;
    struct mt_error error;

    make_sample(&sample, 1000, 10);
    struct mt_source *source = open_sample(&sample);
    expect_first(source, 1010, true, 3);
    expect_first(source, 1011, true, 6);
    expect_first(source, 3, false, 3);
    expect_first(source, 5, false, 5);
    assert_int_equal(source->ops->seek(source, UINT64_MAX, true, &error), MT_OK);
    assert_int_equal(mt_source_next(source, &batch, &error), MT_END);
    mt_source_close(source);
    free_sample(&sample);
}

/* Seeking loads the names that earlier frames define, and all are known only then. */
TEST(test_seek_brings_definitions)
{
    struct sample sample;
    struct mt_event_batch batch = {0};
    struct mt_error error;

    make_sample(&sample, 1000, 10);
    struct mt_source *source = open_sample(&sample);
    assert_int_equal(source->ops->seek(source, 9, false, &error), MT_OK);
    expect(source, &batch, 9, "name 3");
    expect(source, &batch, 10, "name 2");
    assert_int_equal(source->integrity.events_invalid, 0);
    mt_source_close(source);
    free_sample(&sample);
}

/* A trace of one frame with two marks, as its writer leaves it without an end. */
static void write_two(struct sample *sample, uint64_t first, uint64_t second)
{
    const struct mt_trace_header header = {.rank = -1, .world_size = -1};
    const struct mt_event events[] = {mark(first, 1000, MT_NO_ID), mark(second, 1000, MT_NO_ID)};
    FILE *file = tmpfile();
    struct mt_writer *writer = NULL;
    struct mt_error error;

    assert_non_null(file);
    assert_int_equal(mt_symbols_init(&sample->symbols), MT_OK);
    assert_int_equal(mt_writer_new(fileno(file), &header, &sample->symbols, NULL, &writer, &error),
                     MT_OK);
    assert_int_equal(mt_writer_add(writer, &events[0], &error), MT_OK);
    assert_int_equal(mt_writer_add(writer, &events[1], &error), MT_OK);
    assert_int_equal(mt_writer_flush(writer, &error), MT_OK);
    sample->length = (size_t)mt_writer_bytes(writer);
    mt_writer_free(writer);
    sample->bytes = malloc(sample->length);
    assert_non_null(sample->bytes);
    assert_int_equal(pread(fileno(file), sample->bytes, sample->length, 0), sample->length);
    fclose(file);
}

static struct mt_zstd_frame_info only_frame(const struct sample *sample)
{
    struct mt_source *source = open_sample(sample);
    const struct mt_zstd_frame_info *frames;
    struct mt_error error;
    size_t count;

    assert_int_equal(mt_trace_frames(source, &frames, &count, &error), MT_OK);
    assert_int_equal(count, 1);
    struct mt_zstd_frame_info info = frames[0];
    mt_source_close(source);
    return info;
}

/* One trace of the frames {0, 100}, {2, 3} and {101, 102}, made of three. Gaps are not
 * in the header of a block, so that the headers alone agree with each other. */
static void make_trace_that_goes_back(struct sample *trace, bool indexed)
{
    static const uint64_t numbers[][2] = {{0, 100}, {2, 3}, {101, 102}};
    struct mt_index_entry entries[3] = {{.definition_bytes = 0}};
    struct mt_buf bytes = {0};
    size_t header_bytes = 0;

    for (size_t i = 0; i < 3; i++) {
        struct sample part;
        write_two(&part, numbers[i][0], numbers[i][1]);
        entries[i].info = only_frame(&part);
        if (i == 0)
            mt_buf_add(&bytes, part.bytes, header_bytes = (size_t)entries[0].info.offset);
        mt_buf_add(&bytes, part.bytes + entries[i].info.offset,
                   (size_t)entries[i].info.compressed_bytes);
        entries[i].info.offset = bytes.length - entries[i].info.compressed_bytes;
        free_sample(&part);
    }
    if (indexed)
        mt_index_write(entries, 3, header_bytes, &bytes);
    assert_false(bytes.failed);
    assert_int_equal(mt_symbols_init(&trace->symbols), MT_OK);
    trace->bytes = (uint8_t *)bytes.data;
    trace->length = bytes.length;
}

static void check_goes_back(bool indexed)
{
    struct sample trace;
    struct mt_event_batch batch = {0};

    make_trace_that_goes_back(&trace, indexed);
    struct mt_source *source = open_sample(&trace);
    expect(source, &batch, 0, NULL);
    expect(source, &batch, 100, NULL);
    expect(source, &batch, 101, NULL);
    expect(source, &batch, 102, NULL);
    drain(source);
    assert_int_equal(source->integrity.frames_damaged, 1);
    assert_string_equal(source->integrity.first_error.text,
                        "frame 1: its sequence numbers go back");
    mt_source_close(source);
    free_sample(&trace);
}

TEST(test_numbers_go_back)
{
    check_goes_back(false);
    check_goes_back(true);
}

/* The largest possible number is within the bound. */
TEST(test_largest_number)
{
    struct sample trace;
    struct mt_event_batch batch = {0};

    write_two(&trace, MT_MAX_SEQ - 1, MT_MAX_SEQ);
    struct mt_source *source = open_sample(&trace);
    expect(source, &batch, MT_MAX_SEQ - 1, NULL);
    expect(source, &batch, MT_MAX_SEQ, NULL);
    drain(source);
    assert_int_equal(source->integrity.frames_damaged, 0);
    mt_source_close(source);
    free_sample(&trace);
}

enum { LONG_FRAMES = 24, LONG_MARKS = 4096 };

/* Each frame has a new name. */
static void make_long_sample(struct sample *sample)
{
    FILE *file = tmpfile();
    struct mt_writer *writer = begin_sample(sample, file);
    struct mt_error error;
    uint32_t name = MT_NO_ID;

    for (uint32_t i = 0; i < LONG_FRAMES * LONG_MARKS; i++) {
        struct mt_event event = mark(i, i, MT_NO_ID);
        char text[16];
        if (i % LONG_MARKS == 0)
            assert_int_equal(mt_symbols_string(&sample->symbols, text,
                                               (size_t)snprintf(text, sizeof text, "name %u", i),
                                               &name),
                             MT_OK);
        event.name = name;
        assert_int_equal(mt_writer_add(writer, &event, &error), MT_OK);
        if ((i + 1) % LONG_MARKS == 0)
            assert_int_equal(mt_writer_flush(writer, &error), MT_OK);
    }
    end_sample(sample, file, writer);
}

/* After time for a second thread to define what the reader has not reached. */
static void expect_same_names(const struct mt_source *a, const struct mt_source *b)
{
    usleep(2000);
    assert_int_equal(a->symbols.strings.count, b->symbols.strings.count);
}

TEST(a_reader_sees_no_definition_ahead_of_its_frame)
{
    struct mt_event_batch batch;
    struct sample sample;

    make_long_sample(&sample);
    for (uint32_t most = LONG_FRAMES / 2; most <= LONG_FRAMES; most += LONG_FRAMES / 2) {
        struct mt_source *alone = open_sample(&sample), *ahead = open_sample(&sample);

        mt_source_read_ahead(ahead, true);
        for (uint32_t i = 0; i < most; i++) {
            assert_int_equal(mt_source_next(alone, &batch, NULL), MT_OK);
            assert_int_equal(mt_source_next(ahead, &batch, NULL), MT_OK);
            expect_same_names(alone, ahead);
        }
        assert_non_null(ahead->ahead);
        mt_source_read_ahead(ahead, false);
        expect_same_names(alone, ahead);
        mt_source_close(ahead);
        mt_source_close(alone);
    }
    free_sample(&sample);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
