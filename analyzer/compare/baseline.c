/* A baseline: writing, reading and comparing it. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "baseline.h"
#include "card_use.h"
#include "pytorch_config.h"
#include "report.h"
#include "report_query.h"
#include "settings_text.h"
#include "source.h"
#include "util.h"

/* Reads a baseline from its file. Skips unknown members: later versions of /1 may add some. */

struct reading {
    const struct mt_settings *settings;
    struct mt_baseline *baseline;
    struct mt_error *error;
};

static enum mt_status fail(const struct reading *reading, const char *path, const char *what)
{
    return mt_fail(reading->error, MT_ERR_FORMAT, MT_NO_OFFSET, "'%.80s' %s", path, what);
}

/* Sets NULL if it is missing. */
static enum mt_status read_text(const struct reading *reading, const char *path, const char **text)
{
    const struct mt_setting *entry = mt_settings_find(reading->settings, path);

    *text = NULL;
    if (!entry)
        return MT_OK;
    if (entry->kind != MT_SETTING_TEXT)
        return fail(reading, path, "is not a string");
    *text = mt_arena_text(&reading->baseline->arena, entry->text, strlen(entry->text));
    return MT_OK;
}

static enum mt_status read_bytes(const struct reading *reading, const char *path, bool needed,
                                 uint64_t *bytes, bool *is_there)
{
    const struct mt_setting *entry = mt_settings_find(reading->settings, path);

    *is_there = entry != NULL;
    if (!entry)
        return needed ? fail(reading, path, "is missing") : MT_OK;
    if (entry->kind != MT_SETTING_NUMBER || !entry->is_whole)
        return fail(reading, path, "is not a whole number");
    *bytes = entry->number;
    return MT_OK;
}

static enum mt_status read_site(const struct reading *reading, struct mt_baseline_device *device,
                                const char *prefix, bool *more)
{
    struct mt_baseline_site site = {0};
    char path[96];

    (void)snprintf(path, sizeof path, "%s.sites.%u.bytes", prefix, device->site_count);
    enum mt_status status = read_bytes(reading, path, false, &site.bytes, more);
    if (status || !*more)
        return status;
    (void)snprintf(path, sizeof path, "%s.sites.%u.site", prefix, device->site_count);
    status = read_text(reading, path, &site.site);
    if (!status && !site.site)
        status = fail(reading, path, "is missing");
    (void)snprintf(path, sizeof path, "%s.sites.%u.phase", prefix, device->site_count);
    if (!status)
        status = read_text(reading, path, &site.phase);
    bool there = site.phase != NULL;
    site.phase = there ? site.phase : "";
    if (!status)
        device->sites[device->site_count++] = site;
    return status;
}

static enum mt_status read_sites(const struct reading *reading, struct mt_baseline_device *device,
                                 const char *prefix)
{
    enum mt_status status = MT_OK;
    bool more = true;
    char path[96];

    while (!status && more && device->site_count < MT_BASELINE_SITES)
        status = read_site(reading, device, prefix, &more);
    (void)snprintf(path, sizeof path, "%s.all_sites", prefix);
    const struct mt_setting *all = mt_settings_find(reading->settings, path);
    device->all_sites = all && all->kind == MT_SETTING_BOOL && all->number;
    return status;
}

static enum mt_status read_peaks(const struct reading *reading, struct mt_baseline_device *device,
                                 const char *prefix)
{
    static const struct {
        const char *name;
        size_t offset;
        bool needed;
    } fields[] = {
        {"requested_peak_bytes", offsetof(struct mt_baseline_device, requested_peak_bytes), true},
        {"allocated_peak_bytes", offsetof(struct mt_baseline_device, allocated_peak_bytes), true},
        {"active_peak_bytes", offsetof(struct mt_baseline_device, active_peak_bytes), false},
        {"reserved_peak_bytes", offsetof(struct mt_baseline_device, reserved_peak_bytes), false},
        {"device_peak_bytes", offsetof(struct mt_baseline_device, device_peak_bytes), false}};
    enum mt_status status = MT_OK;
    char path[96];
    bool there;

    for (size_t i = 0; !status && i < MT_ARRAY_LEN(fields); i++) {
        uint64_t bytes = 0;

        (void)snprintf(path, sizeof path, "%s.%s", prefix, fields[i].name);
        status = read_bytes(reading, path, fields[i].needed, &bytes, &there);
        memcpy((char *)device + fields[i].offset, &bytes, sizeof bytes);
        if (fields[i].offset == offsetof(struct mt_baseline_device, reserved_peak_bytes))
            device->has_reserved = there;
    }
    return status;
}

static enum mt_status read_device(const struct reading *reading, bool *more)
{
    struct mt_baseline *baseline = reading->baseline;
    struct mt_baseline_device *device = &baseline->devices[baseline->device_count];
    char prefix[32], path[64];
    uint64_t number = 0;

    (void)snprintf(prefix, sizeof prefix, "devices.%u", baseline->device_count);
    (void)snprintf(path, sizeof path, "%s.device", prefix);
    enum mt_status status = read_bytes(reading, path, false, &number, more);
    if (status || !*more)
        return status;
    if (number >= MT_MAX_DEVICES || mt_baseline_device(baseline, (uint16_t)number))
        return fail(reading, path, "is not a device number, or occurs twice");
    device->device = (uint16_t)number;
    status = read_peaks(reading, device, prefix);
    if (!status)
        status = read_sites(reading, device, prefix);
    baseline->device_count++;
    return status;
}

enum mt_status mt_baseline_read(struct mt_baseline *baseline, const struct mt_settings *settings,
                                struct mt_error *error)
{
    const struct reading reading = {settings, baseline, error};
    bool more = true;

    memset(baseline, 0, sizeof *baseline);
    enum mt_status status =
        mt_settings_check_schema(settings, "a baseline", MT_BASELINE_SCHEMA, error);
    if (status)
        return status;
    baseline->devices = mt_arena_array(&baseline->arena, MT_MAX_DEVICES, sizeof *baseline->devices);
    status = read_text(&reading, "name", &baseline->name);
    if (!status)
        status = read_text(&reading, "sha256", &baseline->sha256);
    if (!status)
        status = read_text(&reading, "framework", &baseline->framework);
    if (!status)
        status = read_text(&reading, "options", &baseline->options);
    if (!status)
        status = read_text(&reading, "doubt", &baseline->doubt);
    while (!status && more && baseline->device_count < MT_MAX_DEVICES)
        status = read_device(&reading, &more);
    return status;
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
    device->has_reserved = mt_knows_reserved(report);
    device->active_peak_bytes = mt_has_allocator(report) ? from->active_peak.bytes : 0;
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
