/* Frames of generated code, which name the line that they were generated from. */
#include "cmocka_all.h"

#include <string.h>

#include "buf.h"
#include "importers.h"

static void put_text(struct mt_buf *out, const char *text)
{
    mt_buf_add_char(out, '\x8c'); /* SHORT_BINUNICODE */
    mt_buf_add_char(out, (char)strlen(text));
    mt_buf_add_text(out, text);
}

static void put_number(struct mt_buf *out, const char *key, uint8_t number)
{
    put_text(out, key);
    mt_buf_add_char(out, 'K'); /* BININT1 */
    mt_buf_add_char(out, (char)number);
}

/* An allocation whose only frame has the origin `text`; NULL: the first one's, which is memo 0. */
static void put_entry(struct mt_buf *out, uint8_t time_us, const char *text, bool is_first)
{
    mt_buf_add(out, "}(", 2);
    put_text(out, "action");
    put_text(out, "alloc");
    put_number(out, "addr", time_us);
    put_number(out, "size", 1);
    put_number(out, "stream", 0);
    put_number(out, "time_us", time_us);
    put_text(out, "frames");
    mt_buf_add(out, "](}(", 4);
    put_text(out, "filename");
    put_text(out, "generated.py");
    put_text(out, "name");
    put_text(out, "forward");
    put_number(out, "line", 3);
    put_text(out, "fx_original_trace");
    if (text)
        put_text(out, text);
    else
        mt_buf_add(out, "h\0", 2); /* BINGET */
    if (is_first)
        mt_buf_add_char(out, '\x94'); /* MEMOIZE */
    mt_buf_add(out, "ueu", 3);
}

static void expect_frame(const struct mt_source *source, const struct mt_event *event,
                         const char *file, const char *function, uint32_t line)
{
    const struct mt_symbols *symbols = &source->symbols;
    const struct mt_frame *frame;

    assert_true(event->stack < symbols->stack_count);
    frame = &symbols->frames[symbols->stacks[event->stack].frame];
    assert_string_equal(mt_symbols_text(symbols, frame->file), file);
    assert_string_equal(mt_symbols_text(symbols, frame->function), function);
    assert_int_equal(frame->line, line);
}

static void frames_that_share_a_text_share_its_line(void **state)
{
    struct mt_buf pickle = {0};
    struct mt_feed *feed;
    struct mt_source *source;
    struct mt_event_batch batch;

    (void)state;
    mt_buf_add(&pickle, "\x80\x04}(", 4);
    put_text(&pickle, "segments");
    mt_buf_add(&pickle, "]", 1);
    put_text(&pickle, "device_traces");
    mt_buf_add(&pickle, "](](", 4);
    put_entry(&pickle, 1, "File \"a.py\", line 7, in f\nFile \"b.py\", line 8, in g\n", true);
    put_entry(&pickle, 2, NULL, false);
    put_entry(&pickle, 3, "nothing that is a line", false);
    put_entry(&pickle, 4, "nothing that is a line", false);
    put_entry(&pickle, 5, NULL, false);
    mt_buf_add(&pickle, "eeu.", 4);
    assert_int_equal(mt_feed_open_memory(pickle.data, pickle.length, &feed, NULL), MT_OK);
    assert_int_equal(mt_torch_snapshot_open(feed, &source, NULL), MT_OK);
    assert_int_equal(mt_source_next(source, &batch, NULL), MT_OK);
    assert_int_equal(batch.count, 5);
    for (size_t i = 0; i < batch.count; i++) {
        if (i == 2 || i == 3)
            expect_frame(source, &batch.events[i], "generated.py", "forward", 3);
        else
            expect_frame(source, &batch.events[i], "b.py", "g", 8);
    }
    mt_source_close(source);
    mt_feed_close(feed);
    mt_buf_release(&pickle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_that_share_a_text_share_its_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
