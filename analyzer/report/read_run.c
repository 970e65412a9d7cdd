#include "read_run.h"

#include "analysis.h"
#include "found_phases.h"
#include "heap_choice.h"
#include "replay.h"

#include <string.h>

static void restart_watch(struct mt_analysis *analysis)
{
    mt_watch_release(&analysis->watch);
    analysis->watch.question = analysis->options->question;
}

static enum mt_status watch_and_survey(void *context, const struct mt_event *event,
                                       const struct mt_replay_view *view)
{
    struct mt_analysis *analysis = context;

    mt_watch_event(&analysis->watch, &analysis->survey, event);
    mt_survey_event(&analysis->survey, event, view);
    return MT_OK;
}

static enum mt_status restart(void *context)
{
    struct mt_analysis *analysis = context;

    restart_watch(analysis);
    mt_survey_restart(&analysis->survey);
    return MT_OK;
}

static enum mt_status replay_as_run(struct mt_analysis *analysis,
                                    const struct mt_replay_observer *observer)
{
    struct mt_arena *arena = &analysis->report->arena;
    char difference[240];
    enum mt_status status;

    status = mt_replay_as_run(analysis->source, &analysis->options->replay, observer,
                              analysis->summary, difference, analysis->error);
    if (!status && *difference)
        analysis->report->pytorch_difference = mt_arena_text(arena, difference, strlen(difference));
    return status;
}

enum mt_status mt_read_ranges(struct mt_analysis *analysis)
{
    enum mt_status status = mt_heap_view_choose(analysis->source, analysis->error);

    return status ? status : mt_found_phases_lay(analysis->source, analysis->error);
}

/* Replays the run as it was unless the options request something else. */
enum mt_status mt_read_run(struct mt_analysis *analysis)
{
    struct mt_replay_options options = analysis->options->replay;
    struct mt_replay_observer observer = {analysis, watch_and_survey, restart};

    mt_survey_init(&analysis->survey, &analysis->report->arena, analysis->source);
    analysis->survey.progress = analysis->options->progress;
    restart_watch(analysis);
    if (!options.policy)
        return replay_as_run(analysis, &observer);
    options.verify = true;
    return mt_replay_run(analysis->source, &options, &observer, analysis->summary, analysis->error);
}

void mt_finish_run(struct mt_analysis *analysis)
{
    mt_watch_finish(&analysis->watch, &analysis->survey);
    mt_survey_finish(&analysis->survey);
}

uint64_t mt_run_memory_bytes(const struct mt_analysis *analysis)
{
    return mt_alloc_log_bytes(&analysis->survey.log);
}
