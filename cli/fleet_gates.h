/* The gates of a job: each rule has one case for each group of ranks. */
#ifndef MT_CLI_FLEET_GATES_H
#define MT_CLI_FLEET_GATES_H

#include "fleet_gate_data.h"
#include "job_document.h"
#include "json.h"

/* Reads the options and the budget. Prints errors; returns enum mt_exit. */
int mt_fleet_gates_read(struct mt_fleet_gates *gates, const struct mt_fleet_gate_options *options);

/* Reads the job of --base, if there is one. Prints errors; returns enum mt_exit. */
int mt_fleet_gates_open_base(struct mt_fleet_gates *gates, const char *mesh, uint64_t jobs);

/* Evaluates the rules. The groups are those of the first axis; without axes, all ranks are one
 * group. A rule does not pass if a rank is missing, was killed, failed or ran out of memory, or if
 * its trace is truncated or incomplete, even if the other ranks keep the rule. MT_ERR_FORMAT: the
 * base cannot be compared. */
enum mt_status mt_fleet_gates_check(struct mt_fleet_gates *gates,
                                    const struct mt_job_report *report,
                                    struct mt_error *error) MT_MUST_USE;
void mt_fleet_gates_text(struct mt_buf *out, struct mt_fleet_gates *gates,
                         const struct mt_job_report *report, const struct mt_style *style);
void mt_fleet_gates_json(struct mt_json *json, const struct mt_fleet_gates *gates,
                         const struct mt_job_report *report);
/* JUnit XML: one test case for each rule and group. */
void mt_fleet_gates_junit(struct mt_buf *out, struct mt_fleet_gates *gates,
                          const struct mt_job_report *report);
/* Sets the gates of a page or a summary. They are valid as long as `gates`. */
enum mt_status mt_fleet_gates_document(struct mt_fleet_gates *gates,
                                       const struct mt_job_report *report,
                                       struct mt_job_document *document) MT_MUST_USE;
void mt_fleet_gates_release(struct mt_fleet_gates *gates);

#endif
