/* Random sets survive writing and reading; equal sets have equal bytes; a file that is damaged, cut
 * or of another version says so and adds nothing. */
#include "cmocka_all.h"

#include "bytes.h"
#include "record_maker.h"
#include "summary_copy.h"
#include "summary_file.h"

enum { CHECKSUM_AT = 12, VERSION_AT = 8 };

static void fill_with(struct mt_rank_set *set, uint64_t seed, uint32_t count)
{
    struct record_maker maker = {seed, set};

    for (uint32_t i = 0; i < count; i++) {
        struct mt_rank_record record = make_record(&maker);

        mt_rank_set_add(set, &record);
    }
}

static void fill(struct mt_rank_set *set, uint64_t seed)
{
    fill_with(set, seed, (uint32_t)(seed % 6));
}

static struct mt_buf encoded(struct mt_rank_set *set)
{
    struct mt_buf out = {0};
    struct mt_error error = {0};

    if (mt_summary_encode(set, &out, &error) != MT_OK)
        fail_msg("%s", error.text);
    return out;
}

TEST(random_sets_round_trip)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct mt_rank_set made = {0}, read = {0};
        struct mt_error error = {0};
        const char *why = "";

        fill(&made, seed);
        struct mt_buf bytes = encoded(&made);
        assert_true(mt_summary_probe(bytes.data, bytes.length));
        if (decode_copy(bytes.data, bytes.length, &read, &error) != MT_OK)
            fail_msg("seed %d: %s", (int)seed, error.text);
        mt_rank_set_sort(&read);
        if (!mt_rank_set_is_sound(&read, &why))
            fail_msg("%s", why);
        assert_true(sets_are_equal(&made, &read));
        struct mt_buf again = encoded(&read);
        assert_int_equal(again.length, bytes.length);
        assert_memory_equal(again.data, bytes.data, bytes.length);
        mt_buf_release(&bytes);
        mt_buf_release(&again);
        mt_rank_set_release(&made);
        mt_rank_set_release(&read);
    }
}

/* Large enough that both what was read and what was decompressed go back to the host, and that
 * records lie across the borders of what is decompressed at once. */
TEST(spent_memory_gives_the_same_set)
{
    struct mt_rank_set made = {0}, spent = {0};
    struct mt_error error = {0};
    struct mt_buf bytes, copy = {0};

    fill_with(&made, 8, 800);
    bytes = encoded(&made);
    assert_true(bytes.length > (size_t)2 << 20);
    mt_buf_add(&copy, bytes.data, bytes.length);
    assert_int_equal(mt_summary_decode(bytes.data, bytes.length, &spent, &error), MT_OK);
    assert_memory_not_equal(bytes.data, copy.data, copy.length);
    mt_rank_set_sort(&spent);
    assert_true(sets_are_equal(&made, &spent));
    mt_buf_release(&bytes);
    mt_buf_release(&copy);
    mt_rank_set_release(&made);
    mt_rank_set_release(&spent);
}

/* The order in which records, texts and paths came into a set is not in its bytes. */
TEST(equal_sets_have_equal_bytes)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct mt_rank_set one = {0}, other = {0}, parts[2];

        memset(parts, 0, sizeof parts);
        fill(&parts[0], seed);
        fill(&parts[1], seed + 1000);
        for (int i = 0; i < 2; i++) {
            mt_rank_set_unite(&one, &parts[i]);
            mt_rank_set_unite(&other, &parts[1 - i]);
        }
        struct mt_buf left = encoded(&one);
        struct mt_buf right = encoded(&other);
        assert_int_equal(left.length, right.length);
        assert_memory_equal(left.data, right.data, left.length);
        mt_buf_release(&left);
        mt_buf_release(&right);
        mt_rank_set_release(&one);
        mt_rank_set_release(&other);
        mt_rank_set_release(&parts[0]);
        mt_rank_set_release(&parts[1]);
    }
}

/* A set that has something already keeps it, and gets what the file has. */
TEST(decoding_adds)
{
    struct mt_rank_set one = {0}, other = {0}, both = {0}, read = {0};
    struct mt_error error = {0};

    fill(&one, 3);
    fill(&other, 4);
    mt_rank_set_unite(&both, &one);
    mt_rank_set_unite(&both, &other);
    mt_rank_set_unite(&read, &one);
    struct mt_buf bytes = encoded(&other);
    assert_int_equal(decode_copy(bytes.data, bytes.length, &read, &error), MT_OK);
    mt_rank_set_sort(&both);
    mt_rank_set_sort(&read);
    assert_true(sets_are_equal(&both, &read));
    mt_buf_release(&bytes);
    mt_rank_set_release(&one);
    mt_rank_set_release(&other);
    mt_rank_set_release(&both);
    mt_rank_set_release(&read);
}

