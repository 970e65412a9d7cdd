/* What a card holds beside the memory that an allocator reserves. Only a run on a device shows it:
 * a table of what was measured, with a source for each row. What is not in it is not known. */
#ifndef MT_BASE_CARD_COSTS_H
#define MT_BASE_CARD_COSTS_H

#include <stdint.h>

/* Changes with any row, so that two answers can be compared. */
#define MT_CARD_COSTS_VERSION 3

enum mt_card_cost_kind {
    MT_COST_CUDA,           /* context, modules, local memory: of a process without NCCL */
    MT_COST_CUDA_WITH_NCCL, /* the same of a process that has NCCL's kernels */
    MT_COST_CUBLAS_HANDLE,  /* each: one for each thread that multiplies matrices */
    MT_COST_CUDNN_HANDLE,   /* each */
    MT_COST_NCCL_ONE_RANK,  /* each communicator of one rank */
    MT_COST_NCCL_TWO_RANKS  /* each of two to four; what more ranks take is not measured */
};

struct mt_card_cost {
    enum mt_card_cost_kind kind;
    const char *card; /* as in cards.h */
    unsigned cuda_major;
    uint64_t least_bytes, most_bytes; /* over all measurements */
    const char *source;
};

extern const struct mt_card_cost mt_card_costs[]; /* ends with a card of NULL */

/* NULL: not measured. */
const struct mt_card_cost *mt_card_cost(const char *card, unsigned cuda_major,
                                        enum mt_card_cost_kind kind);

#endif
