#include "setting_trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fit.h"
#include "policy_options.h"
#include "process_memory.h"
#include "replay.h"
#include "util.h"

/* The policy of `conf`, in `text`. */
static const char *policy_of(const char *conf, char text[MT_TUNE_CONF_BYTES + 16])
{
    if (!conf)
        return "pytorch";
    (void)snprintf(text, MT_TUNE_CONF_BYTES + 16, "pytorch:%s", conf);
    return text;
}

static void keep_replay(const struct mt_replay_summary *summary, struct mt_setting_trial *trial)
{
    for (uint16_t i = 0; i < summary->device_count; i++) {
        const struct mt_replay_result *result = &summary->devices[i];

        trial->devices[trial->device_count++] = (struct mt_setting_device){
            .device = result->device,
            .peak_bytes = result->counters.reserved.peak,
            .driver_calls = result->counters.device_allocs + result->counters.device_frees};
    }
}

enum mt_status mt_setting_replay(struct mt_source *source, const char *conf,
                                 struct mt_setting_trial *trial, struct mt_error *error)
{
    struct mt_replay_summary *summary = mt_memory_new(sizeof *summary);
    char text[MT_TUNE_CONF_BYTES + 16];
    const struct mt_replay_options options = {.policy = policy_of(conf, text)};
    enum mt_status status = mt_source_rewind(source, error);

    memset(trial, 0, sizeof *trial);
    if (status == MT_OK)
        status = mt_replay_run(source, &options, NULL, summary, error);
    if (status == MT_OK &&
        (summary->is_driver_level || mt_policy_recorded_options(&source->header, "bfc")))
        status = mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                         "no request of this trace goes to PyTorch's allocator");
    if (status == MT_OK)
        keep_replay(summary, trial);
    free(summary);
    return status;
}

static void keep_search(const struct mt_fit_result *result, struct mt_setting_device *device)
{
    device->serves = result->fits;
    device->limit_bytes = result->fits ? result->high_bytes : 0;
    device->need_bytes = result->fits ? mt_fit_need_bytes(result) : 0;
    device->is_exact =
        result->policy_exact &&
        (!result->initial_bytes || result->high_bytes > mt_round_up(result->initial_bytes, MT_MIB));
}

enum mt_status mt_setting_search(struct mt_source *source, const char *conf,
                                 struct mt_setting_trial *trial, struct mt_error *error)
{
    struct mt_fit_summary *summary = mt_memory_zeroed(1, sizeof *summary);
    char text[MT_TUNE_CONF_BYTES + 16];
    const struct mt_fit_options options = {
        .policy = policy_of(conf, text), .orders = MT_BASE_ORDERS, .limits_only = true};
    enum mt_status status = mt_source_rewind(source, error);

    if (status == MT_OK)
        status = mt_fit_run(source, &options, summary, error);
    for (uint16_t i = 0; status == MT_OK && i < summary->device_count; i++)
        for (uint16_t k = 0; k < trial->device_count; k++)
            if (trial->devices[k].device == summary->devices[i].device)
                keep_search(&summary->devices[i], &trial->devices[k]);
    mt_fit_release(summary);
    free(summary);
    return status;
}

const struct mt_setting_device *mt_setting_device_of(const struct mt_setting_trial *trial,
                                                     uint16_t device)
{
    for (uint16_t i = 0; i < trial->device_count; i++)
        if (trial->devices[i].device == device)
            return &trial->devices[i];
    return NULL;
}