/* Refused with a reason, and the set is as it was. */
static void check_refused(const void *bytes, size_t length, enum mt_status wanted)
{
    struct mt_rank_set set = {0};
    struct mt_error error = {0};

    assert_int_equal(decode_copy(bytes, length, &set, &error), wanted);
    assert_int_equal(error.status, wanted);
    assert_true(*error.text);
    assert_int_equal(set.record_count, 0);
    assert_int_equal(set.path_count, 0);
    mt_rank_set_release(&set);
}

/* A frame of zstd has a bit that means nothing: what is read in spite of a change is what was
 * written. */
static void check_changed(struct mt_rank_set *written, const struct mt_buf *bytes)
{
    struct mt_rank_set set = {0};
    struct mt_error error = {0};

    if (decode_copy(bytes->data, bytes->length, &set, &error) == MT_OK) {
        mt_rank_set_sort(&set);
        assert_true(sets_are_equal(written, &set));
    } else {
        assert_true(*error.text);
        assert_int_equal(set.record_count, 0);
        assert_int_equal(set.path_count, 0);
    }
    mt_rank_set_release(&set);
}

TEST(damage_is_noticed)
{
    struct mt_rank_set set = {0};

    fill(&set, 5);
    struct mt_buf bytes = encoded(&set);
    for (size_t length = 0; length < bytes.length; length += 1 + length / 16)
        check_refused(bytes.data, length, MT_ERR_FORMAT);
    for (size_t at = 0; at < bytes.length; at += 1 + at / 32) {
        if (at >= VERSION_AT && at < VERSION_AT + 4)
            continue;
        bytes.data[at] ^= 0x10;
        check_changed(&set, &bytes);
        bytes.data[at] ^= 0x10;
    }
    mt_buf_add_char(&bytes, 'x');
    check_refused(bytes.data, bytes.length, MT_ERR_FORMAT);
    mt_buf_release(&bytes);
    mt_rank_set_release(&set);
}

TEST(another_version_is_named)
{
    struct mt_rank_set set = {0};
    struct mt_error error = {0};
    struct mt_buf bytes = encoded(&set);

    bytes.data[VERSION_AT] = 7;
    check_refused(bytes.data, bytes.length, MT_ERR_UNSUPPORTED);
    assert_int_equal(decode_copy(bytes.data, bytes.length, &set, &error), MT_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.text, "version 7, and this memtrace reads versions 2 and 3"));
    mt_buf_release(&bytes);
    mt_rank_set_release(&set);
}

/* A file of version 2, as it was written: the last field is missing. */
TEST(version_2_is_read)
{
    struct mt_rank_set set = {0};
    struct mt_error error = {0};
    static char bytes[8192];
    FILE *file = fopen(MEMTRACE_FIXTURES "/jobs/version_2.mtsum", "rb");
    uint64_t sum = 0;

    assert_non_null(file);
    size_t length = fread(bytes, 1, sizeof bytes, file);
    (void)fclose(file);
    assert_int_equal(mt_get_u32((const uint8_t *)bytes + VERSION_AT), 2);
    if (decode_copy(bytes, length, &set, &error) != MT_OK)
        fail_msg("%s", error.text);
    assert_int_equal(set.record_count, 1);
    for (int role = 0; role < MT_ROLE_COUNT; role++)
        sum += set.records[0].role_bytes[role];
    assert_int_equal(sum, set.records[0].allocated_peak.bytes);
    assert_int_equal(set.records[0].role_bytes[MT_ROLE_WEIGHT_COPIES], 0);
    mt_rank_set_release(&set);
}

/* A length that the file cannot hold takes no memory. */
TEST(impossible_lengths_are_refused)
{
    struct mt_rank_set set = {0};
    struct mt_buf bytes = encoded(&set);

    mt_put_u64((uint8_t *)bytes.data + 16, (uint64_t)1 << 29);
    check_refused(bytes.data, bytes.length, MT_ERR_FORMAT);
    mt_put_u64((uint8_t *)bytes.data + 16, UINT64_MAX);
    check_refused(bytes.data, bytes.length, MT_ERR_FORMAT);
    mt_buf_release(&bytes);
    mt_rank_set_release(&set);
}

