/* Infers the limits of a recorded run, one per device, from its events (limit.h). If the evidence
 * is garbage collection, replays search for the limit. */
#ifndef MT_ANALYZER_LIMIT_INFER_H
#define MT_ANALYZER_LIMIT_INFER_H

#include "limit.h"

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
    if (event->device >= MT_MAX_DEVICES || !mt_limit_tells(&watch->devices[event->device], event))
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
