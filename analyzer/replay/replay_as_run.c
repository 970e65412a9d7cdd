#include "heap_choice.h"
#include "replay_as_run.h"

#include <string.h>

bool mt_replay_is_exact(const struct mt_replay_summary *summary)
{
    for (uint16_t i = 0; i < summary->device_count; i++)
        if (summary->devices[i].has_events && !summary->devices[i].verify.exact)
            return false;
    return true;
}

static void note_difference(const struct mt_replay_summary *summary, char difference[240])
{
    strcpy(difference, "events differ");
    for (size_t i = summary->device_count; i > 0; i--) {
        const struct mt_replay_result *device = &summary->devices[i - 1];

        if (!device->verify.exact && *device->verify.first_difference)
            memcpy(difference, device->verify.first_difference, 240);
    }
}

static enum mt_status run(struct mt_source *source, const struct mt_replay_options *options,
                          const char *policy, const struct mt_replay_observer *observer,
                          struct mt_replay_summary *summary, struct mt_error *error)
{
    struct mt_replay_options with = *options;

    with.policy = policy;
    with.verify = true;
    memset(summary, 0, sizeof *summary);
    return mt_replay_run(source, &with, observer, summary, error);
}

enum mt_status mt_replay_as_run(struct mt_source *source, const struct mt_replay_options *options,
                                const struct mt_replay_observer *observer,
                                struct mt_replay_summary *summary, char difference[240],
                                struct mt_error *error)
{
    enum mt_status status = mt_heap_view_choose(source, error);

    *difference = '\0';
    if (status)
        return status;
    if (source->view.level == MT_VIEW_DRIVER)
        return run(source, options, "recorded", observer, summary, error);
    status = run(source, options, "pytorch", observer, summary, error);
    if (status || mt_replay_is_exact(summary) || options->limit_bytes || options->blind)
        return status;
    note_difference(summary, difference);
    status = observer->restart(observer->context);
    if (!status)
        status = mt_source_rewind(source, error);
    return status ? status : run(source, options, "recorded", observer, summary, error);
}
