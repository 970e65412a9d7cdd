/* Memory timelines of torch.profiler: blocks, categories, the state at the start; files that are
 * cut anywhere, and rows that do not fit. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "importers.h"
#include "util.h"

struct read {
    enum mt_status status;
    struct mt_source *source;
    struct mt_event events[32];
    size_t count;
    struct mt_error error;
};

static struct read read_bytes(const char *bytes, size_t length)
{
    struct read read = {.error = {.text = ""}};
    char *copy = malloc(length ? length : 1); /* sanitizers see a byte read after it */
    struct mt_event_batch batch;
    struct mt_feed *feed;

    assert_non_null(copy);
    memcpy(copy, bytes, length);
    (void)mt_memory_timeline_probe(copy, length);
    assert_int_equal(mt_feed_open_memory(copy, length, &feed, &read.error), MT_OK);
    read.status = mt_memory_timeline_open(feed, &read.source, &read.error);
    mt_feed_close(feed);
    free(copy);
    if (read.status != MT_OK) {
        assert_true(read.error.text[0]);
        return read;
    }
    read.source->view.level = MT_VIEW_EVERYTHING;
    while (mt_source_next(read.source, &batch, &read.error) == MT_OK)
        for (size_t i = 0; i < batch.count; i++) {
            assert_true(read.count < MT_ARRAY_LEN(read.events));
            read.events[read.count++] = batch.events[i];
        }
    return read;
}

static struct read read_text(const char *text)
{
    struct read read = read_bytes(text, strlen(text));

    if (read.status != MT_OK)
        fail_msg("%s", read.error.text);
    return read;
}

struct wanted {
    uint8_t kind, flags;
    uint64_t t_ns, bytes;
    size_t block; /* index of the event that allocated it */
    const char *name;
};

/* The events before the last one, which ends the trace. */
static void expect(const struct read *read, const struct wanted *wanted, size_t count)
{
    assert_int_equal(read->count, count + 1);
    for (size_t i = 0; i < count; i++) {
        const struct mt_event *event = &read->events[i];

        assert_int_equal(event->kind, wanted[i].kind);
        assert_int_equal(event->flags, wanted[i].flags);
        assert_int_equal(event->t_ns, wanted[i].t_ns);
        assert_int_equal(event->size_bytes, wanted[i].bytes);
        assert_int_equal(event->addr, read->events[wanted[i].block].addr);
        if (wanted[i].name)
            assert_string_equal(mt_symbols_text(&read->source->symbols, event->name),
                                wanted[i].name);
    }
}

enum { ALLOC = MT_EVENT_ALLOC, FREE = MT_EVENT_FREE_REQUESTED, INITIAL = MT_EVENT_INITIAL };

/* The last one of equal blocks is freed. A change of category is an event only if there is one. */
TEST(blocks_and_categories)
{
    static const struct wanted wanted[] = {
        {ALLOC, INITIAL, 90, 512, 0, "PARAMETER"},
        {ALLOC, INITIAL, 90, 512, 1, "PARAMETER"},
        {ALLOC, INITIAL, 90, 4, 2, "other"},
        {ALLOC, 0, 90, 1000, 3, "ACTIVATION"},
        {FREE, 0, 95, 512, 1, NULL},
        {FREE, 0, 96, 1000, 3, NULL},
        {ALLOC, 0, 96, 1000, 3, "OPTIMIZER_STATE"},
        {FREE, 0, 99, 512, 0, NULL},
        {FREE, 0, 99, 1000, 3, NULL},
    };
    struct read read =
        read_text("[[-1, 1, 512, 0], [-1, 1, 512, 0], [-1, 1, 4, 7], [90, 2, 1000, 4],"
                  "[91, 3, -512, 0], [91, 3, 512, 0], [95, 4, -512, 0],"
                  "[96, 3, -1000, 4], [96, 3, 1000, 1], [97, 2, 0, 3],"
                  "[99, 4, -512, 0], [99, 4, -1000, 1]]");

    expect(&read, wanted, MT_ARRAY_LEN(wanted));
    assert_true(read.source->header.starts_in_middle);
    assert_false(read.source->header.has_segments);
    assert_int_equal(read.source->integrity.records_damaged, 0);
    assert_non_null(mt_header_why_only_recorded(&read.source->header));
    assert_true(mt_header_is_imported(&read.source->header));
    mt_source_close(read.source);
}

/* Blocks that were alive are the whole file, or none is. */
TEST(only_one_kind)
{
    struct read read = read_text("[[-1, 1, 8, 2]]");

    assert_int_equal(read.count, 2);
    assert_int_equal(read.events[0].flags, MT_EVENT_INITIAL);
    mt_source_close(read.source);
    read = read_text("[[7, 2, 8, 2], [8, 1, 16, 2], [-5, 1, 32, 2]]");
    assert_int_equal(read.count, 4);
    for (size_t i = 0; i < read.count; i++)
        assert_int_equal(read.events[i].flags, 0);
    assert_int_equal(read.events[2].t_ns, 8);
    assert_false(read.source->header.starts_in_middle);
    mt_source_close(read.source);
}

