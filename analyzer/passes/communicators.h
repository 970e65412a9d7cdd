/* Communicators of NCCL in a trace: ids, ranks, buffers registered with them, and the ranges that
 * concern them. */
#ifndef MT_ANALYZER_COMMUNICATORS_H
#define MT_ANALYZER_COMMUNICATORS_H

#include "event.h"
#include "map.h"
#include "phases.h"

#include <stdbool.h>

#define MT_COMMUNICATORS_MAX 65536u /* per trace; later ones are ignored */

struct mt_communicator {
    uint64_t id;             /* 0 = unknown: then only the range that makes it identifies it */
    uint64_t ranks, rank;    /* ranks: 0 = both are unknown, or it is_shared */
    bool is_shared;          /* one process may be several ranks: they have the same id */
    uint64_t registered_now; /* bytes of buffers, while the trace is being read */
    uint64_t registered_peak_bytes, registered_peak_t_ns;
};

/* Zeroed memory is ready. */
struct mt_communicators {
    struct mt_communicator *list; /* in order of first mention */
    size_t count, capacity;
    struct mt_map by_id, by_range; /* by_range: of a phase, + 1 */
};

void mt_communicators_release(struct mt_communicators *communicators);

/* Takes events of the kinds COMMUNICATOR and BUFFER_*; ignores others. `phases` must have received
 * the earlier events. O(1). */
void mt_communicators_event(struct mt_communicators *communicators, const struct mt_phases *phases,
                            const struct mt_event *event);

/* Returns the communicator that a range names, or NULL. */
const struct mt_communicator *mt_communicator_of(const struct mt_communicators *communicators,
                                                 int32_t phase);

#endif
