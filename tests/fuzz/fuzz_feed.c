/* Any bytes as a file, compressed or not: read whole and read in small pieces,
 * with and without a look at its start, which must come to the same bytes. */
#include "feed.h"
#include "fuzz.h"

enum { MOST = 1 << 20 };

struct reading {
    enum mt_status status;
    uint64_t bytes, hash;
};

static struct reading read_all(const uint8_t *data, size_t size, size_t piece, bool look)
{
    struct reading reading = {MT_OK, 0, 14695981039346656037u};
    struct mt_feed *feed = NULL;
    struct mt_error error;
    const void *start;
    uint8_t *out = malloc(piece);
    size_t got = 1;

    FUZZ_CHECK(out);
    reading.status = mt_feed_open_memory(data, size, &feed, &error);
    if (reading.status == MT_OK && look)
        reading.status = mt_feed_start(feed, &start, &got, &error);
    for (got = 1; reading.status == MT_OK && got && reading.bytes < MOST;) {
        reading.status = mt_feed_read(feed, out, piece, &got, &error);
        for (size_t i = 0; reading.status == MT_OK && i < got; i++)
            reading.hash = (reading.hash ^ out[i]) * 1099511628211u;
        reading.bytes += reading.status == MT_OK ? got : 0;
    }
    if (feed)
        FUZZ_CHECK(mt_feed_raw_bytes(feed) <= size);
    mt_feed_close(feed);
    free(out);
    return reading;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reading whole = read_all(data, size, 4096, false);
    struct reading pieces = read_all(data, size, 7, true);

    if (whole.status == MT_OK && pieces.status == MT_OK && whole.bytes < MOST)
        FUZZ_CHECK(whole.bytes == pieces.bytes && whole.hash == pieces.hash);
    return 0;
}
