/* The table of the processes of a shared device, in the order of their layers. It has the bytes of
 * a process at the peak of the device, and the bytes of the others at the peak of the process. */
#include "devices_view.h"

#include "chart_frame.h"
#include "job_chart_words.h"
#include "units.h"

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
    double x = MT_MARGIN + 19, used;
    char count[MT_UNITS_TEXT];
    const char *name = layer->tenant ? mt_devices_process(panel, layer->tenant)
                                     : mt_arena_printf(&drawing->arena, "%s more",
                                                       mt_format_count(count, panel->others_count));
    const char *process = "";

    swatch.radius = 2;
    mt_draw_rect(drawing, MT_MARGIN, y - 10, 11, 11, &swatch, NULL, "swatch");
    name = mt_text_fit(drawing, name ? name : "", 13, MT_SEMIBOLD, right - x, true);
    used = 10 + 1.06 * mt_chart_frame_text(drawing, x, y, name, 13, MT_SEMIBOLD, MT_COLOR_TEXT,
                                           MT_ANCHOR_START, "process");
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
