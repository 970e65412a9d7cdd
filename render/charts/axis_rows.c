/* The rows of steps and phases below a plot. A row is filled with cells from left to right. Cells
 * that are too narrow to be distinguished are merged. */
#include "time_axis.h"

#include <math.h>
#include <string.h>

#include "theme.h"
#include "units.h"
#include "util.h"

#define ROW_PITCH   18.0
#define MIN_STEP    3.0 /* pixels; narrower steps share a cell */
#define MAX_PATH    80  /* maximum bytes of a path in hover text */
#define MAX_NAME    400 /* maximum bytes of a name; no cell has room for more */
#define TINT_MIN    4.0 /* pixels; narrower steps have no tint and no line */
#define MANY_PHASES 240 /* with more phases, a separate cell needs more pixels */

static double step_left(const struct mt_time_axis *axis, const struct mt_step_use *step)
{
    return mt_time_axis_x(axis, step->begin_t_ns, step->begin_event);
}

static double step_right(const struct mt_time_axis *axis, const struct mt_step_use *step)
{
    return mt_time_axis_x(axis, step->end_t_ns, step->end_event);
}

void mt_time_axis_draw_step_tints(struct mt_drawing *drawing, const struct mt_time_axis *axis,
                                  const struct mt_device_report *device, const struct mt_box *plot)
{
    const struct mt_paint tint = {.fill = MT_COLOR_STEP_TINT};

    for (uint32_t i = 0; i < device->step_count; i += 2) {
        double left = step_left(axis, &device->steps[i]);
        double right = step_right(axis, &device->steps[i]);

        if (right - left >= TINT_MIN)
            mt_draw_rect(drawing, left, plot->y, right - left, plot->height, &tint, NULL, "tint");
    }
}

void mt_time_axis_draw_step_starts(struct mt_drawing *drawing, const struct mt_time_axis *axis,
                                   const struct mt_device_report *device, const struct mt_box *plot)
{
    const struct mt_paint line = {.stroke = MT_COLOR_AXIS, .dotted = true};
    double last = -HUGE_VAL;

    for (uint32_t i = 0; i < device->step_count; i++) {
        double x = step_left(axis, &device->steps[i]);

        if (x - last < TINT_MIN || step_right(axis, &device->steps[i]) - x < TINT_MIN)
            continue;
        mt_draw_line(drawing, x, plot->y, x, plot->y + plot->height, &line);
        last = x;
    }
}

struct cell {
    double left, right;
    enum mt_color fill;
    const char *title;    /* hover text */
    const char *names[3]; /* the first that fits is drawn; NULL = no more */
    const char *role;
};

/* Returns the index of the name that was drawn, -1 = none. */
static int draw_cell(struct mt_drawing *drawing, double y, const struct cell *cell)
{
    struct mt_paint paint = {.fill = cell->fill};
    double width = cell->right - cell->left;
    enum mt_color ink =
        cell->fill == MT_COLOR_PANEL ? MT_COLOR_MUTED : mt_theme_text_on(cell->fill);

    mt_draw_rect(drawing, cell->left, y, fmax(width, 0.5), MT_ROW_HEIGHT, &paint, cell->title,
                 cell->role);
    for (size_t i = 0; i < MT_ARRAY_LEN(cell->names) && cell->names[i]; i++) {
        if (strnlen(cell->names[i], MAX_NAME) == MAX_NAME ||
            1.05 * mt_text_width(cell->names[i], MT_SIZE_CELL, MT_REGULAR) + 4 > width)
            continue;
        mt_chart_frame_text(drawing, (cell->left + cell->right) / 2, y + 12, cell->names[i],
                            MT_SIZE_CELL, MT_REGULAR, ink, MT_ANCHOR_MIDDLE, "cell-text");
        return (int)i;
    }
    return -1;
}

/* Returns true if the step ended before the axis begins, so no part of the step is visible. */
static bool is_before(const struct mt_time_axis *axis, const struct mt_step_use *step)
{
    return step_right(axis, step) <= axis->left + 0.01 &&
           step_left(axis, step) <= axis->left + 0.01;
}

static const char *step_number(struct mt_drawing *drawing, int64_t step)
{
    char digits[MT_UNITS_TEXT];

    if (step == MT_NO_STEP)
        return "?";
    mt_format_count(digits, mt_magnitude(step));
    return mt_arena_printf(&drawing->arena, "%s%s", step < 0 ? "\xE2\x88\x92" : "", digits);
}

/* Adjacent cells of steps that have no room for their names. */
struct unnamed {
    const struct mt_step_use *first, *last; /* NULL = none */
};

/* Draws one name for all these cells if it fits. */
static void name_together(struct mt_drawing *drawing, const struct mt_time_axis *axis,
                          struct unnamed *cells, double y)
{
    const struct mt_step_use *first = cells->first, *last = cells->last;

