/* Cells of the flame chart: their names, and how a cell or a crowd is drawn. */
#include "flamechart_layout.h"

#include <math.h>
#include <string.h>

#include "cell_label.h"
#include "icicle.h"
#include "report_query.h"
#include "site.h"
#include "units.h"
#include "util.h"

#define MIN_CELL 0.4 /* pixels; narrower cells get this width */

enum mt_color mt_flame_color(const struct mt_flame_layout *layout, int64_t net)
{
    double share =
        layout->largest_net ? (double)mt_magnitude(net) / (double)layout->largest_net : 0;
    int distance = (int)lround(8 * pow(fmin(share, 1), 0.6));

    return (enum mt_color)((int)MT_COLOR_CHANGE_0 + 8 + (net < 0 ? -distance : distance));
}

static const char *no_stack_name(const struct mt_flame_layout *layout, const struct mt_cell *cell)
{
    return mt_phase_is_backward(layout->report->phases, layout->report->phase_count, cell->phase)
               ? "autograd engine"
               : "no stack recorded";
}

static const char *phase_name(const struct mt_flame_layout *layout, const struct mt_cell *cell)
{
    const struct mt_phase *phase;

    if (cell->phase < 0 || (uint32_t)cell->phase >= layout->report->phase_count)
        return "";
    phase = &layout->report->phases[cell->phase];
    if (cell->kind == MT_CELL_STEP && phase->step != MT_NO_STEP)
        return mt_chart_frame_where(layout->drawing, layout->report, cell->phase, phase->step);
    return phase->name;
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

/* Returns the complete name of a cell for users. */
static const char *full_name(const struct mt_flame_layout *layout, const struct mt_cell *cell)
{
    switch (cell->kind) {
    case MT_CELL_STEP:
    case MT_CELL_PHASE: return cell->merged > 1 ? "phases" : phase_name(layout, cell);
    case MT_CELL_NO_STACK: return no_stack_name(layout, cell);
    case MT_CELL_FRAME: break;
    }
    if (cell->frame == MT_NO_ID)
        return "calls";
    return or_empty(mt_frame_label(&layout->drawing->arena, layout->report->symbols, cell->frame));
}

static const char *span_text(const struct mt_flame_layout *layout, const struct mt_cell *cell)
{
    char begin[MT_UNITS_TEXT], length[MT_UNITS_TEXT];

    if (!mt_report_has_times(layout->report))
        return or_empty(mt_arena_printf(&layout->drawing->arena, "from event %s",
                                        mt_format_count(begin, cell->begin_event)));
    return or_empty(
        mt_arena_printf(&layout->drawing->arena, "%s from %s",
                        mt_format_duration(length, cell->end_t_ns - cell->begin_t_ns),
                        mt_format_duration(begin, cell->begin_t_ns - layout->zero_t_ns)));
}

static const char *cell_title(const struct mt_flame_layout *layout, const struct mt_cell *cell,
                              const char *name)
{
    char net[MT_UNITS_TEXT], peak[MT_UNITS_TEXT], count[MT_UNITS_TEXT];
    bool counted = cell->merged > 1;

    return mt_arena_printf(&layout->drawing->arena, "%s%s%s: net %s, peak %s, %s",
                           counted ? mt_format_count(count, cell->merged) : "",
                           counted ? " × " : "", name, mt_format_change(net, cell->net_bytes),
                           mt_format_bytes(peak, cell->peak_allocated), span_text(layout, cell));
}

double mt_flame_left(const struct mt_flame_layout *layout, const struct mt_cell *cell)
{
    return mt_time_axis_x(&layout->axis, cell->begin_t_ns, cell->begin_event);
}

double mt_flame_right(const struct mt_flame_layout *layout, const struct mt_cell *cell)
{
    return mt_time_axis_x(&layout->axis, cell->end_t_ns, cell->end_event);
}

static struct mt_cell_box box_of(const struct mt_flame_layout *layout, const struct mt_cell *cell,
                                 int32_t row)
{
    double left = mt_flame_left(layout, cell), width = mt_flame_right(layout, cell) - left;
    struct mt_cell_box box = {.x = left,
                              .y = layout->rows_top + MT_FLAME_PITCH * row,
                              .width = fmax(width - (width > 2.5 ? 1 : 0), MIN_CELL),
                              .height = MT_FLAME_PITCH - 2,
                              .fill = mt_flame_color(layout, cell->net_bytes)};

    return box;
}

static const char *const cell_roles[] = {"cell:step", "cell:phase", "cell:frame", "cell:no-stack"};

static void draw_box(const struct mt_flame_layout *layout, const struct mt_cell_box *box,
                     const char *title, const char *role)
{
    struct mt_paint paint = {.fill = box->fill, .radius = box->width > 6 ? 2 : 0};

    mt_draw_rect(layout->drawing, box->x, box->y, box->width, box->height, &paint, title, role);
}

/* Returns the widest part of a box between folds of the axis. Text is drawn there. */
static struct mt_cell_box text_part(const struct mt_flame_layout *layout,
                                    const struct mt_cell_box *box)
{
    struct mt_cell_box best = *box;

    best.width = 0;
    for (uint32_t i = 0; i < mt_time_axis_spans(&layout->axis); i++) {
        double left = fmax(box->x, mt_time_axis_span_left(&layout->axis, i));
        double right = fmin(box->x + box->width, mt_time_axis_span_right(&layout->axis, i));

        if (right - left > best.width) {
            best.x = left;
            best.width = right - left;
        }
    }
    return best;
}

/* Returns "forward  peak 3.11 GiB" if that fits, else the name. */
static const char *phase_text(const struct mt_flame_layout *layout, const struct mt_cell *cell,
                              double room)
{
    const char *name = full_name(layout, cell), *text;
    char peak[MT_UNITS_TEXT];

    text = mt_arena_printf(&layout->drawing->arena, "%s  peak %s", name,
                           mt_format_bytes(peak, cell->peak_allocated));
    if (1.06 * mt_text_width(text, MT_CELL_TEXT, MT_REGULAR) <= room)
        return text;
    text = mt_phase_short_name(name);
    if (text && 1.06 * mt_text_width(name, MT_CELL_TEXT, MT_REGULAR) > room)
        return text;
    return name;
}

static const char *cell_text(const struct mt_flame_layout *layout, const struct mt_cell *cell,
                             double room)
{
    if (cell->kind == MT_CELL_FRAME && cell->frame != MT_NO_ID)
        return mt_cell_frame_text(layout->drawing, layout->report->symbols, cell->frame, room);
    if (cell->kind == MT_CELL_PHASE)
        return phase_text(layout, cell, room);
    return full_name(layout, cell);
}

static void draw_cell(const struct mt_flame_layout *layout, const struct mt_cell *cell, int32_t row)
{
    struct mt_cell_box box = box_of(layout, cell, row), part = text_part(layout, &box);
    char net[MT_UNITS_TEXT];

    draw_box(layout, &box, cell_title(layout, cell, full_name(layout, cell)),
             cell_roles[cell->kind]);
    mt_cell_write(layout->drawing, &part, cell_text(layout, cell, mt_cell_room(&part)),
                  mt_format_change(net, cell->net_bytes));
}

static const struct mt_frame *frame_of(const struct mt_flame_layout *layout,
                                       const struct mt_cell *cell)
{
    const struct mt_symbols *symbols = layout->report->symbols;

    return cell->kind == MT_CELL_FRAME && cell->frame < symbols->frame_count
               ? &symbols->frames[cell->frame]
               : NULL;
}

void mt_crowd_begin(const struct mt_flame_layout *layout, struct mt_crowd *crowd,
                    const struct mt_cell *cell)
{
    crowd->cell = *cell;
    crowd->cells = 1;
    crowd->right = mt_flame_right(layout, cell);
    crowd->color = mt_flame_color(layout, cell->net_bytes);
    crowd->same_function = crowd->same_file = frame_of(layout, cell) != NULL;
}

void mt_crowd_join(const struct mt_flame_layout *layout, struct mt_crowd *crowd,
                   const struct mt_cell *cell)
{
    const struct mt_frame *a = frame_of(layout, &crowd->cell), *b = frame_of(layout, cell);
    struct mt_cell *sum = &crowd->cell;

    crowd->same_function &= a && b && a->function == b->function;
    crowd->same_file &= a && b && a->file == b->file;
    if (sum->kind != cell->kind)
        sum->kind = MT_CELL_FRAME;
    sum->merged += cell->merged;
    sum->net_bytes += cell->net_bytes;
    sum->peak_allocated = mt_max_u64(sum->peak_allocated, cell->peak_allocated);
    sum->end_t_ns = cell->end_t_ns;
    sum->end_event = cell->end_event;
    crowd->cells++;
    crowd->right = mt_flame_right(layout, cell);
}

static const char *plural_name(const struct mt_flame_layout *layout, const struct mt_cell *cell)
{
    switch (cell->kind) {
    case MT_CELL_STEP: return "steps";
    case MT_CELL_PHASE: return "phases";
    case MT_CELL_NO_STACK: return no_stack_name(layout, cell);
    case MT_CELL_FRAME: break;
    }
    return "calls";
}

/* Returns the name of a crowd: "150 × forward train.py", "50 × forward", or "150 calls". */
static const char *crowd_name(const struct mt_flame_layout *layout, const struct mt_crowd *crowd,
                              bool with_file)
{
    struct mt_arena *arena = &layout->drawing->arena;
    const struct mt_frame *frame = frame_of(layout, &crowd->cell);
    const char *function, *place;

    if (!frame || !crowd->same_function || !crowd->same_file)
        return plural_name(layout, &crowd->cell);
    function = or_empty(mt_frame_function(arena, layout->report->symbols, crowd->cell.frame));
    place = or_empty(mt_frame_place(arena, layout->report->symbols, crowd->cell.frame));
    if (!with_file || !*place)
        return function;
    return or_empty(mt_arena_printf(arena, "%s %.*s", function, (int)strcspn(place, ":"), place));
}

/* Returns as much of the name of a crowd as fits, but at least "150 calls". */
static const char *crowd_text(const struct mt_flame_layout *layout, const struct mt_crowd *crowd,
                              double room)
{
    struct mt_arena *arena = &layout->drawing->arena;
    bool named = crowd->same_function && crowd->same_file;
    char count[MT_UNITS_TEXT];
    const char *tries[3];

    if (crowd->cell.kind == MT_CELL_NO_STACK)
        return no_stack_name(layout, &crowd->cell);
    mt_format_count(count, crowd->cell.merged);
    tries[0] = mt_arena_printf(arena, "%s %s%s", count, named ? "× " : "",
                               crowd_name(layout, crowd, true));
    tries[1] = mt_arena_printf(arena, "%s %s%s", count, named ? "× " : "",
                               crowd_name(layout, crowd, false));
    tries[2] = mt_arena_printf(arena, "%s %s", count, plural_name(layout, &crowd->cell));
    for (size_t i = 0; i < MT_ARRAY_LEN(tries); i++)
        if (tries[i] && 1.06 * mt_text_width(tries[i], MT_CELL_TEXT, MT_REGULAR) <= room)
            return tries[i];
    return "";
}

void mt_crowd_draw(struct mt_flame_layout *layout, struct mt_crowd *crowd, int32_t row)
{
    struct mt_cell_box box, part;
    char net[MT_UNITS_TEXT];

    if (crowd->cells == 1)
        draw_cell(layout, &crowd->cell, row);
    if (crowd->cells > 1) {
        layout->merged_calls += crowd->cell.merged;
        box = box_of(layout, &crowd->cell, row);
        draw_box(layout, &box, cell_title(layout, &crowd->cell, crowd_name(layout, crowd, true)),
                 "cell:crowd");
        part = text_part(layout, &box);
        mt_cell_write(layout->drawing, &part, crowd_text(layout, crowd, mt_cell_room(&part)),
                      mt_format_change(net, crowd->cell.net_bytes));
    }
    crowd->cells = 0;
}
