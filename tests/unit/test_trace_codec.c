/* One block of events: numbers, the example of the format's page, unknown kinds, and invalid
 * blocks. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec.h"
#include "util.h"

TEST(test_varint_edges)
{
    static const uint64_t values[] = {
        0, 1, 127, 128, 300, 16383, 16384, UINT32_MAX, (uint64_t)1 << 63, UINT64_MAX};
    static const size_t lengths[] = {1, 1, 1, 2, 2, 2, 3, 5, 10, 10};
    uint8_t bytes[MT_VARINT_MAX_BYTES];

    for (size_t i = 0; i < MT_ARRAY_LEN(values); i++) {
        uint8_t *end = mt_put_varint(bytes, values[i]);
        struct mt_cursor in = {bytes, end, false};
        assert_int_equal(end - bytes, lengths[i]);
        assert_true(mt_cursor_varint(&in) == values[i]);
        assert_true(!in.bad && in.at == end);
        in = (struct mt_cursor){bytes, end - 1, false}; /* cut */
        assert_true(mt_cursor_varint(&in) == 0 && in.bad);
    }
}

TEST(test_varint_too_large)
{
    static const uint8_t beyond[] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02};
    static const uint8_t endless[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
                                      0x80, 0x80, 0x80, 0x80, 0x80, 0x00};
    struct mt_cursor in = {beyond, beyond + sizeof beyond, false};

    mt_cursor_varint(&in);
    assert_true(in.bad);
    in = (struct mt_cursor){endless, endless + sizeof endless, false};
    mt_cursor_varint(&in);
    assert_true(in.bad);
}

TEST(test_zigzag)
{
    static const int64_t values[] = {0, -1, 1, -2, INT64_MAX, INT64_MIN};
    static const uint64_t expected[] = {0, 1, 2, 3, UINT64_MAX - 1, UINT64_MAX};

    for (size_t i = 0; i < MT_ARRAY_LEN(values); i++) {
        assert_true(mt_zigzag((uint64_t)values[i]) == expected[i]);
        assert_true(mt_unzigzag(expected[i]) == (uint64_t)values[i]);
    }
}

TEST(test_crc32)
{
    assert_int_equal(mt_crc32("123456789", 9), 0xCBF43926);
    assert_int_equal(mt_crc32("", 0), 0);
}

static struct mt_event plain_event(uint64_t seq, uint64_t t_ns, unsigned kind, uint64_t size_bytes)
{
    return (struct mt_event){.seq = seq,
                             .t_ns = UINT64_C(1000000000) + t_ns,
                             .addr = UINT64_C(0x7f0000000000),
                             .size_bytes = size_bytes,
                             .stack = 0,
                             .name = MT_NO_ID,
                             .heap = 1,
                             .kind = (uint8_t)kind};
}

static void make_example(struct mt_symbols *symbols, struct mt_event events[4])
{
    uint32_t main_id, file_id, id;

    assert_int_equal(mt_symbols_init(symbols), MT_OK);
    assert_int_equal(mt_symbols_string(symbols, "pytorch", 7, &id), MT_OK);
    assert_int_equal(mt_symbols_heap(symbols, id, &id), MT_OK);
    assert_int_equal(mt_symbols_string(symbols, "main", 4, &main_id), MT_OK);
    assert_int_equal(mt_symbols_string(symbols, "a.py", 4, &file_id), MT_OK);
    assert_int_equal(mt_symbols_frame(symbols, main_id, file_id, 7, &id), MT_OK);
    assert_int_equal(mt_symbols_stack(symbols, MT_NO_ID, id, &id), MT_OK);
    assert_int_equal(mt_symbols_device(symbols, 0, MT_NO_ID, 0), MT_OK);
    events[0] = plain_event(0, 0, MT_EVENT_SEGMENT_ALLOC, 2097152);
    events[1] = plain_event(1, 3000, MT_EVENT_ALLOC, 512);
    events[2] = plain_event(2, 5000, MT_EVENT_FREE_REQUESTED, 512);
    events[3] = plain_event(3, 5000, MT_EVENT_FREE_COMPLETED, 512);
    events[2].stack = events[3].stack = MT_NO_ID;
}

/* `definitions` NULL: all of the symbols. */
static void encode(const struct mt_symbols *symbols, const struct mt_event *events, size_t count,
                   struct mt_buf *out)
{
    struct mt_definitions_written written = {0};
    struct mt_encoder *encoder = mt_encoder_new(64);
    struct mt_buf definitions = {0};
    const char *reason = "";

    assert_non_null(encoder);
    assert_true(mt_definitions_write(symbols, &written, SIZE_MAX, &definitions));
    if (mt_event_block_encode(encoder, symbols, events, count, &definitions, out, &reason) != MT_OK)
        fail_msg("encode: %s", reason);
    mt_buf_release(&definitions);
    mt_encoder_free(encoder);
}

