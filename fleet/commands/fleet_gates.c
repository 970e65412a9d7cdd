/* Rules for a job: their data, the comparison with another job, and their check. */
#include <stdlib.h>
#include <string.h>

#include "fleet_gate_data.h"
#include "fleet_gates.h"
#include "grow.h"
#include "job_diff.h"
#include "job_diff_make.h"
#include "sorted.h"
#include "util.h"

/* What the checks of the gates of a job share. */

/* Sets *bytes to a peak of the record. Returns false if the record does not have this peak. */
static bool gate_rank_peak(const struct mt_rank_record *record, enum mt_gate_metric metric,
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

/* Returns the number of groups of the first axis. Ranks whose position is unknown are one of the
 * groups. */
static uint32_t gate_group_count(const struct mt_job_report *report)
{
    return (report->axis_count ? report->axes[0].group_count : 0) + 1;
}

MT_DEFINE_ORDER(compare_coordinates, struct mt_job_group, MT_ASCENDING(coordinate))

static uint32_t gate_group_of(const struct mt_job_report *report, uint32_t row)
{
    const struct mt_job_axis *axis = report->axes;
    const struct mt_job_group wanted = {.coordinate = report->rows[row].coordinates[0]};
    const struct mt_job_group *group = NULL;

    if (report->axis_count && axis->group_count)
        group =
            bsearch(&wanted, axis->groups, axis->group_count, sizeof wanted, compare_coordinates);
    return group ? (uint32_t)(group - axis->groups) : gate_group_count(report) - 1;
}

static const char *gate_group_name(struct mt_fleet_gates *gates, const struct mt_job_report *report,
                                   uint32_t group)
{
    if (group + 1 < gate_group_count(report))
        return mt_arena_printf(&gates->arena, "%s %u", report->axes[0].name,
                               (unsigned)report->axes[0].groups[group].coordinate);
    return group ? mt_arena_printf(&gates->arena, "%s unknown", report->axes[0].name) : "all ranks";
}

/* Returns why the real peaks of the rank may be higher than the recorded ones; NULL: they are
 * not. */
static const char *gate_rank_doubt(const struct mt_rank_record *record)
{
    switch (record->outcome) {
    case MT_OUTCOME_OOM: return "a rank ran out of memory, so its peaks may have been higher";
    case MT_OUTCOME_CUT: return "a trace is cut, so its peaks may have been higher";
    case MT_OUTCOME_KILLED: return "a rank was killed, so its peaks may have been higher";
    case MT_OUTCOME_FAILED: return "a rank failed, so its peaks may have been higher";
    case MT_OUTCOME_FINISHED:
    case MT_OUTCOME_UNKNOWN: break;
    }
    return record->is_complete ? NULL : "a trace is incomplete: its peaks may have been higher";
}

/* Adds a gate for a group. The result is valid until the next call. */
static struct mt_job_gate *gate_add(struct mt_fleet_gates *gates, const char *rule,
                                    const char *group, const struct mt_gate_rule *bounds)
{
    if (gates->count == gates->capacity)
        mt_grow_to(&gates->list, &gates->capacity, (size_t)gates->count + 1, sizeof *gates->list);
    struct mt_job_gate *gate = &gates->list[gates->count++];
    *gate = (struct mt_job_gate){.rule = rule,
                                 .group = group,
                                 .is_optional = bounds->optional,
                                 .row = MT_NO_ROW,
                                 .limit = bounds->limit.text ? bounds->limit.bytes : UINT64_MAX,
                                 .warn = bounds->warn.text ? bounds->warn.bytes : UINT64_MAX};
    return gate;
}

/* Sets gate->state. A gate with a doubt fails if `actual` exceeds the limit and is a lower bound.
 * Otherwise a gate with a doubt is not evaluated. */
static void gate_judge(struct mt_job_gate *gate)
{
    bool is_broken = gate->actual > gate->limit && !(gate->doubt && gate->is_no_bound);

    gate->state = is_broken                   ? MT_GATE_FAIL
                  : gate->doubt               ? MT_GATE_NOT_EVALUATED
                  : gate->actual > gate->warn ? MT_GATE_WARN
                                              : MT_GATE_PASS;
}

/* Returns true if the axes identify each rank of the job exactly once. */
static bool axes_span_world(const struct mt_job_report *report)
{
    uint64_t ranks = 1;

    for (uint32_t i = 0; i < report->axis_count && ranks <= report->world; i++)
        ranks *= report->axes[i].size;
    return ranks == report->world;
}

/* Returns the number of ranks of the job at the coordinate; 0 if unknown. Of every `period` ranks,
 * `stride` consecutive ones have this coordinate. */
static uint64_t ranks_at(const struct mt_job_report *report, const struct mt_job_axis *axis,
                         uint32_t coordinate)
{
    uint64_t period = (uint64_t)axis->stride * axis->size;

    if (!period)
        return axis->size && axes_span_world(report) ? report->world / axis->size : 0;
    uint64_t rest = mt_sub_or_0_u64(report->world % period, (uint64_t)axis->stride * coordinate);
    return report->world / period * axis->stride + mt_min_u64(rest, axis->stride);
}

/* Returns the number of different ranks at one coordinate of an axis. */
static uint32_t seen_at(const struct mt_job_report *report, uint32_t axis, uint32_t coordinate)
{
    uint32_t count = 0;
    int32_t before = -1;

    for (uint32_t i = 0; i < report->row_count; i++) {
        int32_t rank = report->rows[i].record->identity.rank;

        if (rank < 0 || report->rows[i].coordinates[axis] != coordinate)
            continue;
        count += rank != before;
        before = rank;
    }
    return count;
}

/* Counts the ranks of each group, for gate_missing_in and gate_missing_are_placed. O(rows *
 * log groups). Rows ascend by rank, so rows of the same rank are adjacent. */
static void gate_count_seen(struct mt_fleet_gates *gates, const struct mt_job_report *report)
{
    uint32_t groups = gate_group_count(report);
    int32_t *before = mt_arena_array(&gates->arena, groups, sizeof *before);

    gates->seen = mt_arena_array(&gates->arena, groups, sizeof *gates->seen);
    for (uint32_t g = 0; g < groups; g++)
        before[g] = -1;
    for (uint32_t i = 0; i < report->row_count; i++) {
        int32_t rank = report->rows[i].record->identity.rank;
        uint32_t group = gate_group_of(report, i);

        if (rank < 0)
            continue;
        gates->seen[group] += rank != before[group];
        before[group] = rank;
    }
}

/* Returns true if more ranks are missing than the rule max-missing allows. */
static bool gate_misses_ranks(const struct mt_fleet_gates *gates,
                              const struct mt_job_report *report)
{
    const struct mt_gate_rule *allowed = &gates->rules.own[MT_JOB_RULE_MISSING];

    if (allowed->limit.text && report->missing_count <= allowed->limit.bytes)
        return false;
    return report->missing_count || report->unreadable_count;
}

/* Returns true if ranks are known to be missing at this coordinate of the axis. O(rows). */
static bool gate_misses_at(const struct mt_job_report *report, uint32_t axis, uint32_t coordinate)
{
    uint64_t ranks = ranks_at(report, &report->axes[axis], coordinate);

    return !ranks || ranks > seen_at(report, axis, coordinate);
}

static bool group_misses(const struct mt_fleet_gates *gates, const struct mt_job_report *report,
                         uint32_t group)
{
    uint64_t ranks = ranks_at(report, report->axes, report->axes[0].groups[group].coordinate);

    return !ranks || ranks > gates->seen[group];
}

/* Returns why ranks that the rules require are missing from a group; NULL: none are missing. */
static const char *gate_missing_in(const struct mt_fleet_gates *gates,
                                   const struct mt_job_report *report, uint32_t group)
{
    if (!gate_misses_ranks(gates, report))
        return NULL;
    if (group + 1 < gate_group_count(report) && !group_misses(gates, report, group))
        return NULL;
    return "ranks are missing";
}

/* Returns true if every missing rank belongs to a group that has rows. */
static bool gate_missing_are_placed(const struct mt_fleet_gates *gates,
                                    const struct mt_job_report *report)
{
    const struct mt_job_axis *axis = report->axes;
    uint64_t placed = 0;

    if (!report->axis_count)
        return false;
    for (uint32_t g = 0; g < axis->group_count; g++)
        placed +=
            mt_sub_or_0_u64(ranks_at(report, axis, axis->groups[g].coordinate), gates->seen[g]);
    return placed >= report->missing_count && (report->world_is_known || !report->unreadable_count);
}

/* Returns the name of a rule: "max-peak reserved". */
static const char *gate_rule_name(struct mt_fleet_gates *gates, enum mt_gate_kind kind,
                                  enum mt_gate_metric metric)
{
    if (metric == MT_METRIC_NONE)
        return mt_gate_kind_name(kind);
    return mt_arena_printf(&gates->arena, "%s %s", mt_gate_kind_name(kind),
                           mt_gate_metric_name(metric));
}

/* Rules that compare the peaks of a job with those of a base, match by match. */

/* Returns `bytes` plus the larger of a share and an absolute bound. */
static uint64_t above(uint64_t bytes, const struct mt_gate_bound *bound)
{
    unsigned __int128 share = (unsigned __int128)bytes * bound->millionths / 1000000;

    if (!bound->text)
        return UINT64_MAX;
    return mt_add_most_u64(
        bytes, mt_max_u64(share > UINT64_MAX ? UINT64_MAX : (uint64_t)share, bound->bytes));
}

/* Sets *mean to the mean of a class in one of the jobs. Returns false if a rank lacks the
 * number. */
static bool mean_of(const struct mt_job_report *report, const uint32_t *rows, uint32_t count,
                    enum mt_gate_metric metric, uint64_t *mean)
{
    unsigned __int128 sum = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t bytes;

        if (!gate_rank_peak(report->rows[rows[i]].record, metric, &bytes))
            return false;
        sum += bytes;
    }
    *mean = (uint64_t)(sum / count);
    return true;
}

