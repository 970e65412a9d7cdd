/* Memory from step to step, which shows whether it grows. The verdict and the evidence are from the
 * finding "growth", so text and picture agree. */
#include <math.h>

#include "cell_label.h"
#include "chart.h"
#include "chart_frame.h"
#include "report_query.h"
#include "trend.h"
#include "trend_layout.h"
#include "units.h"
#include "util.h"

/* Returns the change per step: "+1.00 MiB". */
static inline const char *trend_slope_text(struct mt_drawing *drawing, const struct mt_trend *trend)
{
    char change[MT_UNITS_TEXT];

    mt_format_change(change, trend->bytes_per_step);
    return mt_arena_printf(&drawing->arena, "%s", change);
}

/* The parts next to the plots of steps: legend, verdict, and its evidence. */

#define ROW        23.0
#define HEAD_PITCH 19.0
#define TEXT_PITCH 17.0
#define PART_GAP   6.0 /* distance between paragraphs */

enum { MAX_TEXTS = 12 };

/* The texts, from top to bottom. */
struct words {
    const char *head;
    const char *texts[MAX_TEXTS];
    uint32_t count;
    const char *advice; /* the last text, or NULL */
};

static void add(struct words *words, const char *text)
{
    if (text && words->count < MAX_TEXTS)
        words->texts[words->count++] = text;
}

static void tell_growth(const struct mt_finding *growth, struct words *words)
{
    words->head = growth->title;
    for (uint32_t i = 0; i < growth->evidence_count; i++)
        add(words, growth->evidence[i]);
    words->advice = growth->advice;
    add(words, words->advice);
}

/* Returns true if the level rises noticeably. A steady verdict then needs an explanation. */
static bool rises(const struct mt_trend *trend)
{
    double rise = (double)trend->bytes_per_step * (trend->end - trend->begin);

    return trend->has_slope && trend->bytes_per_step > 0 &&
           (trend->bytes_per_step > 64 * (int64_t)MT_KIB || rise > (double)trend->level_bytes / 20);
}

static void tell_steady(struct mt_drawing *drawing, const struct mt_trend *trend,
                        struct words *words)
{
    char n[MT_UNITS_TEXT];

    words->head = "No line of the program leaves more memory behind after each step.";
    if (rises(trend))
        add(words,
            mt_arena_printf(&drawing->arena,
                            "The level still rises by %s per step. Values replaced by larger ones, "
                            "or a queue or cache that fills up, are not unbounded growth.",
                            mt_format_bytes(n, (uint64_t)trend->bytes_per_step)));
    else
        add(words, "Memory grows if each step after the warm-up leaves blocks of the same line "
                   "behind, and all of them are still allocated when the last step begins.");
}

static struct words words_of(struct mt_drawing *drawing, const struct mt_trend *trend)
{
    struct words words = {.head = "Not enough steps for a trend"};

    switch (trend->verdict) {
    case MT_TREND_GROWS: tell_growth(trend->growth, &words); break;
    case MT_TREND_STEADY: tell_steady(drawing, trend, &words); break;
    case MT_TREND_NOT_JUDGED:
        words.head = "It is unknown whether memory grows.";
        add(&words, trend->count < MT_GROWTH_MIN_STEPS
                        ? "At least 8 steps are needed: the first two are warm-up, and the last "
                          "two may still free what they leave behind."
                        : "Too many blocks outlive their steps to judge growth.");
        break;
    case MT_TREND_TOO_SHORT:
        add(&words, "A trend needs 5 steps and a verdict on growth needs 8: record more steps.");
        break;
    }
    return words;
}

static struct mt_paragraph paragraph_of(double x, double width, bool is_head)
{
    return (struct mt_paragraph){.x = x,
                                 .width = width,
                                 .size = is_head ? 14 : 12.5,
                                 .pitch = is_head ? HEAD_PITCH : TEXT_PITCH,
                                 .weight = is_head ? MT_SEMIBOLD : MT_REGULAR,
                                 .color = is_head ? MT_COLOR_TEXT : MT_COLOR_MUTED,
                                 .role = is_head ? "verdict" : "evidence"};
}

static void draw_swatch(struct mt_drawing *drawing, double x, double y, enum mt_color color,
                        const char *text)
{
    const struct mt_paint paint = {.fill = color, .radius = 2.5};

    mt_draw_rect(drawing, x, y - 11, 13, 13, &paint, NULL, "swatch");
    mt_chart_frame_text(drawing, x + 21, y, text, MT_SIZE_BODY, MT_REGULAR, MT_COLOR_TEXT,
                        MT_ANCHOR_START, "legend");
}

