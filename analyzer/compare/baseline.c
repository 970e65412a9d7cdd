#include "baseline.h"
#include "process_memory.h"
#include "report_query.h"

#include <string.h>

#include "pytorch_config.h"

const char *mt_peaks_doubt(const struct mt_report *report, const struct mt_device_report *device)
{
    const struct mt_integrity *integrity = &report->integrity;

    if (integrity->cut)
        return "the trace is cut";
    if (integrity->frames_damaged || integrity->events_invalid)
        return "parts of the trace are damaged";
    if (integrity->events_dropped)
        return "the recorder dropped events";
    if (device->has_failure)
        return "the simulated run runs out of memory";
    if (mt_fatal_oom(device))
        return "the run ran out of memory";
    if (report->starts_in_middle)
        return "the trace starts in the middle of the run";
    return report->doubt;
}

bool mt_device_peak(const struct mt_report *report, uint16_t device, uint64_t *bytes,
                    bool *is_sampled)
{
    *bytes = 0;
    *is_sampled = false;
    for (uint32_t i = 0; i < report->driver_count; i++) {
        const struct mt_driver_report *driver = &report->drivers[i];
        const struct mt_residual *residual = &driver->residual;

        if (driver->device != device)
            continue;
        *is_sampled = residual->samples && residual->used_bytes >= driver->peak.bytes;
        *bytes = *is_sampled ? residual->used_bytes : driver->peak.bytes;
        return *is_sampled || driver->has_calls;
    }
    return false;
}

static const char *keep(struct mt_baseline *baseline, const char *text)
{
    return text ? mt_arena_text(&baseline->arena, text, strlen(text)) : NULL;
}

static void add_sites(struct mt_baseline *baseline, const struct mt_device_report *from,
                      struct mt_baseline_device *device)
{
    device->all_sites = from->peak_site_count <= MT_BASELINE_SITES;
    device->site_count = device->all_sites ? from->peak_site_count : MT_BASELINE_SITES;
    for (uint32_t i = 0; i < device->site_count; i++) {
        const struct mt_site_use *use = &from->peak_sites[i];

        device->sites[i].site = keep(baseline, use->site);
        device->sites[i].phase = keep(baseline, use->phase);
        device->sites[i].bytes = use->bytes;
    }
}

static void add_device(struct mt_baseline *baseline, const struct mt_report *report,
                       const struct mt_device_report *from)
{
    struct mt_baseline_device *device = &baseline->devices[baseline->device_count++];
    bool is_sampled;

    device->device = from->device;
    device->requested_peak_bytes = from->requested_peak.bytes;
    device->allocated_peak_bytes = from->allocated_peak.bytes;
    device->has_reserved = mt_has_allocator(report);
    device->active_peak_bytes = device->has_reserved ? from->active_peak.bytes : 0;
    device->reserved_peak_bytes = device->has_reserved ? from->reserved_peak.bytes : 0;
    if (!mt_device_peak(report, from->device, &device->device_peak_bytes, &is_sampled))
        device->device_peak_bytes = 0;
    add_sites(baseline, from, device);
    if (!baseline->doubt)
        baseline->doubt = mt_peaks_doubt(report, from);
}

/* The effective options; NULL: it is not PyTorch's allocator, or they are unknown. */
static const char *options_of(struct mt_baseline *baseline, const struct mt_report *report,
                              const struct mt_trace_header *header)
{
    struct mt_pytorch_config config;
    char text[512];

    if (report->is_driver_level || report->what_if || report->pytorch_difference ||
        mt_pytorch_config_recorded(header, &config, NULL) != MT_OK)
        return NULL;
    mt_pytorch_config_spell(&config, text, sizeof text);
    return keep(baseline, text);
}

void mt_baseline_of_report(struct mt_baseline *baseline, const struct mt_report *report,
                           const struct mt_trace_header *header)
{
    memset(baseline, 0, sizeof *baseline);
    baseline->name = keep(baseline, report->name);
    baseline->sha256 = keep(baseline, *report->sha256 ? report->sha256 : NULL);
    baseline->framework = keep(baseline, report->framework);
    baseline->options = options_of(baseline, report, header);
    baseline->devices =
        mt_arena_array(&baseline->arena, report->device_count + 1, sizeof *baseline->devices);
    for (uint32_t i = 0; i < report->device_count; i++)
        add_device(baseline, report, &report->devices[i]);
}

void mt_baseline_release(struct mt_baseline *baseline)
{
    mt_arena_release(&baseline->arena);
    memset(baseline, 0, sizeof *baseline);
}

const struct mt_baseline_device *mt_baseline_device(const struct mt_baseline *baseline,
                                                    uint16_t device)
{
    for (uint32_t i = 0; baseline && i < baseline->device_count; i++)
        if (baseline->devices[i].device == device)
            return &baseline->devices[i];
    return NULL;
}
