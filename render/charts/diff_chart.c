/* The difference in memory between two runs at the same instant. In the waterfall and in the table,
 * the bytes of A plus all changes are the bytes of B. */
#include "diff_chart.h"

#include "diff_layout.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "buf.h"
#include "units.h"
#include "util.h"

#define STANDARD_HEIGHT 680.0
#define NARROW_FALLS    360.0 /* height in a narrow picture, where the table is below */
#define FALLS_WIDTH     560.0
#define MIN_FALLS       190.0
#define WARNING_PITCH   19.0

enum { MAX_WARNINGS = 3 };

static const char *name_of(struct mt_drawing *drawing, const struct mt_report *report)
{
    return mt_chart_frame_short(drawing, report->name && *report->name ? report->name : "trace",
                                90);
}

static const char *title_of(struct mt_drawing *drawing, const struct mt_diff_view *view)
{
    const char *a = name_of(drawing, view->diff->a), *b = name_of(drawing, view->diff->b);
    const char *title;

    if (view->device && view->diff->device_count > 1)
        title = mt_arena_printf(&drawing->arena, "%s \xE2\x86\x92 %s, device %u", a, b,
                                (unsigned)view->device->b->device);
    else
        title = mt_arena_printf(&drawing->arena, "%s \xE2\x86\x92 %s", a, b);
    return title;
}

static const char *instant_words(const struct mt_question *question)
{
    switch (question->at) {
    case MT_AT_PEAK: return "at the allocated peak of each run";
    case MT_AT_RESERVED_PEAK: return "at the reserved peak of each run";
    case MT_AT_OOM: return "when each run ran out of memory";
    case MT_AT_END: return "at the end of each run";
    case MT_AT_TIME: return "at the same time of each run";
    case MT_AT_EVENT: return "at the event of that number in each run";
    case MT_AT_PHASE: break;
    }
    return "at the peak within the same phase of each run";
}

static const char *where(struct mt_drawing *drawing, const struct mt_report *report,
                         const struct mt_device_report *device)
{
    const struct mt_instant *instant = &device->answer->instant;
    const char *text = mt_chart_frame_where(drawing, report, instant->phase, instant->step);

    return *text ? text : "outside steps";
}

static const char *facts_of(struct mt_drawing *drawing, const struct mt_diff_view *view)
{
    const struct mt_device_diff *device = view->device;
    const char *facts;

    if (!device)
        return "no device has memory events in both runs";
    facts = mt_arena_printf(&drawing->arena, "live bytes %s \xC2\xB7 A: %s \xC2\xB7 B: %s",
                            instant_words(view->question), where(drawing, view->diff->a, device->a),
                            where(drawing, view->diff->b, device->b));
    return facts;
}

/* Draws reasons why the comparison may be invalid. Returns the y below. */
static double draw_warnings(struct mt_drawing *drawing, const struct mt_diff *diff, double y)
{
    const struct mt_paint panel = {.fill = MT_COLOR_PANEL, .radius = 6};
    const struct mt_paint edge = {.fill = MT_COLOR_WARN, .radius = 2};
    uint32_t shown = diff->run_count > MAX_WARNINGS ? MAX_WARNINGS : diff->run_count, i;
    double height = shown * WARNING_PITCH + 10, room = drawing->width - 2 * MT_MARGIN - 28;

    if (!shown)
        return y;
    mt_draw_rect(drawing, MT_MARGIN, y, drawing->width - 2 * MT_MARGIN, height, &panel, NULL,
                 "warning-panel");
    mt_draw_rect(drawing, MT_MARGIN, y, 4, height, &edge, NULL, NULL);
    for (i = 0; i < shown; i++) {
        const struct mt_run_difference *run = &diff->runs[i];
        uint32_t more = i + 1 == shown ? diff->run_count - shown : 0;
        const char *text = mt_arena_printf(&drawing->arena, "the runs differ in %s: %s, then %s",
                                           run->what, mt_chart_frame_short(drawing, run->a, 80),
                                           mt_chart_frame_short(drawing, run->b, 80));

        if (more)
            text = mt_arena_printf(&drawing->arena, "%s, and in %u more", text, (unsigned)more);
        mt_chart_frame_text(drawing, MT_MARGIN + 14, y + 18 + i * WARNING_PITCH,
                            mt_text_fit(drawing, text, 12.5, MT_SEMIBOLD, room, false), 12.5,
                            MT_SEMIBOLD, MT_COLOR_WARN, MT_ANCHOR_START, "warning");
    }
    return y + height + 10;
}

/* Returns a change as text: "−1.92 GiB (−29.8%)". */
static const char *change_words(struct mt_drawing *drawing, uint64_t a, uint64_t b)
{
    char change[MT_UNITS_TEXT], share[MT_UNITS_TEXT];
    const char *text;

    mt_format_change(change, (int64_t)(b - a));
    mt_format_percent(share, a ? ((double)b - (double)a) / (double)a : 0);
    text = a && a != b
               ? mt_arena_printf(&drawing->arena, "%s (%s%s)", change, b > a ? "+" : "", share)
               : mt_arena_printf(&drawing->arena, "%s", change);
    return text;
}

