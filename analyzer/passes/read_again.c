#include "read_again.h"

#include "check.h"

static enum mt_status rewind_source(const struct mt_analysis *analysis)
{
    MT_ASSERT(analysis->readings.charged != MT_READINGS_OUTSIDE);
    return mt_source_rewind(analysis->source, analysis->error);
}

enum mt_status mt_read_again_events(struct mt_analysis *analysis, void *self,
                                    enum mt_status (*on_event)(void *self, struct mt_event *event))
{
    enum mt_status status = rewind_source(analysis);

    if (status == MT_OK)
        status = mt_source_each(analysis->source, on_event, self, analysis->error);
    return status == MT_END ? MT_OK : status;
}

enum mt_status mt_read_again_replay(struct mt_analysis *analysis,
                                    const struct mt_replay_options *options,
                                    struct mt_replay_summary *summary)
{
    enum mt_status status = rewind_source(analysis);

    return status == MT_OK
               ? mt_replay_run(analysis->source, options, NULL, summary, analysis->error)
               : status;
}
