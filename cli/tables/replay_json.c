#include <stdio.h>

#include "check.h"
#include "json.h"
#include "pool_option.h"
#include "replay_json.h"
#include "replay_result.h"
#include "report_query.h"
#include "units.h"
#include "util.h"

const char *mt_restore_doubt(const struct mt_restore_share *share, unsigned number,
                             char text[MT_RESTORE_DOUBT_TEXT])
{
    const struct {
        uint64_t count;
        const char *words;
    } doubts[MT_RESTORE_DOUBTS] = {
        {share->unplaced, "blocks at given addresses did not fit in the simulated pool and were "
                          "allocated as ordinary requests: the peaks are approximate"},
        {share->unsearched,
         "blocks at given addresses were allocated as ordinary requests, because the pool has too "
         "many free blocks to search: the peaks are approximate"},
        {share->gaps_left_out,
         "gaps are omitted, because the simulated pool is divided in another way: allocated and "
         "requested do not count what PyTorch allocates and frees to reach an address"},
        {share->segments_unwatched,
         "segments of private pools were not tracked, because too many existed at once: pools that "
         "are restored with them are replayed as ordinary requests"},
    };
    char count[MT_UNITS_TEXT];

    MT_ASSERT(number < MT_RESTORE_DOUBTS);
    if (!doubts[number].count)
        return NULL;
    snprintf(text, MT_RESTORE_DOUBT_TEXT, "%s %s", mt_format_count(count, doubts[number].count),
             doubts[number].words);
    return text;
}

void mt_json_covered(struct mt_json *json, const struct mt_replay_verify *verify)
{
    mt_json_u64(json, "frees", verify->frees);
    mt_json_u64(json, "frees_exact", verify->frees_exact);
    mt_json_u64(json, "end_levels", verify->end_levels);
    mt_json_u64(json, "end_levels_exact", verify->end_levels_exact);
    mt_json_array_begin(json, "exact_counters");
    for (unsigned i = 0; i < MT_COVERED_COUNTERS; i++)
        if (verify->covered >> i & 1)
            mt_json_text(json, NULL, mt_covered_name(i));
    mt_json_array_end(json);
}

/* {policy, allocations, addresses_exact, segment_events, segment_events_exact,
 * ooms, ooms_exact, exact, frees, frees_exact, end_levels, end_levels_exact, exact_counters,
 * taken_over, first_difference}; null if nothing was compared. */
static void json_verify(struct mt_json *json, const char *key, const char *policy,
                        const struct mt_replay_result *result)
{
    const struct mt_replay_verify *verify = &result->verify;

    if (!verify->wanted) {
        mt_json_null(json, key);
        return;
    }
    mt_json_object_begin(json, key);
    mt_json_text(json, "policy", policy);
    mt_json_u64(json, "allocations", verify->allocations);
    mt_json_u64(json, "addresses_exact", verify->addresses_exact);
    mt_json_u64(json, "segment_events", verify->segment_events);
    mt_json_u64(json, "segment_events_exact", verify->segment_events_exact);
    mt_json_u64(json, "segment_events_unexpected", verify->unexpected_segment_events);
    mt_json_u64(json, "ooms", verify->ooms);
    mt_json_u64(json, "ooms_exact", verify->ooms_exact);
    mt_json_bool(json, "exact", mt_replay_matches_recording(verify));
    mt_json_covered(json, verify);
    mt_json_bool(json, "taken_over", result->is_taken_over);
    mt_json_text(json, "first_difference",
                 verify->first_difference[0] ? verify->first_difference : NULL);
    mt_json_object_end(json);
}

void mt_json_limit(struct mt_json *json, const struct mt_replay_result *result)
{
    mt_json_u64_or_null(json, "limit_bytes", result->limit_bytes && !result->limit_inferred,
                        result->limit_bytes);
    if (!result->limit_inferred) {
        mt_json_null(json, "limit_deduced");
        return;
    }
    mt_json_object_begin(json, "limit_deduced");
    if (mt_limit_is_known(result)) {
        mt_json_u64(json, "at_least_bytes", result->limit_low_bytes);
        mt_json_u64(json, "below_bytes", result->limit_high_bytes);
    } else {
        mt_json_u64(json, "for_example_bytes", result->limit_low_bytes);
    }
    mt_json_object_end(json);
}

