/* The stack of a shared device: which processes have a layer of their own, and the labels in it. */
#include <math.h>
#include <string.h>

#include "chart_frame.h"
#include "devices_view.h"
#include "draw.h"
#include "job_frame.h"
#include "job_report.h"
#include "place.h"
#include "units.h"
#include "util.h"

/* Chooses the processes of a device that have their own layers, and computes the heights of
 * layers. */

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

/* Returns the x of the middle of a column. */
static double devices_column_x(const struct mt_devices_panel *panel, uint32_t column)
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

/* Labels in the stack of a shared device: its peak, and dots at the peaks of processes. At the last
 * of these peaks, a bar shows the memory that the other processes had not released. The bar starts
 * at the base line, because layers are ordered by the time of their peaks. A label is placed where
 * it covers the least. */

/* The table of the processes of a shared device, in the order of their layers. It has the bytes of
 * a process at the peak of the device, and the bytes of the others at the peak of the process. */

#define WIDE 760.0 /* narrower tables have fewer columns */

/* The right edges of the columns. */
struct columns {
    double held, peak, when, others;
    bool is_wide;
};

static struct columns table_columns(const struct mt_devices_panel *panel)
{
    struct columns columns = {.others = panel->drawing->width - MT_MARGIN,
                              .is_wide = panel->drawing->width >= WIDE};

    columns.when = columns.others - (columns.is_wide ? 150 : 112);
    columns.peak = columns.is_wide ? columns.when - 90 : columns.when;
    columns.held = columns.peak - 90;
    return columns;
}

static void add_number(const struct mt_devices_panel *panel, double x, double y, uint64_t bytes,
                       enum mt_weight weight, const char *role)
{
    char text[MT_UNITS_TEXT];

    mt_chart_frame_text(panel->drawing, x, y, mt_format_bytes(text, bytes), 13, weight,
                        weight == MT_SEMIBOLD ? MT_COLOR_TEXT : MT_COLOR_MUTED, MT_ANCHOR_END,
                        role);
}

static void draw_name(const struct mt_devices_panel *panel, const struct mt_devices_layer *layer,
                      double y, double right)
{
    struct mt_drawing *drawing = panel->drawing;
    struct mt_paint swatch = layer->paint;
    double x = MT_MARGIN + 19;
    char count[MT_UNITS_TEXT];
    const char *name = layer->tenant ? mt_devices_process(panel, layer->tenant)
                                     : mt_arena_printf(&drawing->arena, "%s more",
                                                       mt_format_count(count, panel->others_count));
    const char *process = "";

    swatch.radius = 2;
    mt_draw_rect(drawing, MT_MARGIN, y - 10, 11, 11, &swatch, NULL, "swatch");
    name = mt_text_fit(drawing, name, 13, MT_SEMIBOLD, right - x, true);
    double used = 10 + 1.06 * mt_chart_frame_text(drawing, x, y, name, 13, MT_SEMIBOLD,
                                                  MT_COLOR_TEXT, MT_ANCHOR_START, "process");
    if (layer->tenant && layer->tenant->record->identity.process_id)
        process = mt_arena_printf(&drawing->arena, "process %llu",
                                  (unsigned long long)layer->tenant->record->identity.process_id);
    if (process && *process && mt_text_room(process, MT_SIZE_SMALL, MT_REGULAR) <= right - x - used)
        mt_chart_frame_text(drawing, x + used, y, process, MT_SIZE_SMALL, MT_REGULAR,
                            MT_COLOR_FAINT, MT_ANCHOR_START, "process-id");
}

static void draw_row(const struct mt_devices_panel *panel, const struct mt_devices_layer *layer,
                     double y, const struct columns *columns)
{
    draw_name(panel, layer, y, columns->held - 84);
    add_number(panel, columns->held, y, layer->held_bytes, MT_SEMIBOLD, "held");
    if (!layer->tenant)
        return;
    add_number(panel, columns->peak, y, layer->tenant->record->reserved_peak.bytes, MT_REGULAR,
               "own-peak");
    if (columns->is_wide)
        mt_chart_frame_text(panel->drawing, columns->when, y,
                            mt_devices_when(panel, layer->tenant->peak_t_ns), 13, MT_REGULAR,
                            MT_COLOR_MUTED, MT_ANCHOR_END, "when");
    add_number(panel, columns->others, y, layer->tenant->others_bytes,
               layer->tenant->others_bytes ? MT_SEMIBOLD : MT_REGULAR, "others");
}

static void add_heading(const struct mt_devices_panel *panel, double x, double y, const char *text,
                        enum mt_anchor anchor)
{
    mt_chart_frame_text(panel->drawing, x, y, text, MT_SIZE_SMALL, MT_REGULAR, MT_COLOR_FAINT,
                        anchor, "heading");
}

