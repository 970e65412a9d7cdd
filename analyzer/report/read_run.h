/* The passes that replay the run. For analyze.c only. */
#ifndef MT_ANALYZER_READ_RUN_H
#define MT_ANALYZER_READ_RUN_H

#include <stdint.h>

#include "status.h"

struct mt_analysis;

/* Chooses the heaps in view, and inserts inferred steps and phases if the program did not name
 * them. */
enum mt_status mt_read_ranges(struct mt_analysis *analysis) MT_MUST_USE;

/* Replays the run for the survey and the question. A replay that searches for a limit or for lost
 * pools restarts, so this makes as many passes over the source as necessary. */
enum mt_status mt_read_run(struct mt_analysis *analysis) MT_MUST_USE;
void mt_finish_run(struct mt_analysis *analysis);
uint64_t mt_run_memory_bytes(const struct mt_analysis *analysis);

#endif
