/* Chooses the processes of a device that have their own layers, and computes the heights of
 * layers. */
#include "devices_view.h"

#include <string.h>

#include "job_frame.h"
#include "units.h"
#include "util.h"

enum { MAX_NAME = 48 };

static uint64_t own_peak(const struct mt_job_device *device, uint32_t tenant)
{
    return device->tenants[tenant].record->reserved_peak.bytes;
}

/* Inserts a tenant into the list of those with the largest peaks, after earlier tenants with the
 * same peak. */
static void consider(const struct mt_job_device *device, uint32_t tenant, uint32_t *chosen,
                     uint32_t *count)
{
    uint32_t at = *count;

    while (at && own_peak(device, chosen[at - 1]) < own_peak(device, tenant))
        at--;
    if (at == MT_DEVICES_LAYERS)
        return;
    if (*count < MT_DEVICES_LAYERS)
        ++*count;
    memmove(chosen + at + 1, chosen + at, (*count - at - 1) * sizeof *chosen);
    chosen[at] = tenant;
}

/* Sorts tenants by the time of their peaks, earliest first. */
static void sort_by_time(const struct mt_job_device *device, uint32_t *chosen, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t k = i; k; k--) {
            const struct mt_job_tenant *one = &device->tenants[chosen[k - 1]];
            const struct mt_job_tenant *other = &device->tenants[chosen[k]];
            uint32_t kept_index = chosen[k];

            if (one->peak_t_ns < other->peak_t_ns ||
                (one->peak_t_ns == other->peak_t_ns && chosen[k - 1] < chosen[k]))
                break;
            chosen[k] = chosen[k - 1];
            chosen[k - 1] = kept_index;
        }
}

static struct mt_devices_layer *add_layer(struct mt_devices_panel *panel)
{
    struct mt_devices_layer *layer = &panel->layers[panel->layer_count];

    layer->tops = mt_arena_array(&panel->drawing->arena, MT_JOB_COLUMNS, sizeof *layer->tops);
    panel->layer_count++;
    return layer;
}

static void add_tenant(struct mt_devices_panel *panel, uint32_t tenant, uint32_t number)
{
    struct mt_devices_layer *layer = add_layer(panel);

    layer->tenant = &panel->device->tenants[tenant];
    layer->index = tenant;
    layer->paint = (struct mt_paint){.fill = MT_COLOR_STREAM_0 + number};
    layer->held_bytes = layer->tenant->held_bytes;
    for (uint32_t c = 0; c < MT_JOB_COLUMNS; c++)
        layer->tops[c] = mt_job_tenant_bytes(panel->device, tenant, c);
}

/* Adds a layer with the sums of the device minus the chosen tenants, so that thousands of processes
 * need not be visited. */
static void add_others(struct mt_devices_panel *panel, const uint32_t *chosen, uint32_t count)
{
    struct mt_devices_layer *layer = add_layer(panel);

    panel->others_count = panel->device->tenant_count - count;
    layer->paint = (struct mt_paint){.fill = MT_COLOR_UNUSED};
    layer->held_bytes = panel->device->peak_bytes;
    for (uint32_t i = 0; i < count; i++)
        layer->held_bytes =
            mt_sub_or_0_u64(layer->held_bytes, panel->device->tenants[chosen[i]].held_bytes);
    for (uint32_t c = 0; c < MT_JOB_COLUMNS; c++) {
        layer->tops[c] = panel->device->columns[c];
        for (uint32_t i = 0; i < count; i++)
            layer->tops[c] =
                mt_sub_or_0_u64(layer->tops[c], mt_job_tenant_bytes(panel->device, chosen[i], c));
    }
}

