/* Any bytes as the end of a trace: seek table and index. What is accepted is
 * written as the same index again. */
#include "container.h"
#include "fuzz.h"

/* The checksum that a fuzzer cannot guess, put where it belongs. */
static void fix_checksum(uint8_t *frame, size_t length)
{
    if (length < MT_SKIPPABLE_HEADER_BYTES + 4)
        return;
    mt_put_u32(frame + length - 4,
               mt_crc32(frame + MT_SKIPPABLE_HEADER_BYTES, length - MT_SKIPPABLE_HEADER_BYTES - 4));
}

static void check_again(const struct mt_index_entry *entries, size_t count, uint64_t limit,
                        size_t index_bytes)
{
    struct mt_index_entry *again = NULL;
    struct mt_seek_table table;
    struct mt_buf out = {0};
    const char *reason;
    size_t count_again = 0;

    mt_index_write(entries, count, 64, &out);
    FUZZ_CHECK(!out.failed && out.length > index_bytes);
    FUZZ_CHECK(mt_index_read((const uint8_t *)out.data, index_bytes, limit, &again, &count_again,
                             &reason) == MT_OK);
    FUZZ_CHECK(count_again == count && memcmp(again, entries, count * sizeof *entries) == 0);
    FUZZ_CHECK(mt_seek_table_read((const uint8_t *)out.data + index_bytes, out.length - index_bytes,
                                  &table, &reason) == MT_OK);
    FUZZ_CHECK(table.index_bytes == index_bytes);
    free(again);
    mt_buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mt_index_entry *entries = NULL;
    struct fuzz_input input = {data, size};
    struct mt_seek_table table;
    uint64_t limit = fuzz_number(&input, 4);
    const char *reason;
    size_t length, count = 0;
    uint8_t *frame = fuzz_copy(&input, input.left, &length);

    if (length >= MT_SEEK_FOOTER_BYTES)
        (void)mt_seek_table_bytes(frame + length - MT_SEEK_FOOTER_BYTES);
    (void)!mt_seek_table_read(frame, length, &table, &reason);
    fix_checksum(frame, length);
    if (mt_index_read(frame, length, limit, &entries, &count, &reason) == MT_OK && count)
        check_again(entries, count, limit, length);
    free(entries);
    free(frame);
    return 0;
}
