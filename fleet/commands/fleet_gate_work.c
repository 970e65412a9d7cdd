#include "fleet_gate_work.h"

#include <stdlib.h>

#include "grow.h"
#include "util.h"

bool mt_gate_rank_peak(const struct mt_rank_record *record, enum mt_gate_metric metric,
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

uint32_t mt_gate_group_count(const struct mt_job_report *report)
{
    return (report->axis_count ? report->axes[0].group_count : 0) + 1;
}

static int compare_coordinates(const void *a, const void *b)
{
    const struct mt_job_group *one = a, *other = b;

    return (one->coordinate > other->coordinate) - (one->coordinate < other->coordinate);
}

uint32_t mt_gate_group_of(const struct mt_job_report *report, uint32_t row)
{
    const struct mt_job_axis *axis = report->axes;
    const struct mt_job_group wanted = {.coordinate = report->rows[row].coordinates[0]};
    const struct mt_job_group *group = NULL;

    if (report->axis_count && axis->group_count)
        group =
            bsearch(&wanted, axis->groups, axis->group_count, sizeof wanted, compare_coordinates);
    return group ? (uint32_t)(group - axis->groups) : mt_gate_group_count(report) - 1;
}

const char *mt_gate_group_name(struct mt_fleet_gates *gates, const struct mt_job_report *report,
                               uint32_t group)
{
    if (group + 1 < mt_gate_group_count(report))
        return mt_arena_printf(&gates->arena, "%s %u", report->axes[0].name,
                               (unsigned)report->axes[0].groups[group].coordinate);
    return group ? mt_arena_printf(&gates->arena, "%s unknown", report->axes[0].name) : "all ranks";
}

const char *mt_gate_rank_doubt(const struct mt_rank_record *record)
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

struct mt_fleet_gate *mt_gate_add(struct mt_fleet_gates *gates, const char *rule, const char *group,
                                  const struct mt_gate_rule *bounds)
{
    struct mt_fleet_gate *gate;

    if (!rule || !group)
        return NULL;
    if (gates->count == gates->capacity)
        mt_grow_to(&gates->list, &gates->capacity, (size_t)gates->count + 1, sizeof *gates->list);
    gate = &gates->list[gates->count++];
    *gate = (struct mt_fleet_gate){.rule = rule,
                                   .group = group,
                                   .is_optional = bounds->optional,
                                   .row = MT_NO_ROW,
                                   .limit = bounds->limit.text ? bounds->limit.bytes : UINT64_MAX,
                                   .warn = bounds->warn.text ? bounds->warn.bytes : UINT64_MAX};
    return gate;
}

void mt_gate_judge(struct mt_fleet_gate *gate)
{
    bool is_broken = gate->actual > gate->limit && !(gate->doubt && gate->is_no_bound);

    gate->state = is_broken                   ? MT_FLEET_FAIL
                  : gate->doubt               ? MT_FLEET_NOT_EVALUATED
                  : gate->actual > gate->warn ? MT_FLEET_WARN
                                              : MT_FLEET_PASS;
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
    uint64_t period = (uint64_t)axis->stride * axis->size, rest;

    if (!period)
        return axis->size && axes_span_world(report) ? report->world / axis->size : 0;
    rest = mt_sub_or_0_u64(report->world % period, (uint64_t)axis->stride * coordinate);
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

/* Rows ascend by rank, so rows of the same rank are adjacent. */
void mt_gate_count_seen(struct mt_fleet_gates *gates, const struct mt_job_report *report)
{
    uint32_t groups = mt_gate_group_count(report);
    int32_t *before = mt_arena_array(&gates->arena, groups, sizeof *before);

    gates->seen = mt_arena_array(&gates->arena, groups, sizeof *gates->seen);
    for (uint32_t g = 0; g < groups; g++)
        before[g] = -1;
    for (uint32_t i = 0; i < report->row_count; i++) {
        int32_t rank = report->rows[i].record->identity.rank;
        uint32_t group = mt_gate_group_of(report, i);

        if (rank < 0)
            continue;
        gates->seen[group] += rank != before[group];
        before[group] = rank;
    }
}

bool mt_gate_misses_ranks(const struct mt_fleet_gates *gates, const struct mt_job_report *report)
{
    const struct mt_gate_rule *allowed = &gates->rules.own[MT_JOB_RULE_MISSING];

    if (allowed->limit.text && report->missing_count <= allowed->limit.bytes)
        return false;
    return report->missing_count || report->unreadable_count;
}

bool mt_gate_misses_at(const struct mt_job_report *report, uint32_t axis, uint32_t coordinate)
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

const char *mt_gate_missing_in(const struct mt_fleet_gates *gates,
                               const struct mt_job_report *report, uint32_t group)
{
    if (!mt_gate_misses_ranks(gates, report))
        return NULL;
    if (group + 1 < mt_gate_group_count(report) && !group_misses(gates, report, group))
        return NULL;
    return "ranks are missing";
}

bool mt_gate_missing_are_placed(const struct mt_fleet_gates *gates,
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

/* "max-peak reserved" */
const char *mt_gate_rule_name(struct mt_fleet_gates *gates, enum mt_gate_kind kind,
                              enum mt_gate_metric metric)
{
    if (metric == MT_METRIC_NONE)
        return mt_gate_kind_name(kind);
    return mt_arena_printf(&gates->arena, "%s %s", mt_gate_kind_name(kind),
                           mt_gate_metric_name(metric));
}
