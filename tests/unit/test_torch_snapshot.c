/* Snapshots that are made here: frames of generated code, which name the line that they were
 * generated from, and histories of which a ring buffer kept the end. */
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

static void put_number(struct mt_buf *out, const char *key, uint32_t number)
{
    put_text(out, key);
    mt_buf_add_char(out, 'J'); /* BININT */
    for (int i = 0; i < 4; i++)
        mt_buf_add_char(out, (char)(number >> 8 * i & 255));
}

/* The pickle must stay until the source and the feed are closed. */
static struct mt_source *open_snapshot(const struct mt_buf *pickle, struct mt_feed **feed)
{
    struct mt_source *source = NULL;

    assert_int_equal(mt_feed_open_memory(pickle->data, pickle->length, feed, NULL), MT_OK);
    assert_int_equal(mt_torch_snapshot_open(*feed, &source, NULL), MT_OK);
    return source;
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

    assert_true(event->stack < symbols->stack_count);
    const struct mt_frame *frame = &symbols->frames[symbols->stacks[event->stack].frame];
    assert_string_equal(mt_symbols_text(symbols, frame->file), file);
    assert_string_equal(mt_symbols_text(symbols, frame->function), function);
    assert_int_equal(frame->line, line);
}

TEST(frames_that_share_a_text_share_its_line)
{
    struct mt_buf pickle = {0};
    struct mt_feed *feed;
    struct mt_event_batch batch;

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
    struct mt_source *source = open_snapshot(&pickle, &feed);
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

enum { BLOCK = 1 << 20 };

static void put_ring_entry(struct mt_buf *out, const char *action, uint32_t addr,
                           bool is_at_address)
{
    mt_buf_add(out, "}(", 2);
    put_text(out, "action");
    put_text(out, action);
    put_number(out, "addr", addr);
    put_number(out, "size", BLOCK);
    put_number(out, "stream", 0);
    if (is_at_address) {
        put_text(out, "internal_metadata");
        put_text(out, "mallocWithAddress");
    }
    mt_buf_add(out, "u", 1);
}

/* One segment of four blocks; the last is allocated at the end. */
static void put_segments(struct mt_buf *out)
{
    put_text(out, "segments");
    mt_buf_add(out, "](}(", 4);
    put_number(out, "address", BLOCK);
    put_number(out, "total_size", 4 * BLOCK);
    put_number(out, "device", 0);
    put_number(out, "stream", 0);
    put_text(out, "blocks");
    mt_buf_add(out, "](", 2);
    for (uint32_t i = 1; i <= 4; i++) {
        mt_buf_add(out, "}(", 2);
        put_number(out, "address", i * BLOCK);
        put_number(out, "size", BLOCK);
        put_number(out, "requested_size", BLOCK);
        put_text(out, "state");
        put_text(out, i < 4 ? "inactive" : "active_allocated");
        mt_buf_add(out, "u", 1);
    }
    mt_buf_add(out, "eue", 3);
}

/* Entries as "c1 r2 c2 a3": an allocation ("A": at an address that the program chose), a requested
 * or a completed free of the block with that number; "|" begins the next device. */
static struct mt_source *open_entries(const char *entries, struct mt_buf *into,
                                      struct mt_feed **feed)
{
    struct mt_buf pickle = {0};

    mt_buf_add(&pickle, "\x80\x04}(", 4);
    put_segments(&pickle);
    put_text(&pickle, "device_traces");
    mt_buf_add(&pickle, "](](", 4);
    for (; *entries; entries++) {
        const uint32_t addr = BLOCK * (uint32_t)(entries[1] - '0');

        switch (*entries) {
        case 'a': put_ring_entry(&pickle, "alloc", addr, false); break;
        case 'A': put_ring_entry(&pickle, "alloc", addr, true); break;
        case 'r': put_ring_entry(&pickle, "free_requested", addr, false); break;
        case 'c': put_ring_entry(&pickle, "free_completed", addr, false); break;
        case '|': mt_buf_add(&pickle, "e](", 3); break;
        default: break;
        }
    }
    mt_buf_add(&pickle, "eeu.", 4);
    *into = pickle;
    return open_snapshot(into, feed);
}

static uint64_t missing_in(const char *entries)
{
    struct mt_buf pickle = {0};
    struct mt_feed *feed;
    struct mt_source *source = open_entries(entries, &pickle, &feed);
    const uint64_t missing = source->integrity.events_dropped;
    mt_source_close(source);
    mt_feed_close(feed);
    mt_buf_release(&pickle);
    return missing;
}

TEST(a_ring_may_begin_within_a_free)
{
    assert_int_equal(missing_in("c1"), 0);
    assert_int_equal(missing_in("c1 a4"), 0);
    assert_int_equal(missing_in("c1 r2 c2"), 0);
    assert_int_equal(missing_in("c1 | c1"), 0); /* each device has a ring */
}

TEST(other_completed_frees_were_requested)
{
    assert_int_equal(missing_in("a4 c1"), 1);
    assert_int_equal(missing_in("c1 a2 c2"), 1);
    assert_int_equal(missing_in("c1 | a1 c1"), 1);
}

/* The flags of the first allocation. */
static uint8_t flags_in(const char *entries)
{
    struct mt_buf pickle = {0};
    struct mt_feed *feed;
    struct mt_source *source = open_entries(entries, &pickle, &feed);
    struct mt_event_batch batch;
    uint8_t flags = 0;

    while (!flags && mt_source_next(source, &batch, NULL) == MT_OK)
        for (size_t i = 0; i < batch.count && !flags; i++)
            if (batch.events[i].kind == MT_EVENT_ALLOC && batch.events[i].addr == BLOCK)
                flags = batch.events[i].flags;
    mt_source_close(source);
    mt_feed_close(feed);
    mt_buf_release(&pickle);
    return flags;
}

/* The program chose the address of the block after a gap. */
TEST(a_gap_ends_at_a_chosen_address)
{
    assert_int_equal(flags_in("A1 A2 r1"), MT_EVENT_GAP);
    assert_int_equal(flags_in("A1 a2 r1"), MT_EVENT_AT_ADDRESS);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
