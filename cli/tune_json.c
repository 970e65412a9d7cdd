/* memtrace.tune/1 */
#include "json.h"
#include "tune_output.h"

static void add_row(struct mt_json *json, const char *key, const struct mt_tune_answer *answer,
                    const struct mt_tune_row *row)
{
    mt_json_object_begin(json, key);
    mt_json_text(json, "conf", row->conf);
    mt_json_bool(json, "serves", row->serves);
    mt_json_u64(json, "reserved_peak_bytes", row->reserved_peak_bytes);
    mt_json_u64_or_null(json, "fit_bytes", answer->has_fits && row->fit_bytes, row->fit_bytes);
    mt_json_u64(json, "device_allocs", row->device_allocs);
    mt_json_u64(json, "device_frees", row->device_frees);
    mt_json_u64(json, "retries", row->retries);
    mt_json_u64(json, "address_ties", row->address_ties);
    mt_json_object_end(json);
}

void mt_tune_print_json(struct mt_buf *out, const struct mt_tune_answer *answer)
{
    const struct mt_tune_summary *summary = answer->summary;
    struct mt_json json;
    size_t i;

    mt_json_init(&json, out, true);
    mt_json_object_begin(&json, NULL);
    mt_json_text(&json, "schema", "memtrace.tune/1");
    mt_json_u64(&json, "settings_tried", summary->tried);
    mt_json_u64_or_null(&json, "limit_bytes", answer->limit_bytes, answer->limit_bytes);
    add_row(&json, "current", answer, &summary->current);
    mt_json_bool(&json, "current_is_best", summary->best == MT_TUNE_CURRENT);
    add_row(&json, "best", answer, mt_tune_best(summary));
    mt_json_array_begin(&json, "front");
    for (i = 0; i < summary->front_count; i++)
        add_row(&json, NULL, answer, &summary->front[i]);
    mt_json_array_end(&json);
    mt_json_object_end(&json);
}