double mt_devices_draw_table(const struct mt_devices_panel *panel, double y)
{
    struct columns columns = table_columns(panel);
    const struct mt_paint line = {.stroke = MT_COLOR_GRID};

    add_heading(panel, MT_MARGIN, y, "process", MT_ANCHOR_START);
    add_heading(panel, columns.held, y, columns.is_wide ? "at the device's peak" : "at the peak",
                MT_ANCHOR_END);
    add_heading(panel, columns.peak, y, "own peak", MT_ANCHOR_END);
    if (columns.is_wide)
        add_heading(panel, columns.when, y, "when", MT_ANCHOR_END);
    add_heading(panel, columns.others, y, "others held then", MT_ANCHOR_END);
    for (uint32_t i = panel->layer_count; i-- > 0;) {
        mt_draw_line(panel->drawing, MT_MARGIN, y + 7, panel->drawing->width - MT_MARGIN, y + 7,
                     &line);
        y += MT_DEVICES_ROW;
        draw_row(panel, &panel->layers[i], y, &columns);
    }
    return y;
}

#define CHUNK        8.0 /* pixels of an outline that form one obstacle */
#define LINE_HEIGHT  17.0
#define PLATE_MARGIN 4.0
#define CAP          4.0 /* half the width of the end of a bar */
#define DOT          3.4

struct labels {
    const struct mt_devices_panel *panel;
    struct mt_placer placer;
    struct mt_point marks[MT_DEVICES_LAYERS + 2];
    uint32_t mark_count;
};

static uint32_t column_at(const struct mt_devices_panel *panel, uint64_t t_ns)
{
    uint64_t span = panel->device->end_t_ns - panel->device->begin_t_ns;
    uint64_t since = mt_sub_or_0_u64(t_ns, panel->device->begin_t_ns);
    uint64_t column = span ? (uint64_t)((unsigned __int128)since * MT_JOB_COLUMNS / span) : 0;

    return (uint32_t)mt_min_u64(column, MT_JOB_COLUMNS - 1);
}

static bool is_in_plot(const struct mt_devices_panel *panel, const struct mt_job_tenant *tenant)
{
    return tenant->peak_t_ns >= panel->device->begin_t_ns &&
           tenant->peak_t_ns <= panel->device->end_t_ns;
}

/* Makes the outlines of the stack and of every layer obstacles, so that they stay readable. */
static void avoid_stack(struct labels *labels)
{
    const struct mt_devices_panel *panel = labels->panel;
    double base = panel->plot.y + panel->plot.height;
    uint32_t step = (uint32_t)fmax(1, CHUNK * MT_JOB_COLUMNS / panel->plot.width);

    for (uint32_t first = 0; first < MT_JOB_COLUMNS; first += step) {
        double high = base, low = 0, left = devices_column_x(panel, first);

        for (uint32_t c = first; c < first + step && c < MT_JOB_COLUMNS; c++) {
            double y = mt_devices_y(panel, panel->device->columns[c]);

            high = fmin(high, y);
            low = fmax(low, y);
        }
        mt_placer_avoid(&labels->placer,
                        (struct mt_box){left - CHUNK / 2, high - 3, CHUNK, low - high + 6},
                        MT_PLACE_LINE);
        mt_placer_avoid(&labels->placer,
                        (struct mt_box){left - CHUNK / 2, high, CHUNK, base - high}, 0.5);
    }
    if (panel->has_total_line)
        mt_placer_avoid(&labels->placer,
                        (struct mt_box){panel->plot.x,
                                        mt_devices_y(panel, panel->device->total_bytes) - 3,
                                        panel->plot.width, 6},
                        MT_PLACE_MARK);
}

static void draw_leader(struct labels *labels, double from_x, double from_y,
                        const struct mt_box *box)
{
    const struct mt_paint paint = {.stroke = MT_COLOR_TEXT, .stroke_width = 1.1};
    double x = fmin(fmax(from_x, box->x - 3), box->x + box->width + 3);
    double y = fmin(fmax(from_y, box->y - 1), box->y + box->height + 1);
    double distance = hypot(x - from_x, y - from_y);

    if (distance < 9)
        return;
    mt_draw_path(
        labels->panel->drawing,
        (const struct mt_point[]){
            {from_x + (x - from_x) * 5 / distance, from_y + (y - from_y) * 5 / distance}, {x, y}},
        2, false, false, &paint, NULL, "leader");
    for (double i = 5; i < distance; i += 5)
        mt_placer_avoid(&labels->placer,
                        (struct mt_box){from_x + (x - from_x) * i / distance - 3,
                                        from_y + (y - from_y) * i / distance - 3, 6, 6},
                        MT_PLACE_MARK);
}

