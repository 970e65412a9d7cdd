#include "fleet_gates.h"

#include <stdlib.h>
#include <string.h>

#include "fleet_gate_work.h"
#include "fleet_regression.h"
#include "job_diff_make.h"
#include "util.h"

int mt_fleet_gates_read(struct mt_fleet_gates *gates, const struct mt_fleet_gate_options *options)
{
    return mt_fleet_rules_read(&gates->rules, options);
}

int mt_fleet_gates_open_base(struct mt_fleet_gates *gates, const char *mesh, uint64_t jobs)
{
    const struct mt_fleet_naming naming = {
        .path = gates->rules.base, .mesh = mesh, .is_base = true};
    const struct mt_fleet_reading reading = {0};

    return gates->rules.base ? mt_fleet_job_open(&gates->base, &naming, &reading, jobs)
                             : MT_EXIT_OK;
}

/* Sets *bytes to the number of a rank that a rule limits. Returns false if the record does not have
 * the number. */
static bool value_of(const struct mt_rank_record *record, const struct mt_gate_rule *rule,
                     uint64_t *bytes)
{
    *bytes = 0;
    switch (rule->kind) {
    case MT_GATE_GROWTH: *bytes = record->growth_bytes_per_step; return record->growth_is_judged;
    case MT_GATE_FITS:
        *bytes = record->allocator_need_bytes;
        return record->allocator_need_is_known;
    case MT_GATE_PEAK:
    case MT_GATE_REGRESSION:
    case MT_GATE_FRAGMENTATION: break;
    }
    return mt_gate_rank_peak(record, rule->metric, bytes);
}

static bool needed_of(const struct mt_rank_record *record, const struct mt_gate_rule *rule,
                      uint64_t *bytes)
{
    (void)rule;
    *bytes = record->needed_bytes;
    return record->needed_is_known;
}

typedef bool read_value(const struct mt_rank_record *, const struct mt_gate_rule *, uint64_t *);

static void add_rank(struct mt_fleet_gate *gate, const struct mt_job_report *report, uint32_t row,
                     const struct mt_gate_rule *rule, read_value *read)
{
    const struct mt_rank_record *record = report->rows[row].record;
    uint64_t bytes;
    bool is_known = read(record, rule, &bytes);

    if (!gate->doubt)
        gate->doubt = is_known ? mt_gate_rank_doubt(record) : "not known for every rank";
    if (gate->row != MT_NO_ROW && bytes <= gate->actual)
        return;
    gate->actual = bytes;
    gate->row = row;
}

/* Returns true if the budget has a separate rule for this group. */
static bool is_replaced(const struct mt_fleet_gates *gates, const struct mt_job_report *report,
                        uint32_t group, const struct mt_gate_rule *rule)
{
    if (group + 1 == mt_gate_group_count(report))
        return false;
    for (uint32_t i = 0; i < gates->rules.group_count; i++) {
        const struct mt_fleet_group_rules *own = &gates->rules.groups[i];

        if (strcmp(own->axis, report->axes[0].name) != 0 ||
            own->coordinate != report->axes[0].groups[group].coordinate)
            continue;
        for (size_t k = 0; k < own->rules.count; k++)
            if (own->rules.rules[k].kind == rule->kind &&
                own->rules.rules[k].metric == rule->metric)
                return true;
    }
    return false;
}

/* Adds a gate for each group of the first axis. */
static void check_groups(struct mt_fleet_gates *gates, const struct mt_job_report *report,
                         const char *name, const struct mt_gate_rule *rule, read_value *read)
{
    uint32_t count = mt_gate_group_count(report), first = gates->count;
    struct mt_fleet_gate *last;

    for (uint32_t g = 0; g < count; g++) {
        struct mt_fleet_gate *gate =
            mt_gate_add(gates, name, mt_gate_group_name(gates, report, g), rule);

        gate->doubt = mt_gate_missing_in(gates, report, g);
    }
    for (uint32_t i = 0; i < report->row_count; i++)
        add_rank(&gates->list[first + mt_gate_group_of(report, i)], report, i, rule, read);
    last = &gates->list[gates->count - 1];
    if (last->row == MT_NO_ROW && (!last->doubt || mt_gate_missing_are_placed(gates, report)))
        gates->count--;
    for (uint32_t i = gates->count; i-- > first;) {
        mt_gate_judge(&gates->list[i]);
        if (is_replaced(gates, report, i - first, rule)) {
            memmove(&gates->list[i], &gates->list[i + 1],
                    (gates->count - i - 1) * sizeof *gates->list);
            gates->count--;
        }
    }
}

/* Checks a rule that the budget has for one group. */
static void check_group(struct mt_fleet_gates *gates, const struct mt_job_report *report,
                        const struct mt_fleet_group_rules *own, const struct mt_gate_rule *rule)
{
    struct mt_fleet_gate *gate = mt_gate_add(
        gates, mt_gate_rule_name(gates, rule->kind, rule->metric),
        mt_arena_printf(&gates->arena, "%s %u", own->axis, (unsigned)own->coordinate), rule);
    uint32_t axis = 0;

    while (axis < report->axis_count && strcmp(report->axes[axis].name, own->axis) != 0)
        axis++;
    for (uint32_t i = 0; i < report->row_count && axis < report->axis_count; i++)
        if (report->rows[i].coordinates[axis] == own->coordinate)
            add_rank(gate, report, i, rule, value_of);
    if (gate->row == MT_NO_ROW)
        gate->doubt = "the job has no such ranks";
    else if (!gate->doubt && mt_gate_misses_ranks(gates, report) &&
             mt_gate_misses_at(report, axis, own->coordinate))
        gate->doubt = "ranks are missing";
    mt_gate_judge(gate);
}

