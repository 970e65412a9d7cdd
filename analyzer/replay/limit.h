/* Infers the allocator's memory limit from a trace. A snapshot does not contain it, but every
 * granted segment and every refused request bounds it. All limits within the bounds give the same
 * replay. */
#ifndef MT_ANALYZER_LIMIT_H
#define MT_ANALYZER_LIMIT_H

#include "pytorch_config.h"
#include "replay_result.h"
#include "source.h"

struct mt_limit_evidence {
    uint64_t low_bytes; /* at least this much was granted */
    uint64_t
        high_bytes; /* this much was refused, so the limit is below; UINT64_MAX = never refused */
    bool refused;   /* the program got an out-of-memory error */
    bool garbage_collected; /* segments were freed without a refusal; the amount depends on the
                               limit */
    /* PRIVATE: state of the scan */
    uint64_t reserved_bytes, at_group_start;
    uint64_t granted_bytes; /* largest single grant in the group */
    bool in_group, freed, explicit_flush;
};

/* Returns true if an event can change the evidence. Most events cannot and need not be passed on,
 * such as requests that were served at once and frees outside of a group. */
static inline bool mt_limit_is_evidence(const struct mt_limit_evidence *evidence,
                                        const struct mt_event *event)
{
    return evidence->in_group || evidence->explicit_flush ||
           event->kind > MT_EVENT_FREE_COMPLETED || (event->flags & MT_EVENT_INITIAL);
}

/* Takes the events of one device, in order. O(1). */
void mt_limit_observe(struct mt_limit_evidence *evidence, const struct mt_pytorch_config *config,
                      const struct mt_event *event);

/* Returns the limit to replay with: a whole number of MiB within the bounds if there is one.
 * Returns 0 if nothing was ever refused or the bounds contradict each other. */
uint64_t mt_limit_choose(const struct mt_limit_evidence *evidence);

/* Infers the limits of a recorded run, one per device, from its events. If the evidence is
 * garbage collection, replays search for the limit. */

struct mt_limit_watch {
    struct mt_pytorch_config config; /* recorded */
    struct mt_limit_evidence devices[MT_MAX_DEVICES];
    uint64_t tested_bytes[MT_MAX_DEVICES]; /* the largest sum that a replay without a limit would
                                              have compared with a limit; set by the caller */
};

/* Release the result with free(). */
struct mt_limit_watch *mt_limit_watch_new(const struct mt_trace_header *header);

/* Takes the events of the run in order, for all devices. Returns true if the event may be evidence
 * of a limit. */
static inline bool mt_limit_watch_event(struct mt_limit_watch *watch, const struct mt_event *event)
{
    if (event->device >= MT_MAX_DEVICES ||
        !mt_limit_is_evidence(&watch->devices[event->device], event))
        return false;
    mt_limit_observe(&watch->devices[event->device], &watch->config, event);
    return true;
}

/* Forgets all events. */
void mt_limit_watch_restart(struct mt_limit_watch *watch);

/* Call it after a watched replay without a limit. Returns true if a limit that agrees with the
 * events would have changed that replay. */
bool mt_limit_matters(const struct mt_limit_watch *watch);

/* Like mt_limit_matters, for one device and the events so far. */
bool mt_limit_matters_on(const struct mt_limit_watch *watch, uint16_t device);

/* Watches the whole source from its start, and rewinds it. */
enum mt_status mt_limit_watch_source(struct mt_limit_watch *watch, struct mt_source *source,
                                     struct mt_error *error) MT_MUST_USE;

/* Makes one replay of the whole source under a limit, from its start, and compares it with the
 * recorded run. Rewinds the source. *verify is valid if *compared is set, that is, if a device has
 * events. */
struct mt_limit_trial {
    void *context;
    enum mt_status (*replay)(void *context, uint64_t limit_bytes, bool *compared,
                             struct mt_replay_verify *verify, struct mt_error *error);
};

/* Call it after all events. Narrows the bounds that garbage collection gives, by trials with
 * different limits. */
enum mt_status mt_limit_search(struct mt_limit_watch *watch, const struct mt_limit_trial *trial,
                               struct mt_error *error) MT_MUST_USE;

#endif