static const char *trend_words(struct mt_drawing *drawing, const struct mt_trend *trend)
{
    return mt_arena_printf(&drawing->arena, "robust trend of the level, %s per step",
                           trend_slope_text(drawing, trend));
}

/* Draws the legend in rows, or below a narrow picture in two columns. Returns the baseline below
 * it. */
static double draw_legend(struct mt_drawing *drawing, const struct mt_trend_layout *layout,
                          double y)
{
    const struct mt_paint dashes = {
        .stroke = mt_trend_color(&layout->trend), .stroke_width = 2.2, .dashed = true};
    bool two = drawing->width < MT_NARROW_WIDTH;
    double x = layout->side_x, right = two ? x + layout->side_width / 2 : x;

    draw_swatch(drawing, x, y, MT_COLOR_LEVEL_PEAK, "peak within the step");
    draw_swatch(drawing, right, y + (two ? 0 : ROW), MT_COLOR_LEVEL,
                "still allocated when the step ends");
    y += two ? ROW : 2 * ROW;
    if (layout->is_grouped) {
        draw_swatch(drawing, right, y, MT_COLOR_LEVEL_RANGE, "some steps of the column end here");
        y += two ? 0 : ROW;
    }
    if (layout->trend.has_slope) {
        mt_draw_line(drawing, x, y - 4.5, x + 14, y - 4.5, &dashes);
        mt_chart_frame_text(drawing, x + 21, y, trend_words(drawing, &layout->trend), MT_SIZE_BODY,
                            MT_REGULAR, MT_COLOR_TEXT, MT_ANCHOR_START, "legend");
    }
    return y + (layout->trend.has_slope || (two && layout->is_grouped) ? ROW : 0);
}

/* Return the height of the side, and draw it: the legend, and the evidence for the verdict. */
static double trend_side_height(struct mt_drawing *drawing, const struct mt_trend_layout *layout,
                                double width)
{
    struct words words = words_of(drawing, &layout->trend);
    struct mt_paragraph head = paragraph_of(0, width, true), text = paragraph_of(0, width, false);
    double height = 3 * ROW + HEAD_PITCH * mt_paragraph_lines(drawing, &head, words.head);

    for (uint32_t i = 0; i < words.count; i++)
        height += PART_GAP + TEXT_PITCH * mt_paragraph_lines(drawing, &text, words.texts[i]);
    return height;
}

static void trend_draw_side(struct mt_drawing *drawing, const struct mt_trend_layout *layout)
{
    struct words words = words_of(drawing, &layout->trend);
    struct mt_paragraph head = paragraph_of(layout->side_x, layout->side_width, true);
    struct mt_paragraph text = paragraph_of(layout->side_x, layout->side_width, false);

    if (layout->side_width <= 0)
        return;
    double y = draw_legend(drawing, layout, layout->side_y) + 10;
    y = mt_paragraph_draw(drawing, &head, y, words.head);
    for (uint32_t i = 0; i < words.count; i++) {
        double room = layout->side_bottom - (y + PART_GAP) + TEXT_PITCH - 4;

        if (room < TEXT_PITCH)
            return;
        text.most_lines = (uint32_t)(room / TEXT_PITCH);
        if (words.texts[i] == words.advice)
            text.color = MT_COLOR_TEXT;
        y = mt_paragraph_draw(drawing, &text, y + PART_GAP, words.texts[i]);
    }
}

#define SIDE_WIDTH      352.0
#define SIDE_GAP        34.0
#define STANDARD_HEIGHT 680.0
#define NARROW_HEIGHT   600.0 /* height without the parts below the plots */
#define MIN_PLOT        130.0
#define AXIS_HEIGHT     44.0 /* room for numbers of steps, and the word "step" */
#define PANEL_HEIGHT    104.0
#define PANEL_GAP       40.0

enum { MAX_BARS = 60, MAX_COLUMNS = 240 };

static const char *verdict_text(const struct mt_trend *trend)
{
    switch (trend->verdict) {
    case MT_TREND_GROWS: return "growth";
    case MT_TREND_STEADY: return "no growth";
    case MT_TREND_NOT_JUDGED: return "not judged";
    case MT_TREND_TOO_SHORT: break;
    }
    return "not enough steps";
}

