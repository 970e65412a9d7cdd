/* The period of a sequence of requests, for programs without other evidence: no names, no stacks,
 * no threads. Requests repeat if almost all are equal, in size, stream and stack, to those one
 * period later. A turn begins at the position with the lowest allocation over all turns. */
#ifndef MT_ANALYZER_PERIOD_H
#define MT_ANALYZER_PERIOD_H

#include "event.h"
#include "status.h"

#include <stdbool.h>
#include <stddef.h>

/* Later requests are ignored. */
#define MT_PERIOD_MAX (1u << 20)

struct mt_request {
    uint64_t seq, t_ns;
    uint64_t level_bytes; /* requested bytes alive before it */
    uint32_t token;       /* equal for equal requests */
};

/* Zeroed memory is ready. */
struct mt_period {
    struct mt_request *requests;
    size_t count, capacity;
    uint64_t level_bytes, last_seq, last_t_ns;

    /* result: turns begin with requests first, first + length, ...; number of whole turns */
    size_t length, first, turns;
};

/* Pass every event to it, then call mt_period_find. */
void mt_period_add(struct mt_period *period, const struct mt_event *event);

/* turns = 0: there is no period. O(requests). */
void mt_period_find(struct mt_period *period);
void mt_period_release(struct mt_period *period);

/* Request with which turn i begins; for `turns` itself: the one after the last turn, or the number
 * of requests. */
size_t mt_period_begin(const struct mt_period *period, size_t turn);

#endif
