/* Any bytes as a pickle: as plain data without a hook, and as a snapshot with
 * and without short cuts, which must come to the same result. */
#include <stdint.h>
#include <stdlib.h>

#include "pickle_machine.h"
#include "snapshot_digest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_plain(const uint8_t *data, size_t size)
{
    struct mt_pickle_value root;
    struct mt_pickle *pickle = NULL;
    struct mt_feed *feed = NULL;
    struct mt_error error;

    if (mt_feed_open_memory(data, size, &feed, &error) != MT_OK)
        return;
    if (mt_pickle_read(feed, NULL, &pickle, &root, &error) == MT_OK)
        mt_pickle_free(pickle);
    mt_feed_close(feed);
}

/* Zeros follow the bytes, because short cuts are not taken near the end of the input. */
static struct snapshot_digest digest_quickly(const uint8_t *data, size_t size)
{
    uint8_t *padded = calloc(1, size + 2 * MT_PICKLE_MARGIN);

    if (!padded)
        abort();
    if (size)
        memcpy(padded, data, size);
    struct snapshot_digest digest = digest_snapshot(padded, size + 2 * MT_PICKLE_MARGIN, false);
    free(padded);
    return digest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_plain(data, size);
    (void)digest_snapshot(data, size, false); /* sanitizers see a byte read after the input */
    struct snapshot_digest quick = digest_quickly(data, size);
    struct snapshot_digest slow = digest_snapshot(data, size, true);
    /* a dictionary that changes after its use is refused by the quick way only */
    if (quick.status == MT_OK &&
        (slow.status != MT_OK || quick.events != slow.events || quick.hash != slow.hash))
        abort();
    return 0;
}