/* Half of a change is the end, or the beginning, of a block. */
TEST(halves)
{
    static const struct wanted wanted[] = {
        {ALLOC, 0, 1, 64, 0, "INPUT"},    {ALLOC, 0, 1, 64, 1, "INPUT"}, {FREE, 0, 2, 64, 1, NULL},
        {ALLOC, 0, 2, 32, 3, "GRADIENT"}, {FREE, 0, 3, 64, 0, NULL},
    };
    struct read read = read_text("[[1, 2, 64, 2], [1, 2, 64, 2], [2, 3, -64, 2], [2, 3, 32, 5],"
                                 "[3, 3, -64, 2]]");

    expect(&read, wanted, MT_ARRAY_LEN(wanted));
    mt_source_close(read.source);
}

TEST(rows_that_are_impossible)
{
    static const char *const rows[] = {
        "[1, 5, 8, 0]",
        "[1, 0, 8, 0]",
        "[1, 2, 8, 8]",
        "[1, 2, 8, -1]",
        "[1, 2, -8, 0]",
        "[1, 4, 8, 0]",
        "[1, 4, -8, 0]",
        "[1, 3, -8, 1]",
        "[1, 2, 1152921504606846977, 0]",
        "[2305843009213693953, 2, 8, 0]",
        "[1, 2, 8]",
        "[1, 2, 8, 0, 0]",
        "[1, 2, 8.5, 0]",
        "[]",
        "[1, 2, [8], 0]",
        "{\"a\": [1, 2, 8, 0]}",
        "7",
        "null",
        "\"[1, 2, 8, 0]\"",
    };

    for (size_t i = 0; i < MT_ARRAY_LEN(rows); i++) {
        char text[160];

        snprintf(text, sizeof text, "[[1, 2, 16, 0], %s, [2, 4, -16, 0]]", rows[i]);
        struct read read = read_text(text);
        assert_int_equal(read.source->integrity.records_damaged, 1);
        assert_int_equal(read.source->integrity.first_error.offset, 16);
        assert_false(read.source->integrity.cut);
        assert_int_equal(read.count, 4); /* with the loss and the end */
        assert_int_equal(read.events[1].kind, FREE);
        assert_int_equal(read.events[2].kind, MT_EVENT_DROPPED);
        mt_source_close(read.source);
    }
}

/* A list of times begins a timeline with sums. */
TEST(other_files)
{
    static const char *const texts[] = {
        "[[1796064214024031, 1796064214024032, 1796064214024033, 1796064214024034], [[0]]]",
        "[[1796064214024031, 2, 8, 0, 1]]",
        "[[1796064214024031, 2, 8",
        "[[1, 2, 8, 256]]",
        "[[1, -1, 8, 1]]",
        "[[1, 9, 8, 1]]",
        "[[1, 1, 8, 9]]",
        "[[], []]",
        "[]",
        "[1, 2, 8, 0]",
        "{\"a\": 1}",
        "[[1,2]]",
    };
    static const char *const empty[] = {"[]", "{}", "7", "", "[[1, 2, 0, 3]]", "[[]]"};

    assert_true(mt_memory_timeline_probe(" [ [-1 , 1,\n8, 7 ] ]", 21));
    assert_true(mt_memory_timeline_probe("[[1000000000, 9, 8, 9]]", 23));
    for (size_t i = 0; i < MT_ARRAY_LEN(texts); i++)
        assert_false(mt_memory_timeline_probe(texts[i], strlen(texts[i])));
    for (size_t i = 0; i < MT_ARRAY_LEN(empty); i++)
        assert_int_equal(read_bytes(empty[i], strlen(empty[i])).status, MT_ERR_FORMAT);
}

/* What was read before the cut is used, and the reading says where the file ends. */
TEST(cut_at_every_byte)
{
    static const char text[] = "[[-1, 1, 512, 0], [90, 2, 1000, 4], [91, 3, -1000, 4],\n"
                               "[91, 3, 1000, 7], [95, 4, -512, 0], [96, 2, 99, 2]]";
    size_t most = 0;

    for (size_t i = 0; i < strlen(text); i++) {
        struct read read = read_bytes(text, i);

        if (read.status != MT_OK) {
            assert_int_equal(read.status, MT_ERR_FORMAT);
            assert_int_equal(most, 0);
            continue;
        }
        assert_true(read.source->integrity.cut);
        assert_int_equal(read.source->integrity.cut_offset, i);
        assert_int_equal(read.source->integrity.records_damaged, 0);
        assert_true(read.count >= most);
        most = read.count;
        mt_source_close(read.source);
    }
    assert_int_equal(most, 8); /* with the loss and the end */
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
