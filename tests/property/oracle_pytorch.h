/* Shared by the two files of the model of PyTorch's allocator: the content of oracle->setting, and
 * the sizes that follow from the options. */
#ifndef MT_TESTS_ORACLE_PYTORCH_H
#define MT_TESTS_ORACLE_PYTORCH_H

#include "oracle.h"

enum {
    MAX_SPLIT, /* UINT64_MAX = off */
    ROUNDING,
    LARGE_SEGMENT,
    EXPANDABLE,
    GC_PERCENT, /* 0 = off */
    CLOCK,      /* a pool's: one for each of POOL_KINDS */
    /* of a power of two, by size: up to 2 MiB, up to 4 MiB, ...; 0 and 1 = off */
    DIVISIONS = CLOCK + 6
};
enum { STREAMS = 4, DIVISION_STEPS = 16 };

#define CHUNK_SMALL (2 * MT_MIB)

void oracle_pytorch_configure(struct oracle *oracle, struct dice *dice, char *text, size_t size);

/* Length of the block for a request; of the segment for such a block. */
uint64_t oracle_pytorch_rounded(const struct oracle *oracle, uint64_t bytes);
uint64_t oracle_pytorch_segment(const struct oracle *oracle, uint64_t bytes);

#endif
