/* Bytes of files and memory, decompressed: consecutive frames, truncation, damage, and input that
 * expands without limit. */
#include "cmocka_all.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "buf.h"
#include "dice.h"
#include "feed.h"
#include "pickle.h"
#include "test_threads.h"
#include "util.h"

static void add_frame(struct mt_buf *out, const void *bytes, size_t length)
{
    size_t bound = ZSTD_compressBound(length);
    char *room = mt_buf_reserve(out, bound);

    assert_non_null(room);
    out->length += ZSTD_compress(room, bound, bytes, length, 3);
}

static void add_member(struct mt_buf *out, const void *bytes, size_t length)
{
    z_stream gzip = {.next_in = (Bytef *)bytes, .avail_in = (uInt)length};

    assert_int_equal(deflateInit2(&gzip, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    size_t bound = deflateBound(&gzip, length) + 32;
    gzip.next_out = (Bytef *)mt_buf_reserve(out, bound);
    gzip.avail_out = (uInt)bound;
    assert_non_null(gzip.next_out);
    assert_int_equal(deflate(&gzip, Z_FINISH), Z_STREAM_END);
    out->length += gzip.total_out;
    deflateEnd(&gzip);
}

typedef void (*compress_fn)(struct mt_buf *out, const void *bytes, size_t length);
static const compress_fn compressors[] = {add_frame, add_member};

/* Reads all in pieces of `piece` bytes. */
static enum mt_status read_all(const struct mt_buf *raw, size_t piece, struct mt_buf *out,
                               struct mt_error *error)
{
    struct mt_feed *feed = NULL;
    enum mt_status status = mt_feed_open_memory(raw->data, raw->length, &feed, error);
    size_t got = 1;

    assert_int_equal(status, MT_OK);
    while (status == MT_OK && got) {
        char *room = mt_buf_reserve(out, piece);
        assert_non_null(room);
        status = mt_feed_read(feed, room, piece, &got, error);
        out->length += status == MT_OK ? got : 0;
    }
    mt_feed_close(feed);
    return status;
}

/* As above, but only counts the bytes. */
static enum mt_status decode_all(const struct mt_buf *raw, struct mt_buf *room, uint64_t *decoded,
                                 struct mt_error *error)
{
    struct mt_feed *feed = NULL;
    enum mt_status status = mt_feed_open_memory(raw->data, raw->length, &feed, error);
    size_t got = 1;

    while (status == MT_OK && got) {
        status = mt_feed_read(feed, room->data, room->capacity, &got, error);
        *decoded += status == MT_OK ? got : 0;
    }
    mt_feed_close(feed);
    return status;
}

static void fill(struct mt_buf *text, size_t length)
{
    uint64_t seed = 1;

    while (text->length < length) {
        dice_linear(&seed);
        mt_buf_add_u64(text, seed >> 40);
    }
}

static void expect(const struct mt_buf *raw, const struct mt_buf *wanted)
{
    static const size_t pieces[] = {1, 1000, 1 << 20};

    for (size_t i = 0; i < MT_ARRAY_LEN(pieces); i++) {
        struct mt_buf out = {0};
        struct mt_error error = {.text = ""};
        if (read_all(raw, pieces[i], &out, &error) != MT_OK)
            fail_msg("%s", error.text);
        assert_int_equal(out.length, wanted->length);
        assert_memory_equal(out.data, wanted->data, wanted->length);
        mt_buf_release(&out);
    }
}

TEST(test_plain_and_compressed)
{
    struct mt_buf text = {0}, raw = {0};

    fill(&text, 300000);
    expect(&text, &text);
    add_frame(&raw, text.data, 100000);
    mt_buf_add(&raw, "\x50\x2a\x4d\x18\x03\0\0\0abc", 11); /* a skippable frame */
    add_frame(&raw, text.data + 100000, text.length - 100000);
    expect(&raw, &text);
    mt_buf_release(&text);
    mt_buf_release(&raw);
}

/* Members follow each other, an empty one among them. Zeros after the last one are padding. */
TEST(test_members)
{
    struct mt_buf text = {0}, raw = {0}, out = {0};
    struct mt_error error = {.text = ""};

    fill(&text, 300000);
    add_member(&raw, text.data, 100000);
    add_member(&raw, "", 0);
    add_member(&raw, text.data + 100000, text.length - 100000);
    expect(&raw, &text);
    size_t whole = raw.length;
    mt_buf_add(&raw, "\0\0\0\0\0\0\0\0", 8);
    expect(&raw, &text);
    mt_buf_add_text(&raw, "more");
    assert_int_equal(read_all(&raw, 1 << 20, &out, &error), MT_ERR_FORMAT);
    assert_string_equal(error.text, "compressed data is damaged: incorrect header check");
    assert_in_range(error.offset, whole + 8, raw.length);
    mt_buf_release(&text);
    mt_buf_release(&raw);
    mt_buf_release(&out);
}

TEST(test_start_stays_unread)
{
    struct mt_buf text = {0}, raw = {0}, out = {0};
    struct mt_error error = {.text = ""};
    struct mt_feed *feed = NULL;
    const void *start;
    size_t length, got;

    fill(&text, 10000);
    add_frame(&raw, text.data, text.length);
    assert_int_equal(mt_feed_open_memory(raw.data, raw.length, &feed, &error), MT_OK);
    assert_memory_equal(mt_feed_raw(feed, &length), raw.data, 4);
    assert_int_equal(length, raw.length);
    assert_int_equal(mt_feed_start(feed, &start, &length, &error), MT_OK);
    assert_int_equal(length, MT_FEED_START_BYTES);
    assert_memory_equal(start, text.data, length);
    do {
        char *room = mt_buf_reserve(&out, 3000);
        assert_int_equal(mt_feed_read(feed, room, 3000, &got, &error), MT_OK);
        out.length += got;
    } while (got);
    assert_int_equal(out.length, text.length);
    assert_memory_equal(out.data, text.data, text.length);
    assert_int_equal(mt_feed_raw_bytes(feed), raw.length);
    mt_feed_close(feed);
    mt_buf_release(&text);
    mt_buf_release(&raw);
    mt_buf_release(&out);
}

static void expect_cut(struct mt_buf *raw)
{
    const size_t whole = raw->length;
    struct mt_error error;

    for (size_t i = 4; i < whole; i++) {
        struct mt_buf out = {0};

        raw->length = i;
        assert_int_equal(read_all(raw, 700, &out, &error), MT_ERR_FORMAT);
        assert_non_null(strstr(error.text, "is cut"));
        assert_int_equal(error.offset, i);
        mt_buf_release(&out);
    }
    raw->length = whole;
}

/* gzip has a checksum, so it finds every damage of the data. */
static void expect_damage(struct mt_buf *raw, const struct mt_buf *text)
{
    struct mt_error error;

    for (size_t i = 4; i < raw->length; i += 7) {
        struct mt_buf out = {0};

        raw->data[i] = (char)(raw->data[i] ^ 0x55);
        if (read_all(raw, 700, &out, &error) != MT_OK)
            assert_true(error.text[0] && error.offset <= raw->length);
        else
            assert_memory_equal(out.data, text->data, text->length);
        raw->data[i] = (char)(raw->data[i] ^ 0x55);
        mt_buf_release(&out);
    }
}

TEST(test_cut_and_damaged)
{
    struct mt_buf text = {0};

    fill(&text, 3000);
    for (size_t i = 0; i < MT_ARRAY_LEN(compressors); i++) {
        struct mt_buf raw = {0};

        compressors[i](&raw, text.data, text.length);
        expect_cut(&raw);
        if (compressors[i] == add_member)
            expect_damage(&raw, &text);
        mt_buf_release(&raw);
    }
    mt_buf_release(&text);
}

TEST(test_bomb)
{
    size_t length = 64 << 20;
    void *zeros = calloc(1, length);
    struct mt_error error;

    assert_non_null(zeros);
    for (size_t i = 0; i < MT_ARRAY_LEN(compressors); i++) {
        struct mt_buf raw = {0}, out = {0};

        compressors[i](&raw, zeros, length);
        assert_int_equal(read_all(&raw, 1 << 20, &out, &error), MT_ERR_UNSUPPORTED);
        assert_non_null(strstr(error.text, "expands"));
        assert_true(out.length < length);
        mt_buf_release(&raw);
        mt_buf_release(&out);
    }
    free(zeros);
}

/* Expands 250 times, which is refused only for large output. */
TEST(test_large_bomb)
{
    enum { FRAME = 16 * MT_MIB, FRAMES = 66, NOISE = FRAME / 250 };
    struct mt_buf plain = {0}, frame = {0}, raw = {0};
    uint64_t decoded = 0, seed = 1;
    struct mt_error error = {.text = ""};

    memset(mt_buf_reserve(&plain, FRAME), 0, FRAME);
    for (size_t i = 0; i < NOISE; i++)
        plain.data[i] = (char)((seed = seed * UINT64_C(6364136223846793005) + 1) >> 56);
    add_frame(&frame, plain.data, FRAME);
    for (size_t i = 0; i < FRAMES; i++)
        mt_buf_add(&raw, frame.data, frame.length);
    enum mt_status status = decode_all(&raw, &plain, &decoded, &error);
    assert_int_equal(status, MT_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.text, "expands more than 100 times, to more than 1 GiB"));
    assert_in_range(decoded, MT_GIB - FRAME, MT_GIB + FRAME);
    mt_buf_release(&plain);
    mt_buf_release(&frame);
    mt_buf_release(&raw);
}

/* Nested tuples: 500 bytes of pickle per byte of the file, and 100 bytes of memory for each. */
TEST(test_pickle_bomb)
{
    enum { NOISE = 8000, TUPLES = NOISE * 500 };
    struct mt_buf plain = {0}, raw = {0};
    struct mt_pickle *pickle = NULL;
    struct mt_pickle_value root;
    struct mt_feed *feed = NULL;
    struct mt_error error = {.text = ""};
    uint64_t seed = 1;

    mt_buf_add(&plain,
               "\x80\x04"
               "B\x40\x1f\0\0",
               7);
    for (size_t i = 0; i < NOISE; i++)
        mt_buf_add_char(&plain, (char)((seed = seed * UINT64_C(6364136223846793005) + 1) >> 56));
    mt_buf_add_text(&plain, "0N");
    memset(mt_buf_reserve(&plain, TUPLES), 0x85, TUPLES);
    plain.length += TUPLES;
    mt_buf_add_char(&plain, '.');
    add_frame(&raw, plain.data, plain.length);
    assert_int_equal(mt_feed_open_memory(raw.data, raw.length, &feed, &error), MT_OK);
    assert_int_equal(mt_pickle_read(feed, NULL, &pickle, &root, &error), MT_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.text, "more than 512 bytes of memory per byte"));
    mt_feed_close(feed);
    mt_buf_release(&plain);
    mt_buf_release(&raw);
}

