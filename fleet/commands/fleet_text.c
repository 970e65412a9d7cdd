/* The text about a job: the first out-of-memory error, the highest peak, ranks that differ from
 * their replicas, and the share of the differences that each axis explains. */
#include "escape.h"
#include "fleet_gates.h"
#include "fleet_tune_output.h"
#include "job_tables.h"
#include "job_words.h"
#include "json.h"
#include "junit.h"
#include "text_table.h"
#include "units.h"

/* Results of the rules of a job as text, JSON and JUnit XML. */

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
    const char *side = gate->actual > bound ? "above" : "within";
    const char *warning = gate->state == MT_GATE_WARN ? " (warning)" : "";

    if (gate->state == MT_GATE_NOT_EVALUATED)
        return mt_arena_printf(&gates->arena, "%s, %s: not evaluated: %s", gate->rule, gate->group,
                               gate->doubt);
    format(actual, gate, gate->actual);
    format(limit, gate, bound);
    if (gate->unit == MT_JOB_GATE_RANKS)
        return mt_arena_printf(&gates->arena, "%s: %s %s missing, %s %s%s", gate->rule, actual,
                               gate->actual == 1 ? "rank is" : "ranks are", side, limit, warning);
    const char *row =
        gate->row == MT_NO_ROW ? "no rank" : mt_job_row_name(&gates->arena, report, gate->row);
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

static void fleet_gates_text(struct mt_buf *out, const struct mt_fleet_gates *gates,
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

enum { ROWS = 12 }; /* maximum number of rows of a table without --all */

struct text {
    struct mt_buf *out;
    const struct mt_job_report *report;
    const struct mt_style *style;
    struct mt_job_words words;
    struct mt_job_rows rows;
};

static uint32_t shown(const struct text *text, uint32_t count)
{
    return (uint32_t)mt_min_u64(text->rows.limit, count);
}

/* Prints the sentences and clears them. */
static void add_notes(struct text *text, const struct mt_job_sentence *first, size_t indent)
{
    for (const struct mt_job_sentence *at = first; at; at = at->next)
        mt_text_table_add_note(text->out, indent, "%s", at->text);
    mt_job_words_reset(&text->words);
}

/* Prints the first sentence as a headline. */
static void add_answer(struct text *text)
{
    const struct mt_job_sentence *first = text->words.first;

    if (!first) {
        add_notes(text, NULL, 0);
        return;
    }
    mt_buf_add_text(text->out, text->style->bold);
    mt_text_table_add_note(text->out, 0, "%s", first->text);
    mt_buf_add_text(text->out, text->style->reset);
    add_notes(text, first->next, 2);
}

static void add_heading(const struct text *text, const char *words)
{
    mt_buf_printf(text->out, "\n%s%s%s\n", text->style->bold, words, text->style->reset);
}

static void add_table(const struct text *text, struct mt_table *table, unsigned indent,
                      uint32_t omitted)
{
    mt_text_table_add(text->out, table, indent, text->style);
    if (omitted)
        mt_text_table_add_note(text->out, indent, "and %u more", (unsigned)omitted);
}

/* Adds a heading and a table of the whole job. */
static void add_section(const struct text *text, const char *heading, mt_job_table *make)
{
    struct mt_table table;
    uint32_t omitted = make(&table, &text->rows);

    add_heading(text, heading);
    add_table(text, &table, 2, omitted);
}

static void add_axis(struct text *text, const struct mt_job_axis *axis)
{
    struct mt_table table;

    mt_job_describe_axis(&text->words, axis);
    const struct mt_job_sentence *first = text->words.first;
    if (first)
        mt_text_table_add_note(text->out, 2, "%s", first->text);
    add_notes(text, first ? first->next : NULL, 4);
    if (!axis->separates || axis->group_count < 2)
        return;
    uint32_t omitted = mt_job_axis_table(&table, &text->rows, axis);
    add_table(text, &table, 4, omitted);
}

static void add_axes(struct text *text)
{
    if (!text->report->axis_count)
        return;
    add_heading(text, mt_job_axes_title(text->report));
    for (uint32_t i = 0; i < text->report->axis_count; i++)
        add_axis(text, &text->report->axes[i]);
    mt_job_describe_overlap(&text->words);
    add_notes(text, text->words.first, 2);
}

static void add_course(struct text *text)
{
    mt_job_describe_growth(&text->words);
    if (text->words.first)
        add_heading(text, "growth");
    add_notes(text, text->words.first, 2);
    mt_job_describe_steps(&text->words);
    if (text->words.first)
        add_heading(text, "steps");
    add_notes(text, text->words.first, 2);
}

static void add_devices(struct text *text)
{
    uint32_t count = shown(text, text->report->device_count);
    struct mt_table table;

    if (!count)
        return;
    add_heading(text, "devices that several processes share");
    for (uint32_t i = 0; i < count; i++) {
        mt_job_describe_device(&text->words, &text->report->devices[i]);
        add_notes(text, text->words.first, 2);
        uint32_t omitted = mt_job_tenants_table(&table, &text->rows, &text->report->devices[i]);
        add_table(text, &table, 4, omitted);
    }
    if (text->report->device_count > count)
        mt_text_table_add_note(text->out, 2, "and %u more device%s",
                               (unsigned)(text->report->device_count - count),
                               text->report->device_count - count == 1 ? "" : "s");
    mt_text_table_add_note(text->out, 2, "%s", mt_job_devices_caveat(text->report));
}

void mt_fleet_text(struct mt_buf *out, const struct mt_fleet_answer *answer,
                   const struct mt_style *style)
{
    struct text text = {.out = out,
                        .report = answer->report,
                        .style = style,
                        .words = {.report = answer->report, .all = answer->all},
                        .rows = {answer->report, answer->arena, answer->all ? UINT32_MAX : ROWS}};

    fleet_gates_text(out, answer->gates, style);
    mt_job_describe_death(&text.words);
    if (text.words.first) {
        add_answer(&text);
        mt_buf_add_char(out, '\n');
    }
    mt_fleet_tune_text(out, answer, style);
    mt_job_describe_peak(&text.words);
    add_answer(&text);
    if (answer->report->outlier_count)
        add_section(&text, "ranks that differ from their replicas", mt_job_outliers_table);
    add_axes(&text);
    if (answer->report->path_count)
        add_section(&text, "what holds the allocated peaks", mt_job_paths_table);
    add_course(&text);
    add_devices(&text);
    mt_job_words_release(&text.words);
}
