/* memtrace.fit/1 */
#include "cards.h"
#include "fit_output.h"
#include "policy_runs.h"
#include "pool_option.h"
#include "json.h"
#include "json_list.h"

static void add_failure(struct mt_json *json, const char *key, const struct mt_fit_failure *failure)
{
    struct mt_json_list list;
    uint32_t i;

    if (!failure->known) {
        mt_json_null(json, key);
        return;
    }
    mt_json_object_begin(json, key);
    mt_json_u64(json, "event", failure->event);
    mt_json_u64(json, "size", failure->size_bytes);
    mt_json_text(json, "site", failure->site);
    mt_json_text(json, "phase", failure->phase);
    mt_json_u64(json, "allocated_bytes", failure->alive.allocated);
    mt_json_u64(json, "reserved_bytes", failure->alive.reserved);
    mt_json_list_begin(&list, json, "alive");
    for (i = 0; i < failure->site_count; i++) {
        if (!mt_json_list_takes(&list))
            continue;
        mt_json_object_begin(json, NULL);
        mt_json_text(json, "site", failure->sites[i].label);
        mt_json_u64(json, "bytes", failure->sites[i].block_bytes);
        mt_json_u64(json, "blocks", failure->sites[i].blocks);
        mt_json_object_end(json);
    }
    mt_json_list_end(&list);
    mt_json_object_end(json);
}

static void add_cards(struct mt_json *json, const struct mt_fit_result *result)
{
    const struct mt_card *card;

    mt_json_array_begin(json, "cards");
    for (card = mt_cards; card->name; card++) {
        enum mt_card_verdict verdict =
            result->fits ? mt_card_verdict(card, mt_fit_need_bytes(result)) : MT_CARD_NO;
        mt_json_object_begin(json, NULL);
        mt_json_text(json, "card", card->name);
        mt_json_u64(json, "memory_bytes", card->memory_bytes);
        mt_json_text(json, "verdict", mt_card_verdict_name(verdict));
        mt_json_object_end(json);
    }
    mt_json_array_end(json);
}

/* The result for each order of addresses that was tried. */
static void add_orders(struct mt_json *json, const struct mt_fit_result *result)
{
    mt_json_u64_or_null(json, "fit_low_bytes", result->fits, result->low_bytes);
    mt_json_u64_or_null(json, "fit_high_bytes", result->fits, result->high_bytes);
    mt_json_array_begin(json, "address_orders");
    for (uint32_t i = 0; i < result->order_count; i++) {
        const struct mt_fit_order *tried = &result->orders[i];

        mt_json_object_begin(json, NULL);
        mt_json_text(json, "order", tried->name);
        mt_json_u64_or_null(json, "seed", tried->order.rule == MT_ADDRESSES_RANDOM,
                            tried->order.seed);
        mt_json_u64_or_null(json, "fit_bytes", tried->fit_bytes > 0, tried->fit_bytes);
        mt_json_object_end(json);
    }
    mt_json_array_end(json);
}

static void add_result(struct mt_json *json, const struct mt_fit_answer *answer, const char *policy,
                       const struct mt_fit_result *result)
{
    mt_json_object_begin(json, NULL);
    mt_json_text(json, "policy", policy);
    mt_json_bool(json, "exact", result->policy_exact);
    mt_json_u64(json, "device", result->device);
    mt_json_pool_shares(json, policy, result->pools);
    mt_json_u64_or_null(json, "fit_bytes", result->fits, result->fit_bytes);
    mt_json_u64_or_null(json, "fails_at_bytes", result->fits && result->limits_tried > 0,
                        result->fails_at_bytes);
    add_failure(json, "first_failure", &result->first_failure);
    mt_json_bool(json, "behaviour_depends_on_memory", mt_fit_depends_on_memory(result));
    mt_json_u64(json, "recorded_ooms", result->recorded_ooms);
    mt_json_u64(json, "recorded_retries", result->recorded_retries);
    mt_json_u64_or_null(json, "died_of_bytes", result->died_at != MT_FIT_NOT_DIED,
                        result->died_bytes);
    mt_json_bool(json, "starts_in_middle", result->starts_in_middle);
    mt_json_u64_or_null(json, "fit_reserved_bytes", result->fits, result->fit_reserved_bytes);
    mt_json_u64(json, "reserved_peak_bytes", result->reserved_peak_bytes);
    mt_json_u64(json, "requested_peak_bytes", result->requested_peak_bytes);
    mt_json_u64(json, "address_ties", result->address_ties);
    add_orders(json, result);
    mt_json_u64(json, "lost_pool_segments", result->lost_segments);
    mt_json_bool(json, "monotone_checked",
                 result->fits && !result->smaller_fit_bytes && !result->larger_fail_bytes);
    mt_json_u64(json, "limits_tried", result->limits_tried);
    mt_json_u64_or_null(json, "smaller_fit_bytes", result->smaller_fit_bytes > 0,
                        result->smaller_fit_bytes);
    mt_json_u64_or_null(json, "larger_fail_bytes", result->larger_fail_bytes > 0,
                        result->larger_fail_bytes);
    if (answer->limit_bytes) {
        mt_json_u64(json, "limit_bytes", answer->limit_bytes);
        mt_json_bool(json, "limit_fits", result->limit_fits);
        mt_json_u64(json, "limit_fails_in_orders", result->limit_fail_count);
        add_failure(json, "limit_failure", &result->limit_failure);
    }
    if (!answer->no_cards)
        add_cards(json, result);
    mt_json_object_end(json);
}

void mt_fit_print_json(struct mt_buf *out, const struct mt_fit_answer *answer)
{
    struct mt_json json;
    struct mt_json_list list;
    size_t i, d;

    mt_json_init(&json, out, true);
    json.all = answer->all;
    mt_json_object_begin(&json, NULL);
    mt_json_text(&json, "schema", "memtrace.fit/1");
    mt_json_requests(&json, answer->source);
    mt_json_bool(&json, "xla_requests_missing", answer->xla_requests_missing);
    mt_json_list_begin(&list, &json, "policies");
    for (i = 0; i < answer->count; i++) {
        const struct mt_fit_summary *summary = &answer->summaries[i];
        for (d = 0; d < summary->device_count; d++)
            if (mt_json_list_takes(&list))
                add_result(&json, answer, summary->policy, &summary->devices[d]);
    }
    mt_json_list_end(&list);
    mt_json_object_end(&json);
}