TEST(test_files)
{
    char path[] = "/tmp/memtrace-feed-XXXXXX", bytes[16];
    int fd = mkstemp(path);
    struct mt_error error = {.text = ""};
    struct mt_feed *feed = NULL;
    size_t got;

    assert_true(fd >= 0 && write(fd, "abc", 3) == 3);
    assert_int_equal(mt_feed_open(path, &feed, &error), MT_OK);
    assert_int_equal(mt_feed_read(feed, bytes, sizeof bytes, &got, &error), MT_OK);
    assert_int_equal(got, 3);
    assert_int_equal(mt_feed_read(feed, bytes, sizeof bytes, &got, &error), MT_OK);
    assert_int_equal(got, 0);
    mt_feed_close(feed);
    close(fd);
    unlink(path);
    assert_int_equal(mt_feed_open(path, &feed, &error), MT_ERR_IO);
    assert_int_equal(mt_feed_open("/", &feed, &error), MT_ERR_IO);
    mt_feed_close(NULL);
}

struct followed {
    uint64_t read_bytes, size_bytes, calls;
};

static void was_read(void *context, uint64_t read_bytes, uint64_t size_bytes)
{
    struct followed *followed = context;

    assert_true(read_bytes >= followed->read_bytes);
    *followed = (struct followed){read_bytes, size_bytes, followed->calls + 1};
}