static void add_free_order(struct mt_json *json, const struct mt_replay_result *result)
{
    static const char *const names[] = {
        [MT_FREE_LOWEST] = "lowest_address",
        [MT_FREE_OLDEST_BLOCK] = "oldest_block",
        [MT_FREE_OLDEST_SEGMENT] = "oldest_segment",
    };

    mt_json_text(json, "free_order", names[result->free_order]);
}

static void add_plan(struct mt_json *json, const struct mt_plan_share *plan)
{
    if (!plan->arena_bytes)
        return;
    mt_json_object_begin(json, "plan");
    mt_json_u64(json, "arena_bytes", plan->arena_bytes);
    mt_json_u64(json, "lower_bound_bytes", plan->bound_bytes);
    mt_json_u64(json, "steps", plan->steps);
    mt_json_u64(json, "equal_steps", plan->equal_steps);
    mt_json_u64(json, "requests", plan->requests);
    mt_json_u64(json, "requests_from_arena", plan->hits);
    mt_json_u64(json, "requests_place_taken", plan->misses);
    mt_json_object_end(json);
}

void mt_json_restores(struct mt_json *json, const struct mt_restore_share *share)
{
    mt_json_object_begin(json, "restores");
    mt_json_u64(json, "restores", share->restores);
    mt_json_u64(json, "blocks", share->blocks);
    mt_json_u64(json, "gaps", share->gaps);
    mt_json_u64(json, "blocks_unplaced", share->unplaced);
    mt_json_u64(json, "blocks_unsearched", share->unsearched);
    mt_json_u64(json, "gaps_left_out", share->gaps_left_out);
    mt_json_u64(json, "segments_unwatched", share->segments_unwatched);
    mt_json_object_end(json);
}

void mt_json_replay_result(struct mt_json *json, const char *policy,
                           const struct mt_replay_result *result)
{
    const struct mt_counters *counters = &result->counters;

    mt_json_object_begin(json, NULL);
    mt_json_text(json, "policy", policy);
    mt_json_bool(json, "exact", result->policy_exact);
    mt_json_u64(json, "device", result->device);
    mt_json_text(json, "addresses", result->recorded_addresses ? "recorded" : "synthetic");
    add_free_order(json, result);
    mt_json_u64(json, "address_ties", result->address_ties);
    mt_json_u64(json, "address_orders", mt_max_u64(result->order_count, 1));
    mt_json_u64(json, "reserved_low_bytes",
                result->order_count ? result->reserved_low_bytes : counters->reserved.peak);
    mt_json_u64(json, "reserved_high_bytes",
                result->order_count ? result->reserved_high_bytes : counters->reserved.peak);
    mt_json_u64(json, "allocated_low_bytes",
                result->order_count ? result->allocated_low_bytes : counters->allocated.peak);
    mt_json_u64(json, "allocated_high_bytes",
                result->order_count ? result->allocated_high_bytes : counters->allocated.peak);
    mt_json_limit(json, result);
    mt_json_u64(json, "pools_inferred", result->pools_inferred);
    mt_json_pool_shares(json, policy, result->pools);
    mt_json_restores(json, &result->restores);
    add_plan(json, &result->plan);
    mt_json_u64(json, "requested_peak_bytes", counters->requested.peak);
    mt_json_u64(json, "allocated_peak_bytes", counters->allocated.peak);
    mt_json_u64(json, "active_peak_bytes", counters->active.peak);
    mt_json_u64(json, "reserved_peak_bytes", counters->reserved.peak);
    mt_json_u64(json, "inactive_split_peak_bytes", counters->inactive_split.peak);
    mt_json_u64(json, "segments_peak", counters->segments.peak);
    mt_json_u64(json, "device_allocs", counters->device_allocs);
    mt_json_u64(json, "device_frees", counters->device_frees);
    mt_json_u64(json, "ooms", counters->ooms);
    mt_json_u64(json, "retries", counters->retries);
    mt_json_u64(json, "failed_requests", result->failed_requests);
    mt_json_u64(json, "ooms_not_asked", result->ooms_not_asked);
    mt_json_u64(json, "orphan_frees", result->orphan_frees);
    mt_json_bool(json, "starts_in_middle", result->starts_in_middle);
    json_verify(json, "verify", policy, result);
    mt_json_object_end(json);
}
