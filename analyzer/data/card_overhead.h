/* The memory of a card that a dry run needs in addition to the allocator's. A simulated device
 * cannot measure it, so it comes from a table of real measurements (cards.h). */
#ifndef MT_DATA_CARD_OVERHEAD_H
#define MT_DATA_CARD_OVERHEAD_H

#include "cards.h"
#include "report.h"

struct mt_card_overhead_row {
    const struct mt_card_cost *cost;
    uint64_t count; /* number of handles */
};

struct mt_card_overhead {
    unsigned cuda_major;    /* 0 = not in the trace */
    uint64_t outside_bytes; /* taken from the driver by the simulated libraries */
    bool lacks_rows;        /* the table lacks rows for this card and this CUDA */
    /* Ranks of the run, if NCCL connects more of them than a communicator was measured with;
     * otherwise 0. */
    uint64_t unmeasured_ranks;
    bool is_known; /* lacks_rows is false and unmeasured_ranks is 0 */
    struct mt_card_overhead_row rows[3];
    uint32_t row_count;
    uint64_t most_bytes; /* outside_bytes and the rows at their maximum */
};

/* For a dry run. The number of handles follows from the run: one for the main thread, and one for
 * autograd's if there was a backward pass. Cheap. */
struct mt_card_overhead mt_card_overhead_of(const struct mt_report *report,
                                            const struct mt_device_report *device);

/* Returns the argument for mt_card_verdict, at most UINT64_MAX. mt_card_verdict itself adds 1 GiB
 * for CUDA, so the result exceeds `need_bytes` by what does not fit in that 1 GiB, as with NCCL,
 * and at least by overhead->outside_bytes. */
uint64_t mt_card_overhead_fit_bytes(const struct mt_card_overhead *overhead, uint64_t need_bytes);

#endif