/* The bytes between the marks of the example, as the page shows them. */
static size_t read_page_example(uint8_t *bytes, size_t capacity)
{
    FILE *file = fopen(MEMTRACE_FIXTURES "/../docs/internals/trace-format.md", "r");
    char line[1024];
    bool in_example = false, in_bytes = false;
    size_t count = 0;

    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        char *at = line, *end;
        if (strncmp(line, "<!-- example:", 13) == 0) {
            in_example = true;
        } else if (in_example && strncmp(line, "```", 3) == 0) {
            in_example = !in_bytes;
            in_bytes = !in_bytes;
        } else if (in_bytes) {
            for (; count < capacity && (bytes[count] = (uint8_t)strtoul(at, &end, 16), end > at);
                 at = end)
                count++;
        }
    }
    fclose(file);
    return count;
}

TEST(test_page_example)
{
    uint8_t expected[512];
    struct mt_symbols symbols;
    struct mt_event events[4];
    struct mt_buf out = {0};
    size_t length = read_page_example(expected, sizeof expected), i;

    make_example(&symbols, events);
    encode(&symbols, events, 4, &out);
    if (out.length != length || memcmp(out.data, expected, length) != 0) {
        for (i = 0; i < out.length; i++)
            print_error("%02X%s", (uint8_t)out.data[i], i % 16 == 15 ? "\n" : " ");
        fail_msg("the page's example has %zu bytes, the writer makes %zu others", length,
                 out.length);
    }
    mt_buf_release(&out);
    mt_symbols_release(&symbols);
}

struct decoding {
    struct mt_symbols symbols;
    struct mt_ids ids;
    struct mt_decoder *decoder;
    struct mt_decoded decoded;
    const char *reason;
};

static enum mt_status decode(struct decoding *decoding, const uint8_t *raw, size_t length)
{
    struct mt_event_block block;

    memset(decoding, 0, sizeof *decoding);
    assert_int_equal(mt_symbols_init(&decoding->symbols), MT_OK);
    mt_ids_init(&decoding->ids, length);
    decoding->decoder = mt_decoder_new();
    assert_non_null(decoding->decoder);
    enum mt_status status = mt_event_block_parse(raw, length, &block, &decoding->reason);
    if (status == MT_OK)
        status =
            mt_ids_define(&decoding->ids, &decoding->symbols, block.definitions, &decoding->reason);
    if (status == MT_OK)
        status = mt_event_block_decode(decoding->decoder, &block, &decoding->ids,
                                       &decoding->symbols, &decoding->decoded, &decoding->reason);
    return status;
}

static void end_decoding(struct decoding *decoding)
{
    mt_decoder_free(decoding->decoder);
    mt_ids_release(&decoding->ids);
    mt_symbols_release(&decoding->symbols);
}

TEST(test_unknown_kind_is_skipped)
{
    struct mt_symbols symbols;
    struct mt_event events[4];
    struct decoding decoding;
    struct mt_buf out = {0};

    make_example(&symbols, events);
    events[1].kind = 200;
    events[1].aux_bytes = 99;
    encode(&symbols, events, 4, &out);
    assert_int_equal(decode(&decoding, (const uint8_t *)out.data, out.length), MT_OK);
    assert_int_equal(decoding.decoded.unknown, 1);
    assert_int_equal(decoding.decoded.count, 3);
    assert_memory_equal(&decoding.decoded.events[0], &events[0], sizeof events[0]);
    assert_memory_equal(&decoding.decoded.events[1], &events[2], 2 * sizeof events[0]);
    end_decoding(&decoding);
    mt_buf_release(&out);
    mt_symbols_release(&symbols);
}

/* Builds a block: header, no definitions, the given columns. */
static size_t block_by_hand(uint8_t *raw, uint32_t count, const uint8_t *columns, size_t length)
{
    uint8_t *at = raw;

    at = mt_put_u32(at, MT_BLOCK_MAGIC);
    at = mt_put_u32(at, MT_FORMAT_VERSION | MT_BLOCK_HEADER_BYTES << 16);
    at = mt_put_u64(at, 5);
    at = mt_put_u64(at, 1000);
    at = mt_put_u32(at, count);
    at = mt_put_u32(at, 0);
    memcpy(at, columns, length);
    return (size_t)(at - raw) + length;
}

static enum mt_status decode_by_hand(struct decoding *decoding, uint32_t count,
                                     const uint8_t *columns, size_t length)
{
    uint8_t raw[512];

    return decode(decoding, raw, block_by_hand(raw, count, columns, length));
}

TEST(test_payloads_and_later_columns)
{
    /* one mark, with a payload, a gap of 2, and an unknown column 99 */
    static const uint8_t columns[] = {1, 10, 1, 12, 0,  0x80, 0x03, 0,  0, 0, 0, 0, 2,  1, 0, 3,
                                      3, 1,  1, 7,  14, 1,    2,    15, 3, 2, 8, 9, 99, 2, 5, 5};
    struct decoding decoding;

    assert_int_equal(decode_by_hand(&decoding, 1, columns, sizeof columns), MT_OK);
    assert_int_equal(decoding.decoded.count, 1);
    assert_int_equal(decoding.decoded.events[0].seq, 7);
    assert_int_equal(decoding.decoded.events[0].t_ns, 1007);
    assert_int_equal(decoding.decoded.events[0].kind, MT_EVENT_MARK);
    /* thread, heap, pool, stream 0 and device 0 are undefined */
    assert_int_equal(decoding.decoded.invalid, 1);
    end_decoding(&decoding);
}

