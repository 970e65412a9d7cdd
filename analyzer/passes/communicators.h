/* Communicators of NCCL as a trace describes them: ids, ranks, the buffers that are registered with
 * them, and which range of NCCL is about which. */
#ifndef MT_ANALYZER_COMMUNICATORS_H
#define MT_ANALYZER_COMMUNICATORS_H

#include "event.h"
#include "map.h"
#include "phases.h"

#include <stdbool.h>

#define MT_COMMUNICATORS_MAX 65536u /* of a trace; later ones are left out */

struct mt_communicator {
    uint64_t id;             /* 0 = not known: then only the range that makes it names it */
    uint64_t ranks, rank;    /* ranks: 0 = neither is known, or it is_shared */
    bool is_shared;          /* one process may be several ranks: they have the same id */
    uint64_t registered_now; /* bytes of buffers, while the trace is read */
    uint64_t registered_peak_bytes, registered_peak_t_ns;
};

/* Zeroed memory is ready. */
struct mt_communicators {
    struct mt_communicator *list; /* in order of first mention */
    size_t count, capacity;
    struct mt_map by_id, by_range; /* by_range: of a phase, + 1 */
};

void mt_communicators_release(struct mt_communicators *communicators);

/* An event of the kinds COMMUNICATOR and BUFFER_*; others are passed over. `phases` has heard what
 * came before. O(1). */
enum mt_status mt_communicators_event(struct mt_communicators *communicators,
                                      const struct mt_phases *phases,
                                      const struct mt_event *event) MT_MUST_USE;

/* Which one a range is about; NULL: it does not say. */
const struct mt_communicator *mt_communicator_of(const struct mt_communicators *communicators,
                                                 int32_t phase);

#endif
