/* Numbers of bytes as people write them ("16GiB"), and numbers as they are shown. */
#include "fuzz.h"
#include "units.h"

/* What is shown has three significant digits, so reading it back is near the value. */
static void check_shown(uint64_t bytes)
{
    char text[MT_UNITS_TEXT];
    uint64_t again;

    FUZZ_CHECK(strlen(mt_format_bytes(text, bytes)) < MT_UNITS_TEXT);
    if (bytes >= (uint64_t)1 << 49) /* shown as PiB, which mt_parse_bytes does not know */
        return;
    FUZZ_CHECK(mt_parse_bytes(text, &again) == MT_OK);
    uint64_t difference = again > bytes ? again - bytes : bytes - again;
    FUZZ_CHECK(difference <= bytes / 150 + 1);
}

static void check_lengths(uint64_t value)
{
    char text[MT_UNITS_TEXT];
    int64_t change;
    double share;

    memcpy(&change, &value, sizeof change);
    memcpy(&share, &value, sizeof share);
    FUZZ_CHECK(strlen(mt_format_change(text, change)) < MT_UNITS_TEXT);
    FUZZ_CHECK(strlen(mt_format_count(text, value)) < MT_UNITS_TEXT);
    FUZZ_CHECK(strlen(mt_format_percent(text, share)) < MT_UNITS_TEXT);
    FUZZ_CHECK(strlen(mt_format_duration(text, value)) < MT_UNITS_TEXT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    char *text = fuzz_text(data, size);
    uint64_t bytes, value = fuzz_number(&input, 8);

    if (mt_parse_bytes(text, &bytes) == MT_OK)
        check_shown(bytes);
    check_shown(value);
    check_lengths(value);
    free(text);
    return 0;
}