    cells->first = NULL;
    if (!first || first == last)
        return;
    double left = step_left(axis, first);
    double right = step_right(axis, last);
    const char *text =
        mt_arena_printf(&drawing->arena, "%s\xE2\x80\x93%s", step_number(drawing, first->step),
                        step_number(drawing, last->step));
    if (1.05 * mt_text_width(text, MT_SIZE_CELL, MT_REGULAR) + 4 <= right - left)
        mt_chart_frame_text(drawing, (left + right) / 2, y + 12, text, MT_SIZE_CELL, MT_REGULAR,
                            MT_COLOR_MUTED, MT_ANCHOR_MIDDLE, "cell-text");
}

/* Draws steps first..last as one cell. Returns false if there is no room for their name. */
static bool draw_steps_cell(struct mt_drawing *drawing, const struct mt_time_axis *axis,
                            const struct mt_step_use *first, const struct mt_step_use *last,
                            double y)
{
    struct mt_arena *arena = &drawing->arena;
    const char *a = step_number(drawing, first->step), *b = step_number(drawing, last->step);
    char peak[MT_UNITS_TEXT];
    struct cell cell = {.left = step_left(axis, first) + 0.5,
                        .right = step_right(axis, last) - 0.5,
                        .fill = MT_COLOR_PANEL,
                        .role = "step"};

    if (first == last) {
        mt_format_bytes(peak, first->peak.allocated);
        cell.title = mt_arena_printf(arena, "step %s: %s, peak allocated %s", a,
                                     mt_chart_frame_length(drawing, axis->report,
                                                           first->end_t_ns - first->begin_t_ns,
                                                           first->end_event - first->begin_event),
                                     peak);
        cell.names[0] = mt_arena_printf(arena, "step %s", a);
        cell.names[1] = a;
    } else {
        cell.title = mt_arena_printf(arena, "steps %s to %s", a, b);
        cell.names[0] = mt_arena_printf(arena, "steps %s\xE2\x80\x93%s", a, b);
        cell.names[1] = mt_arena_printf(arena, "%s\xE2\x80\x93%s", a, b);
    }
    return draw_cell(drawing, y, &cell) >= 0;
}

void mt_time_axis_draw_steps(struct mt_drawing *drawing, const struct mt_time_axis *axis,
                             const struct mt_device_report *device, double y)
{
    const struct mt_step_use *steps = device->steps;
    struct unnamed unnamed = {NULL, NULL};
    uint32_t last, first = 0;

    while (first + 1 < device->step_count && is_before(axis, &steps[first]))
        first++;
    if (!device->step_count)
        return;
    double left = step_left(axis, &steps[first]);
    if (left - axis->left > 12) {
        struct cell setup = {
            axis->left, left - 0.5, MT_COLOR_PANEL, "before the first step", {"setup", NULL, NULL},
            "setup"};
        draw_cell(drawing, y, &setup);
    }
    for (uint32_t i = first; i < device->step_count; i = last + 1) {
        last = i;
        left = step_left(axis, &steps[i]);
        while (step_right(axis, &steps[last]) - left < MIN_STEP && last + 1 < device->step_count)
            last++;
        /* A crowd continues while the next step is also narrow. */
        while (last > i && last + 1 < device->step_count &&
               step_right(axis, &steps[last + 1]) - step_left(axis, &steps[last + 1]) < MIN_STEP)
            last++;
        if (draw_steps_cell(drawing, axis, &steps[i], &steps[last], y)) {
            name_together(drawing, axis, &unnamed, y);
        } else {
            unnamed.first = unnamed.first ? unnamed.first : &steps[i];
            unnamed.last = &steps[last];
        }
    }
    name_together(drawing, axis, &unnamed, y);
}

struct mt_axis_name *mt_time_axis_name(struct mt_time_axis *axis, const char *text)
{
    unsigned unknown = 0;

    for (uint32_t i = 0; i < axis->name_count; i++) {
        if (!strcmp(axis->names[i].text, text))
            return &axis->names[i];
        unknown += !mt_phase_short_name(axis->names[i].text);
    }
    if (axis->name_count == MT_AXIS_NAMES)
        return NULL;
    struct mt_axis_name *name = &axis->names[axis->name_count++];
    name->text = text;
    name->color = mt_phase_color(text, unknown);
    return name;
}

/* Cells that are drawn as one, because each of them is too narrow. */
struct crowd {
    double left, right;
    uint32_t count;
};

