/* What a card must hold beside the allocator's memory, when that was not measured because the
 * device was simulated: from the table of what real ones hold (card_costs.h). */
#ifndef MT_DATA_BESIDE_H
#define MT_DATA_BESIDE_H

#include "card_costs.h"
#include "report.h"

struct mt_beside_row {
    const struct mt_card_cost *cost;
    uint64_t count; /* how many of them: handles */
};

struct mt_beside {
    unsigned cuda_major;    /* 0 = the trace does not say it */
    uint64_t outside_bytes; /* that the simulated libraries took from the driver themselves */
    bool lacks_rows;        /* the table has not all of them for this card and this CUDA */
    /* Ranks of the run, if NCCL connects more of them than a communicator was measured with;
     * else 0. */
    uint64_t unmeasured_ranks;
    bool is_known; /* neither of these */
    struct mt_beside_row rows[3];
    uint32_t row_count;
    uint64_t most_bytes; /* outside_bytes and the rows, each at its most */
};

/* Of a dry run. Handles are counted by what the run shows: one for the main thread, one more for
 * autograd's if there was a backward pass. Cheap. */
struct mt_beside mt_beside_of(const struct mt_report *report,
                              const struct mt_device_report *device);

/* What to ask mt_card_verdict for, which leaves 1 GiB for CUDA: more than `need_bytes` if what is
 * beside is more than that, as with NCCL. Up to UINT64_MAX. */
uint64_t mt_beside_fit_bytes(const struct mt_beside *beside, uint64_t need_bytes);

#endif
