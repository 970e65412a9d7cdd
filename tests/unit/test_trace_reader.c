/* The reader where frames matter: definitions that were lost with one, and
 * seeking to an instant that lies on the border of two. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    uint32_t i;

    name[5] = (char)('0' + frame);
    assert_int_equal(mt_symbols_string(&sample->symbols, name, strlen(name), &sample->names[frame]),
                     MT_OK);
    for (i = 0; i < MARKS_A_FRAME; i++) {
        uint32_t which = i == 0 ? frame : frame ? frame - 1 : 0;
        struct mt_event event =
            mark(frame * MARKS_A_FRAME + i, t_ns, i == 2 ? MT_NO_ID : sample->names[which]);
        assert_int_equal(mt_writer_add(writer, &event, &error), MT_OK);
    }
    assert_int_equal(mt_writer_flush(writer, &error), MT_OK);
}

/* Frame f has the time begin_ns + f * step_ns, all of its events. */
static void make_sample(struct sample *sample, uint64_t begin_ns, uint64_t step_ns)
{
    const struct mt_trace_header header = {.rank = -1, .world_size = -1};
    FILE *file = tmpfile();
    struct mt_writer *writer = NULL;
    struct mt_error error;
    uint32_t frame;

    assert_non_null(file);
    assert_int_equal(mt_symbols_init(&sample->symbols), MT_OK);
    assert_int_equal(mt_writer_new(fileno(file), &header, &sample->symbols, NULL, &writer, &error),
                     MT_OK);
    for (frame = 0; frame < FRAMES; frame++)
        write_frame(sample, writer, frame, begin_ns + frame * step_ns);
    assert_int_equal(mt_writer_finish(writer, &error), MT_OK);
    mt_writer_free(writer);
    sample->length = (size_t)lseek(fileno(file), 0, SEEK_END);
    sample->bytes = malloc(sample->length);
    assert_non_null(sample->bytes);
    assert_int_equal(pread(fileno(file), sample->bytes, sample->length, 0), sample->length);
    fclose(file);
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
    const struct mt_frame_info *frames;
    struct mt_error error;
    size_t count, offset;

    assert_int_equal(mt_trace_frames(source, &frames, &count, &error), MT_OK);
    assert_in_range(count, FRAMES, FRAMES + 1);
    offset = (size_t)(frames[frame].offset + frames[frame].compressed_bytes / 2);
    mt_source_close(source);
    return offset;
}

/* The next event; fails if there is none. */
static struct mt_event next_event(struct mt_source *source, struct mt_event_batch *batch)
{
    struct mt_event event;
    struct mt_error error;

    if (!batch->count)
        assert_int_equal(mt_source_next(source, batch, &error), MT_OK);
    event = *batch->events++;
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

/* Frame 1 is lost and with it "name 1": the names of frames 2 and 3 have to be
 * right all the same, and the one event that refers to the lost name is told. */
static void test_lost_definition(void **state)
{
    struct sample sample;
    struct mt_event_batch batch = {0};
    struct mt_source *source;

    (void)state;
    make_sample(&sample, 1000, 10);
    sample.bytes[offset_of_frame(&sample, 1)] ^= 0x55;
    source = open_sample(&sample);
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
static void test_seek_to_one_instant(void **state)
{
    struct sample sample;
    struct mt_source *source;

    (void)state;
    make_sample(&sample, 1000, 0);
    source = open_sample(&sample);
    expect_first(source, 1000, true, 0);
    expect_first(source, 4, false, 4);
    expect_first(source, 1, true, 0);
    mt_source_close(source);
    free_sample(&sample);
}

static void test_seek_between_frames(void **state)
{
    struct sample sample;
    struct mt_source *source;
    struct mt_event_batch batch;
    struct mt_error error;

    (void)state;
    make_sample(&sample, 1000, 10);
    source = open_sample(&sample);
    expect_first(source, 1010, true, 3);
    expect_first(source, 1011, true, 6);
    expect_first(source, 3, false, 3);
    expect_first(source, 5, false, 5);
    assert_int_equal(source->ops->seek(source, UINT64_MAX, true, &error), MT_OK);
    assert_int_equal(mt_source_next(source, &batch, &error), MT_END);
    mt_source_close(source);
    free_sample(&sample);
}

/* Seeking brings the names that earlier frames define, and only then are they
 * all there. */
static void test_seek_brings_definitions(void **state)
{
    struct sample sample;
    struct mt_event_batch batch = {0};
    struct mt_source *source;
    struct mt_error error;

    (void)state;
    make_sample(&sample, 1000, 10);
    source = open_sample(&sample);
    assert_int_equal(source->ops->seek(source, 9, false, &error), MT_OK);
    expect(source, &batch, 9, "name 3");
    expect(source, &batch, 10, "name 2");
    assert_int_equal(source->integrity.events_invalid, 0);
    mt_source_close(source);
    free_sample(&sample);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lost_definition),
        cmocka_unit_test(test_seek_to_one_instant),
        cmocka_unit_test(test_seek_between_frames),
        cmocka_unit_test(test_seek_brings_definitions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