static void flush_crowd(struct mt_drawing *drawing, struct crowd *crowd, double y)
{
    struct cell cell = {crowd->left, crowd->right, MT_COLOR_PHASE_0 + 4, NULL, {NULL}, "phases"};
    char count[MT_UNITS_TEXT];

    if (!crowd->count)
        return;
    mt_format_count(count, crowd->count);
    cell.names[0] = mt_arena_printf(&drawing->arena, "%s phases", count);
    cell.title = mt_arena_printf(&drawing->arena, "%s short phases", count);
    draw_cell(drawing, y, &cell);
    crowd->count = 0;
}

static void draw_phase(struct mt_drawing *drawing, struct mt_time_axis *axis,
                       const struct mt_phase *phase, double left, double right, double y)
{
    struct mt_axis_name *name = mt_time_axis_name(axis, phase->name);
    struct cell cell = {.left = left,
                        .right = right - left > 4 ? right - 0.5 : right,
                        .fill = name ? name->color : mt_phase_color(phase->name, 0),
                        .names = {phase->name, mt_phase_short_name(phase->name), NULL},
                        .role = "phase"};

    cell.title = mt_arena_printf(
        &drawing->arena, "%s: %s", mt_chart_frame_short(drawing, phase->path, MAX_PATH),
        mt_chart_frame_length(drawing, axis->report, phase->end_t_ns - phase->begin_t_ns,
                              phase->end_event - phase->begin_event));
    int written = draw_cell(drawing, y, &cell);
    if (!name)
        return;
    name->drawn = true;
    name->shortened = name->shortened || written == 1;
}

/* Adds a phase that is too narrow to be distinguished. */
static void join_crowd(struct mt_drawing *drawing, struct crowd *crowd, double left, double right,
                       double y)
{
    if (crowd->count && left - crowd->right > 1.5)
        flush_crowd(drawing, crowd, y);
    if (!crowd->count++)
        crowd->left = left;
    crowd->right = fmax(right, left + 0.5);
}

void mt_time_axis_draw_phases(struct mt_drawing *drawing, struct mt_time_axis *axis, double y)
{
    const struct mt_report *report = axis->report;
    double least = axis->row_count > MANY_PHASES ? 3 : 0, filled = axis->left;
    struct crowd crowd = {0, 0, 0};

    for (uint32_t i = 0; axis->row_count && i < report->phase_count; i++) {
        const struct mt_phase *phase = &report->phases[i];

        if (!report->main_phase[i])
            continue;
        /* Phases of other threads may overlap. The earlier one keeps its place. */
        double left = fmax(mt_time_axis_x(axis, phase->begin_t_ns, phase->begin_event), filled);
        double right = mt_time_axis_x(axis, phase->end_t_ns, phase->end_event);
        if (right < filled)
            continue;
        filled = fmax(right, left);
        if (right - left < least) {
            join_crowd(drawing, &crowd, left, right, y);
        } else {
            flush_crowd(drawing, &crowd, y);
            draw_phase(drawing, axis, phase, left, right, y);
        }
    }
    flush_crowd(drawing, &crowd, y);
}

void mt_time_axis_draw_legend(struct mt_drawing *drawing, const struct mt_time_axis *axis, double y,
                              double max_x)
{
    struct mt_swatch swatches[MT_AXIS_NAMES];
    const char *words = axis->by_event ? "event number"
                        : axis->name   ? axis->name
                                       : "time since first event";
    double x = axis->left;
    size_t count = 0;

    if (axis->rest && *axis->rest)
        words = mt_arena_printf(&drawing->arena, "%s · %s", words, axis->rest);
    x += 36 + mt_chart_frame_text(drawing, x, y, words, 12.5, MT_REGULAR, MT_COLOR_MUTED,
                                  MT_ANCHOR_START, "axis-name");
    for (uint32_t i = 0; i < axis->name_count; i++) {
        const struct mt_axis_name *name = &axis->names[i];
        const char *short_name = mt_phase_short_name(name->text), *text = name->text;

        if (!name->drawn)
            continue;
        if (name->shortened && short_name && strcmp(short_name, text))
            text = mt_arena_printf(&drawing->arena, "%s = %s", short_name, text);
        swatches[count].text = text ? text : "";
        swatches[count++].color = name->color;
    }
    mt_chart_frame_swatches(drawing, x, y, max_x, swatches, count);
}

double mt_time_axis_draw_rows(struct mt_drawing *drawing, struct mt_time_axis *axis,
                              const struct mt_device_report *device, double y)
{
    if (device->step_count) {
        mt_time_axis_draw_steps(drawing, axis, device, y);
        y += ROW_PITCH;
    }
    if (axis->row_count) {
        mt_time_axis_draw_phases(drawing, axis, y);
        y += ROW_PITCH;
    }
    return y;
}

double mt_time_axis_height(const struct mt_time_axis *axis, bool has_steps)
{
    return 6 + (has_steps ? ROW_PITCH : 0) + (axis->row_count ? ROW_PITCH : 0) + 26;
}