/* The file with a window of 2^window_log bytes instead of one that is as long as the payload. */
static struct mt_buf with_window(const struct mt_buf *file, unsigned window_log, bool has_length)
{
    enum { DESCRIPTOR_AT = 28, LENGTH_BYTES = 4 };
    size_t rest = DESCRIPTOR_AT + 1 + (has_length ? 0 : LENGTH_BYTES);
    struct mt_buf bytes = {0};

    assert_int_equal((uint8_t)file->data[DESCRIPTOR_AT], 0xa0); /* no window, and a length */
    mt_buf_add(&bytes, file->data, DESCRIPTOR_AT);
    mt_buf_add_char(&bytes, (char)(has_length ? 0x80 : 0));
    mt_buf_add_char(&bytes, (char)((window_log - 10) << 3));
    mt_buf_add(&bytes, file->data + rest, file->length - rest);
    return bytes;
}

/* A frame that does not say its length would make zstd allocate its window. The payload is longer
 * than what is decompressed at once: otherwise zstd uses no window. */
TEST(windows_take_no_memory)
{
    static const unsigned window_logs[] = {22, 27, 28, 31};
    struct mt_rank_set made = {0};

    fill_with(&made, 9, 150);
    struct mt_buf file = encoded(&made);
    assert_true(mt_get_u64((const uint8_t *)file.data + 16) > 1 << 18);
    for (size_t i = 0; i < MT_ARRAY_LEN(window_logs); i++) {
        struct mt_buf with = with_window(&file, window_logs[i], true);
        struct mt_buf without = with_window(&file, window_logs[i], false);
        struct mt_rank_set set = {0};
        struct mt_error error = {0};

        check_refused(without.data, without.length, MT_ERR_FORMAT);
        if (decode_copy(with.data, with.length, &set, &error) != MT_OK)
            fail_msg("window 2^%u: %s", window_logs[i], error.text);
        mt_rank_set_sort(&set);
        assert_true(sets_are_equal(&made, &set));
        mt_buf_release(&with);
        mt_buf_release(&without);
        mt_rank_set_release(&set);
    }
    mt_buf_release(&file);
    mt_rank_set_release(&made);
}

TEST(a_record_is_decompressed_whole)
{
    uint64_t numbers = mt_record_field_count;

    for (uint32_t i = 0; i < mt_record_list_count; i++)
        numbers += 1 + (uint64_t)mt_record_lists[i].most * mt_record_lists[i].field_count;
    assert_true(numbers * MT_VARINT_MAX_BYTES <= MT_SUMMARY_RECORD_BYTES);
}

/* Below checksum and compression: any change gives a sound set or a reason. */
TEST(damaged_payloads_do_no_harm)
{
    struct dice dice = {11};

    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct mt_rank_set made = {0};
        struct mt_buf bytes = {0};

        fill(&made, seed);
        mt_rank_set_sort(&made);
        assert_int_equal(mt_summary_payload_write(&made, &bytes), MT_OK);
        for (int i = 0; i < 50; i++) {
            struct mt_rank_set read = {0};
            const char *reason = NULL;
            size_t at = dice_below(&dice, bytes.length);
            char before = bytes.data[at];
            size_t length = dice_one_in(&dice, 4) ? dice_below(&dice, bytes.length) : bytes.length;

            bytes.data[at] = (char)dice_any(&dice);
            enum mt_status status =
                mt_summary_payload_read((const uint8_t *)bytes.data, length, &read, &reason);
            assert_true(status == MT_OK || (status == MT_ERR_FORMAT && reason && *reason));
            bytes.data[at] = before;
            mt_rank_set_release(&read);
        }
        mt_buf_release(&bytes);
        mt_rank_set_release(&made);
    }
}

