#include "limit_infer.h"

#include <stdlib.h>
#include <string.h>

#include "process_memory.h"
#include "util.h"

struct mt_limit_watch *mt_limit_watch_new(const struct mt_trace_header *header)
{
    struct mt_limit_watch *watch = mt_memory_zeroed(1, sizeof *watch);

    if (mt_pytorch_config_recorded(header, &watch->config, NULL) != MT_OK)
        mt_pytorch_config_defaults(&watch->config);
    return watch;
}

void mt_limit_watch_restart(struct mt_limit_watch *watch)
{
    memset(watch->devices, 0, sizeof watch->devices);
    memset(watch->tested_bytes, 0, sizeof watch->tested_bytes);
}

bool mt_limit_matters_on(const struct mt_limit_watch *watch, uint16_t device)
{
    const struct mt_limit_evidence *evidence = &watch->devices[device];
    uint64_t limit = mt_limit_choose(evidence);

    return evidence->garbage_collected ||
           (limit && (evidence->refused || watch->config.gc_threshold > 0 ||
                      watch->tested_bytes[device] > limit));
}

bool mt_limit_matters(const struct mt_limit_watch *watch)
{
    uint16_t i;

    for (i = 0; i < MT_MAX_DEVICES; i++)
        if (mt_limit_matters_on(watch, i))
            return true;
    return false;
}

enum mt_status mt_limit_watch_source(struct mt_limit_watch *watch, struct mt_source *source,
                                     struct mt_error *error)
{
    struct mt_event_batch batch;
    enum mt_status status;
    size_t i;

    while ((status = mt_source_next(source, &batch, error)) == MT_OK) {
        for (i = 0; i < batch.count; i++) {
            const struct mt_event *event = &batch.events[i];
            if (mt_event_is_memory(event) || event->kind == MT_EVENT_EMPTY_CACHE)
                (void)mt_limit_watch_event(watch, event);
        }
    }
    return status == MT_END ? mt_source_rewind(source, error) : status;
}

/* Garbage collection releases less with a higher limit. So the first group in which a replay
 * releases too much or too little shows on which side of its limit the real one is: bisection in
 * whole MiB. */
static enum mt_status search_one(struct mt_limit_evidence *evidence,
                                 const struct mt_limit_trial *trial, struct mt_error *error)
{
    uint64_t low = evidence->low_bytes / MT_MIB, high = evidence->high_bytes / MT_MIB + 1;
    uint64_t limit_bytes = 0;
    enum mt_status status = MT_OK;
    bool found = false;

    while (!found && low < high) {
        struct mt_replay_verify verify;
        uint64_t middle = low + (high - low) / 2;
        bool compared = false;

        limit_bytes = mt_max_u64(middle, 1) * MT_MIB;
        status = trial->replay(trial->context, limit_bytes, &compared, &verify, error);
        if (status != MT_OK || !compared)
            break;
        found = verify.actions_exact;
        if (!found && verify.excess_release_bytes < 0)
            high = middle;
        else if (!found)
            low = middle + 1;
    }
    evidence->low_bytes = found ? limit_bytes : 0;
    evidence->high_bytes = found ? limit_bytes + 1 : UINT64_MAX;
    return status;
}

/* The search compares one device. With several, the user must give a limit. */
enum mt_status mt_limit_search(struct mt_limit_watch *watch, const struct mt_limit_trial *trial,
                               struct mt_error *error)
{
    struct mt_limit_evidence *collected = NULL;
    size_t i, used = 0;

    for (i = 0; i < MT_MAX_DEVICES; i++) {
        used += watch->devices[i].low_bytes > 0;
        if (watch->devices[i].garbage_collected)
            collected = &watch->devices[i];
    }
    if (!collected)
        return MT_OK;
    if (used == 1)
        return search_one(collected, trial, error);
    collected->high_bytes = UINT64_MAX;
    return MT_OK;
}