void mt_devices_make_layers(struct mt_devices_panel *panel)
{
    const struct mt_job_device *device = panel->device;
    uint32_t chosen[MT_DEVICES_LAYERS + 1], count = 0;

    for (uint32_t i = 0; i < device->tenant_count; i++)
        consider(device, i, chosen, &count);
    if (count < device->tenant_count)
        add_others(panel, chosen, count);
    sort_by_time(device, chosen, count);
    for (uint32_t i = 0; i < count; i++)
        add_tenant(panel, chosen[i], i);
    for (uint32_t i = 1; i < panel->layer_count; i++)
        for (uint32_t c = 0; c < MT_JOB_COLUMNS; c++)
            panel->layers[i].tops[c] =
                mt_add_most_u64(panel->layers[i].tops[c], panel->layers[i - 1].tops[c]);
    while (panel->peak_column + 1 < MT_JOB_COLUMNS &&
           device->columns[panel->peak_column] < device->peak_bytes)
        panel->peak_column++;
}

double mt_devices_x(const struct mt_devices_panel *panel, uint64_t t_ns)
{
    const struct mt_job_device *device = panel->device;
    double span = (double)(device->end_t_ns - device->begin_t_ns);
    double share = span > 0 ? (double)mt_sub_or_0_u64(t_ns, device->begin_t_ns) / span : 0;

    return panel->plot.x + panel->plot.width * (share < 1 ? share : 1);
}

double mt_devices_column_x(const struct mt_devices_panel *panel, uint32_t column)
{
    return panel->plot.x + panel->plot.width * (column + 0.5) / MT_JOB_COLUMNS;
}

double mt_devices_y(const struct mt_devices_panel *panel, uint64_t bytes)
{
    double share = panel->top ? (double)bytes / (double)panel->top : 0;

    return panel->plot.y + panel->plot.height * (share < 1 ? 1 - share : 0);
}

const char *mt_devices_process(const struct mt_devices_panel *panel,
                               const struct mt_job_tenant *tenant)
{
    struct mt_drawing *drawing = panel->drawing;
    const struct mt_record_identity *identity = &tenant->record->identity;
    const char *name = identity->rank < 0
                           ? mt_job_words_name(drawing, tenant->record->trace_name, MAX_NAME)
                           : mt_arena_printf(&drawing->arena, "rank %d", (int)identity->rank);

    if (!*identity->job || !strcmp(identity->job, panel->report->job))
        return name;
    return mt_arena_printf(&drawing->arena, "%s of %s", name,
                           mt_job_words_name(drawing, identity->job, MAX_NAME));
}

/* Returns true if both entries are the same device. Its entries, one for each period without a gap,
 * are adjacent. */
static bool is_same(const struct mt_job_device *a, const struct mt_job_device *b)
{
    return !strcmp(a->uuid, b->uuid) &&
           (*a->uuid || (!strcmp(a->pci, b->pci) && !strcmp(a->host, b->host)));
}

uint32_t mt_devices_count(const struct mt_job_report *report)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < report->device_count; i++)
        count += !i || !is_same(&report->devices[i - 1], &report->devices[i]);
    return count;
}

const char *mt_devices_name(struct mt_drawing *drawing, const struct mt_job_report *report,
                            const struct mt_job_device *device)
{
    const struct mt_job_device *first = device, *end = device + 1;
    const char *name =
        mt_job_words_name(drawing, *device->uuid ? device->uuid : device->pci, MAX_NAME);

    while (first > report->devices && is_same(first - 1, device))
        first--;
    while (end < report->devices + report->device_count && is_same(end, device))
        end++;
    if (*device->host)
        name = mt_arena_printf(&drawing->arena, "%s on %s", name,
                               mt_job_words_name(drawing, device->host, MAX_NAME));
    if (end - first == 1)
        return name;
    return mt_arena_printf(&drawing->arena, "%s, period %d of %d", name, (int)(device - first) + 1,
                           (int)(end - first));
}

const char *mt_devices_when(const struct mt_devices_panel *panel, uint64_t t_ns)
{
    char text[MT_UNITS_TEXT];

    return mt_arena_printf(
        &panel->drawing->arena, "%s",
        mt_format_duration(text, mt_sub_or_0_u64(t_ns, panel->device->begin_t_ns)));
}