/* Compares the largest reserved peak of the job with the mean. If a peak is missing or too low, the
 * mean is wrong, so the share may be too large or too small. */
static void check_imbalance(struct mt_fleet_gates *gates, const struct mt_job_report *report,
                            const struct mt_gate_rule *rule)
{
    struct mt_fleet_gate *gate =
        mt_gate_add(gates, mt_job_rule_name(MT_JOB_RULE_IMBALANCE), "all ranks", rule);

    gate->unit = MT_FLEET_PPM;
    gate->limit = rule->limit.text ? rule->limit.millionths : UINT64_MAX;
    gate->warn = rule->warn.text ? rule->warn.millionths : UINT64_MAX;
    gate->row = report->reserved.max_row;
    gate->actual = report->imbalance_ppm;
    gate->is_no_bound = true;
    gate->doubt = mt_gate_misses_ranks(gates, report) ? "ranks are missing" : NULL;
    for (uint32_t i = 0; i < report->row_count && !gate->doubt; i++)
        gate->doubt = mt_gate_rank_doubt(report->rows[i].record);
    mt_gate_judge(gate);
}

static void check_missing(struct mt_fleet_gates *gates, const struct mt_job_report *report,
                          const struct mt_gate_rule *rule)
{
    struct mt_fleet_gate *gate =
        mt_gate_add(gates, mt_job_rule_name(MT_JOB_RULE_MISSING), "all ranks", rule);

    gate->unit = MT_FLEET_RANKS;
    gate->actual = report->missing_count;
    if (!report->world_is_known || report->worlds_differ)
        gate->doubt = "no trace has the number of ranks of the job";
    mt_gate_judge(gate);
}

static void check_rule(struct mt_fleet_gates *gates, const struct mt_job_report *report,
                       const struct mt_job_diff *diff, const struct mt_gate_rule *rule)
{
    if (rule->kind != MT_GATE_REGRESSION) {
        check_groups(gates, report, mt_gate_rule_name(gates, rule->kind, rule->metric), rule,
                     value_of);
        return;
    }
    if (rule->metric != MT_METRIC_NONE) {
        mt_gate_check_regression(gates, report, diff, rule, rule->metric);
        return;
    }
    mt_gate_check_regression(gates, report, diff, rule, MT_METRIC_ALLOCATED);
    mt_gate_check_regression(gates, report, diff, rule, MT_METRIC_RESERVED);
}

static bool is_given(const struct mt_gate_rule *rule)
{
    return rule->limit.text || rule->warn.text;
}

static void check_all(struct mt_fleet_gates *gates, const struct mt_job_report *report,
                      const struct mt_job_diff *diff)
{
    const struct mt_fleet_rules *rules = &gates->rules;
    const struct mt_gate_rule *own = rules->own;

    for (size_t i = 0; i < rules->all.count; i++)
        check_rule(gates, report, diff, &rules->all.rules[i]);
    for (uint32_t i = 0; i < rules->group_count; i++)
        for (size_t k = 0; k < rules->groups[i].rules.count; k++)
            check_group(gates, report, &rules->groups[i], &rules->groups[i].rules.rules[k]);
    if (is_given(&own[MT_JOB_RULE_NEEDED]))
        check_groups(gates, report, mt_job_rule_name(MT_JOB_RULE_NEEDED), &own[MT_JOB_RULE_NEEDED],
                     needed_of);
    if (is_given(&own[MT_JOB_RULE_IMBALANCE]))
        check_imbalance(gates, report, &own[MT_JOB_RULE_IMBALANCE]);
    if (is_given(&own[MT_JOB_RULE_MISSING]))
        check_missing(gates, report, &own[MT_JOB_RULE_MISSING]);
}

enum mt_status mt_fleet_gates_check(struct mt_fleet_gates *gates,
                                    const struct mt_job_report *report, struct mt_error *error)
{
    struct mt_job_diff *diff = NULL;
    enum mt_status status =
        gates->base.report ? mt_job_diff_make(gates->base.report, report, &diff, error) : MT_OK;

    if (status == MT_OK) {
        mt_gate_count_seen(gates, report);
        check_all(gates, report, diff);
    }
    mt_job_diff_free(diff);
    for (uint32_t i = 0; i < gates->count; i++) {
        const struct mt_fleet_gate *gate = &gates->list[i];

        gates->failed += gate->state == MT_FLEET_FAIL ||
                         (gate->state == MT_FLEET_NOT_EVALUATED && !gate->is_optional);
        gates->skipped += gate->state == MT_FLEET_NOT_EVALUATED && gate->is_optional;
    }
    return status;
}

void mt_fleet_gates_release(struct mt_fleet_gates *gates)
{
    free(gates->list);
    mt_fleet_job_release(&gates->base);
    mt_fleet_rules_release(&gates->rules);
    mt_arena_release(&gates->arena);
}
