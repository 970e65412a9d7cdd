/* Errors and large input of the writer, and the reader's messages for files that are no traces. */
#include "cmocka_all.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bytes.h"
#include "trace.h"

struct fixture {
    FILE *file;
    struct mt_symbols symbols;
    struct mt_writer *writer;
    struct mt_error error;
    uint8_t *bytes;
};

static const struct mt_trace_header header = {.rank = -1, .world_size = -1};

static void begin(struct fixture *fixture, size_t frame_bytes)
{
    struct mt_writer_options options = {.frame_bytes = frame_bytes};

    memset(fixture, 0, sizeof *fixture);
    fixture->file = tmpfile();
    assert_non_null(fixture->file);
    assert_int_equal(mt_symbols_init(&fixture->symbols), MT_OK);
    assert_int_equal(mt_writer_new(fileno(fixture->file), &header, &fixture->symbols, &options,
                                   &fixture->writer, &fixture->error),
                     MT_OK);
}

static void end(struct fixture *fixture)
{
    mt_writer_free(fixture->writer);
    mt_symbols_release(&fixture->symbols);
    fclose(fixture->file);
    free(fixture->bytes);
}

static struct mt_event event_of(uint64_t seq)
{
    return (struct mt_event){.seq = seq,
                             .t_ns = 1000 + seq,
                             .addr = 512 + seq * 512,
                             .size_bytes = 512,
                             .stack = MT_NO_ID,
                             .name = MT_NO_ID,
                             .kind = MT_EVENT_ALLOC};
}

static enum mt_status add(struct fixture *fixture, const struct mt_event *event)
{
    return mt_writer_add(fixture->writer, event, &fixture->error);
}

static struct mt_source *reopen(struct fixture *fixture)
{
    struct mt_source *source = NULL;
    size_t length = (size_t)lseek(fileno(fixture->file), 0, SEEK_END);

    fixture->bytes = malloc(length);
    assert_non_null(fixture->bytes);
    assert_int_equal(pread(fileno(fixture->file), fixture->bytes, length, 0), length);
    assert_int_equal(mt_trace_open_memory(fixture->bytes, length, &source, &fixture->error), MT_OK);
    return source;
}

static uint64_t count_events(struct mt_source *source)
{
    struct mt_event_batch batch;
    struct mt_error error;
    uint64_t count = 0;

    while (mt_source_next(source, &batch, &error) == MT_OK)
        count += batch.count;
    return count;
}

TEST(test_order)
{
    struct fixture fixture;
    struct mt_event event = event_of(5);

    begin(&fixture, 0);
    assert_int_equal(add(&fixture, &event), MT_OK);
    assert_int_equal(add(&fixture, &event), MT_ERR_USAGE); /* the same again */
    event = event_of(6);
    event.t_ns = 3;
    assert_int_equal(add(&fixture, &event), MT_ERR_USAGE); /* back in time */
    event = event_of(6);
    assert_int_equal(add(&fixture, &event), MT_OK); /* and on it goes */
    event = event_of(6);
    event.seq = MT_MAX_SEQ + 1;
    assert_int_equal(add(&fixture, &event), MT_ERR_USAGE); /* readers would refuse it */
    end(&fixture);
}

TEST(test_dangling_ids)
{
    struct fixture fixture;
    struct mt_event event = event_of(0);

    begin(&fixture, 0);
    event.stack = 0; /* there are no stacks */
    assert_int_equal(add(&fixture, &event), MT_OK);
    assert_int_equal(mt_writer_flush(fixture.writer, &fixture.error), MT_ERR_USAGE);
    assert_true(fixture.error.text[0]);
    assert_int_equal(add(&fixture, &event), MT_ERR_OUTPUT); /* it stays failed */
    end(&fixture);
}

TEST(test_full_device)
{
    int fd = open("/dev/full", O_WRONLY);
    struct mt_symbols symbols;
    struct mt_writer *writer = NULL;
    struct mt_error error = {0};

    if (fd < 0)
        skip();
    assert_int_equal(mt_symbols_init(&symbols), MT_OK);
    assert_int_equal(mt_writer_new(fd, &header, &symbols, NULL, &writer, &error), MT_ERR_OUTPUT);
    assert_string_equal(error.text, "No space left on device");
    assert_null(writer);
    mt_symbols_release(&symbols);
    close(fd);
}

