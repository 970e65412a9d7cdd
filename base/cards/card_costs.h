/* Memory of a card that the allocator does not reserve. Only a run on a device shows it, so this is
 * a table of measurements with a source for each row. Costs without a row are unknown. */
#ifndef MT_BASE_CARD_COSTS_H
#define MT_BASE_CARD_COSTS_H

#include <stdint.h>

/* Incremented when a row changes, so that two results can be compared. */
#define MT_CARD_COSTS_VERSION 3

enum mt_card_cost_kind {
    MT_COST_CUDA,           /* context, modules, local memory; process without NCCL */
    MT_COST_CUDA_WITH_NCCL, /* the same for a process with NCCL's kernels */
    MT_COST_CUBLAS_HANDLE,  /* per handle: one for each thread that multiplies matrices */
    MT_COST_CUDNN_HANDLE,   /* per handle */
    MT_COST_NCCL_ONE_RANK,  /* per communicator of one rank */
    MT_COST_NCCL_TWO_RANKS  /* per communicator of two to four ranks; more ranks are not measured */
};

struct mt_card_cost {
    enum mt_card_cost_kind kind;
    const char *card; /* as in cards.h */
    unsigned cuda_major;
    uint64_t least_bytes, most_bytes; /* over all measurements */
    const char *source;
};

extern const struct mt_card_cost mt_card_costs[]; /* terminated by a row with card NULL */

/* Returns NULL if there is no measurement. */
const struct mt_card_cost *mt_card_cost(const char *card, unsigned cuda_major,
                                        enum mt_card_cost_kind kind);

#endif
