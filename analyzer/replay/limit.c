#include "limit.h"

#include "util.h"

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
    uint64_t whole;

    if (!evidence->high_bytes || evidence->high_bytes == UINT64_MAX ||
        evidence->low_bytes >= evidence->high_bytes)
        return 0;
    whole = mt_round_down(evidence->high_bytes - 1, MT_MIB);
    return whole >= evidence->low_bytes && whole ? whole : evidence->low_bytes;
}