static enum mt_color edge_of(uint64_t a, uint64_t b)
{
    return b > a ? MT_COLOR_CHANGE_LAST : b < a ? MT_COLOR_CHANGE_0 : MT_COLOR_FAINT;
}

static double unused_share(const struct mt_bytes *bytes)
{
    return bytes->reserved ? 1 - (double)bytes->allocated / (double)bytes->reserved : 0;
}

static double draw_tiles(struct mt_drawing *drawing, const struct mt_diff_view *view, double y)
{
    const struct mt_bytes *a = &view->device->a->answer->instant.bytes;
    const struct mt_bytes *b = &view->device->b->answer->instant.bytes;
    const struct mt_diff_rows *sites = &view->device->sites;
    char values[4][MT_UNITS_TEXT], was[MT_UNITS_TEXT];
    const struct mt_diff_row *most = sites->count ? &sites->rows[0] : NULL;
    bool has_reserved = a->reserved && b->reserved;
    const char *unused =
        mt_arena_printf(&drawing->arena, "was %s", mt_format_percent(was, unused_share(a)));
    struct mt_tile tiles[4] = {
        {"Allocated", mt_format_bytes(values[0], b->allocated),
         change_words(drawing, a->allocated, b->allocated), edge_of(a->allocated, b->allocated),
         NULL},
        {"Largest change of one site", mt_format_change(values[1], most ? mt_diff_change(most) : 0),
         !most || !mt_diff_size(most) ? "no differences"
         : !most->a_blocks            ? "new"
         : !most->b_blocks            ? "gone"
                                      : "it existed before",
         most ? edge_of(most->a_bytes, most->b_bytes) : MT_COLOR_FAINT, "Largest change"},
        {"Reserved then", mt_format_bytes(values[2], b->reserved),
         change_words(drawing, a->reserved, b->reserved), edge_of(a->reserved, b->reserved), NULL},
        {"Unused", mt_format_percent(values[3], unused_share(b)), unused, MT_COLOR_FAINT, NULL}};

    return mt_chart_frame_tiles(drawing, y, tiles, has_reserved ? 4 : 2);
}

static void place(struct mt_drawing *drawing, struct mt_diff_layout *layout, double y)
{
    bool narrow = drawing->width < MT_NARROW_WIDTH;
    const struct mt_report *b = layout->view->diff->b;
    double bottom = drawing->height - 10, top = y, table;

    if (bottom - y - 40 >= MIN_FALLS + 60)
        bottom = mt_chart_frame_footnote(
                     drawing,
                     b->roles_inferred
                         ? "hatched = less than before \xC2\xB7 roles are inferred \xC2\xB7 sites "
                           "match even if lines moved"
                         : "hatched = less than before \xC2\xB7 sites match even if lines moved") -
                 6;
    if (bottom - y - 78 >= MIN_FALLS)
        top = draw_tiles(drawing, layout->view, y) + 24;
    layout->falls = (struct mt_box){MT_MARGIN, top, drawing->width - 2 * MT_MARGIN, bottom - top};
    layout->table_x = MT_MARGIN + FALLS_WIDTH + 30;
    layout->table_y = top;
    layout->table_width = drawing->width - MT_MARGIN - layout->table_x;
    layout->table_bottom = bottom;
    if (!narrow) {
        layout->falls.width = FALLS_WIDTH;
        return;
    }
    table = fmin(mt_diff_table_height(layout), bottom - top - MIN_FALLS - 20);
    layout->table_x = MT_MARGIN;
    layout->table_width = table >= 60 ? drawing->width - 2 * MT_MARGIN : 0;
    if (table >= 60) {
        layout->table_y = bottom - table;
        layout->falls.height = layout->table_y - 20 - top;
    }
}

static void draw(struct mt_drawing *drawing, struct mt_diff_layout *layout, double y)
{
    place(drawing, layout, y);
    mt_diff_draw_falls(drawing, layout);
    mt_diff_draw_table(drawing, layout);
}

void mt_diff_draw(const struct mt_diff_view *view, const struct mt_chart_options *options,
                  struct mt_drawing *drawing)
{
    struct mt_diff_layout layout = {.view = view};
    double width = mt_chart_frame_width(options->width), height = STANDARD_HEIGHT, y;
    const char *title;

    if (view->device)
        layout.changed_sites = mt_diff_changed_rows(&view->device->sites);
    if (width < MT_NARROW_WIDTH && view->device)
        height = 200 + view->diff->run_count * WARNING_PITCH + NARROW_FALLS +
                 mt_diff_table_height(&layout);
    mt_drawing_init(drawing, width, mt_chart_frame_height(options->height, height), "diff");
    title = title_of(drawing, view);
    mt_chart_frame_describe(drawing, view->diff->b, view->device ? view->device->b : NULL, title);
    y = mt_chart_frame_header(drawing, title, facts_of(drawing, view));
    if (drawing->height - y > MIN_FALLS + 100)
        y = draw_warnings(drawing, view->diff, y);
    if (view->device)
        draw(drawing, &layout, y);
    else
        mt_chart_frame_nothing(drawing, y + 8, "Nothing to compare",
                               "No device has memory events in both runs.");
}
