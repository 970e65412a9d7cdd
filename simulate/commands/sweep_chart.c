/* For each value, a stack of roles at the allocated peak, with the rest of reserved memory above
 * the stack, and a mark at the memory that a card must have. Lines show the sizes of common
 * cards. */
#include "sweep_output.h"

#include <math.h>

#include "chart_frame.h"
#include "units.h"
#include "util.h"

#define AXIS_WIDTH    84.0  /* room left of the plot for bytes */
#define CARDS_WIDTH   124.0 /* room right of the plot for names of cards */
#define LEGEND_HEIGHT 30.0
#define LABEL_PITCH   16.0
#define HEAD          24.0 /* room above the plot for the number on the tallest bar */
#define MAX_BAR       72.0
#define MARK_WIDTH    3.0
#define NEXT_CARD     1.35 /* the axis includes the next card up to this multiple of the bars */

struct layout {
    const struct mt_sweep *sweep;
    struct mt_box plot;
    double pitch; /* distance of bars */
    uint64_t top;
    double labels_end; /* right edge of the last label below the plot */
};

static double y_of(const struct layout *layout, uint64_t bytes)
{
    return layout->plot.y + layout->plot.height * (1 - (double)bytes / (double)layout->top);
}

/* Returns the height of a bar including its mark. Without a limit, a run may reserve more than a
 * card must have. */
static uint64_t height_of(const struct mt_sweep_result *result)
{
    uint64_t bytes = mt_max_u64(result->reserved_peak_bytes, result->allocated_peak_bytes);

    return result->has_need ? mt_max_u64(bytes, result->card.bytes) : bytes;
}

static uint64_t tallest(const struct mt_sweep *sweep)
{
    uint64_t most = 1;

    for (size_t i = 0; i < sweep->run_count; i++)
        if (sweep->runs[i].result.is_measured)
            most = mt_max_u64(most, height_of(&sweep->runs[i].result));
    return most;
}

/* Returns the upper end of the axis, which includes the next card if it is close. */
static uint64_t top_of(const struct mt_sweep *sweep)
{
    uint64_t most = tallest(sweep), top = most;

    for (const struct mt_card *card = mt_cards; card->name; card++)
        if (card->memory_bytes > most) {
            if ((double)card->memory_bytes < (double)most * NEXT_CARD)
                top = card->memory_bytes;
            break;
        }
    return (uint64_t)fmin((double)top * 1.03, 1.8e19);
}

static double draw_legend(struct mt_drawing *drawing, const struct mt_sweep *sweep, double y)
{
    struct mt_swatch swatches[MT_ROLE_COUNT + 2];
    size_t count = 0;

    for (int role = 0; role < MT_ROLE_COUNT; role++)
        if (mt_sweep_uses_role(sweep, role))
            swatches[count++] = (struct mt_swatch){mt_role_title((enum mt_role)role),
                                                   mt_role_color((enum mt_role)role)};
    swatches[count++] = (struct mt_swatch){"Reserved, unused", MT_COLOR_UNUSED};
    swatches[count++] = (struct mt_swatch){"A card must have", MT_COLOR_LIMIT};
    mt_chart_frame_swatches(drawing, MT_MARGIN, y + 12, drawing->width - MT_MARGIN, swatches,
                            count);
    return y + LEGEND_HEIGHT;
}

/* Draws the lines of cards, from the bottom up. If names would overlap, some lines have no name. */
static void draw_cards(struct mt_drawing *drawing, const struct layout *layout)
{
    const struct mt_paint line = {.stroke = MT_COLOR_AXIS, .stroke_width = 1.2, .dashed = true};
    double right = layout->plot.x + layout->plot.width, last = HUGE_VAL;

    for (const struct mt_card *card = mt_cards; card->name; card++) {
        double y = y_of(layout, card->memory_bytes);
        const struct mt_point points[2] = {{layout->plot.x, y}, {right, y}};
        char n[MT_UNITS_TEXT];

        if (card->memory_bytes > layout->top)
            break;
        mt_draw_path(drawing, points, 2, false, false, &line,
                     mt_arena_printf(&drawing->arena, "%s: %s B", card->name,
                                     mt_format_count(n, card->memory_bytes)),
                     "card");
        if (last - y < 14)
            continue;
        last = y;
        mt_chart_frame_text(
            drawing, right + 8, y + 4,
            mt_text_fit(drawing, card->name, MT_SIZE_SMALL, MT_REGULAR, CARDS_WIDTH - 8, false),
            MT_SIZE_SMALL, MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_START, "label:card");
    }
}

static const char *exact_words(struct mt_drawing *drawing, const struct mt_sweep_run *run)
{
    const struct mt_sweep_result *result = &run->result;
    char n[4][MT_UNITS_TEXT];
    const char *need = "";

    if (!result->is_measured)
        return mt_arena_printf(&drawing->arena, "%s: %s", run->label,
                               mt_sweep_outcome_name(result->outcome));
    if (result->has_need)
        need = mt_arena_printf(&drawing->arena, "; smallest limit %s B, a card must have %s%s B",
                               mt_format_count(n[2], result->card.allocator_bytes),
                               result->card.cuda_from == MT_CUDA_TABLE ? "" : "about ",
                               mt_format_count(n[3], result->card.bytes));
    return mt_arena_printf(&drawing->arena, "%s: %s; allocated peak %s B, reserved peak %s B%s",
                           run->label, mt_sweep_outcome_name(result->outcome),
                           mt_format_count(n[0], result->allocated_peak_bytes),
                           mt_format_count(n[1], result->reserved_peak_bytes), need);
}

