/* Turns a source into a report: runs the passes of an analysis, in order. */
#ifndef MT_ANALYZER_ANALYZE_H
#define MT_ANALYZER_ANALYZE_H

#include "analyze_options.h"
#include "report.h"
#include "source.h"

/* Reads the source more than once and sets *report. Release it with mt_report_release. `source`
 * must outlive the report. */
enum mt_status mt_analyze(struct mt_source *source, const struct mt_analyze_options *options,
                          struct mt_report **report, struct mt_error *error) MT_MUST_USE;
void mt_report_release(struct mt_report *report); /* accepts NULL */

#endif
