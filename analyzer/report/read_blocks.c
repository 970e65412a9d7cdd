#include "read_blocks.h"

#include "analysis.h"
#include "process_memory.h"

#include <stdlib.h>

bool mt_trials_are_wanted(const struct mt_analysis *analysis)
{
    return analysis->trial_count > 0;
}

enum mt_status mt_replay_trials(struct mt_analysis *analysis,
                                const struct mt_replay_listener *listener)
{
    struct mt_replay_options options[MT_MAX_TRIALS];
    struct mt_replay_job jobs[MT_MAX_TRIALS];

    for (uint32_t i = 0; i < analysis->trial_count && i < MT_MAX_TRIALS; i++) {
        struct mt_trial *trial = &analysis->trials[i];

        trial->summary = mt_memory_zeroed(1, sizeof *trial->summary);
        options[i] = (struct mt_replay_options){.policy = trial->policy,
                                                .limit_bytes = trial->limit_bytes,
                                                .most_reserved_bytes = trial->most_reserved_bytes};
        jobs[i] = (struct mt_replay_job){&options[i], NULL, trial->summary};
    }
    return mt_replay_run_together(analysis->source, jobs, analysis->trial_count, listener,
                                  analysis->error);
}

enum mt_status mt_begin_blocks(struct mt_analysis *analysis)
{
    mt_holders_begin(&analysis->holders, analysis->source);
    return MT_OK;
}

void mt_receive_blocks(struct mt_analysis *analysis, const struct mt_event *events, size_t count)
{
    for (size_t i = 0; i < count; i++)
        mt_holders_event(&analysis->holders, &events[i]);
}

void mt_finish_blocks(struct mt_analysis *analysis)
{
    mt_holders_finish(&analysis->holders);
}

uint64_t mt_blocks_memory_bytes(const struct mt_analysis *analysis)
{
    return mt_holders_bytes(&analysis->holders);
}