static const char *verdict_note(struct mt_drawing *drawing, const struct mt_trend *trend)
{
    char number[MT_UNITS_TEXT];

    switch (trend->verdict) {
    case MT_TREND_GROWS:
        return mt_arena_printf(&drawing->arena, "%s kept per step",
                               mt_format_bytes(number, trend->growth->bytes_per_step));
    case MT_TREND_STEADY:
        return mt_arena_printf(&drawing->arena, "%s",
                               mt_format_counted(number, trend->count, "step"));
    case MT_TREND_NOT_JUDGED:
        return trend->count < MT_GROWTH_MIN_STEPS ? "that needs 8 steps" : "too many blocks";
    case MT_TREND_TOO_SHORT: break;
    }
    return mt_arena_printf(&drawing->arena, "%u of 5", (unsigned)trend->count);
}

static const char *step_text(struct mt_drawing *drawing, const struct mt_trend_layout *layout,
                             const struct mt_step_use *step)
{
    return mt_chart_frame_where(drawing, layout->report, MT_NO_PHASE, step->step);
}

static const struct mt_step_use *highest_step(const struct mt_trend_layout *layout)
{
    const struct mt_step_use *highest = layout->steps;

    for (uint32_t i = 1; i < layout->trend.count; i++)
        if (layout->steps[i].peak.allocated > highest->peak.allocated)
            highest = &layout->steps[i];
    return highest;
}

static double draw_tiles(struct mt_drawing *drawing, const struct mt_trend_layout *layout, double y)
{
    const struct mt_trend *trend = &layout->trend;
    const struct mt_step_use *highest = highest_step(layout);
    const struct mt_peak *outer = mt_trend_outer_peak(layout);
    const struct mt_step_use *last =
        &layout->steps[(trend->has_slope ? trend->end : trend->count) - 1];
    const struct mt_step_use *from = &layout->steps[trend->has_slope ? trend->begin : 0];
    char values[2][MT_UNITS_TEXT], bytes[MT_UNITS_TEXT], within[MT_UNITS_TEXT];
    struct mt_tile tiles[4] = {
        {"Trend of the level at step ends",
         trend->has_slope ? trend_slope_text(drawing, trend) : "none",
         trend->has_slope ? "per step" : "too few steps", mt_trend_color(trend), "Trend"},
        {"Level at the end of the last step", mt_format_bytes(values[0], last->exit.allocated),
         mt_arena_printf(&drawing->arena, "%s at the end of %s",
                         mt_format_bytes(bytes, from->exit.allocated),
                         step_text(drawing, layout, from)),
         MT_COLOR_LEVEL, "Level at the end"},
        {"Highest peak", mt_format_bytes(values[1], outer ? outer->bytes : highest->peak.allocated),
         outer ? mt_arena_printf(&drawing->arena, "outside of steps, %s within",
                                 mt_format_bytes(within, highest->peak.allocated))
               : step_text(drawing, layout, highest),
         MT_COLOR_LEVEL_PEAK, NULL},
        {"Verdict", verdict_text(trend), verdict_note(drawing, trend), mt_trend_color(trend),
         NULL}};

    for (size_t i = 0; i < 4; i++)
        if (!tiles[i].value || !tiles[i].note)
            return y;
    return mt_chart_frame_tiles(drawing, y, tiles, 4);
}

static struct mt_trend_column column_of(const struct mt_trend_layout *layout, uint32_t first,
                                        uint32_t count)
{
    struct mt_trend_column column = {
        .first = first, .count = count, .level_min = layout->steps[first].exit.allocated};

    for (uint32_t i = first; i < first + count; i++) {
        const struct mt_step_use *step = &layout->steps[i];
        column.level_last = step->exit.allocated;
        column.level_min = mt_min_u64(column.level_min, step->exit.allocated);
        column.level_max = mt_max_u64(column.level_max, step->exit.allocated);
        column.peak = mt_max_u64(column.peak, step->peak.allocated);
        column.reserved = mt_max_u64(column.reserved, step->peak.reserved);
    }
    column.peak = mt_max_u64(column.peak, column.level_max);
    return column;
}

static void make_columns(struct mt_drawing *drawing, struct mt_trend_layout *layout)
{
    uint32_t steps = layout->trend.count, most = (uint32_t)fmax(layout->plot.width / 2, MAX_BARS);
    uint32_t count = steps;

    layout->is_grouped = steps > MAX_BARS;
    if (layout->is_grouped)
        count = (uint32_t)mt_min_u64(steps, mt_min_u64(most, MAX_COLUMNS));
    layout->columns = mt_arena_array(&drawing->arena, (size_t)count + 1, sizeof *layout->columns);
    layout->column_count = count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t first = (uint32_t)((uint64_t)i * steps / count);
        uint32_t end = (uint32_t)((uint64_t)(i + 1) * steps / count);

        layout->columns[i] = column_of(layout, first, end - first);
        layout->columns[i].left = layout->plot.x + round(layout->plot.width * first / steps);
        layout->columns[i].right = layout->plot.x + round(layout->plot.width * end / steps);
    }
}

