#include "models.h"

#include "analysis.h"
#include "model_ops.h"
#include "util.h"

static const struct mt_model_ops *const models[] = {
    &mt_model_timeline, &mt_model_flamechart, &mt_model_blocks,  &mt_model_lifetimes,
    &mt_model_history,  &mt_model_population, &mt_model_address,
};

_Static_assert(MT_ARRAY_LEN(models) <= MT_MODELS_MAX, "a feed for each model");

enum mt_status mt_models_begin(struct mt_analysis *analysis, uint32_t slot,
                               struct mt_model_feeds *feeds)
{
    enum mt_status status = MT_OK;

    for (size_t i = 0; i < MT_ARRAY_LEN(models) && !status; i++) {
        struct mt_model_feed *feed = &feeds->feeds[feeds->count];

        if (!(analysis->options->models & models[i]->bit))
            continue;
        *feed = (struct mt_model_feed){0};
        status = models[i]->begin(analysis, slot, feed);
        if (!feed->builder)
            continue;
        feeds->wants_lives |= feed->on_birth || feed->on_end;
        feeds->rows[feeds->count++] = (uint8_t)i;
    }
    return status;
}

enum mt_status mt_models_finish(struct mt_analysis *analysis, struct mt_model_feeds *feeds,
                                struct mt_device_report *out)
{
    enum mt_status status = MT_OK;

    for (uint32_t i = 0; i < feeds->count && !status; i++)
        status = models[feeds->rows[i]]->finish(analysis, feeds->feeds[i].builder, out);
    return status;
}

uint32_t mt_models_snapshot_events(const struct mt_analysis *analysis, uint32_t slot,
                                   uint64_t events[MT_MODELS_MAX])
{
    uint32_t count = 0;

    for (size_t i = 0; i < MT_ARRAY_LEN(models); i++)
        if ((analysis->options->models & models[i]->bit) && models[i]->snapshot_event)
            events[count++] = models[i]->snapshot_event(analysis, slot);
    return count;
}