/* Data written before the failure stays readable. */
TEST(test_failure_in_the_middle)
{
    struct fixture fixture;
    struct mt_event event = event_of(0);
    int read_only = open("/dev/null", O_RDONLY), saved;

    begin(&fixture, 0);
    assert_int_equal(add(&fixture, &event), MT_OK);
    assert_int_equal(mt_writer_flush(fixture.writer, &fixture.error), MT_OK);
    saved = dup(fileno(fixture.file));
    assert_true(dup2(read_only, fileno(fixture.file)) >= 0); /* writing now fails */
    event = event_of(1);
    assert_int_equal(add(&fixture, &event), MT_OK);
    assert_int_equal(mt_writer_flush(fixture.writer, &fixture.error), MT_ERR_OUTPUT);
    assert_int_equal(mt_writer_finish(fixture.writer, &fixture.error), MT_ERR_OUTPUT);
    assert_true(dup2(saved, fileno(fixture.file)) >= 0);
    struct mt_source *source = reopen(&fixture);
    assert_int_equal(count_events(source), 1);
    assert_true(source->integrity.cut);
    mt_source_close(source);
    close(saved);
    close(read_only);
    end(&fixture);
}

TEST(test_end_is_not_doubled)
{
    struct fixture fixture;
    struct mt_event event = event_of(0);

    begin(&fixture, 0);
    event.kind = MT_EVENT_END;
    assert_int_equal(add(&fixture, &event), MT_OK);
    assert_int_equal(mt_writer_finish(fixture.writer, &fixture.error), MT_OK);
    assert_int_equal(add(&fixture, &event), MT_ERR_USAGE); /* it is finished */
    struct mt_source *source = reopen(&fixture);
    assert_int_equal(count_events(source), 1);
    assert_true(source->integrity.closed && !source->integrity.cut);
    mt_source_close(source);
    end(&fixture);
}

/* Symbols added while events are written, a device named late, a text beyond the limit that is cut
 * before a character of two bytes. */
TEST(test_symbols_grow)
{
    struct fixture fixture;
    struct mt_event event = event_of(0);
    char *text = malloc(70000);
    uint32_t name;

    assert_non_null(text);
    memset(text, 'x', 70000);
    memcpy(text + 65534, "\xC3\xA4", 2);
    begin(&fixture, 0);
    event.device = 2; /* no description yet */
    assert_int_equal(add(&fixture, &event), MT_OK);
    assert_int_equal(mt_writer_flush(fixture.writer, &fixture.error), MT_OK);
    event = event_of(1);
    assert_int_equal(mt_symbols_string(&fixture.symbols, text, 70000, &name), MT_OK);
    assert_int_equal(mt_symbols_device(&fixture.symbols, 2, name, 42), MT_OK);
    event.kind = MT_EVENT_MARK;
    event.name = name;
    assert_int_equal(add(&fixture, &event), MT_OK);
    assert_int_equal(mt_writer_finish(fixture.writer, &fixture.error), MT_OK);
    struct mt_source *source = reopen(&fixture);
    assert_int_equal(count_events(source), 3);
    assert_int_equal(source->integrity.events_invalid, 0);
    assert_int_equal(source->symbols.devices[2].total_memory_bytes, 42);
    assert_int_equal(source->symbols.devices[2].name, name);
    assert_int_equal(source->symbols.strings.lengths[name], 65534);
    mt_source_close(source);
    free(text);
    end(&fixture);
}

static uint64_t check_frames(struct mt_source *source, uint64_t raw_limit)
{
    const struct mt_zstd_frame_info *frames;
    struct mt_error error;
    uint64_t events = 0;
    size_t count;

    assert_int_equal(mt_trace_frames(source, &frames, &count, &error), MT_OK);
    for (size_t i = 0; i < count; i++) {
        assert_true(frames[i].raw_bytes <= raw_limit);
        if (i)
            assert_int_equal(frames[i].offset,
                             frames[i - 1].offset + frames[i - 1].compressed_bytes);
        assert_int_equal(frames[i].first_seq, events);
        events += frames[i].event_count;
    }
    return count;
}