static struct followed follow(const char *path)
{
    struct followed followed = {0, 0, 0};
    const struct mt_feed_watch watch = {was_read, &followed};
    struct mt_error error = {.text = ""};
    struct mt_feed *feed = NULL;
    char bytes[256];
    size_t got = 1;

    assert_int_equal(mt_feed_open(path, &feed, &error), MT_OK);
    mt_feed_set_watch(feed, &watch);
    while (got)
        assert_int_equal(mt_feed_read(feed, bytes, sizeof bytes, &got, &error), MT_OK);
    mt_feed_close(feed);
    return followed;
}

/* A file has a size that the reading reaches. A pipe has none. */
TEST(test_watch)
{
    enum { LENGTH = 300000, PIPE_LENGTH = 1000 };
    static const char text[LENGTH];
    char path[] = "/tmp/memtrace-feed-XXXXXX", name[32];
    int fd = mkstemp(path), ends[2];

    assert_true(fd >= 0 && write(fd, text, LENGTH) == LENGTH);
    struct followed followed = follow(path);
    assert_int_equal(followed.size_bytes, LENGTH);
    assert_int_equal(followed.read_bytes, LENGTH);
    assert_true(followed.calls > 1);
    close(fd);
    unlink(path);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], text, PIPE_LENGTH), PIPE_LENGTH);
    close(ends[1]);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    followed = follow(name);
    close(ends[0]);
    assert_int_equal(followed.size_bytes, 0);
    assert_int_equal(followed.read_bytes, PIPE_LENGTH);
}

