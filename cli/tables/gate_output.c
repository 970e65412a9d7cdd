/* Gates as text and as JSON, and a baseline as JSON. */
#include <string.h>

#include "gate_output.h"
#include "json.h"
#include "text_table.h"

static const char *color_of(enum mt_gate_state state, const struct mt_style *style)
{
    switch (state) {
    case MT_GATE_PASS: return style->green;
    case MT_GATE_WARN: return style->yellow;
    case MT_GATE_FAIL:
    case MT_GATE_NOT_EVALUATED: break;
    }
    return style->red;
}

static void add_line(struct mt_buf *out, size_t indent, const char *title, const char *text)
{
    if (!text)
        return;
    mt_buf_add_blanks(out, indent);
    mt_buf_add_text(out, title);
    mt_text_table_add_wrapped(out, text, indent + strlen(title), indent + 2);
    mt_buf_add_char(out, '\n');
}

/* "FAIL: peak reserved 19.3 GiB exceeds ..." */
static void add_verdict(struct mt_buf *out, const struct mt_gates *gates,
                        const struct mt_style *style)
{
    static const char *const words[] = {
        "PASS: ", "PASS, with a warning: ", "FAIL: ", "NOT EVALUATED: "};
    struct mt_buf line = {0};

    if (gates->verdict == MT_GATE_PASS)
        mt_buf_printf(&line, "%zu of %zu rules", gates->states[MT_GATE_PASS], gates->count);
    else
        mt_buf_add_text(&line, gates->results[0].verdict);
    if (gates->verdict == MT_GATE_PASS && gates->excused)
        mt_buf_printf(&line, ", %zu not evaluated (allowed)", gates->excused);
    mt_buf_printf(out, "%s%s%s", color_of(gates->verdict, style), style->bold,
                  words[gates->verdict]);
    mt_buf_add_text(out, style->reset);
    mt_text_table_add_wrapped(out, line.data ? line.data : "", strlen(words[gates->verdict]), 2);
    mt_buf_add_char(out, '\n');
    mt_buf_release(&line);
}

static void add_result(struct mt_buf *out, const struct mt_gate_result *result, bool is_reported)
{
    struct mt_buf line = {0};

    mt_buf_printf(&line, "%s: %s%s%s%s", result->name, mt_gate_state_name(result->state),
                  result->excused ? " (allowed)" : "", is_reported ? "" : ": ",
                  is_reported ? "" : result->verdict);
    add_line(out, 2, "", line.data);
    mt_buf_release(&line);
}

/* Returns true if an earlier rule has the same cause or advice, which is printed once. Rules of a
 * run often fail for the same reason. */
static bool is_reported(const struct mt_gates *gates, size_t index, bool is_advice)
{
    const char *text = is_advice ? gates->results[index].advice : gates->results[index].culprit;

    for (size_t i = 0; text && i < index; i++) {
        const char *other = is_advice ? gates->results[i].advice : gates->results[i].culprit;

        if (other && strcmp(other, text) == 0)
            return true;
    }
    return false;
}

void mt_gates_add_text(struct mt_buf *out, const struct mt_gates *gates,
                       const struct mt_style *style)
{
    add_verdict(out, gates, style);
    for (size_t i = 0; i < gates->count; i++) {
        const struct mt_gate_result *result = &gates->results[i];

        add_result(out, result, i == 0 && gates->verdict != MT_GATE_PASS);
        if (!is_reported(gates, i, false))
            add_line(out, 4, "cause: ", result->culprit);
        if (!is_reported(gates, i, true))
            add_line(out, 4, "try: ", result->advice);
    }
    if (gates->base)
        add_line(out, 2, "base: ", gates->base);
    mt_buf_add_char(out, '\n');
}

static void add_bound(struct mt_json *json, const char *key, int64_t bytes)
{
    if (bytes == INT64_MAX)
        mt_json_null(json, key);
    else
        mt_json_i64(json, key, bytes);
}

