/* Rules for a whole job, with a case of each rule for each group of ranks. */
#ifndef MT_CLI_FLEET_GATES_H
#define MT_CLI_FLEET_GATES_H

#include "fleet_gate_data.h"
#include "job_document.h"
#include "json.h"

/* Reads the options and the budget. Prints errors; returns enum mt_exit. */
int mt_fleet_gates_read(struct mt_fleet_gates *gates, const struct mt_fleet_gate_options *options);

/* Reads the job of --base, if there is one. Prints errors; returns enum mt_exit. */
int mt_fleet_gates_open_base(struct mt_fleet_gates *gates, const char *mesh, uint64_t jobs);

/* Groups are those of the first axis; without axes, all ranks are one. If a rank is missing,
 * truncated, incomplete, killed, failed or out of memory, a rule that the other ranks keep does not
 * pass.
 * MT_ERR_FORMAT: the base cannot be compared. */
enum mt_status mt_fleet_gates_check(struct mt_fleet_gates *gates,
                                    const struct mt_job_report *report,
                                    struct mt_error *error) MT_MUST_USE;
void mt_fleet_gates_text(struct mt_buf *out, struct mt_fleet_gates *gates,
                         const struct mt_job_report *report, const struct mt_style *style);
void mt_fleet_gates_json(struct mt_json *json, const struct mt_fleet_gates *gates,
                         const struct mt_job_report *report);
/* JUnit XML: a case a rule and group. */
void mt_fleet_gates_junit(struct mt_buf *out, struct mt_fleet_gates *gates,
                          const struct mt_job_report *report);
/* The gates of a page and of a summary; they live as long as `gates`. */
enum mt_status mt_fleet_gates_document(struct mt_fleet_gates *gates,
                                       const struct mt_job_report *report,
                                       struct mt_job_document *document) MT_MUST_USE;
void mt_fleet_gates_release(struct mt_fleet_gates *gates);

#endif
