/* Any bytes as a CSV file of buffers. */
#include "buffers.h"
#include "fuzz.h"

static void check_buffers(const struct mt_buffers *buffers)
{
    uint64_t total = 0;

    for (size_t i = 0; i < buffers->count; i++) {
        FUZZ_CHECK(buffers->items[i].begin < buffers->items[i].end && buffers->items[i].bytes);
        total += buffers->items[i].bytes;
    }
    FUZZ_CHECK(total == buffers->total_bytes && total < (uint64_t)1 << 62);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    char *text = (char *)fuzz_copy(&input, size, &size);
    struct mt_buffers buffers = {0};
    struct mt_error error;
    bool is_csv = mt_buffers_csv_probe(text, size);

    if (mt_buffers_from_csv(text, size, &buffers, &error) == MT_OK) {
        FUZZ_CHECK(is_csv);
        check_buffers(&buffers);
    }
    mt_buffers_release(&buffers);
    free(text);
    return 0;
}
