/* The gates of a job. Each rule has a gate for each group of ranks. */
#ifndef MT_CLI_FLEET_GATES_H
#define MT_CLI_FLEET_GATES_H

#include "fleet_gate_data.h"
#include "json.h"

/* Reads the options and the budget. Prints errors; returns enum mt_exit. */
int mt_fleet_gates_read(struct mt_fleet_gates *gates, const struct mt_fleet_gate_options *options);

/* Reads the job of --base, if there is one. Prints errors; returns enum mt_exit. */
int mt_fleet_gates_open_base(struct mt_fleet_gates *gates, const char *mesh, uint64_t jobs);

/* Evaluates the rules for the groups of the first axis. Without axes, all ranks are one group. A
 * gate does not pass if a rank of the group is missing, was killed, failed or ran out of memory, or
 * if its trace is truncated or incomplete, even if all other ranks keep the rule. Returns
 * MT_ERR_FORMAT if the base cannot be compared with the job. */
enum mt_status mt_fleet_gates_check(struct mt_fleet_gates *gates,
                                    const struct mt_job_report *report,
                                    struct mt_error *error) MT_MUST_USE;

/* Sets the verdicts of gates that were checked. */
void mt_fleet_gates_describe(struct mt_fleet_gates *gates, const struct mt_job_report *report);

void mt_fleet_gates_json(struct mt_json *json, const struct mt_fleet_gates *gates,
                         const struct mt_job_report *report);

/* Appends JUnit XML with a test case for each rule and group. */
void mt_fleet_gates_junit(struct mt_buf *out, const struct mt_fleet_gates *gates,
                          const struct mt_job_report *report);
void mt_fleet_gates_release(struct mt_fleet_gates *gates);

#endif
