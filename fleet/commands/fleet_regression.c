/* Compares peaks of a job with those of a base, match by match. */
#include "fleet_regression.h"

#include "fleet_gate_work.h"
#include "util.h"

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

        if (!mt_gate_rank_peak(report->rows[rows[i]].record, metric, &bytes))
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
        if (mt_gate_rank_doubt(diff->a->rows[class->a_rows[i]].record))
            return "a rank of the base is cut, incomplete, killed, failed or out of memory";
    return NULL;
}

/* Compares a class with its bound. The class that exceeds its bound the most, or is closest to it,
 * represents the group. */
static void compare_class(struct mt_fleet_gate *gate, const struct mt_job_diff *diff,
                          const struct mt_job_class *class, const struct mt_gate_rule *rule,
                          enum mt_gate_metric metric)
{
    uint64_t a, b, bound, before = gate->limit == UINT64_MAX ? gate->warn : gate->limit;
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
        gate->doubt = mt_gate_rank_doubt(diff->b->rows[class->b_rows[i]].record);
    bound = above(a, rule->limit.text ? &rule->limit : &rule->warn);
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
        if (mt_gate_group_of(report, i) == group)
            return true;
    return false;
}

void mt_gate_check_regression(struct mt_fleet_gates *gates, const struct mt_job_report *report,
                              const struct mt_job_diff *diff, const struct mt_gate_rule *rule,
                              enum mt_gate_metric metric)
{
    uint32_t count = mt_gate_group_count(report), first = gates->count;
    const char *name = mt_gate_rule_name(gates, MT_GATE_REGRESSION, metric);

    for (uint32_t g = 0; g < count; g++) {
        struct mt_fleet_gate *gate =
            mt_gate_add(gates, name, mt_gate_group_name(gates, report, g), rule);

        gate->limit = gate->warn = UINT64_MAX;
        gate->doubt = diff ? mt_gate_missing_in(gates, report, g) : "there is no --base";
        /* without some of its ranks, the mean of a group may be larger or smaller */
        gate->is_no_bound = gate->doubt && diff && diff->match != MT_MATCH_RANKS;
    }
    for (uint32_t i = 0; diff && i < diff->class_count; i++)
        if (diff->classes[i].b_count)
            compare_class(
                &gates->list[first + mt_gate_group_of(report, diff->classes[i].b_rows[0])], diff,
                &diff->classes[i], rule, metric);
    if (count > 1 && !has_rows(report, count - 1) &&
        (!diff || !gates->list[gates->count - 1].doubt ||
         mt_gate_missing_are_placed(gates, report)))
        gates->count--;
    for (uint32_t i = first; i < gates->count; i++)
        mt_gate_judge(&gates->list[i]);
}
