/* The passes that follow live blocks and simultaneously replay the run under other settings. For
 * analyze.c only. */
#ifndef MT_ANALYZER_READ_BLOCKS_H
#define MT_ANALYZER_READ_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event.h"
#include "replay.h"
#include "status.h"

struct mt_analysis;

/* Returns true if findings requested replays under other settings. */
bool mt_trials_are_wanted(const struct mt_analysis *analysis);
enum mt_status mt_replay_trials(struct mt_analysis *analysis,
                                const struct mt_replay_listener *listener) MT_MUST_USE;

enum mt_status mt_begin_blocks(struct mt_analysis *analysis) MT_MUST_USE;
void mt_receive_blocks(struct mt_analysis *analysis, const struct mt_event *events, size_t count);
void mt_finish_blocks(struct mt_analysis *analysis);
uint64_t mt_blocks_memory_bytes(const struct mt_analysis *analysis);

#endif
