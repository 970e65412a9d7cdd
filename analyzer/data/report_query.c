#include "report_query.h"

#include <string.h>

#include "util.h"

bool mt_limit_is_known(const struct mt_replay_result *replay)
{
    bool explains =
        replay->limit_inferred && replay->limit_low_bytes + 1 == replay->limit_high_bytes;

    return replay->limit_bytes && !explains;
}

bool mt_report_covers(const struct mt_report *report, const struct mt_device_report *device,
                      uint64_t end_event)
{
    return !report->starts_in_middle || end_event >= device->first_event;
}

const char *mt_report_name(struct mt_arena *arena, const char *path)
{
    static const char *const endings[] = {".zst", ".pickle", ".pkl", ".mt", ".trace", ".json"};
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : strcmp(path, "-") == 0 ? "standard input" : path;
    size_t length = strlen(base);

    for (size_t i = 0; i < MT_ARRAY_LEN(endings); i++) {
        size_t ending = strlen(endings[i]);

        if (length > ending && !strncmp(base + length - ending, endings[i], ending))
            length -= ending;
    }
    return mt_arena_text(arena, base, length);
}

uint64_t mt_step_begin(const struct mt_report *report, const struct mt_step_use *step)
{
    return mt_phase_eve(&report->phases[step->phase]) + 1;
}

uint32_t mt_first_step(const struct mt_report *report, const struct mt_device_report *device)
{
    uint32_t first = device->step_count;

    while (first > 0 &&
           mt_report_covers(report, device, mt_step_begin(report, &device->steps[first - 1])) &&
           (first == device->step_count || mt_step_begin(report, &device->steps[first - 1]) <
                                               mt_step_begin(report, &device->steps[first])))
        first--;
    return first;
}
