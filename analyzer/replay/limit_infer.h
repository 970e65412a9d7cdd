/* The limits of a recorded run, device by device, from the evidence of its
 * events (limit.h). Where that is garbage that was collected, the limit is
 * searched by replays. */
#ifndef MT_ANALYZER_LIMIT_INFER_H
#define MT_ANALYZER_LIMIT_INFER_H

#include "limit.h"

struct mt_limit_watch {
    struct mt_pytorch_config config; /* recorded */
    struct mt_limit_evidence devices[MT_MAX_DEVICES];
    uint64_t tested_bytes[MT_MAX_DEVICES]; /* most that a replay without a limit would have held
                                              against one: the caller's to set */
};

/* NULL without memory. Release with free(). */
struct mt_limit_watch *mt_limit_watch_new(const struct mt_trace_header *header);

/* One event of the run after the other, of all devices. True: it may have told of
 * a limit. */
static inline bool mt_limit_watch_event(struct mt_limit_watch *watch, const struct mt_event *event)
{
    if (event->device >= MT_MAX_DEVICES || !mt_limit_tells(&watch->devices[event->device], event))
        return false;
    mt_limit_observe(&watch->devices[event->device], &watch->config, event);
    return true;
}

/* Forgets all events. */
void mt_limit_watch_restart(struct mt_limit_watch *watch);

/* After a replay without a limit that was watched: would it have been another
 * under the limits that the events agree with? */
bool mt_limit_matters(const struct mt_limit_watch *watch);
/* The same of one device, by what was seen so far. */
bool mt_limit_matters_on(const struct mt_limit_watch *watch, uint16_t device);

/* Watches the whole source, which stands at its start, and rewinds it. */
enum mt_status mt_limit_watch_source(struct mt_limit_watch *watch, struct mt_source *source,
                                     struct mt_error *error) MT_MUST_USE;

/* One replay of the whole source under a limit, from its start, where it leaves the source: how
 * it compares with the recorded run. *verify means something if *compared is set to true, that
 * is, if a device has events. */
struct mt_limit_trial {
    void *context;
    enum mt_status (*replay)(void *context, uint64_t limit_bytes, bool *compared,
                             struct mt_replay_verify *verify, struct mt_error *error);
};

/* After all events: narrows the evidence of collected garbage down, by trials under one limit
 * after the other. */
enum mt_status mt_limit_search(struct mt_limit_watch *watch, const struct mt_limit_trial *trial,
                               struct mt_error *error) MT_MUST_USE;

#endif
