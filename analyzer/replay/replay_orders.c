#include "replay_orders.h"

#include <stdlib.h>

#include "process_memory.h"
#include "util.h"

void mt_replay_use_order(struct mt_replay_options *options, uint32_t index, bool recorded)
{
    options->blind = recorded ? index > 0 : options->blind;
    options->order = mt_base_order_at(recorded && index > 0 ? index - 1 : index);
}

/* Every replay of a source has the devices in the same order. */
static bool begin(struct mt_replay_summary *summary)
{
    bool open = false;

    for (uint16_t i = 0; i < summary->device_count; i++) {
        struct mt_replay_result *result = &summary->devices[i];

        result->order_count = 1;
        result->reserved_low_bytes = result->counters.reserved.peak;
        result->reserved_high_bytes = result->counters.reserved.peak;
        result->allocated_low_bytes = result->counters.allocated.peak;
        result->allocated_high_bytes = result->counters.allocated.peak;
        result->most_failed_requests = result->failed_requests;
        open |= result->address_ties > 0;
    }
    return open;
}

static void widen_range(uint64_t *low, uint64_t *high, uint64_t peak)
{
    *low = mt_min_u64(*low, peak);
    *high = mt_max_u64(*high, peak);
}

static void widen(struct mt_replay_summary *summary, const struct mt_replay_summary *other)
{
    for (uint16_t i = 0; i < summary->device_count && i < other->device_count; i++) {
        struct mt_replay_result *result = &summary->devices[i];
        const struct mt_counters *counters = &other->devices[i].counters;

        if (!result->address_ties)
            continue;
        result->order_count++;
        widen_range(&result->reserved_low_bytes, &result->reserved_high_bytes,
                    counters->reserved.peak);
        widen_range(&result->allocated_low_bytes, &result->allocated_high_bytes,
                    counters->allocated.peak);
        result->most_failed_requests =
            mt_max_u64(result->most_failed_requests, other->devices[i].failed_requests);
    }
}

enum mt_status mt_replay_orders(struct mt_source *source, const struct mt_replay_options *options,
                                uint32_t orders, struct mt_replay_summary *summary,
                                struct mt_error *error)
{
    struct mt_replay_options with = *options;
    struct mt_replay_summary *other;
    enum mt_status status = MT_OK;

    if (!begin(summary) || orders < 2)
        return MT_OK;
    other = mt_memory_new(sizeof *other);
    for (uint32_t i = 1; status == MT_OK && i < orders && i < MT_BASE_ORDERS; i++) {
        mt_replay_use_order(&with, i, summary->devices[0].recorded_addresses);
        status = mt_source_rewind(source, error);
        if (status == MT_OK)
            status = mt_replay_run(source, &with, NULL, other, error);
        if (status == MT_OK)
            widen(summary, other);
    }
    free(other);
    return status;
}