/* Decoders would wait for room without end. */
TEST(test_no_room)
{
    static const char text[] = "some text";

    for (size_t i = 0; i < MT_ARRAY_LEN(compressors); i++) {
        struct mt_buf raw = {0};
        struct mt_error error = {.text = ""};
        struct mt_feed *feed = NULL;
        char bytes[sizeof text];
        size_t got = 1;

        compressors[i](&raw, text, sizeof text);
        assert_int_equal(mt_feed_open_memory(raw.data, raw.length, &feed, &error), MT_OK);
        assert_int_equal(mt_feed_read(feed, bytes, 0, &got, &error), MT_OK);
        assert_int_equal(got, 0);
        assert_int_equal(mt_feed_read(feed, bytes, sizeof bytes, &got, &error), MT_OK);
        assert_int_equal(got, sizeof text);
        mt_feed_close(feed);
        mt_buf_release(&raw);
    }
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *context);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *context);

bool test_has_no_threads;
unsigned test_threads_made;

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *context)
{
    test_threads_made += !test_has_no_threads;
    return test_has_no_threads ? EAGAIN : __real_pthread_create(thread, attributes, run, context);
}

/* What the caller of a feed gets from a file. */
struct outcome {
    struct mt_buf bytes;
    uint64_t raw_bytes; /* sum of all positions on the way */
    enum mt_status status;
    struct mt_error error;
    bool is_cut;
};

static void read_path(const char *path, bool no_threads, size_t most, struct outcome *outcome)
{
    struct mt_feed *feed = NULL;
    const unsigned char *bytes;
    const void *start;
    size_t left = 0, length = 0, new_bytes = 1;

    *outcome = (struct outcome){.error = {.text = ""}};
    test_has_no_threads = no_threads;
    assert_int_equal(mt_feed_open(path, &feed, &outcome->error), MT_OK);
    assert_int_equal(mt_feed_start(feed, &start, &length, &outcome->error), MT_OK);
    while (!outcome->status && new_bytes && outcome->bytes.length < most) {
        outcome->status = mt_feed_next(feed, left, &bytes, &length, &outcome->error);
        assert_memory_equal(bytes, outcome->bytes.data + outcome->bytes.length - left, left);
        new_bytes = length - left;
        mt_buf_add(&outcome->bytes, bytes + left, new_bytes);
        outcome->raw_bytes += mt_feed_raw_bytes(feed);
        left = mt_min_u64(length, outcome->bytes.length % MT_FEED_LEFT_BYTES + 1);
    }
    outcome->is_cut = mt_feed_is_cut(feed);
    mt_feed_close(feed);
    test_has_no_threads = false;
}

/* The file gives the same with and without a thread, also if its reader stops early. */
static void expect_same(const char *path, bool is_whole)
{
    struct outcome with, without, early;

    test_threads_made = 0;
    read_path(path, false, SIZE_MAX, &with);
    assert_int_equal(test_threads_made, 1);
    read_path(path, true, SIZE_MAX, &without);
    read_path(path, false, 300000, &early);
    assert_int_equal(test_threads_made, 2);
    assert_int_equal(with.bytes.length, without.bytes.length);
    assert_memory_equal(with.bytes.data, without.bytes.data, with.bytes.length);
    assert_memory_equal(with.bytes.data, early.bytes.data, early.bytes.length);
    assert_int_equal(with.raw_bytes, without.raw_bytes);
    assert_int_equal(with.status, without.status);
    assert_int_equal(with.error.offset, without.error.offset);
    assert_string_equal(with.error.text, without.error.text);
    assert_int_equal(with.is_cut, without.is_cut);
    assert_int_equal(with.is_cut, !is_whole && strstr(with.error.text, "is cut"));
    assert_true(!is_whole || with.status == MT_OK);
    mt_buf_release(&with.bytes);
    mt_buf_release(&without.bytes);
    mt_buf_release(&early.bytes);
}

/* Whole, then cut and damaged at many places. */
static void expect_same_pieces(const struct mt_buf *raw)
{
    enum { LEAST = 300000, STEPS = 16 };
    char path[] = "/tmp/memtrace-feed-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0 && raw->length > 2 * LEAST);
    assert_int_equal(write(fd, raw->data, raw->length), raw->length);
    expect_same(path, true);
    for (size_t i = STEPS; i > 0; i--) {
        const size_t at = LEAST + (raw->length - LEAST) / STEPS * i - 1;

        assert_int_equal(ftruncate(fd, (off_t)at), 0);
        expect_same(path, false);
        assert_int_equal(pwrite(fd, "damaged", 7, (off_t)(at - LEAST / 2)), 7);
        expect_same(path, false);
    }
    close(fd);
    unlink(path);
}

TEST(test_thread)
{
    struct mt_buf text = {0};

    fill(&text, 1500000);
    expect_same_pieces(&text);
    for (size_t i = 0; i < MT_ARRAY_LEN(compressors); i++) {
        struct mt_buf raw = {0};

        compressors[i](&raw, text.data, text.length);
        expect_same_pieces(&raw);
        mt_buf_release(&raw);
    }
    mt_buf_release(&text);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