static void check_refused(const uint8_t *columns, size_t length)
{
    struct decoding decoding;

    assert_int_equal(decode_by_hand(&decoding, 1, columns, length), MT_ERR_FORMAT);
    assert_non_null(decoding.reason);
    end_decoding(&decoding);
}

#define REFUSED(...)                                                                               \
    do {                                                                                           \
        static const uint8_t columns[] = {__VA_ARGS__};                                            \
        check_refused(columns, sizeof columns);                                                    \
    } while (0)

/* A form with these fields, its index, and a time. */
#define BASE(fields) 1, 9, 1, 12, 0, fields, 0, 0, 0, 0, 0, 2, 1, 0, 3, 3, 1, 1, 0

TEST(test_refused)
{
    REFUSED(0);                               /* no columns at all */
    REFUSED(1, 0x7F, 1);                      /* a column beyond the end */
    REFUSED(BASE(2));                         /* a missing distance */
    REFUSED(BASE(3));                         /* the last place of none */
    REFUSED(BASE(2), 6, 1, 0);                /* a distance in no places */
    REFUSED(BASE(1));                         /* a missing address */
    REFUSED(BASE(1), 4, 3, 1, 0, 2, 5, 1, 1); /* an index after the end of the table */
    REFUSED(BASE(4), 7, 2, 1, 9);             /* a size that is not there */
    REFUSED(BASE(4), 7, 2, 2, 9, 8, 1, 0);    /* a table shorter than it says */
    REFUSED(BASE(0), 5, 1, 0);                /* an unused value */
    REFUSED(BASE(0), 14, 1, 3);               /* likewise */
    REFUSED(1, 9, 1, 12, 0, 0, 0, 0, 0, 0, 0, 2, 1, 1, 3, 3, 1, 1, 0); /* no such form */
    REFUSED(1, 9, 1, 12, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0);                /* no times */
    REFUSED(1, 9, 1, 12, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 3, 3, 0, 1, 0); /* a unit of 0 */
    REFUSED(1, 9, 1, 12, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 3, 3, 1, 3, 0); /* a width of 3 */
    /* a gap of 2^62 - 1: the number 2^62 + 6 */
    REFUSED(1, 10, 1, 12, 0, 0x80, 1, 0, 0, 0, 0, 0, 2, 1, 0, 3, 3, 1, 1, 0, 14, 9, 0xFF, 0xFF,
            0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x3F);
}

/* Definitions that claim more than a file of that size can hold. */
TEST(test_definitions_are_bounded)
{
    static const uint64_t claims[][3] = {
        /* table, first id, entries */
        {MT_TABLE_STACKS, 0, 70000},      {MT_TABLE_STRINGS, UINT64_MAX, 1},
        {MT_TABLE_FRAMES, UINT32_MAX, 2}, {MT_TABLE_POOLS, 8192, 1},
        {MT_TABLE_DEVICES, 1024, 1},      {MT_TABLE_THREADS, 1, UINT64_MAX}};

    for (size_t i = 0; i < MT_ARRAY_LEN(claims); i++) {
        uint8_t bytes[64], *end = bytes;
        struct mt_symbols symbols;
        struct mt_ids ids;
        const char *reason = NULL;
        end = mt_put_varint(end, claims[i][0]);
        end = mt_put_varint(end, claims[i][1]);
        end = mt_put_varint(end, claims[i][2]);
        end = mt_put_varint(end, 0);
        assert_int_equal(mt_symbols_init(&symbols), MT_OK);
        mt_ids_init(&ids, 1000);
        assert_int_equal(
            mt_ids_define(&ids, &symbols, (struct mt_cursor){bytes, end, false}, &reason),
            MT_ERR_FORMAT);
        assert_non_null(reason);
        mt_ids_release(&ids);
        mt_symbols_release(&symbols);
    }
}

TEST(test_base_is_sound)
{
    static const uint8_t columns[] = {BASE(0)};
    struct decoding decoding;

    assert_int_equal(decode_by_hand(&decoding, 1, columns, sizeof columns), MT_OK);
    end_decoding(&decoding);
}

TEST(test_encoder_refuses)
{
    struct mt_encoder *encoder = mt_encoder_new(8);
    struct mt_symbols symbols;
    struct mt_event events[4];
    struct mt_buf out = {0}, none = {0};
    const char *reason = NULL;

    make_example(&symbols, events);
    events[3].stack = 1; /* there is only stack 0 */
    assert_int_equal(mt_event_block_encode(encoder, &symbols, events, 4, &none, &out, &reason),
                     MT_ERR_USAGE);
    assert_non_null(reason);
    events[3].stack = MT_NO_ID;
    events[3].t_ns = 0;
    assert_int_equal(mt_event_block_encode(encoder, &symbols, events, 4, &none, &out, &reason),
                     MT_ERR_USAGE);
    mt_encoder_free(encoder);
    mt_buf_release(&out);
    mt_symbols_release(&symbols);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