/* Each rule of a payload, broken once. */
TEST(hostile_payloads_are_refused)
{
    static const struct {
        const char *bytes;
        size_t length;
        const char *reason;
    } payloads[] = {
        {"\x05", 1, "a count is too large"},
        {"\x80\x80", 2, "a count is too large"},
        {"\x01\x02x", 3, "a text is cut short"},
        {"\x01\x01\x00", 3, "a text holds a zero byte"},
        {"\x01\x01x\x01\x02\x00\x00", 7, "a call path has no parent of that number"},
        {"\x01\x01x\x01\x01\x00\x00", 7, "a call path has no parent of that number"},
        {"\x01\x01x\x01\x00\x01\x00", 7, "no string has that number"},
        {"\x00\x00\x01x", 4, "no string has that number"},
        {"\x00\x00\x00x", 4, "bytes follow the last record"},
    };

    for (size_t i = 0; i < MT_ARRAY_LEN(payloads); i++) {
        struct mt_rank_set set = {0};
        const char *reason = "";

        assert_int_equal(mt_summary_payload_read((const uint8_t *)payloads[i].bytes,
                                                 payloads[i].length, &set, &reason),
                         MT_ERR_FORMAT);
        assert_string_equal(reason, payloads[i].reason);
        mt_rank_set_release(&set);
    }
}

/* A text takes a byte of the payload and 30 in memory. */
TEST(a_payload_of_empty_texts_is_refused)
{
    static const uint8_t start[] = {0x81, 0x80, 0x80, 0x02}; /* 2^22 + 1 texts */
    size_t length = sizeof start + (1 << 22) + 3;
    uint8_t *bytes = calloc(length, 1);
    struct mt_rank_set set = {0};
    const char *reason = "";

    assert_non_null(bytes);
    memcpy(bytes, start, sizeof start);
    assert_int_equal(mt_summary_payload_read(bytes, length, &set, &reason), MT_ERR_FORMAT);
    assert_string_equal(reason, "a count is too large");
    mt_rank_set_release(&set);
    free(bytes);
}

/* One long text that each field of a list names: hashing it for each of them takes hours. */
TEST(a_text_that_is_named_very_often_is_refused)
{
    enum { TEXT_BYTES = 24 << 20, PATHS = 100 };
    uint8_t *bytes = malloc(TEXT_BYTES + 1024), *at = bytes;
    struct mt_rank_set set = {0};
    const char *reason = "";

    assert_non_null(bytes);
    at = mt_put_varint(at, 1);
    at = mt_put_varint(at, TEXT_BYTES);
    memset(at, 'x', TEXT_BYTES);
    at = mt_put_varint(at + TEXT_BYTES, PATHS);
    for (uint32_t i = 0; i < PATHS; i++) { /* each is the caller of the next one */
        at = mt_put_varint(at, i ? mt_zigzag(1) : 0);
        at = mt_put_varint(at, 0);
    }
    at = mt_put_varint(at, 0);
    assert_int_equal(mt_summary_payload_read(bytes, (size_t)(at - bytes), &set, &reason),
                     MT_ERR_FORMAT);
    assert_string_equal(reason, "it names too much text");
    mt_rank_set_release(&set);
    free(bytes);
}

/* Two call paths of a file that have the same frames are one path of a set, so that leaves can
 * become equal by being read. */
TEST(paths_that_repeat_make_no_equal_leaves)
{
    struct mt_rank_set made = {0}, read = {0};
    struct record_maker maker = {21, &made};
    struct mt_rank_record record = make_record(&maker);
    struct mt_record_leaf leaves[] = {{.bytes = 5}, {.bytes = 7}};
    struct mt_buf bytes = {0};
    const char *why = "";

    leaves[0].path = mt_rank_set_path(&made, MT_NO_PATH, "frame one", 9);
    leaves[1].path = mt_rank_set_path(&made, MT_NO_PATH, "frame two", 9);
    memset(record.role_bytes, 0, sizeof record.role_bytes);
    record.allocated_peak.bytes = record.role_bytes[leaves[0].role] = 12;
    record.leaves = leaves;
    record.leaf_count = 2;
    mt_rank_set_add(&made, &record);
    mt_rank_set_sort(&made);
    assert_int_equal(mt_summary_payload_write(&made, &bytes), MT_OK);
    for (size_t i = 0; i + 9 <= bytes.length; i++)
        if (memcmp(bytes.data + i, "frame two", 9) == 0)
            memcpy(bytes.data + i, "frame one", 9);
    assert_int_equal(
        mt_summary_payload_read((const uint8_t *)bytes.data, bytes.length, &read, &why), MT_OK);
    assert_false(mt_rank_set_is_sound(&read, &why)); /* what mt_summary_decode then refuses */
    assert_non_null(strstr(why, "leaves_ascend"));
    mt_buf_release(&bytes);
    mt_rank_set_release(&made);
    mt_rank_set_release(&read);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
