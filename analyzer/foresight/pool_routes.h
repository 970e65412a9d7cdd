/* Assigns requests to pools that the run did not have.
 *
 * A policy's text may end with pools, as in
 *
 *     pytorch:expandable_segments:True --pool site=~embedding --pool size<1MiB
 *
 * Requests that a selector (request_selector.h) matches come from a private pool of their own, as
 * under torch.cuda.use_mem_pool; the first match counts. Requests that the run made in a private
 * pool stay there, and so do blocks alive at the start of the trace. The pools last as long as the
 * run and never release memory.
 *
 * A separate pass finds the matches, because a replay serves a request before it receives the
 * phases that precede it. */
#ifndef MT_ANALYZER_POOL_ROUTES_H
#define MT_ANALYZER_POOL_ROUTES_H

#include "replay_result.h"
#include "source.h"

struct mt_pool_routes {
    uint8_t *of_event;   /* by event number: 1 + pool, 0 = no match */
    size_t count;        /* room, all of it in use */
    uint16_t first_pool; /* id of pool 0, beyond those of the trace */
    uint32_t pool_count;
};

/* Start of the pools in a policy's text: at " --pool ", or its end. */
const char *mt_pool_routes_text(const char *policy);

/* The next selector of such a text, which moves on; NULL at its end. */
const char *mt_pool_routes_next(const char **text, size_t *length);

/* `text` is the result of mt_pool_routes_text: if it is empty, so are the routes. Otherwise reads
 * the source from its start to its end, and rewinds it. A selector without matches is MT_ERR_USAGE.
 * Memory: one byte per event. */
enum mt_status mt_pool_routes_make(struct mt_source *source, const char *text,
                                   struct mt_pool_routes *routes,
                                   struct mt_error *error) MT_MUST_USE;
void mt_pool_routes_release(struct mt_pool_routes *routes);

/* 1 + pool of the request, 0 = none. */
static inline uint32_t mt_pool_routes_of(const struct mt_pool_routes *routes, uint64_t seq)
{
    return seq < routes->count ? routes->of_event[seq] : 0;
}

#endif