/* Returns why the base is uncertain; NULL if it is certain. If its real peaks may be higher than
 * the recorded ones, the bound is too low, and a rule must not fail because of it. */
static const char *doubt_of_base(const struct mt_job_diff *diff, const struct mt_job_class *class)
{
    for (uint32_t i = 0; i < class->a_count; i++)
        if (gate_rank_doubt(diff->a->rows[class->a_rows[i]].record))
            return "a rank of the base is cut, incomplete, killed, failed or out of memory";
    return NULL;
}

/* Compares a class with its bound. The class that exceeds its bound the most, or is closest to it,
 * represents the group. */
static void compare_class(struct mt_job_gate *gate, const struct mt_job_diff *diff,
                          const struct mt_job_class *class, const struct mt_gate_rule *rule,
                          enum mt_gate_metric metric)
{
    uint64_t a, b, before = gate->limit == UINT64_MAX ? gate->warn : gate->limit;
    const char *doubt = doubt_of_base(diff, class);

    if (!class->is_compared || diff->match == MT_MATCH_NONE)
        doubt = "the base has no rank that matches";
    else if (!mean_of(diff->a, class->a_rows, class->a_count, metric, &a) ||
             !mean_of(diff->b, class->b_rows, class->b_count, metric, &b))
        doubt = "not known for every rank";
    if (doubt) {
        gate->doubt = doubt;
        return;
    }
    for (uint32_t i = 0; i < class->b_count && !gate->doubt; i++)
        gate->doubt = gate_rank_doubt(diff->b->rows[class->b_rows[i]].record);
    uint64_t bound = above(a, rule->limit.text ? &rule->limit : &rule->warn);
    if (gate->has_base && (__int128)b - bound <= (__int128)gate->actual - before)
        return;
    gate->has_base = true;
    gate->base = a;
    gate->actual = b;
    gate->limit = above(a, &rule->limit);
    gate->warn = above(a, &rule->warn);
    gate->row = class->b_rows[0];
}

