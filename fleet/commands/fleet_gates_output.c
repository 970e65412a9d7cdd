/* Results of the rules of a job as text, JSON and JUnit XML. */
#include "escape.h"
#include "fleet_gates.h"
#include "json.h"
#include "junit.h"
#include "text_table.h"
#include "units.h"

/* Returns the limit, or the bound for a warning. */
static uint64_t bound_of(const struct mt_job_gate *gate)
{
    return gate->state == MT_GATE_WARN || gate->limit == UINT64_MAX ? gate->warn : gate->limit;
}

static void format(char text[MT_UNITS_TEXT], const struct mt_job_gate *gate, uint64_t value)
{
    if (gate->unit == MT_JOB_GATE_PPM)
        mt_format_percent(text, (double)value / 1e6);
    else
        mt_format_count(text, value);
}

/* "max-peak reserved, pp 0: 78.1 GiB on rank 0, above 70.0 GiB" */
static const char *verdict_of(struct mt_fleet_gates *gates, const struct mt_job_report *report,
                              const struct mt_job_gate *gate)
{
    char actual[MT_UNITS_TEXT], limit[MT_UNITS_TEXT], base[MT_UNITS_TEXT];
    uint64_t bound = bound_of(gate);
    const char *side = gate->actual > bound ? "above" : "within", *row;
    const char *warning = gate->state == MT_GATE_WARN ? " (warning)" : "";

    if (gate->state == MT_GATE_NOT_EVALUATED)
        return mt_arena_printf(&gates->arena, "%s, %s: not evaluated: %s", gate->rule, gate->group,
                               gate->doubt);
    format(actual, gate, gate->actual);
    format(limit, gate, bound);
    if (gate->unit == MT_JOB_GATE_RANKS)
        return mt_arena_printf(&gates->arena, "%s: %s %s missing, %s %s%s", gate->rule, actual,
                               gate->actual == 1 ? "rank is" : "ranks are", side, limit, warning);
    row = gate->row == MT_NO_ROW ? "no rank" : mt_job_row_name(&gates->arena, report, gate->row);
    if (gate->unit == MT_JOB_GATE_PPM)
        return mt_arena_printf(&gates->arena, "%s: %s has %s more than the mean, %s %s%s",
                               gate->rule, row, actual, side, limit, warning);
    mt_format_bytes_distinct(actual, gate->actual, limit, bound);
    return mt_arena_printf(&gates->arena, "%s, %s: %s on %s, %s %s%s%s%s", gate->rule, gate->group,
                           actual, row, side, limit, warning,
                           gate->has_base ? "; the base has " : "",
                           gate->has_base ? mt_format_bytes(base, gate->base) : "");
}

void mt_fleet_gates_describe(struct mt_fleet_gates *gates, const struct mt_job_report *report)
{
    for (uint32_t i = 0; i < gates->count; i++)
        gates->list[i].verdict = verdict_of(gates, report, &gates->list[i]);
}

void mt_fleet_gates_text(struct mt_buf *out, const struct mt_fleet_gates *gates,
                         const struct mt_style *style)
{
    if (!gates->rules.is_given)
        return;
    mt_buf_printf(out, "%s%s%s: %u of %u rules", gates->failed ? style->red : style->green,
                  gates->failed ? "FAIL" : "PASS", style->reset,
                  (unsigned)(gates->failed ? gates->failed : gates->count - gates->skipped),
                  (unsigned)gates->count);
    if (gates->skipped)
        mt_buf_printf(out, "; %u not evaluated", (unsigned)gates->skipped);
    mt_buf_add_char(out, '\n');
    for (uint32_t i = 0; i < gates->count; i++)
        if (!gates->failed || gates->list[i].state != MT_GATE_PASS)
            mt_text_table_add_note(out, 2, "%s", gates->list[i].verdict);
    mt_buf_add_char(out, '\n');
}

static void add_rank(struct mt_json *json, const struct mt_job_report *report, uint32_t row)
{
    int32_t rank = row == MT_NO_ROW ? -1 : report->rows[row].record->identity.rank;

    mt_json_u64_or_null(json, "rank", rank >= 0, (uint64_t)rank);
}

void mt_fleet_gates_json(struct mt_json *json, const struct mt_fleet_gates *gates,
                         const struct mt_job_report *report)
{
    static const struct {
        const char *actual, *limit;
    } fields[] = {{"actual_bytes", "limit_bytes"},
                  {"actual_ppm", "limit_ppm"},
                  {"actual_ranks", "limit_ranks"}};

    mt_json_text(json, "verdict", gates->rules.is_given ? gates->failed ? "fail" : "pass" : NULL);
    for (struct mt_json_list row = mt_json_rows(json, "gates", gates->count); mt_json_next(&row);) {
        const struct mt_job_gate *gate = &gates->list[row.i];

        mt_json_text(json, "rule", gate->rule);
        mt_json_text(json, "group", gate->group);
        mt_json_text(json, "state", mt_gate_state_name(gate->state));
        add_rank(json, report, gate->row);
        mt_json_text(json, "reason", gate->state == MT_GATE_NOT_EVALUATED ? gate->doubt : NULL);
        mt_json_u64(json, fields[gate->unit].actual, gate->actual);
        if (bound_of(gate) != UINT64_MAX)
            mt_json_u64(json, fields[gate->unit].limit, bound_of(gate));
        if (gate->has_base)
            mt_json_u64(json, "base_bytes", gate->base);
    }
}

static void add_case(struct mt_buf *out, const struct mt_job_gate *gate)
{
    struct mt_buf name = {0};

    mt_buf_printf(&name, "%s, %s", gate->rule, gate->group);
    mt_buf_add_text(out, "    <testcase classname=\"memtrace.fleet\"");
    mt_add_xml_attribute(out, "name", name.data);
    mt_buf_add_text(out, " time=\"0\">");
    if (gate->state == MT_GATE_NOT_EVALUATED && gate->is_optional)
        mt_buf_add_text(out, "\n      <skipped/>\n    ");
    else if (mt_job_gate_mark(gate) == MT_GATE_FAIL)
        mt_add_junit_failure(
            out, &(struct mt_gate_result){.state = gate->state, .verdict = gate->verdict});
    mt_buf_add_text(out, "</testcase>\n");
    mt_buf_release(&name);
}

static void add_counts(struct mt_buf *out, const struct mt_fleet_gates *gates)
{
    mt_buf_printf(out, " tests=\"%u\" failures=\"%u\" errors=\"0\" time=\"0\">\n",
                  (unsigned)gates->count, (unsigned)gates->failed);
}

void mt_fleet_gates_junit(struct mt_buf *out, const struct mt_fleet_gates *gates,
                          const struct mt_job_report *report)
{
    mt_buf_add_text(out, MT_JUNIT_BEGIN);
    add_counts(out, gates);
    mt_buf_add_text(out, "  <testsuite");
    mt_add_xml_attribute(out, "name", *report->job ? report->job : "job");
    add_counts(out, gates);
    for (uint32_t i = 0; i < gates->count; i++)
        add_case(out, &gates->list[i]);
    mt_buf_add_text(out, MT_JUNIT_END);
}
