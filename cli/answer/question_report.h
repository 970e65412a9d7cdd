/* Reads a trace and answers a question about one instant. Used by live and diff. */
#ifndef MT_CLI_QUESTION_REPORT_H
#define MT_CLI_QUESTION_REPORT_H

#include <stdbool.h>

#include "analyze_options.h"
#include "cli.h"
#include "diff.h"
#include "report.h"

struct mt_question_report {
    const char *path;
    struct mt_source *source;
    struct mt_report *report;
};

/* Reads a trace and analyzes it. Returns -1, or the exit code after an error message. Call
 * mt_question_close in either case. */
int mt_question_run(const char *path, const struct mt_common *common,
                    const struct mt_question *question, struct mt_question_report *asked);

/* Like mt_question_run, but with other options of the analysis, for commands that need more than
 * the answer. */
int mt_question_run_with(const char *path, const struct mt_common *common,
                         const struct mt_analyze_options *wanted, struct mt_question_report *asked);
void mt_question_close(struct mt_question_report *asked);

/* Returns why there is no answer: "no request ran out of memory". */
const char *mt_question_no_answer_text(enum mt_no_answer missing);

/* Returns -1 if `device` has an answer, or if the trace has no devices. With MT_EVERY_DEVICE, one
 * device with an answer is enough. Otherwise prints an error and returns the exit code. */
int mt_question_check(const struct mt_question_report *asked, const struct mt_question *question,
                      uint64_t device);

/* Returns -1 if a tag of the trace has the member, or if `member` is NULL. Otherwise prints an
 * error and returns the exit code. */
int mt_question_check_member(const struct mt_source *source, const char *path, const char *member);

/* Prints that the report has no events of this device, and why. */
void mt_question_print_no_events(const char *path, const struct mt_report *report, uint64_t device);

/* If the number of the device is too high for an analysis, prints an error and returns true. */
bool mt_question_refuses_device(uint64_t device);

/* Prints that there is no such phase, with suggestions. Returns the exit code. */
int mt_question_print_no_phase(const struct mt_question_report *asked, const char *phase);

/* Returns the device. With MT_EVERY_DEVICE, returns the device that reserved the most. Returns NULL
 * if there is none. */
const struct mt_device_report *mt_question_device(const struct mt_report *report, uint64_t device);

/* The analysis of a source, with progress. */

/* mt_analyze (analyze.h) with options->progress set to a line on standard error, which is removed
 * before the return. If `quiet` is true, nothing is shown. */
enum mt_status mt_analyze_with_progress(struct mt_source *source,
                                        const struct mt_analyze_options *options, bool quiet,
                                        struct mt_report **report,
                                        struct mt_error *error) MT_MUST_USE;

#endif