/* Draws `line` below the head if two lines fit, otherwise the head alone. Returns false if there is
 * no room. */
static bool draw_words(struct labels *labels, double x, double y, const char *head,
                       const char *line, const char *role)
{
    struct mt_drawing *drawing = labels->panel->drawing;
    struct mt_text_style bold = {
        .size = MT_SIZE_AXIS, .weight = MT_SEMIBOLD, .color = MT_COLOR_TEXT, .halo = true};
    struct mt_text_style muted = {.size = MT_SIZE_SMALL, .color = MT_COLOR_MUTED, .halo = true};
    const struct mt_paint plate = {.fill = MT_COLOR_BACKGROUND, .opacity = 0.85};
    double width = 1.05 * fmax(mt_text_width(head, bold.size, bold.weight),
                               mt_text_width(line, muted.size, muted.weight));
    double height = *line ? 2 * LINE_HEIGHT : LINE_HEIGHT;
    struct mt_box box;

    if (width > labels->placer.frame.width ||
        mt_placer_label(&labels->placer, x, y, width, height, &box) >= MT_PLACE_LIMIT)
        return *line && draw_words(labels, x, y, head, "", role);
    draw_leader(labels, x, y, &box);
    bold.anchor = muted.anchor = box.x + width / 2 < x ? MT_ANCHOR_END : MT_ANCHOR_START;
    double at = bold.anchor == MT_ANCHOR_END ? box.x + width : box.x;
    mt_draw_rect(drawing, box.x - PLATE_MARGIN, box.y + 2, width + 2 * PLATE_MARGIN, height - 2,
                 &plate, NULL, "plate");
    mt_draw_text(drawing, at, box.y + 13, head, &bold, role);
    if (*line)
        mt_draw_text(drawing, at, box.y + 12 + LINE_HEIGHT, line, &muted, "label-line");
    return true;
}

static void add_mark(struct labels *labels, double x, double y, double reach)
{
    labels->marks[labels->mark_count++] = (struct mt_point){x, y};
    mt_placer_avoid(&labels->placer, (struct mt_box){x - reach, y - reach, 2 * reach, 2 * reach},
                    MT_PLACE_MARK);
}

static bool is_free(const struct labels *labels, double x, double y)
{
    for (uint32_t i = 0; i < labels->mark_count; i++)
        if (hypot(x - labels->marks[i].x, y - labels->marks[i].y) < 10)
            return false;
    return true;
}

static void draw_peak(struct labels *labels)
{
    const struct mt_devices_panel *panel = labels->panel;
    const struct mt_paint ring = {
        .fill = MT_COLOR_BACKGROUND, .stroke = MT_COLOR_TEXT, .stroke_width = 1.8};
    double x = devices_column_x(panel, panel->peak_column);
    double y = mt_devices_y(panel, panel->device->peak_bytes);
    char bytes[MT_UNITS_TEXT];
    const char *head = mt_arena_printf(&panel->drawing->arena, "%s%s together",
                                       panel->device->is_exact ? "" : "at most ",
                                       mt_format_bytes(bytes, panel->device->peak_bytes));
    const char *line = panel->device->is_exact
                           ? mt_arena_printf(&panel->drawing->arena, "at %s",
                                             mt_devices_when(panel, panel->device->peak_begin_t_ns))
                           : mt_arena_printf(&panel->drawing->arena, "%s to %s",
                                             mt_devices_when(panel, panel->device->peak_begin_t_ns),
                                             mt_devices_when(panel, panel->device->peak_end_t_ns));

    draw_words(labels, x, y, head, line, "label:peak");
    mt_draw_circle(panel->drawing, x, y, 4.4, &ring, head, "ring");
}

/* Draws a dot at the peak of a process, on the upper edge of its layer. */
static void draw_dot(struct labels *labels, const struct mt_devices_layer *layer)
{
    const struct mt_devices_panel *panel = labels->panel;
    struct mt_paint paint = {
        .fill = layer->paint.fill, .stroke = MT_COLOR_BACKGROUND, .stroke_width = 1.4};
    uint32_t column = column_at(panel, layer->tenant->peak_t_ns);
    double x = devices_column_x(panel, column), y = mt_devices_y(panel, layer->tops[column]);
    char own[MT_UNITS_TEXT], others[MT_UNITS_TEXT];

    if (!is_in_plot(panel, layer->tenant) || !is_free(labels, x, y))
        return;
    const char *title =
        mt_arena_printf(&panel->drawing->arena, "%s: own peak %s, others held %s%s",
                        mt_devices_process(panel, layer->tenant),
                        mt_format_bytes(own, layer->tenant->record->reserved_peak.bytes),
                        panel->device->is_exact ? "" : "at most ",
                        mt_format_bytes(others, layer->tenant->others_bytes));
    add_mark(labels, x, y, DOT + 2);
    mt_draw_circle(panel->drawing, x, y, DOT, &paint, title, "dot");
}

