/* Replay as the run was: PyTorch's rules as long as they reproduce what was
 * recorded; else, and of a program without an allocator above the driver, what
 * was recorded. */
#ifndef MT_ANALYZER_REPLAY_AS_RUN_H
#define MT_ANALYZER_REPLAY_AS_RUN_H

#include "replay.h"

/* Did the replay do what was recorded, on every device? Only if options.verify. */
bool mt_replay_is_exact(const struct mt_replay_summary *summary);

/* As mt_replay_run, once or twice, in the view that is chosen here if need be;
 * options->policy and ->verify are not looked at. The observer needs `restart`.
 * `difference`: "" = none, else why PyTorch's rules were given up, which then is
 * what the recorded block sizes come from. */
enum mt_status mt_replay_as_run(struct mt_source *source, const struct mt_replay_options *options,
                                const struct mt_replay_observer *observer,
                                struct mt_replay_summary *summary, char difference[240],
                                struct mt_error *error) MT_MUST_USE;

#endif
