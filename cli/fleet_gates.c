#include "fleet_gates.h"

#include <stdlib.h>
#include <string.h>

#include "escape.h"
#include "json_list.h"
#include "units.h"
#include "wrapped_text.h"

static int refuse(const char *option, const char *text, const struct mt_error *error)
{
    mt_say("fleet: --%s %s: %s", option, text, error->text);
    return MT_EXIT_USAGE;
}

/* A share is read as that of a rule of analyze. */
static int read_imbalance(struct mt_fleet_gates *gates, const char *text)
{
    struct mt_gate_rules rules = {0};
    struct mt_error error = {.offset = MT_NO_OFFSET};
    int code = MT_EXIT_OK;

    if (mt_gate_rules_add(&rules, MT_GATE_FRAGMENTATION, text, &error) != MT_OK) {
        code = refuse("max-imbalance", text, &error);
    } else if (!rules.rules[0].limit.text || rules.rules[0].warn.text) {
        mt_say("fleet: --max-imbalance is a share of the mean, such as 5%%");
        code = MT_EXIT_USAGE;
    } else {
        gates->imbalance_ppm = rules.rules[0].limit.millionths;
    }
    mt_gate_rules_release(&rules);
    return code;
}

int mt_fleet_gates_read(struct mt_fleet_gates *gates, const struct mt_fleet_gate_options *options)
{
    struct mt_error error = {.offset = MT_NO_OFFSET};

    gates->imbalance_ppm = UINT64_MAX;
    gates->has_rules = options->peaks.count || options->imbalance;
    for (size_t i = 0; i < options->peaks.count; i++)
        if (mt_gate_rules_add(&gates->rules, MT_GATE_PEAK, options->peaks.items[i], &error) !=
            MT_OK)
            return refuse("max-peak", options->peaks.items[i], &error);
    for (size_t i = 0; i < gates->rules.count; i++)
        if (gates->rules.rules[i].warn.text) {
            mt_say("fleet: --max-peak has no warnings: METRIC=BYTES, such as reserved=70GiB");
            return MT_EXIT_USAGE;
        }
    return options->imbalance ? read_imbalance(gates, options->imbalance) : MT_EXIT_OK;
}

/* False: the record does not know it. */
static bool peak_of(const struct mt_rank_record *record, enum mt_gate_metric metric,
                    uint64_t *bytes)
{
    switch (metric) {
    case MT_METRIC_REQUESTED: *bytes = record->requested_peak.bytes; return true;
    case MT_METRIC_ALLOCATED: *bytes = record->allocated_peak.bytes; return true;
    case MT_METRIC_ACTIVE: *bytes = record->active_peak.bytes; return true;
    case MT_METRIC_RESERVED: *bytes = record->reserved_peak.bytes; return true;
    case MT_METRIC_DEVICE: *bytes = record->driver_peak_bytes; return record->has_driver;
    case MT_METRIC_NONE: break;
    }
    return false;
}

/* Groups of the first axis, and behind them one of the ranks whose place on it is not known. */
static uint32_t group_count(const struct mt_job_report *report)
{
    return (report->axis_count ? report->axes[0].group_count : 0) + 1;
}

static int compare_coordinates(const void *a, const void *b)
{
    const struct mt_job_group *one = a, *other = b;

    return (one->coordinate > other->coordinate) - (one->coordinate < other->coordinate);
}

static uint32_t group_of(const struct mt_job_report *report, uint32_t row)
{
    const struct mt_job_axis *axis = report->axes;
    const struct mt_job_group wanted = {.coordinate = report->rows[row].coordinates[0]};
    const struct mt_job_group *group = NULL;

    if (report->axis_count && axis->group_count)
        group =
            bsearch(&wanted, axis->groups, axis->group_count, sizeof wanted, compare_coordinates);
    return group ? (uint32_t)(group - axis->groups) : group_count(report) - 1;
}

static const char *group_name(struct mt_fleet_gates *gates, const struct mt_job_report *report,
                              uint32_t group)
{
    if (group + 1 < group_count(report))
        return mt_arena_printf(&gates->arena, "%s %u", report->axes[0].name,
                               (unsigned)report->axes[0].groups[group].coordinate);
    return group ? mt_arena_printf(&gates->arena, "%s unknown", report->axes[0].name) : "all ranks";
}

/* The largest peak of the ranks. One that lacks the number keeps the rule from being kept, but not
 * from being broken. */