static bool has_rows(const struct mt_job_report *report, uint32_t group)
{
    for (uint32_t i = 0; i < report->row_count; i++)
        if (gate_group_of(report, i) == group)
            return true;
    return false;
}

/* Adds a gate for each group. `diff` is the difference from the base to the job; NULL: there is no
 * base. */
static void gate_check_regression(struct mt_fleet_gates *gates, const struct mt_job_report *report,
                                  const struct mt_job_diff *diff, const struct mt_gate_rule *rule,
                                  enum mt_gate_metric metric)
{
    uint32_t count = gate_group_count(report), first = gates->count;
    const char *name = gate_rule_name(gates, MT_GATE_REGRESSION, metric);

    for (uint32_t g = 0; g < count; g++) {
        struct mt_job_gate *gate = gate_add(gates, name, gate_group_name(gates, report, g), rule);

        gate->limit = gate->warn = UINT64_MAX;
        gate->doubt = diff ? gate_missing_in(gates, report, g) : "there is no --base";
        /* without some of its ranks, the mean of a group may be larger or smaller */
        gate->is_no_bound = gate->doubt && diff && diff->match != MT_MATCH_RANKS;
    }
    for (uint32_t i = 0; diff && i < diff->class_count; i++)
        if (diff->classes[i].b_count)
            compare_class(&gates->list[first + gate_group_of(report, diff->classes[i].b_rows[0])],
                          diff, &diff->classes[i], rule, metric);
    if (count > 1 && !has_rows(report, count - 1) &&
        (!diff || !gates->list[gates->count - 1].doubt || gate_missing_are_placed(gates, report)))
        gates->count--;
    for (uint32_t i = first; i < gates->count; i++)
        gate_judge(&gates->list[i]);
}

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
    return gate_rank_peak(record, rule->metric, bytes);
}

