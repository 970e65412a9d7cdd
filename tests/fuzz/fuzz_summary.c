/* Any bytes as the summary of a rank: as a file, and as what lies below checksum and compression.
 * What was read keeps the rules of a set, or is refused; written and read again it is the same. */
#include "fuzz.h"
#include "summary_copy.h"

static void check_again(struct mt_rank_set *set)
{
    struct mt_rank_set read = {0};
    struct mt_error error = {0};
    struct mt_buf bytes = {0}, again = {0};

    FUZZ_CHECK(mt_summary_encode(set, &bytes, &error) == MT_OK);
    FUZZ_CHECK(decode_copy(bytes.data, bytes.length, &read, &error) == MT_OK);
    FUZZ_CHECK(read.record_count == set->record_count && read.path_count == set->path_count);
    FUZZ_CHECK(mt_summary_encode(&read, &again, &error) == MT_OK);
    FUZZ_CHECK(again.length == bytes.length && !memcmp(again.data, bytes.data, bytes.length));
    mt_buf_release(&bytes);
    mt_buf_release(&again);
    mt_rank_set_release(&read);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mt_rank_set set = {0};
    struct mt_error error = {0};
    const char *reason = NULL, *why = NULL;
    enum mt_status status = decode_copy(data, size, &set, &error);

    FUZZ_CHECK(status == MT_OK || (*error.text && !set.record_count && !set.path_count));
    if (status == MT_OK)
        check_again(&set);
    mt_rank_set_release(&set);
    status = mt_summary_payload_read(data, size, &set, &reason);
    FUZZ_CHECK(status == MT_OK || (status == MT_ERR_FORMAT && reason));
    if (status == MT_OK && mt_rank_set_is_sound(&set, &why))
        check_again(&set);
    mt_rank_set_release(&set);
    return 0;
}