static void draw_part(struct mt_drawing *drawing, const struct layout *layout, double x,
                      double width, const uint64_t range[2], const struct mt_paint *paint,
                      const char *title, const char *role)
{
    double bottom = y_of(layout, range[0]), top = y_of(layout, range[1]);

    if (range[1] > range[0])
        mt_draw_rect(drawing, x, top, width, bottom - top, paint, title, role);
}

static void draw_roles(struct mt_drawing *drawing, const struct layout *layout, double x,
                       double width, const struct mt_sweep_result *result)
{
    uint64_t range[2] = {0, 0};

    for (int role = 0; role < MT_ROLE_COUNT; role++) {
        const struct mt_paint paint = {.fill = mt_role_color((enum mt_role)role)};
        char n[MT_UNITS_TEXT];

        range[0] = range[1];
        range[1] = mt_add_most_u64(range[0], result->role_bytes[role]);
        if (range[1] == range[0])
            continue;
        const char *title =
            mt_arena_printf(&drawing->arena, "%s: %s B", mt_role_title((enum mt_role)role),
                            mt_format_count(n, result->role_bytes[role]));
        draw_part(drawing, layout, x, width, range, &paint, title, "role");
    }
}

static void draw_need(struct mt_drawing *drawing, const struct layout *layout, double x,
                      double width, const struct mt_sweep_result *result)
{
    const struct mt_paint mark = {.stroke = MT_COLOR_LIMIT, .stroke_width = MARK_WIDTH};
    double y = y_of(layout, result->card.bytes), out = fmin(5, (layout->pitch - width) / 2);
    const struct mt_point points[2] = {{x - out, y}, {x + width + out, y}};

    if (result->has_need)
        mt_draw_path(drawing, points, 2, false, false, &mark, NULL, "need");
}

/* Returns the memory that a card must have, or reserved memory if that is unknown. */
static const char *amount_of(struct mt_drawing *drawing, const struct mt_sweep_result *result)
{
    char n[MT_UNITS_TEXT];

    if (!result->is_measured)
        return "";
    return mt_arena_printf(
        &drawing->arena, "%s%s",
        result->has_need && result->card.cuda_from != MT_CUDA_TABLE ? "~" : "",
        mt_format_bytes(n, result->has_need ? result->card.bytes : result->reserved_peak_bytes));
}

/* Draws the amount above the bar, if there is room between its neighbors. */
static void draw_amount(struct mt_drawing *drawing, const struct layout *layout, double middle,
                        const struct mt_sweep_result *result)
{
    const struct mt_text_style style = {.size = MT_SIZE_SMALL,
                                        .weight = MT_SEMIBOLD,
                                        .anchor = MT_ANCHOR_MIDDLE,
                                        .color = MT_COLOR_TEXT,
                                        .halo = true};
    const char *text = amount_of(drawing, result);

    if (*text && mt_text_room(text, MT_SIZE_SMALL, MT_SEMIBOLD) + 4 < layout->pitch)
        mt_draw_text(drawing, middle, y_of(layout, height_of(result)) - 7, text, &style, "amount");
}

/* Draws the value, and the outcome of a run that did not finish. */
static void draw_label(struct mt_drawing *drawing, struct layout *layout, double middle,
                       const struct mt_sweep_run *run)
{
    const char *value = mt_sweep_run_name(layout->sweep, run);
    const char *text =
        mt_text_fit(drawing, value, MT_SIZE_BODY, MT_SEMIBOLD, fmax(layout->pitch - 4, 24), true);
    const char *outcome = mt_sweep_outcome_name(run->result.outcome);
    double y = layout->plot.y + layout->plot.height + 20;
    double half = mt_text_room(text, MT_SIZE_BODY, MT_SEMIBOLD) / 2;

    if (*text && middle - half > layout->labels_end &&
        middle + half < drawing->width - MT_MARGIN / 2) {
        mt_chart_frame_text(drawing, middle, y, text, MT_SIZE_BODY, MT_SEMIBOLD, MT_COLOR_TEXT,
                            MT_ANCHOR_MIDDLE, "value");
        layout->labels_end = middle + half + 4;
    }
    if (run->result.outcome != MT_SWEEP_FINISHED &&
        mt_text_room(outcome, MT_SIZE_CELL, MT_REGULAR) + 4 < layout->pitch)
        mt_chart_frame_text(drawing, middle, y + LABEL_PITCH, outcome, MT_SIZE_CELL, MT_REGULAR,
                            MT_COLOR_BAD, MT_ANCHOR_MIDDLE, "outcome");
}