static bool needed_of(const struct mt_rank_record *record, const struct mt_gate_rule *rule,
                      uint64_t *bytes)
{
    (void)rule;
    *bytes = record->needed_bytes;
    return record->needed_is_known;
}

typedef bool read_value(const struct mt_rank_record *, const struct mt_gate_rule *, uint64_t *);

static void add_rank(struct mt_job_gate *gate, const struct mt_job_report *report, uint32_t row,
                     const struct mt_gate_rule *rule, read_value *read)
{
    const struct mt_rank_record *record = report->rows[row].record;
    uint64_t bytes;
    bool is_known = read(record, rule, &bytes);

    if (!gate->doubt)
        gate->doubt = is_known ? gate_rank_doubt(record) : "not known for every rank";
    if (gate->row != MT_NO_ROW && bytes <= gate->actual)
        return;
    gate->actual = bytes;
    gate->row = row;
}

/* Returns true if the budget has a separate rule for this group. */
static bool is_replaced(const struct mt_fleet_gates *gates, const struct mt_job_report *report,
                        uint32_t group, const struct mt_gate_rule *rule)
{
    if (group + 1 == gate_group_count(report))
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
    uint32_t count = gate_group_count(report), first = gates->count;

    for (uint32_t g = 0; g < count; g++) {
        struct mt_job_gate *gate = gate_add(gates, name, gate_group_name(gates, report, g), rule);

        gate->doubt = gate_missing_in(gates, report, g);
    }
    for (uint32_t i = 0; i < report->row_count; i++)
        add_rank(&gates->list[first + gate_group_of(report, i)], report, i, rule, read);
    struct mt_job_gate *last = &gates->list[gates->count - 1];
    if (last->row == MT_NO_ROW && (!last->doubt || gate_missing_are_placed(gates, report)))
        gates->count--;
    for (uint32_t i = gates->count; i-- > first;) {
        gate_judge(&gates->list[i]);
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
    struct mt_job_gate *gate = gate_add(
        gates, gate_rule_name(gates, rule->kind, rule->metric),
        mt_arena_printf(&gates->arena, "%s %u", own->axis, (unsigned)own->coordinate), rule);
    uint32_t axis = 0;

    while (axis < report->axis_count && strcmp(report->axes[axis].name, own->axis) != 0)
        axis++;
    for (uint32_t i = 0; i < report->row_count && axis < report->axis_count; i++)
        if (report->rows[i].coordinates[axis] == own->coordinate)
            add_rank(gate, report, i, rule, value_of);
    if (gate->row == MT_NO_ROW)
        gate->doubt = "the job has no such ranks";
    else if (!gate->doubt && gate_misses_ranks(gates, report) &&
             gate_misses_at(report, axis, own->coordinate))
        gate->doubt = "ranks are missing";
    gate_judge(gate);
}

/* Compares the largest reserved peak of the job with the mean. If a peak is missing or too low, the
 * mean is wrong, so the share may be too large or too small. */
static void check_imbalance(struct mt_fleet_gates *gates, const struct mt_job_report *report,
                            const struct mt_gate_rule *rule)
{
    struct mt_job_gate *gate =
        gate_add(gates, mt_job_rule_name(MT_JOB_RULE_IMBALANCE), "all ranks", rule);

    gate->unit = MT_JOB_GATE_PPM;
    gate->limit = rule->limit.text ? rule->limit.millionths : UINT64_MAX;
    gate->warn = rule->warn.text ? rule->warn.millionths : UINT64_MAX;
    gate->row = report->reserved.max_row;
    gate->actual = report->imbalance_ppm;
    gate->is_no_bound = true;
    gate->doubt = gate_misses_ranks(gates, report) ? "ranks are missing" : NULL;
    for (uint32_t i = 0; i < report->row_count && !gate->doubt; i++)
        gate->doubt = gate_rank_doubt(report->rows[i].record);
    gate_judge(gate);
}

static void check_missing(struct mt_fleet_gates *gates, const struct mt_job_report *report,
                          const struct mt_gate_rule *rule)
{
    struct mt_job_gate *gate =
        gate_add(gates, mt_job_rule_name(MT_JOB_RULE_MISSING), "all ranks", rule);

    gate->unit = MT_JOB_GATE_RANKS;
    gate->actual = report->missing_count;
    if (!report->world_is_known || report->worlds_differ)
        gate->doubt = "no trace has the number of ranks of the job";
    gate_judge(gate);
}

static void check_rule(struct mt_fleet_gates *gates, const struct mt_job_report *report,
                       const struct mt_job_diff *diff, const struct mt_gate_rule *rule)
{
    if (rule->kind != MT_GATE_REGRESSION) {
        check_groups(gates, report, gate_rule_name(gates, rule->kind, rule->metric), rule,
                     value_of);
        return;
    }
    if (rule->metric != MT_METRIC_NONE) {
        gate_check_regression(gates, report, diff, rule, rule->metric);
        return;
    }
    gate_check_regression(gates, report, diff, rule, MT_METRIC_ALLOCATED);
    gate_check_regression(gates, report, diff, rule, MT_METRIC_RESERVED);
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
        gate_count_seen(gates, report);
        check_all(gates, report, diff);
    }
    mt_job_diff_free(diff);
    for (uint32_t i = 0; i < gates->count; i++) {
        const struct mt_job_gate *gate = &gates->list[i];

        gates->failed += mt_job_gate_mark(gate) == MT_GATE_FAIL;
        gates->skipped += gate->state == MT_GATE_NOT_EVALUATED && gate->is_optional;
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
