/* The passes that replay the run: what was when. For analyze.c alone. */
#ifndef MT_ANALYZER_READ_RUN_H
#define MT_ANALYZER_READ_RUN_H

#include <stdint.h>

#include "status.h"

struct mt_analysis;

/* Chooses the heaps in view, and lays steps and phases over a source whose program did not name
 * them. */
enum mt_status mt_read_ranges(struct mt_analysis *analysis) MT_MUST_USE;

/* Replays the run for the survey and the question. A replay that looks for a limit or for lost
 * pools starts again, so that this reads the source as often as it has to. */
enum mt_status mt_read_run(struct mt_analysis *analysis) MT_MUST_USE;
enum mt_status mt_finish_run(struct mt_analysis *analysis) MT_MUST_USE;
uint64_t mt_run_memory_bytes(const struct mt_analysis *analysis);

#endif
