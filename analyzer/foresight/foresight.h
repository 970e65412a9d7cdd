/* A policy as text, and facts about a whole trace that the text or the policy needs before a replay
 * begins. If neither needs any, the trace is not read, and the foresight is empty. */
#ifndef MT_ANALYZER_FORESIGHT_H
#define MT_ANALYZER_FORESIGHT_H

#include <stdbool.h>

#include "policy.h"
#include "replay_result.h"
#include "source.h"
#include "step_plan.h"

/* Assigns requests to pools that the run did not have.
 *
 * A policy's text may end with pools, as in
 *
 *     pytorch:expandable_segments:True --pool site=~embedding --pool size<1MiB
 *
 * Requests that a selector matches come from a private pool of their own, as
 * under torch.cuda.use_mem_pool; the first match counts. Requests that the run made in a private
 * pool stay there, and so do blocks alive at the start of the trace. The pools last as long as the
 * run and never release memory.
 *
 * A separate pass finds the matches, because a replay serves a request before it receives the
 * phases that precede it. */

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

/* 1 + pool of the request, 0 = none. */
static inline uint32_t mt_pool_routes_of(const struct mt_pool_routes *routes, uint64_t seq)
{
    return seq < routes->count ? routes->of_event[seq] : 0;
}

/* A policy as a user spells it: "name", "name:options", or a bare option string of PyTorch; pools
 * that the run did not have may follow "pytorch". */
struct mt_policy_text {
    const struct mt_policy_ops *ops;
    const char *options;       /* in `head`; NULL = none */
    const char *pools;         /* " --pool SELECTOR ...", in the text; "" = none */
    char head[MT_POLICY_TEXT]; /* the text without the pools */
};

/* `text` has to outlive the result. MT_ERR_USAGE with a reason. */
enum mt_status mt_policy_text_parse(const char *text, struct mt_policy_text *policy,
                                    struct mt_error *error) MT_MUST_USE;

/* Zeroed memory is empty. Large: keep it on the heap. */
struct mt_foresight {
    struct mt_pool_routes routes; /* of the pools in the text */
    struct mt_step_plan plan;     /* for `planned` */
};

/* Fills *foresight, released by the caller. The source must be at its start, and is there again
 * afterwards. */
enum mt_status mt_foresight_make(struct mt_source *source, const struct mt_policy_text *policy,
                                 struct mt_foresight *foresight,
                                 struct mt_error *error) MT_MUST_USE;
void mt_foresight_release(struct mt_foresight *foresight); /* accepts NULL */

/* Whether the policy needs foresight. */
static inline bool mt_foresight_is_wanted(const struct mt_policy_text *policy)
{
    return *policy->pools || policy->ops == &mt_policy_planned;
}

/* Selects requests: "site=~embedding,size>=20MiB,phase=~forward".
 *
 * Conditions that all have to hold, separated by commas:
 *   site=~REGEX   a frame of the stack has this in its function or in its
 *                 "file:line"; regular expressions are POSIX's extended ones
 *   phase=~REGEX  the phase's path ("step#3/forward") has it
 *   size OP SIZE  of >= > <= < =, the requested bytes
 * A comma belongs to the regular expression unless a condition follows it. */

struct mt_request_selector;

/* The text may be freed afterwards. MT_ERR_USAGE with a reason. */
enum mt_status mt_request_selector_new(const char *text, struct mt_request_selector **selector,
                                       struct mt_error *error) MT_MUST_USE;
void mt_request_selector_free(struct mt_request_selector *selector); /* accepts NULL */

/* A request, and its origin. */
struct mt_request_facts {
    const struct mt_event *event;
    const char *phase_path; /* NULL = in no phase */
    uint32_t phase;         /* number of that phase; each is matched once */
};

/* Every frame and phase is matched once; a stack then costs one lookup. */
void mt_request_selector_match(struct mt_request_selector *selector,
                               const struct mt_symbols *symbols,
                               const struct mt_request_facts *facts, bool *matches);

#endif
