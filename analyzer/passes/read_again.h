/* Another pass over the source of an analysis, charged to the current pass (readings.h). */
#ifndef MT_ANALYZER_READ_AGAIN_H
#define MT_ANALYZER_READ_AGAIN_H

#include "analysis.h"
#include "replay.h"

/* Reads from the start to the end, or until `on_event` returns MT_END. */
enum mt_status mt_read_again_events(struct mt_analysis *analysis, void *self,
                                    enum mt_status (*on_event)(void *self,
                                                               struct mt_event *event)) MT_MUST_USE;

/* mt_replay_run from the start, without an observer. */
enum mt_status mt_read_again_replay(struct mt_analysis *analysis,
                                    const struct mt_replay_options *options,
                                    struct mt_replay_summary *summary) MT_MUST_USE;

#endif
