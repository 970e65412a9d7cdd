/* Shared by the files that check the gates of a job. */
#ifndef MT_CLI_FLEET_GATE_WORK_H
#define MT_CLI_FLEET_GATE_WORK_H

#include "fleet_gate_data.h"

/* Sets *bytes to a peak of the record. Returns false if the record does not have this peak. */
bool mt_gate_rank_peak(const struct mt_rank_record *record, enum mt_gate_metric metric,
                       uint64_t *bytes);

/* Returns why the real peaks of the rank may be higher than the recorded ones; NULL: they are
 * not. */
const char *mt_gate_rank_doubt(const struct mt_rank_record *record);

/* Returns the number of groups of the first axis. Ranks whose position is unknown are one of the
 * groups. */
uint32_t mt_gate_group_count(const struct mt_job_report *report);
uint32_t mt_gate_group_of(const struct mt_job_report *report, uint32_t row);
const char *mt_gate_group_name(struct mt_fleet_gates *gates, const struct mt_job_report *report,
                               uint32_t group);

/* Returns why ranks that the rules require are missing from a group; NULL: none are missing. */
const char *mt_gate_missing_in(const struct mt_fleet_gates *gates,
                               const struct mt_job_report *report, uint32_t group);
/* Returns true if every missing rank belongs to a group that has rows. */
bool mt_gate_missing_are_placed(const struct mt_fleet_gates *gates,
                                const struct mt_job_report *report);

/* Returns the name of a rule: "max-peak reserved". */
const char *mt_gate_rule_name(struct mt_fleet_gates *gates, enum mt_gate_kind kind,
                              enum mt_gate_metric metric);

/* Adds a gate for a group. The result is valid until the next call. Returns NULL if `rule` or
 * `group` is NULL. */
struct mt_fleet_gate *mt_gate_add(struct mt_fleet_gates *gates, const char *rule, const char *group,
                                  const struct mt_gate_rule *bounds);

/* Sets gate->state. A gate with a doubt fails if `actual` exceeds the limit and is a lower bound.
 * Otherwise a gate with a doubt is not evaluated. */
void mt_gate_judge(struct mt_fleet_gate *gate);

/* Returns true if more ranks are missing than the rule max-missing allows. */
bool mt_gate_misses_ranks(const struct mt_fleet_gates *gates, const struct mt_job_report *report);
/* Returns true if ranks are known to be missing at this coordinate of the axis. O(rows). */
bool mt_gate_misses_at(const struct mt_job_report *report, uint32_t axis, uint32_t coordinate);
/* Counts the ranks of each group, for mt_gate_missing_in and mt_gate_missing_are_placed. O(rows *
 * log groups). */
void mt_gate_count_seen(struct mt_fleet_gates *gates, const struct mt_job_report *report);

#endif
