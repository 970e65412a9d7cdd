/* The limit of a run: recorded, or inferred from its refused requests. */
#include <string.h>

#include "limit.h"
#include "process_memory.h"
#include "pytorch_config.h"
#include "replay_result.h"
#include "source.h"
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
    for (uint16_t i = 0; i < MT_MAX_DEVICES; i++)
        if (mt_limit_matters_on(watch, i))
            return true;
    return false;
}

enum mt_status mt_limit_watch_source(struct mt_limit_watch *watch, struct mt_source *source,
                                     struct mt_error *error)
{
    struct mt_event_batch batch;
    enum mt_status status;

    while ((status = mt_source_next(source, &batch, error)) == MT_OK) {
        for (size_t i = 0; i < batch.count; i++) {
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
    size_t used = 0;

    for (size_t i = 0; i < MT_MAX_DEVICES; i++) {
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

static void begin_group(struct mt_limit_evidence *evidence)
{
    if (evidence->in_group)
        return;
    evidence->in_group = true;
    evidence->at_group_start = evidence->reserved_bytes;
    evidence->granted_bytes = 0;
    evidence->freed = false;
}

static void observe_segment(struct mt_limit_evidence *evidence, const struct mt_event *event)
{
    begin_group(evidence);
    if (event->kind == MT_EVENT_SEGMENT_ALLOC || event->kind == MT_EVENT_SEGMENT_MAP) {
        evidence->reserved_bytes += event->size_bytes;
        evidence->granted_bytes = mt_max_u64(evidence->granted_bytes, event->size_bytes);
        if (event->kind == MT_EVENT_SEGMENT_ALLOC)
            evidence->low_bytes = mt_max_u64(evidence->low_bytes, evidence->reserved_bytes);
    } else {
        evidence->reserved_bytes -= mt_min_u64(event->size_bytes, evidence->reserved_bytes);
        evidence->freed = true;
    }
}

static void refused(struct mt_limit_evidence *evidence, uint64_t total)
{
    evidence->high_bytes = mt_min_u64(evidence->high_bytes, total);
}

/* A request that failed, or that caused a group of segment events. */
static void observe_request(struct mt_limit_evidence *evidence,
                            const struct mt_pytorch_config *config, const struct mt_event *event)
{
    uint64_t size = mt_min_u64(event->size_bytes, (uint64_t)1 << 48);
    uint64_t wanted = mt_pytorch_segment_size(config, mt_pytorch_round_size(config, size));

    evidence->refused = evidence->refused || event->kind == MT_EVENT_OOM;
    if (event->kind == MT_EVENT_OOM)
        refused(evidence, evidence->reserved_bytes + wanted);
    /* Memory was released and then taken. Without garbage collection and explicit flushes this is a
     * retry after a refusal. */
    else if (evidence->freed && evidence->granted_bytes && !evidence->explicit_flush &&
             !(config->gc_threshold > 0))
        refused(evidence, evidence->at_group_start + wanted);
    else if (evidence->freed && config->gc_threshold > 0 && !evidence->explicit_flush) {
        evidence->garbage_collected = true;
        evidence->high_bytes =
            mt_min_u64(evidence->high_bytes,
                       (uint64_t)((double)evidence->at_group_start / config->gc_threshold) + 1);
    }
    /* Granted immediately, so the allocator's check passed. The checked size is larger than the
     * mapped one for expandable segments. */
    else if (evidence->granted_bytes && !evidence->freed)
        evidence->low_bytes = mt_max_u64(evidence->low_bytes, evidence->at_group_start + wanted);
}

static void end_group(struct mt_limit_evidence *evidence)
{
    evidence->in_group = false;
    evidence->explicit_flush = false;
}

void mt_limit_observe(struct mt_limit_evidence *evidence, const struct mt_pytorch_config *config,
                      const struct mt_event *event)
{
    if (!evidence->high_bytes)
        evidence->high_bytes = UINT64_MAX;
    if (event->kind == MT_EVENT_EMPTY_CACHE) {
        evidence->in_group = false;
        evidence->explicit_flush = true;
    } else if (event->flags & MT_EVENT_INITIAL) {
        if (mt_event_is_segment(event))
            evidence->reserved_bytes += event->size_bytes;
        evidence->low_bytes = mt_max_u64(evidence->low_bytes, evidence->reserved_bytes);
    } else if (mt_event_is_segment(event)) {
        observe_segment(evidence, event);
    } else if (event->kind == MT_EVENT_ALLOC || event->kind == MT_EVENT_OOM) {
        if (evidence->in_group || event->kind == MT_EVENT_OOM)
            observe_request(evidence, config, event);
        end_group(evidence);
    } else if (evidence->in_group) {
        end_group(evidence);
    }
}

uint64_t mt_limit_choose(const struct mt_limit_evidence *evidence)
{
    if (!evidence->high_bytes || evidence->high_bytes == UINT64_MAX ||
        evidence->low_bytes >= evidence->high_bytes)
        return 0;
    uint64_t whole = mt_round_down(evidence->high_bytes - 1, MT_MIB);
    return whole >= evidence->low_bytes && whole ? whole : evidence->low_bytes;
}