static void draw_run(struct mt_drawing *drawing, struct layout *layout, size_t index)
{
    const struct mt_paint unused = {.fill = MT_COLOR_UNUSED, .hatched = true};
    const struct mt_paint outline = {.stroke = MT_COLOR_BAD, .stroke_width = 1.5, .dashed = true};
    const struct mt_sweep_run *run = &layout->sweep->runs[index];
    const struct mt_sweep_result *result = &run->result;
    double middle = layout->plot.x + ((double)index + 0.5) * layout->pitch;
    double width = fmin(layout->pitch * 0.66, MAX_BAR), x = middle - width / 2;
    const uint64_t all[2] = {0, result->reserved_peak_bytes};
    const uint64_t above[2] = {result->allocated_peak_bytes, result->reserved_peak_bytes};

    mt_draw_group_begin(drawing, exact_words(drawing, run), "run");
    if (result->is_measured) {
        draw_roles(drawing, layout, x, width, result);
        draw_part(drawing, layout, x, width, above, &unused, NULL, "unused");
        if (result->outcome != MT_SWEEP_FINISHED)
            draw_part(drawing, layout, x, width, all, &outline, NULL, "unfinished");
        draw_need(drawing, layout, x, width, result);
        draw_amount(drawing, layout, middle, result);
    }
    draw_label(drawing, layout, middle, run);
    mt_draw_group_end(drawing);
}

static const char footnote[] =
    "dry runs: sizes are mostly those of a real run \xC2\xB7 roles: at the allocated peak \xC2\xB7 "
    "numbers: what a card must have, or the reserved peak \xC2\xB7 dashed: a run that did not "
    "finish \xC2\xB7 lines: memory of cards as their drivers report it";

static const char *title_of(struct mt_drawing *drawing, const struct mt_sweep *sweep)
{
    const char *names = "";

    for (size_t i = 0; i < sweep->name_count; i++)
        names = mt_arena_printf(&drawing->arena, "%s%s%s", names, i ? ", " : "", sweep->names[i]);
    return mt_arena_printf(&drawing->arena, "GPU memory by %s", names);
}

/* Whether mt_sweep_take_points made it from runs of ranks. */
static bool is_of_points(const struct mt_sweep *sweep)
{
    return sweep->run_count && sweep->runs[0].rank.world && !sweep->world;
}

static const char *facts_of(struct mt_drawing *drawing, const struct mt_sweep *sweep)
{
    char n[MT_UNITS_TEXT];

    /* of the ranks of a point, the one that needs the most is drawn */
    return mt_arena_printf(&drawing->arena, "%zu %s%s \xC2\xB7 simulated %s with %s",
                           sweep->run_count, is_of_points(sweep) ? "point" : "dry run",
                           sweep->run_count == 1 ? "" : "s", sweep->card->name,
                           mt_format_bytes(n, sweep->memory_bytes));
}

static void place(struct mt_drawing *drawing, struct layout *layout, double y)
{
    double bottom = mt_chart_frame_footnote(drawing, footnote) - 8;

    layout->plot.x = MT_MARGIN + AXIS_WIDTH - 12;
    layout->plot.y = y + HEAD;
    layout->plot.width = drawing->width - MT_MARGIN - CARDS_WIDTH - layout->plot.x;
    layout->plot.height = bottom - 2 * LABEL_PITCH - 12 - layout->plot.y;
    layout->pitch = layout->plot.width / (double)mt_max_u64(layout->sweep->run_count, 1);
    layout->top = top_of(layout->sweep);
    layout->labels_end = layout->plot.x - 16;
}

static void draw_plot(struct mt_drawing *drawing, struct layout *layout)
{
    struct mt_ticks ticks;

    mt_byte_ticks(&ticks, tallest(layout->sweep), layout->top,
                  (size_t)fmin(fmax(layout->plot.height / 44, 2), 10));
    mt_chart_frame_byte_axis(drawing, &layout->plot, &ticks, layout->top);
    draw_cards(drawing, layout);
    for (size_t i = 0; i < layout->sweep->run_count; i++)
        draw_run(drawing, layout, i);
}

void mt_sweep_draw(const struct mt_sweep *sweep, const struct mt_chart_options *options,
                   struct mt_drawing *drawing)
{
    struct layout layout = {.sweep = sweep};

    mt_drawing_init(drawing, mt_chart_frame_width(options->width),
                    mt_chart_frame_height(options->height, 620), "sweep");
    const char *title = title_of(drawing, sweep);
    mt_drawing_describe(drawing, title, facts_of(drawing, sweep));
    mt_drawing_metadata(drawing, "Software", "memtrace");
    mt_drawing_metadata(drawing, "memtrace:schema", "memtrace.picture/1");
    double y = mt_chart_frame_header(drawing, title, facts_of(drawing, sweep));
    if (mt_sweep_worst(sweep)) {
        place(drawing, &layout, draw_legend(drawing, sweep, y));
        draw_plot(drawing, &layout);
    } else {
        mt_chart_frame_nothing(drawing, y + 10, "No run was measured",
                               "no recorded process used a device");
    }
}
