/* The analysis of a source, with progress. */
#ifndef MT_CLI_ANALYZE_PROGRESS_H
#define MT_CLI_ANALYZE_PROGRESS_H

#include <stdbool.h>

#include "analyze.h"

/* mt_analyze (analyze.h) with options->progress set to a line on standard error, which is removed
 * before the return. If `quiet` is true, nothing is shown. */
enum mt_status mt_analyze_with_progress(struct mt_source *source,
                                        const struct mt_analyze_options *options, bool quiet,
                                        struct mt_report **report,
                                        struct mt_error *error) MT_MUST_USE;

#endif