static uint64_t largest(const struct mt_trend_layout *layout, uint32_t first)
{
    uint64_t most = 0;

    for (uint32_t i = first; i < layout->trend.count; i++) {
        most = mt_max_u64(most, layout->steps[i].peak.allocated);
        most = mt_max_u64(most, layout->steps[i].exit.allocated);
        most = mt_max_u64(most, layout->steps[i].peak.reserved);
    }
    return most;
}

/* Chooses the upper end of the axis. Steps that compile or warm up may be several times as high as
 * the steady ones: then these determine the axis. */
static uint64_t axis_bytes(struct mt_trend_layout *layout)
{
    const struct mt_peak *outer = mt_trend_outer_peak(layout);
    uint32_t warm_up = mt_warm_up_steps(layout->trend.count);
    uint64_t all = largest(layout, 0), steady = 0;

    if (layout->trend.count >= MT_TREND_MIN_STEPS)
        steady = largest(layout, warm_up);
    if (steady && all / 2 > steady) {
        layout->is_broken = true;
        all = steady;
    }
    return outer && outer->bytes / 2 <= all ? mt_max_u64(all, outer->bytes) : all;
}

/* Returns true if a separate panel of the level is useful, because it shows a slope that bars from
 * 0 would hide. */
static bool wants_panel(struct mt_trend_layout *layout)
{
    const struct mt_trend *trend = &layout->trend;

    if (!trend->has_slope)
        return false;
    layout->level_low = UINT64_MAX;
    layout->level_high = 0;
    for (uint32_t i = trend->begin; i < trend->end; i++) {
        layout->level_low = mt_min_u64(layout->level_low, layout->steps[i].exit.allocated);
        layout->level_high = mt_max_u64(layout->level_high, layout->steps[i].exit.allocated);
    }
    if (layout->level_high <= layout->level_low ||
        layout->level_high - layout->level_low >= largest(layout, 0) / 4)
        return false;
    /* makes the lowest bar visible */
    layout->level_low -=
        mt_min_u64(layout->level_low, (layout->level_high - layout->level_low) / 8);
    return true;
}

static void place_axes(struct mt_trend_layout *layout, uint64_t most)
{
    layout->top = (uint64_t)fmin(fmax((double)most * 1.16, 1), 1.8e19);
    mt_byte_ticks(&layout->ticks, most, most ? layout->top : 0,
                  (size_t)fmin(fmax(layout->plot.height / 40, 2), 6));
    layout->plot.x =
        mt_chart_frame_plot_x(&layout->ticks, layout->level.height > 0 ? "+750 MiB" : "");
    layout->plot.width -= layout->plot.x;
    layout->level.x = layout->plot.x;
    layout->level.width = layout->plot.width;
}

/* The last step of a run that ends with an error ends there. */
static const char *small_print(struct mt_drawing *drawing, const struct mt_trend_layout *layout)
{
    const char *teardown = mt_chart_frame_teardown(drawing, layout->report, layout->device);

    return mt_arena_printf(
        &drawing->arena,
        "robust trend = median of the slopes between all pairs of steps (Theil–Sen), without "
        "warm-up (first two steps, and first quarter) · growth = the trend rises, and blocks that "
        "steps left behind are still allocated%s%s%s",
        layout->is_broken ? " · the axis is that of the steady steps: higher bars are broken" : "",
        *teardown ? " · " : "", teardown);
}

/* Places all parts. A low picture omits small print first, then the enlarged panel, the tiles, and
 * the parts below the plots of a narrow picture. */
static void place(struct mt_drawing *drawing, struct mt_trend_layout *layout, double y)
{
    bool narrow = drawing->width < MT_NARROW_WIDTH;
    double bottom = drawing->height - 10, top = y;
    uint64_t most = axis_bytes(layout);

    if (bottom - y - 70 - AXIS_HEIGHT - 30 >= MIN_PLOT + 50)
        bottom = mt_chart_frame_footnote(drawing, small_print(drawing, layout)) - 6;
    if (bottom - y - 78 - AXIS_HEIGHT >= MIN_PLOT)
        top = draw_tiles(drawing, layout, y);
    layout->side_bottom = bottom;
    layout->side_width = narrow ? drawing->width - 2 * MT_MARGIN : SIDE_WIDTH;
    layout->side_x = drawing->width - MT_MARGIN - layout->side_width;
    layout->side_y = top + 34;
    if (narrow) {
        double side = trend_side_height(drawing, layout, layout->side_width);
        layout->side_y = bottom - side + 18;
        if (layout->side_y - 34 - top - 24 - AXIS_HEIGHT >= MIN_PLOT)
            bottom = layout->side_y - 34;
        else
            layout->side_width = 0;
    }
    top += 22;
    layout->plot = (struct mt_box){0, top, 0, bottom - AXIS_HEIGHT - top};
    layout->plot.width = narrow ? drawing->width - MT_MARGIN : layout->side_x - SIDE_GAP;
    if (wants_panel(layout) && layout->plot.height - PANEL_HEIGHT - PANEL_GAP >= MIN_PLOT) {
        layout->plot.height -= PANEL_HEIGHT + PANEL_GAP;
        layout->level =
            (struct mt_box){0, layout->plot.y + layout->plot.height + PANEL_GAP, 0, PANEL_HEIGHT};
    }
    place_axes(layout, most);
}