static void add_gate(struct mt_json *json, const struct mt_gate_result *result)
{
    bool has_metric = result->metric != MT_METRIC_NONE;

    mt_json_text(json, "rule", result->name);
    mt_json_text(json, "kind", mt_gate_kind_name(result->rule->kind));
    mt_json_text(json, "metric", has_metric ? mt_gate_metric_name(result->metric) : NULL);
    mt_json_u64(json, "device", result->device);
    mt_json_text(json, "state", mt_gate_state_name(result->state));
    mt_json_bool(json, "allowed", result->excused);
    add_bound(json, "actual_bytes", result->has_actual ? result->actual_bytes : INT64_MAX);
    add_bound(json, "limit_bytes", result->limit_bytes);
    add_bound(json, "warn_bytes", result->warn_bytes);
    mt_json_u64_or_null(json, "base_bytes", result->has_base, result->base_bytes);
    add_bound(json, "low_bytes", result->has_range ? result->low_bytes : INT64_MAX);
    add_bound(json, "high_bytes", result->has_range ? result->high_bytes : INT64_MAX);
    mt_json_bool(json, "may_fail", result->may_fail);
    mt_json_text(json, "verdict", result->verdict);
    mt_json_text(json, "culprit", result->culprit);
    mt_json_text(json, "advice", result->advice);
}

void mt_json_gates(struct mt_json *json, const struct mt_gates *gates)
{
    if (!gates)
        return;
    mt_json_text(json, "verdict", mt_gate_state_name(gates->verdict));
    for (struct mt_json_list row = mt_json_rows(json, "gates", gates->count); mt_json_next(&row);)
        add_gate(json, &gates->results[row.i]);
}

static void add_device(struct mt_json *json, const struct mt_baseline_device *device)
{
    mt_json_object_begin(json, NULL);
    mt_json_u64(json, "device", device->device);
    mt_json_u64(json, "requested_peak_bytes", device->requested_peak_bytes);
    mt_json_u64(json, "allocated_peak_bytes", device->allocated_peak_bytes);
    if (device->has_reserved || device->active_peak_bytes)
        mt_json_u64(json, "active_peak_bytes", device->active_peak_bytes);
    if (device->has_reserved)
        mt_json_u64(json, "reserved_peak_bytes", device->reserved_peak_bytes);
    if (device->device_peak_bytes)
        mt_json_u64(json, "device_peak_bytes", device->device_peak_bytes);
    mt_json_bool(json, "all_sites", device->all_sites);
    mt_json_array_begin(json, "sites");
    for (uint32_t i = 0; i < device->site_count; i++) {
        mt_json_object_begin(json, NULL);
        mt_json_text(json, "site", device->sites[i].site);
        mt_json_text(json, "phase", *device->sites[i].phase ? device->sites[i].phase : NULL);
        mt_json_u64(json, "bytes", device->sites[i].bytes);
        mt_json_object_end(json);
    }
    mt_json_array_end(json);
    mt_json_object_end(json);
}

void mt_baseline_add_json(struct mt_buf *out, const struct mt_baseline *baseline)
{
    struct mt_json json;

    /* a baseline is never shortened, because later runs are compared with it */
    mt_json_document(&json, out, MT_BASELINE_SCHEMA, true);
    mt_json_text(&json, "name", baseline->name);
    mt_json_text(&json, "sha256", baseline->sha256);
    mt_json_text(&json, "framework", baseline->framework);
    mt_json_text(&json, "options", baseline->options);
    mt_json_text(&json, "doubt", baseline->doubt);
    mt_json_array_begin(&json, "devices");
    for (uint32_t i = 0; i < baseline->device_count; i++)
        add_device(&json, &baseline->devices[i]);
    mt_json_array_end(&json);
    mt_json_object_end(&json);
    if (out->length && out->data[out->length - 1] != '\n')
        mt_buf_add_char(out, '\n');
}
