/* Common GPUs as their drivers describe them. `fit` uses the table to find cards that are large
 * enough, and the simulated devices of a dry run use it to answer queries of programs. */
#ifndef MT_BASE_CARDS_H
#define MT_BASE_CARDS_H

#include <stdbool.h>
#include <stdint.h>

/* The CUDA context and the libraries (cuBLAS, cuDNN, NCCL) take about 0.5 to
 * 1 GiB of a card, outside of the allocator's limit. */
#define MT_CARD_OVERHEAD_BYTES ((uint64_t)1 << 30)

struct mt_card {
    const char *name;        /* "A100 80 GB", unique */
    const char *model;       /* "A100"; several cards may share it */
    const char *driver_name; /* "NVIDIA A100-SXM4-80GB", as cudaGetDeviceProperties has it */
    uint64_t memory_bytes;   /* total, as cudaMemGetInfo has it */
    uint32_t multiprocessors;
    uint32_t capability_major, capability_minor;
    uint32_t threads_per_multiprocessor;
    uint32_t shared_bytes_per_multiprocessor;
    uint32_t shared_bytes_per_block; /* with cudaFuncAttributeMaxDynamicSharedMemorySize */
    uint32_t l2_bytes;
};

extern const struct mt_card mt_cards[]; /* ascending by memory; terminated by a NULL name */

/* Whether it is more than twice the memory of the largest card: a request of that size is a bug. */
bool mt_card_exceeds_all(uint64_t bytes);

/* Returns the card that `word` names: by its name, by its model if only one card has it, or by the
 * driver's name. Only letters and digits count, in any case: "a100-80gb", "H200", "RTX 4090".
 * Returns NULL if no card or several cards match; *near is then the likely intended name, or NULL.
 * Allocates nothing. */
const struct mt_card *mt_card_find(const char *word, const char **near);

/* Returns the smallest card that is sold with this size: "24GB". NULL: none. */
const struct mt_card *mt_card_of_size(const char *text);

/* Memory of a card that the allocator does not reserve. Only a run on a device shows it, so this is
 * a table of measurements with a source for each row. Costs without a row are unknown. */

/* Incremented when a row changes, so that two results can be compared. */
#define MT_CARD_COSTS_VERSION 4

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
    const char *card; /* as in struct mt_card */
    unsigned cuda_major;
    uint64_t least_bytes, most_bytes; /* over all measurements */
    const char *source;
};

/* Returns NULL if there is no measurement. */
const struct mt_card_cost *mt_card_cost(const char *card, unsigned cuda_major,
                                        enum mt_card_cost_kind kind);

#endif
