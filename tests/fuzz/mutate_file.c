/* The mutator of targets whose input is a file: by what the file is. The target's
 * own bytes before the file (FUZZ_PREFIX_BYTES of them) are changed on their own. */
#include "mutate_file.h"
#include "trace.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2,
                                 size_t size2, uint8_t *out, size_t max_out_size, unsigned seed);

enum { PREFIX = FUZZ_PREFIX_BYTES };

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    if (size <= PREFIX || max_size <= PREFIX)
        return LLVMFuzzerMutate(data, size, max_size);
    if (PREFIX && seed % 8 == 0)
        data[0] = (uint8_t)(seed >> 8);
    data += PREFIX;
    size -= PREFIX;
    max_size -= PREFIX;
    if (mt_trace_probe(data, size))
        return PREFIX + mutate_trace(data, size, max_size, seed);
    return PREFIX + mutate_pickle(data, size, max_size, seed);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2,
                                 size_t size2, uint8_t *out, size_t max_out_size, unsigned seed)
{
    struct mutate_crossing crossing = {data1 + PREFIX, data2 + PREFIX, size1 - PREFIX,
                                       size2 - PREFIX};

    if (size1 <= PREFIX || size2 <= PREFIX || max_out_size <= PREFIX ||
        mt_trace_probe(crossing.one, crossing.one_size) ||
        mt_trace_probe(crossing.other, crossing.other_size))
        return 0;
    memcpy(out, data1, PREFIX);
    size1 = mutate_cross_pickles(&crossing, out + PREFIX, max_out_size - PREFIX, seed);
    return size1 ? PREFIX + size1 : 0;
}
