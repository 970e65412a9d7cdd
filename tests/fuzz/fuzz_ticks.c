/* Points of a clock as a hostile tape has them: time is never before the first
 * point's, and never decreases with the ticks. */
#include "fuzz.h"
#include "ticks.h"

static struct mt_clock_point take_point(struct fuzz_input *input, unsigned bytes)
{
    struct mt_clock_point point;

    point.ticks = fuzz_number(input, bytes);
    point.unix_ns = fuzz_number(input, bytes);
    return point;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    unsigned bytes = (unsigned)fuzz_number(&input, 1) % 8 + 1;
    struct mt_clock_point first = take_point(&input, bytes), last = take_point(&input, bytes);
    uint64_t ticks = fuzz_number(&input, bytes);

    (void)mt_ticks_unix_ns(first, last, ticks);
    (void)mt_ticks_unix_ns(first, last, UINT64_MAX);
    FUZZ_CHECK(mt_ticks_unix_ns(first, first, ticks) == first.unix_ns);
    return 0;
}