static void add_rank(struct mt_fleet_gate *gate, const struct mt_job_report *report, uint32_t row,
                     enum mt_gate_metric metric)
{
    uint64_t bytes = 0;

    if (!peak_of(report->rows[row].record, metric, &bytes) && gate->state == MT_FLEET_PASS)
        gate->state = MT_FLEET_NOT_EVALUATED;
    if (bytes > gate->limit)
        gate->state = MT_FLEET_FAIL;
    if (gate->row != MT_NO_ROW && bytes <= gate->actual)
        return;
    gate->actual = bytes;
    gate->row = row;
}

static enum mt_status check_peaks(struct mt_fleet_gates *gates, const struct mt_job_report *report,
                                  const struct mt_gate_rule *rule)
{
    struct mt_fleet_gate *list = gates->list + gates->count;
    uint32_t count = group_count(report);
    const char *name =
        mt_arena_printf(&gates->arena, "max-peak %s", mt_gate_metric_name(rule->metric));

    for (uint32_t g = 0; g < count; g++) {
        list[g] = (struct mt_fleet_gate){.rule = name,
                                         .group = group_name(gates, report, g),
                                         .row = MT_NO_ROW,
                                         .limit = rule->limit.bytes};
        if (!name || !list[g].group)
            return MT_ERR_MEMORY;
    }
    for (uint32_t i = 0; i < report->row_count; i++)
        add_rank(&list[group_of(report, i)], report, i, rule->metric);
    gates->count += count - (list[count - 1].row == MT_NO_ROW);
    return MT_OK;
}

/* Of the whole job: the largest reserved peak against the mean. */
static void check_imbalance(struct mt_fleet_gates *gates, const struct mt_job_report *report)
{
    gates->list[gates->count++] = (struct mt_fleet_gate){
        .rule = "max-imbalance",
        .group = "all ranks",
        .row = report->reserved.max_row,
        .actual = report->imbalance_ppm,
        .limit = gates->imbalance_ppm,
        .is_share = true,
        .state = report->imbalance_ppm > gates->imbalance_ppm ? MT_FLEET_FAIL : MT_FLEET_PASS};
}

enum mt_status mt_fleet_gates_check(struct mt_fleet_gates *gates,
                                    const struct mt_job_report *report)
{
    gates->list = mt_arena_array(&gates->arena, gates->rules.count * group_count(report) + 1,
                                 sizeof *gates->list);
    if (!gates->list)
        return MT_ERR_MEMORY;
    for (size_t i = 0; i < gates->rules.count; i++) {
        enum mt_status status = check_peaks(gates, report, &gates->rules.rules[i]);

        if (status != MT_OK)
            return status;
    }
    if (gates->imbalance_ppm != UINT64_MAX)
        check_imbalance(gates, report);
    for (uint32_t i = 0; i < gates->count; i++)
        gates->failed += gates->list[i].state != MT_FLEET_PASS;
    return MT_OK;
}

static const char *state_name(enum mt_fleet_gate_state state)
{
    static const char *const names[] = {"pass", "fail", "not evaluated"};

    return names[state];
}

/* "reserved peak of 78.1 GiB on rank 0, above 70.0 GiB" */
static const char *verdict_of(struct mt_fleet_gates *gates, const struct mt_job_report *report,
                              const struct mt_fleet_gate *gate)
{
    char actual[MT_UNITS_TEXT], limit[MT_UNITS_TEXT];
    const char *row = mt_job_row_name(&gates->arena, report, gate->row);

    if (gate->state == MT_FLEET_NOT_EVALUATED)
        return mt_arena_printf(&gates->arena, "%s, %s: not known for every rank", gate->rule,
                               gate->group);
    if (gate->is_share) {
        mt_format_percent(actual, (double)gate->actual / 1e6);
        mt_format_percent(limit, (double)gate->limit / 1e6);
        return mt_arena_printf(&gates->arena, "%s: %s has %s more than the mean, %s %s", gate->rule,
                               row, actual, gate->state == MT_FLEET_FAIL ? "above" : "within",
                               limit);
    }
    mt_format_bytes_apart(actual, gate->actual, limit, gate->limit);
    return mt_arena_printf(&gates->arena, "%s, %s: %s on %s, %s %s", gate->rule, gate->group,
                           actual, row, gate->state == MT_FLEET_FAIL ? "above" : "within", limit);
}