/* Returns true if the steps take a tenth of what follows the start of the first one. Others are no
 * steps of the program: they only resemble each other. */
static bool cover_the_run(const struct mt_device_report *device, struct mt_step_list steps)
{
    const uint64_t begin_t_ns = steps.list[0].begin_t_ns, begin_event = steps.list[0].begin_event;
    double time = 0, events = 0;

    for (uint32_t i = 0; i < steps.count; i++) {
        time += (double)mt_sub_or_0_u64(steps.list[i].end_t_ns, steps.list[i].begin_t_ns);
        events += (double)mt_sub_or_0_u64(steps.list[i].end_event, steps.list[i].begin_event) + 1;
    }
    return 10 * time >= (double)mt_sub_or_0_u64(device->last_t_ns, begin_t_ns) ||
           10 * events >= (double)mt_sub_or_0_u64(device->last_event, begin_event);
}

static const char *lacks_steps(const struct mt_report *report,
                               const struct mt_device_report *device)
{
    const struct mt_step_list steps = mt_judged_steps(report, device);

    if (!device->step_count)
        return "the trace names no steps, and none could be inferred";
    return steps.count && !cover_the_run(device, steps) ? "its steps cover less than a tenth of it"
                                                        : NULL;
}

static void draw_nothing(struct mt_drawing *drawing, const struct mt_report *report,
                         const struct mt_device_report *device, const char *title)
{
    double y = mt_chart_frame_header(drawing, title, mt_chart_frame_facts(drawing, report, device));
    bool has_steps = device && device->step_count;

    mt_chart_frame_nothing(drawing, y + 8, "No steps",
                           has_steps ? "All steps ended before the recorded history began."
                                     : "The trace names no steps, and none could be inferred.");
}

static void draw(struct mt_drawing *drawing, struct mt_trend_layout *layout, const char *title)
{
    double y = mt_chart_frame_header(drawing, title,
                                     mt_chart_frame_facts(drawing, layout->report, layout->device));

    place(drawing, layout, y);
    make_columns(drawing, layout);
    mt_trend_draw_plots(drawing, layout);
    trend_draw_side(drawing, layout);
}

/* Returns true if there are at least five steps. */
static bool has_trend(const struct mt_report *report, const struct mt_device_report *device)
{
    return mt_judged_steps(report, device).count >= MT_TREND_MIN_STEPS;
}

static void draw_chart(const struct mt_report *report, const struct mt_device_report *device,
                       const struct mt_chart_options *options, struct mt_drawing *drawing)
{
    struct mt_trend_layout layout = {.report = report, .device = device};
    double width = mt_chart_frame_width(options->width), height = STANDARD_HEIGHT;

    if (device)
        mt_trend_make(report, device, &layout.trend);
    mt_drawing_init(drawing, width, mt_chart_frame_height(options->height, STANDARD_HEIGHT),
                    "trend");
    if (layout.trend.count)
        layout.steps = layout.trend.steps;
    if (width < MT_NARROW_WIDTH && layout.trend.count)
        height = NARROW_HEIGHT + trend_side_height(drawing, &layout, width - 2 * MT_MARGIN);
    drawing->height = mt_chart_frame_height(options->height, height);
    const char *title = mt_chart_frame_title(drawing, report, device, "memory from step to step");
    mt_chart_frame_describe(drawing, report, device, title);
    if (layout.trend.count)
        draw(drawing, &layout, title);
    else
        draw_nothing(drawing, report, device, title);
}

const struct mt_chart mt_chart_trend = {
    .name = "trend",
    .summary = "memory from step to step: does it grow?",
    .shows_findings = true,
    .needs_history = true,
    .lacks = lacks_steps,
    .called_for = has_trend,
    .draw = draw_chart,
};
