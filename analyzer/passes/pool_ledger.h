/* Part of the survey: contents of each pool of PyTorch's allocator on one device. Memory: a row for
 * each pool up to the highest number. */
#ifndef MT_ANALYZER_POOL_LEDGER_H
#define MT_ANALYZER_POOL_LEDGER_H

#include "counters.h"
#include "event.h"
#include "replay_view.h"
#include "status.h"

struct mt_pool_row {
    struct mt_level reserved, allocated;
    uint64_t segments, allocations;
    uint64_t first_event, first_t_ns; /* of its first block */
    uint32_t first_stack;             /* of the first block with a stack, MT_NO_ID */
    bool is_used;
};

/* Zeroed memory has no pools. */
struct mt_pool_ledger {
    struct mt_pool_row *rows; /* by pool number */
    uint32_t row_count;
    size_t row_capacity;
};

void mt_pool_ledger_release(struct mt_pool_ledger *ledger);

/* Takes an allocation; one that was not served counts without bytes. */
void mt_pool_ledger_alloc(struct mt_pool_ledger *ledger, const struct mt_event *event,
                          const struct mt_replay_view *view);
/* Takes the first free event of a block. */
void mt_pool_ledger_free(struct mt_pool_ledger *ledger, const struct mt_replay_view *view);
void mt_pool_ledger_segment(struct mt_pool_ledger *ledger, const struct mt_event *event,
                            const struct mt_replay_view *view);

#endif