void mt_fleet_gates_text(struct mt_buf *out, struct mt_fleet_gates *gates,
                         const struct mt_job_report *report, const struct mt_style *style)
{
    if (!gates->has_rules)
        return;
    mt_buf_printf(out, "%s%s%s: %u of %u gates\n", gates->failed ? style->red : style->green,
                  gates->failed ? "FAIL" : "PASS", style->reset,
                  (unsigned)(gates->failed ? gates->failed : gates->count), (unsigned)gates->count);
    for (uint32_t i = 0; i < gates->count; i++) {
        const char *verdict;

        if (gates->failed && gates->list[i].state == MT_FLEET_PASS)
            continue;
        verdict = verdict_of(gates, report, &gates->list[i]);
        out->failed |= !verdict;
        mt_add_note(out, 2, "%s", verdict ? verdict : "");
    }
    mt_buf_add_char(out, '\n');
}

void mt_fleet_gates_json(struct mt_json *json, const struct mt_fleet_gates *gates,
                         const struct mt_job_report *report)
{
    struct mt_json_list list;

    mt_json_text(json, "verdict", gates->has_rules ? gates->failed ? "fail" : "pass" : NULL);
    mt_json_list_begin(&list, json, "gates");
    for (uint32_t i = 0; i < gates->count; i++) {
        const struct mt_fleet_gate *gate = &gates->list[i];

        if (!mt_json_list_takes(&list))
            continue;
        mt_json_object_begin(json, NULL);
        mt_json_text(json, "rule", gate->rule);
        mt_json_text(json, "group", gate->group);
        mt_json_text(json, "state", state_name(gate->state));
        mt_json_u64_or_null(json, "rank", report->rows[gate->row].record->identity.rank >= 0,
                            (uint64_t)report->rows[gate->row].record->identity.rank);
        mt_json_u64(json, gate->is_share ? "actual_ppm" : "actual_bytes", gate->actual);
        mt_json_u64(json, gate->is_share ? "limit_ppm" : "limit_bytes", gate->limit);
        mt_json_object_end(json);
    }
    mt_json_list_end(&list);
}

static void add_attribute(struct mt_buf *out, const char *name, const char *value)
{
    mt_buf_printf(out, " %s=\"", name);
    mt_add_xml_line(out, value ? value : "");
    out->failed |= !value;
    mt_buf_add_char(out, '"');
}

static void add_case(struct mt_buf *out, struct mt_fleet_gates *gates,
                     const struct mt_job_report *report, const struct mt_fleet_gate *gate)
{
    const char *verdict = verdict_of(gates, report, gate);

    mt_buf_add_text(out, "    <testcase classname=\"memtrace.fleet\"");
    add_attribute(out, "name", mt_arena_printf(&gates->arena, "%s, %s", gate->rule, gate->group));
    mt_buf_add_text(out, " time=\"0\">");
    if (gate->state != MT_FLEET_PASS) {
        mt_buf_add_text(out, "\n      <failure");
        add_attribute(out, "type", gate->state == MT_FLEET_FAIL ? "budget" : "not-evaluated");
        add_attribute(out, "message", verdict);
        mt_buf_add_char(out, '>');
        mt_add_xml_line(out, verdict ? verdict : "");
        mt_buf_add_text(out, "</failure>\n    ");
    }
    mt_buf_add_text(out, "</testcase>\n");
}

void mt_fleet_gates_junit(struct mt_buf *out, struct mt_fleet_gates *gates,
                          const struct mt_job_report *report)
{
    mt_buf_add_text(out,
                    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"memtrace\"");
    mt_buf_printf(out, " tests=\"%u\" failures=\"%u\" errors=\"0\" time=\"0\">\n",
                  (unsigned)gates->count, (unsigned)gates->failed);
    mt_buf_add_text(out, "  <testsuite");
    add_attribute(out, "name", *report->job ? report->job : "job");
    mt_buf_printf(out, " tests=\"%u\" failures=\"%u\" errors=\"0\" time=\"0\">\n",
                  (unsigned)gates->count, (unsigned)gates->failed);
    for (uint32_t i = 0; i < gates->count; i++)
        add_case(out, gates, report, &gates->list[i]);
    mt_buf_add_text(out, "  </testsuite>\n</testsuites>\n");
}

void mt_fleet_gates_release(struct mt_fleet_gates *gates)
{
    mt_gate_rules_release(&gates->rules);
    mt_arena_release(&gates->arena);
}
