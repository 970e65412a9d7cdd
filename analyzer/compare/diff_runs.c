/* Two runs as wholes: how they differ, and the pairs of devices that are compared. */
#include "diff.h"
#include "report_query.h"

#include <string.h>

static void add_run(struct mt_diff *diff, const char *what, const char *a, const char *b)
{
    const char *of_a = a && *a ? a : "none", *of_b = b && *b ? b : "none";

    if (strcmp(of_a, of_b) != 0 && diff->run_count < MT_RUN_DIFFERENCES)
        diff->runs[diff->run_count++] = (struct mt_run_difference){what, of_a, of_b};
}

static void add_counted(struct mt_arena *arena, struct mt_diff *diff, const char *what, int64_t a,
                        int64_t b)
{
    add_run(diff, what, mt_arena_printf(arena, "%lld", (long long)a),
            mt_arena_printf(arena, "%lld", (long long)b));
}

static const char *device_name(const struct mt_report *report)
{
    return report->device_count ? report->devices[0].name : NULL;
}

static const char *level(const struct mt_report *report)
{
    return report->is_driver_level ? "the driver's" : "the framework's";
}

static const char *start(const struct mt_report *report)
{
    return report->starts_in_middle ? "in the middle of the run" : "at its beginning";
}

/* Everything that may explain a difference of memory, or makes the comparison unreliable. */
static void compare_runs(struct mt_arena *arena, struct mt_diff *diff)
{
    const struct mt_report *a = diff->a, *b = diff->b;

    add_counted(arena, diff, "the number of steps", a->step_count, b->step_count);
    add_counted(arena, diff, "the number of devices", a->device_count, b->device_count);
    add_run(diff, "the kind of device", device_name(a), device_name(b));
    add_run(diff, "the framework's version", a->framework, b->framework);
    add_run(diff, "allocator options", a->options, b->options);
    add_run(diff, "the analyzed level", level(a), level(b));
    add_run(diff, "where the trace begins", start(a), start(b));
}

/* Devices of the same number; those of two runs with one device each, whatever their numbers. */
static const struct mt_device_report *partner(const struct mt_diff *diff,
                                              const struct mt_device_report *device)
{
    if (diff->a->device_count == 1 && diff->b->device_count == 1)
        return &diff->b->devices[0];
    return mt_report_device(diff->b, device->device);
}

static void compare_devices(struct mt_arena *arena, struct mt_diff *diff)
{
    diff->devices = mt_arena_array(arena, (size_t)diff->a->device_count + 1, sizeof *diff->devices);
    for (uint32_t i = 0; i < diff->a->device_count; i++) {
        const struct mt_device_report *a = &diff->a->devices[i], *b = partner(diff, a);

        if (!b || a->answer->missing || b->answer->missing ||
            (diff->only != MT_EVERY_DEVICE && diff->only != a->device))
            continue;
        diff->devices[diff->device_count] = (struct mt_device_diff){.a = a, .b = b};
        mt_diff_devices(arena, diff->a, diff->b, &diff->devices[diff->device_count++]);
    }
}

void mt_diff_reports(struct mt_arena *arena, const struct mt_report *a, const struct mt_report *b,
                     uint64_t only, struct mt_diff *diff)
{
    *diff = (struct mt_diff){.a = a, .b = b, .only = only};
    compare_runs(arena, diff);
    compare_devices(arena, diff);
}