/* Returns the layer of the process with the last peak, if that layer is above all others. */
static const struct mt_devices_layer *last_layer(const struct mt_devices_panel *panel)
{
    const struct mt_devices_layer *last =
        panel->layer_count ? &panel->layers[panel->layer_count - 1] : NULL;

    if (!last || !last->tenant || !last->tenant->others_bytes || !is_in_plot(panel, last->tenant))
        return NULL;
    for (uint32_t i = 0; panel->others_count && i < panel->device->tenant_count; i++)
        if (panel->device->tenants[i].peak_t_ns > last->tenant->peak_t_ns)
            return NULL;
    return last;
}

/* Memory that was not released before the last process had its peak. */
struct bar {
    const struct mt_devices_layer *layer; /* NULL: none */
    double x, y, base;
};

static struct bar find_bar(struct labels *labels)
{
    const struct mt_devices_panel *panel = labels->panel;
    struct bar bar = {.layer = last_layer(panel)};
    double left = panel->plot.x + CAP + 2, right = panel->plot.x + panel->plot.width - CAP - 2;

    if (!bar.layer)
        return bar;
    bar.x = devices_column_x(panel, column_at(panel, bar.layer->tenant->peak_t_ns));
    bar.x = fmin(fmax(bar.x, left), right);
    bar.y = mt_devices_y(panel, bar.layer->tenant->others_bytes);
    bar.base = panel->plot.y + panel->plot.height;
    mt_placer_avoid(&labels->placer,
                    (struct mt_box){bar.x - CAP, bar.y - 2, 2 * CAP, bar.base - bar.y + 2},
                    MT_PLACE_MARK);
    return bar;
}

static void draw_bar(const struct mt_devices_panel *panel, const struct bar *bar)
{
    const struct mt_paint under = {.stroke = MT_COLOR_BACKGROUND, .stroke_width = 4.5};
    const struct mt_paint line = {.stroke = MT_COLOR_TEXT, .stroke_width = 1.8};
    double x = bar->x;
    const struct mt_point points[] = {{x - CAP, bar->base}, {x + CAP, bar->base},
                                      {x, bar->base},       {x, bar->y},
                                      {x - CAP, bar->y},    {x + CAP, bar->y}};

    mt_draw_path(panel->drawing, points, MT_ARRAY_LEN(points), false, false, &under, NULL,
                 "bar-halo");
    mt_draw_path(panel->drawing, points, MT_ARRAY_LEN(points), false, false, &line, NULL,
                 "bar:kept");
}

static void draw_kept(struct labels *labels, const struct bar *bar)
{
    const struct mt_devices_panel *panel = labels->panel;
    char bytes[MT_UNITS_TEXT];
    const char *head = mt_arena_printf(
        &panel->drawing->arena, "%s%s still held by %s", panel->device->is_exact ? "" : "up to ",
        mt_format_bytes(bytes, bar->layer->tenant->others_bytes),
        panel->device->tenant_count == 2 ? "the other" : "the others");
    const char *line = mt_arena_printf(&panel->drawing->arena, "at the peak of %s",
                                       mt_devices_process(panel, bar->layer->tenant));

    line =
        mt_text_fit(panel->drawing, line, MT_SIZE_SMALL, MT_REGULAR, 0.5 * panel->plot.width, true);
    draw_bar(panel, bar);
    draw_words(labels, bar->x, (bar->y + bar->base) / 2, head, line, "label:kept");
}

void mt_devices_draw_labels(const struct mt_devices_panel *panel)
{
    struct labels labels = {.panel = panel};
    struct mt_box frame = {panel->plot.x + 6, panel->plot.y, panel->plot.width - 12,
                           panel->plot.height - 4};

    mt_placer_init(&labels.placer, &panel->drawing->arena, frame);
    avoid_stack(&labels);
    add_mark(&labels, devices_column_x(panel, panel->peak_column),
             mt_devices_y(panel, panel->device->peak_bytes), 6);
    for (uint32_t i = 0; i < panel->layer_count; i++)
        if (panel->layers[i].tenant)
            draw_dot(&labels, &panel->layers[i]);
    struct bar bar = find_bar(&labels);
    draw_peak(&labels);
    if (bar.layer)
        draw_kept(&labels, &bar);
}
