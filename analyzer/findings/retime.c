#include "retime.h"
#include "process_memory.h"
#include "report_query.h"
#include "read_again.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"

static void add(struct mt_retime *retime, uint16_t device, uint64_t before,
                const struct mt_life *life, uint8_t kind)
{
    const struct mt_event event = {.seq = before,
                                   .addr = life->addr,
                                   .size_bytes = life->requested_bytes,
                                   .stack = life->stack,
                                   .name = MT_NO_ID,
                                   .stream = life->stream,
                                   .device = device,
                                   .heap = life->heap,
                                   .pool = life->pool,
                                   .kind = kind};

    mt_grow_to(&retime->events, &retime->capacity, retime->count + 1, sizeof *retime->events);
    retime->events[retime->count] = (struct mt_retimed){{before, event}, retime->count};
    retime->count++;
}

void mt_retime_free(struct mt_retime *retime, uint16_t device, uint64_t before,
                    const struct mt_life *life)
{
    add(retime, device, before, life, MT_EVENT_FREE_REQUESTED);
    add(retime, device, before, life, MT_EVENT_FREE_COMPLETED);
}

void mt_retime_alloc(struct mt_retime *retime, uint16_t device, uint64_t before,
                     const struct mt_life *life)
{
    add(retime, device, before, life, MT_EVENT_ALLOC);
}

void mt_retime_release(struct mt_retime *retime)
{
    free(retime->events);
    memset(retime, 0, sizeof *retime);
}

static int by_place(const void *a, const void *b)
{
    const struct mt_retimed *x = a, *y = b;

    if (x->at.before != y->at.before)
        return x->at.before < y->at.before ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* Merges the existing overlay with these changes; among two events at one place, the source's come
 * first. */
static void merge(const struct mt_retime *retime, const struct mt_overlay *old,
                  struct mt_overlay *merged)
{
    size_t i = 0, j = 0, count = 0;

    merged->events = mt_memory_zeroed(old->count + retime->count + 1, sizeof *merged->events);
    while (i < old->count || j < retime->count) {
        bool is_old = j == retime->count ||
                      (i < old->count && old->events[i].before <= retime->events[j].at.before);
        merged->events[count++] = is_old ? old->events[i++] : retime->events[j++].at;
    }
    merged->count = merged->capacity = count;
    merged->hides_ranges = old->hides_ranges;
    merged->chosen = true;
}

enum mt_status mt_retime_replay(struct mt_retime *retime, struct mt_finding_search *search,
                                struct mt_retimed_peaks *peaks)
{
    struct mt_analysis *analysis = search->analysis;
    struct mt_source *source = analysis->source;
    uint64_t most_reserved_bytes[MT_MAX_DEVICES] = {0}; /* other devices do not matter */
    /* The comparison with the recording is meaningless here, so nothing is inferred from it. */
    const struct mt_replay_options options = {.policy = analysis->report->policy,
                                              .limit_bytes =
                                                  mt_least_limit_bytes(&search->device->replay),
                                              .no_inferred_limit = true,
                                              .no_inferred_pools = true,
                                              .most_reserved_bytes = most_reserved_bytes};
    struct mt_replay_summary *trial = mt_memory_zeroed(1, sizeof *trial);
    struct mt_overlay old = source->overlay;
    struct mt_overlay merged = {0};
    enum mt_status status;
    uint32_t i;

    memset(peaks, 0, sizeof *peaks);
    most_reserved_bytes[search->device->device] =
        retime->within_reserved ? search->device->reserved_peak.bytes : UINT64_MAX;
    if (retime->count)
        qsort(retime->events, retime->count, sizeof *retime->events, by_place);
    merge(retime, &old, &merged);
    source->overlay = merged;
    status = mt_read_again_replay(analysis, &options, trial);
    mt_overlay_release(&source->overlay);
    source->overlay = old;
    for (i = 0; status == MT_OK && i < trial->device_count; i++) {
        const struct mt_replay_result *result = &trial->devices[i];
        if (result->device == search->device->device && !result->failed_requests &&
            !result->given_up)
            *peaks = (struct mt_retimed_peaks){true, result->counters.allocated.peak,
                                               result->counters.reserved.peak};
    }
    free(trial);
    return status;
}
