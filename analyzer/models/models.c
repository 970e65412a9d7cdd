
#include "analysis.h"
#include "device_choice.h"
#include "model_feed.h"
#include "util.h"

#define DECLARE(NAME, name)  extern const struct mt_model_ops mt_model_##name;
#define POINT_TO(NAME, name) &mt_model_##name,

MT_MODELS(DECLARE)
static const struct mt_model_ops *const models[] = {MT_MODELS(POINT_TO)};

static bool is_shown(const struct mt_report *report, uint16_t device)
{
    const struct mt_device_choice choice = mt_devices_by_peak(report);

    for (uint32_t i = 0; i < choice.count; i++)
        if (choice.devices[i]->device == device)
            return true;
    return false;
}

static bool is_wanted(const struct mt_analysis *analysis, uint32_t slot, size_t model)
{
    const struct mt_question *question = analysis->options->question;

    if (analysis->options->only_shown && model != MT_MODEL_AT_MODULES &&
        !is_shown(analysis->report, analysis->survey.devices[slot].device))
        return false;
    if (question && question->by == MT_BY_MODULE && model == MT_MODEL_AT_MODULES)
        return true;
    return analysis->options->models & 1u << model;
}

static enum mt_status begin_model(struct mt_analysis *analysis, uint32_t slot,
                                  const struct mt_model_ops *model, size_t row,
                                  struct mt_model_feeds *feeds)
{
    struct mt_model_feed *feed = &feeds->feeds[feeds->count];

    *feed = (struct mt_model_feed){0};
    enum mt_status status = model->begin(analysis, slot, feed);
    if (!feed->builder)
        return status;
    feeds->rows[feeds->count++] = (uint8_t)row;
    mt_model_feeds_update(feeds);
    return status;
}

enum mt_status mt_models_begin(struct mt_analysis *analysis, uint32_t slot,
                               struct mt_model_feeds *feeds)
{
    enum mt_status status = MT_OK;

    for (size_t i = 0; i < MT_ARRAY_LEN(models) && !status; i++)
        if (is_wanted(analysis, slot, i))
            status = begin_model(analysis, slot, models[i], i, feeds);
    if (analysis->options->listener && !status)
        status = begin_model(analysis, slot, analysis->options->listener, MT_MODEL_COUNT, feeds);
    return status;
}

enum mt_status mt_models_finish(struct mt_analysis *analysis, struct mt_model_feeds *feeds,
                                struct mt_device_report *out)
{
    enum mt_status status = MT_OK;

    for (uint32_t i = 0; i < feeds->count && !status; i++) {
        const struct mt_model_ops *model =
            feeds->rows[i] < MT_MODEL_COUNT ? models[feeds->rows[i]] : analysis->options->listener;

        status = model->finish(analysis, feeds->feeds[i].builder, out);
    }
    return status;
}

uint32_t mt_models_snapshot_events(const struct mt_analysis *analysis, uint32_t slot,
                                   uint64_t events[MT_MODEL_COUNT])
{
    uint32_t count = 0;

    for (size_t i = 0; i < MT_ARRAY_LEN(models); i++)
        if (is_wanted(analysis, slot, i) && models[i]->snapshot_event)
            events[count++] = models[i]->snapshot_event(analysis, slot);
    return count;
}