TEST(test_small_frames)
{
    struct fixture fixture;

    begin(&fixture, 1024);
    for (uint64_t seq = 0; seq < 5000; seq++) {
        struct mt_event event = event_of(seq);
        assert_int_equal(add(&fixture, &event), MT_OK);
    }
    assert_int_equal(mt_writer_finish(fixture.writer, &fixture.error), MT_OK);
    struct mt_source *source = reopen(&fixture);
    assert_in_range(check_frames(source, 2048), 20, 100);
    assert_int_equal(count_events(source), 5001);
    mt_source_close(source);
    end(&fixture);
}

/* Nothing repeats and everything is large, so the writer has to make smaller blocks. */
TEST(test_wide_events)
{
    struct fixture fixture;
    uint64_t seq, mix = 1, t_ns = 0;

    begin(&fixture, 0);
    for (seq = 0; seq < 40000; seq++) {
        struct mt_event event = event_of(seq);
        mix = (mix + seq) * UINT64_C(0x9E3779B97F4A7C15);
        event.addr = mix;
        event.size_bytes = mix * 3 | 1;
        event.aux_bytes = mix * 5 | 1;
        t_ns += mix >> 20;
        event.t_ns = t_ns;
        assert_int_equal(add(&fixture, &event), MT_OK);
    }
    assert_int_equal(mt_writer_finish(fixture.writer, &fixture.error), MT_OK);
    struct mt_source *source = reopen(&fixture);
    assert_true(check_frames(source, 1 << 20) >= 2);
    assert_int_equal(count_events(source), 40001);
    assert_int_equal(source->integrity.frames_damaged, 0);
    mt_source_close(source);
    end(&fixture);
}

static enum mt_status open_bytes(const void *bytes, size_t length, struct mt_error *error)
{
    struct mt_source *source = NULL;
    enum mt_status status = mt_trace_open_memory(bytes, length, &source, error);

    mt_source_close(source);
    return status;
}

/* Names that compress extremely well: the reader limits text by the size of the file, and must not
 * refuse these events. */
TEST(test_endless_names)
{
    enum { NAMES = 600, LENGTH = 65535 };
    struct fixture fixture;
    char *name = malloc(LENGTH);

    assert_non_null(name);
    begin(&fixture, 0);
    for (uint32_t i = 0; i < NAMES; i++) {
        memset(name, 'a', LENGTH);
        memcpy(name, &i, sizeof i);
        struct mt_event event = event_of(i);
        event.kind = MT_EVENT_MARK;
        assert_int_equal(mt_symbols_string(&fixture.symbols, name, LENGTH, &event.name), MT_OK);
        assert_int_equal(add(&fixture, &event), MT_OK);
    }
    assert_int_equal(mt_writer_finish(fixture.writer, &fixture.error), MT_OK);
    struct mt_source *source = reopen(&fixture);
    assert_int_equal(count_events(source), NAMES + 1);
    assert_int_equal(source->integrity.frames_damaged, 0);
    assert_int_equal(source->integrity.events_invalid, 0);
    mt_source_close(source);
    end(&fixture);
    free(name);
}

TEST(test_no_trace)
{
    struct mt_error error = {0};
    struct mt_source *source;

    assert_int_equal(open_bytes("", 0, &error), MT_ERR_FORMAT);
    assert_int_equal(open_bytes("hello, world, this is text", 26, &error), MT_ERR_FORMAT);
    assert_true(error.text[0]);
    assert_int_equal(mt_trace_open("/nonexistent/file", &source, &error), MT_ERR_IO);
    assert_int_equal(mt_trace_open("/", &source, &error), MT_ERR_IO);
    assert_string_equal(error.text, "is a directory");
    assert_false(mt_trace_probe("\x28\xB5\x2F\xFD", 4));
    assert_false(mt_trace_probe("", 0));
}

TEST(test_later_version)
{
    struct fixture fixture;

    begin(&fixture, 0);
    assert_int_equal(mt_writer_finish(fixture.writer, &fixture.error), MT_OK);
    struct mt_source *source = reopen(&fixture);
    assert_int_equal(count_events(source), 1);
    mt_source_close(source);
    uint32_t length = mt_get_u32(fixture.bytes + 4);
    mt_put_u32(fixture.bytes + 8 + 8, 2); /* version 2, soundly written */
    mt_put_u32(fixture.bytes + 8 + length - 4, mt_crc32(fixture.bytes + 8, length - 4));
    assert_int_equal(open_bytes(fixture.bytes, 8 + length, &fixture.error), MT_ERR_UNSUPPORTED);
    end(&fixture);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
