/* Stacks blocks from the base line up, sorted by role and time of allocation. Other memory is in
 * layers on top: one for each of the largest roles, and a gray one. Each column shows a single
 * instant. Shapes are drawn from the top one down, each down to the base line, so there are no
 * seams between them. */
#include "blocks.h"

#include <math.h>
#include <stdlib.h>

#include "block_key.h"
#include "report_query.h"
#include "sorted.h"
#include "timeline_layout.h"
#include "units.h"
#include "util.h"

#define WIDEST_COLUMN 2.0
#define LEAST_REST    200 /* layers below 1/200 of the plot become a part of the gray layer */

double mt_block_stack_y(const struct mt_block_stack *stack, uint64_t bytes)
{
    double height = stack->top ? (double)bytes / (double)stack->top * stack->plot.height : 0;

    return stack->plot.y + stack->plot.height - round(fmin(height, stack->plot.height) * 2) / 2;
}

static void fill_columns(struct mt_block_stack *stack)
{
    const struct mt_block_set *set = stack->set;
    uint32_t count = (uint32_t)fmax(1, round(stack->plot.width / stack->column_width)), next = 0;
    uint64_t event = set->begin_event, level = 0;
    const uint64_t *roles = NULL;

    for (uint32_t i = 0; i < count; i++) {
        double x = stack->plot.x + i * stack->column_width;
        double right = i + 1 < count ? x + stack->column_width : HUGE_VAL;

        stack->columns[i] = (struct mt_block_column){x, event, level, roles};
        for (; next < set->bin_count; next++) {
            const struct mt_curve_bin *bin = &set->bins[next];

            if (mt_time_axis_x(&stack->axis, bin->t_ns, bin->event) >= right)
                break;
            if (bin->max > stack->columns[i].allocated)
                stack->columns[i] =
                    (struct mt_block_column){x, bin->event, bin->max, set->levels[next].max};
            event = bin->last_event;
            level = bin->last;
            roles = set->levels[next].last;
        }
    }
    stack->column_count = count;
}

/* Returns the first column whose instant is at or after an event. */
static uint32_t column_from(const struct mt_block_stack *stack, uint64_t event)
{
    uint32_t low = 0;

    MT_BISECT(low, stack->column_count, middle, stack->columns[middle].event < event);
    return low;
}

static int rank_of(enum mt_role role)
{
    int rank = 0;

    while (rank + 1 < MT_ROLE_COUNT && mt_timeline_stack[rank] != role)
        rank++;
    return rank;
}

/* Orders by role, then by allocation, which is the order of the shapes in their array. */
static int by_role(const void *a, const void *b)
{
    const struct mt_block_shape *x = *(const struct mt_block_shape *const *)a;
    const struct mt_block_shape *y = *(const struct mt_block_shape *const *)b;

    if (x->life.role != y->life.role)
        return rank_of(x->life.role) < rank_of(y->life.role) ? -1 : 1;
    return (x > y) - (x < y);
}

static double score(const struct mt_block_stack *stack, const struct mt_block_shape *shape)
{
    uint32_t first = column_from(stack, shape->life.birth_event);
    uint32_t end = column_from(stack, shape->end.event);

    return (double)shape->life.block_bytes * (double)(end - first);
}

/* A range of columns in which both edges of a band are horizontal. */
struct stretch {
    double x, upper, lower;
};

static void end_stretch(struct mt_block_band *band, const struct stretch *stretch, double x)
{
    if (x - stretch->x > band->flat.width)
        band->flat = (struct mt_box){stretch->x, stretch->upper, x - stretch->x,
                                     stretch->lower - stretch->upper};
}

static void add_corner(struct mt_block_band *band, double x, double y)
{
    band->edge[band->edge_count++] = (struct mt_point){x, y};
}

struct scored {
    double score;
    uint32_t index;
};

struct scratch {
    const struct mt_block_shape **shapes; /* in the order of the stack */
    uint32_t shape_count;
    struct scored *scored;
    uint64_t *filled;       /* by column: the bytes below the next block */
    double *upper;          /* by column: the y of `filled` */
    struct mt_point *edges; /* corners of all bands, one after the other */
    uint32_t corners;
};

/* Puts a block on top of the stack. Returns true if any part of the block is visible. */
static bool lay(const struct mt_block_stack *stack, struct mt_block_band *band,
                struct scratch *scratch)
{
    struct stretch stretch = {0, -1, -1};
    bool shows = false;

    band->edge = scratch->edges + scratch->corners;
    for (uint32_t i = band->first; i < band->end; i++) {
        double x = stack->columns[i].x, lower = scratch->upper[i];

        scratch->filled[i] += band->shape->life.block_bytes;
        double upper = scratch->upper[i] = mt_block_stack_y(stack, scratch->filled[i]);
        shows |= upper < lower;
        if (upper == stretch.upper && lower == stretch.lower)
            continue;
        if (band->edge_count && upper != stretch.upper)
            add_corner(band, x, stretch.upper);
        if (!band->edge_count || upper != stretch.upper)
            add_corner(band, x, upper);
        if (i > band->first)
            end_stretch(band, &stretch, x);
        stretch = (struct stretch){x, upper, lower};
    }
    double right = band->end < stack->column_count ? stack->columns[band->end].x
                                                   : stack->plot.x + stack->plot.width;
    end_stretch(band, &stretch, right);
    add_corner(band, right, stretch.upper);
    return shows;
}

/* Places all shapes. Returns false if there are too many corners. */
static bool lay_all(struct mt_block_stack *stack, struct scratch *scratch)
{
    stack->band_count = stack->thin = stack->hidden = scratch->corners = 0;
    for (uint32_t i = 0; i < stack->column_count; i++) {
        scratch->filled[i] = 0;
        scratch->upper[i] = mt_block_stack_y(stack, 0);
    }
    for (uint32_t i = 0; i < scratch->shape_count; i++) {
        struct mt_block_band *band = &stack->bands[stack->band_count];

        *band = (struct mt_block_band){.shape = scratch->shapes[i]};
        band->first = column_from(stack, band->shape->life.birth_event);
        band->end = column_from(stack, band->shape->end.event);
        if (band->first >= band->end) {
            stack->hidden++;
        } else if (lay(stack, band, scratch)) {
            scratch->corners += band->edge_count;
            stack->band_count++;
        } else {
            stack->thin++;
        }
        if (scratch->corners > stack->most_corners)
            return false;
    }
    return true;
}

static void note_rest(struct mt_block_stack *stack, const struct scratch *scratch)
{
    stack->rest_most = 0;
    for (uint32_t i = 0; i < stack->column_count; i++)
        if (stack->columns[i].allocated > scratch->filled[i])
            stack->rest_most =
                mt_max_u64(stack->rest_most, stack->columns[i].allocated - scratch->filled[i]);
    stack->rest_count = stack->set->others + stack->set->block_count - stack->band_count -
                        stack->thin - stack->hidden;
}

/* Returns the bytes of a role in a column that are in no shape. `kept` is the bytes that are in
 * shapes. */
static uint64_t rest_of(const struct mt_block_column *column, int role, uint64_t kept)
{
    uint64_t all = column->roles ? column->roles[role] : 0;

    return all > kept ? all - kept : 0;
}

/* Chooses the roles with the most bytes outside of shapes. Keeps the order of the stack. */
static void choose_rests(struct mt_block_stack *stack, const uint64_t *kept)
{
    uint64_t most[MT_ROLE_COUNT] = {0}, least = stack->top / LEAST_REST;

    for (int role = 0; role < MT_ROLE_COUNT; role++)
        for (uint32_t i = 0; i < stack->column_count; i++)
            most[role] =
                mt_max_u64(most[role], rest_of(&stack->columns[i], role,
                                               kept[(size_t)role * stack->column_count + i]));
    for (int i = 0; i < MT_ROLE_COUNT; i++) {
        enum mt_role role = mt_timeline_stack[i];
        int larger = 0;

        for (int other = 0; other < MT_ROLE_COUNT; other++)
            larger += most[other] > most[role] || (most[other] == most[role] && other < (int)role);
        if (most[role] > least && larger < MT_BLOCK_RESTS)
            stack->rests[stack->rest_roles++] =
                (struct mt_block_rest){.role = role, .most_bytes = most[role]};
    }
}

/* Splits the bytes that are in no shape by role. */
static void split_rest(struct mt_block_stack *stack, const struct scratch *scratch)
{
    struct mt_arena *arena = &stack->drawing->arena;
    size_t columns = stack->column_count;
    uint64_t *kept = mt_arena_array(arena, columns * MT_ROLE_COUNT + 1, sizeof *kept);
    const uint64_t *below = scratch->filled;

    for (uint32_t i = 0; i < scratch->shape_count; i++) {
        const struct mt_block_shape *shape = scratch->shapes[i];
        uint32_t end = column_from(stack, shape->end.event);

        for (uint32_t k = column_from(stack, shape->life.birth_event); k < end; k++)
            kept[shape->life.role * columns + k] += shape->life.block_bytes;
    }
    choose_rests(stack, kept);
    for (uint32_t r = 0; r < stack->rest_roles; r++) {
        struct mt_block_rest *rest = &stack->rests[r];

        rest->upper = mt_arena_array(arena, columns + 1, sizeof *rest->upper);
        for (uint32_t i = 0; rest->upper && i < columns; i++)
            rest->upper[i] = mt_min_u64(stack->columns[i].allocated,
                                        below[i] + rest_of(&stack->columns[i], (int)rest->role,
                                                           kept[rest->role * columns + i]));
        if (!rest->upper) {
            stack->rest_roles = r;
            break;
        }
        below = rest->upper;
    }
    for (uint32_t i = 0; i < columns; i++)
        if (stack->columns[i].allocated > below[i])
            stack->grey_most = mt_max_u64(stack->grey_most, stack->columns[i].allocated - below[i]);
}

MT_DEFINE_ORDER(by_score, struct scored, MT_ASCENDING(score) || MT_ASCENDING(index))

/* Moves the third of the shapes that covers the least area to the rest. */
static void drop_smallest(const struct mt_block_stack *stack, struct scratch *scratch)
{
    uint32_t drop = scratch->shape_count / 3 + 1, kept = 0;

    for (uint32_t i = 0; i < scratch->shape_count; i++)
        scratch->scored[i] = (struct scored){score(stack, scratch->shapes[i]), i};
    qsort(scratch->scored, scratch->shape_count, sizeof *scratch->scored, by_score);
    for (uint32_t i = 0; i < drop; i++)
        scratch->shapes[scratch->scored[i].index] = NULL;
    for (uint32_t i = 0; i < scratch->shape_count; i++)
        if (scratch->shapes[i])
            scratch->shapes[kept++] = scratch->shapes[i];
    scratch->shape_count = kept;
}

static void make_room(struct mt_block_stack *stack, struct scratch *scratch)
{
    struct mt_arena *arena = &stack->drawing->arena;
    size_t columns = (size_t)(stack->plot.width * 2) + 2, shapes = stack->set->block_count;

    stack->columns = mt_arena_array(arena, columns, sizeof *stack->columns);
    stack->bands = mt_arena_array(arena, shapes + 1, sizeof *stack->bands);
    scratch->shapes = mt_arena_array(arena, shapes + 1, sizeof *scratch->shapes);
    scratch->scored = mt_arena_array(arena, shapes + 1, sizeof *scratch->scored);
    scratch->filled = mt_arena_array(arena, columns, sizeof *scratch->filled);
    scratch->upper = mt_arena_array(arena, columns, sizeof *scratch->upper);
    /* One band more than the limit is placed before the overflow is detected. */
    scratch->edges =
        mt_arena_array(arena, stack->most_corners + 2 * columns + 4, sizeof *scratch->edges);
}

void mt_block_stack_build(struct mt_block_stack *stack)
{
    struct scratch scratch = {0};

    make_room(stack, &scratch);
    scratch.shape_count = stack->set->block_count;
    for (uint32_t i = 0; i < scratch.shape_count; i++)
        scratch.shapes[i] = &stack->set->blocks[i];
    qsort(scratch.shapes, scratch.shape_count, sizeof *scratch.shapes, by_role);
    stack->column_width = 0.5;
    fill_columns(stack);
    while (!lay_all(stack, &scratch)) {
        if (stack->column_width < WIDEST_COLUMN) {
            stack->column_width *= 2;
            fill_columns(stack);
        } else {
            drop_smallest(stack, &scratch);
        }
    }
    note_rest(stack, &scratch);
    split_rest(stack, &scratch);
}

static const char *allocated(const struct mt_block_stack *stack, const struct mt_block_shape *shape)
{
    const struct mt_report *report = stack->report;
    int64_t step = shape->life.phase >= 0 && (uint32_t)shape->life.phase < report->phase_count
                       ? report->phases[shape->life.phase].step
                       : MT_NO_STEP;
    const char *where = mt_chart_frame_where(stack->drawing, report, shape->life.phase, step);

    if (shape->life.initial)
        return "allocated before recording started";
    return mt_arena_printf(
        &stack->drawing->arena, "allocated%s%s at %s", *where ? " in " : "", where,
        mt_chart_frame_at(stack->drawing, report, shape->life.birth_t_ns, shape->life.birth_event));
}

static const char *ended(const struct mt_block_stack *stack, const struct mt_block_shape *shape)
{
    char life[MT_UNITS_TEXT];

    if (shape->end.event == UINT64_MAX)
        return "still allocated at the end";
    const char *at =
        mt_chart_frame_at(stack->drawing, stack->report, shape->end.t_ns, shape->end.event);
    if (!mt_report_has_times(stack->report))
        return mt_arena_printf(&stack->drawing->arena, "freed at %s", at);
    return mt_arena_printf(&stack->drawing->arena, "freed at %s, %s%s", at,
                           shape->life.initial ? "at least " : "after ",
                           mt_format_duration(life, shape->end.t_ns - shape->life.birth_t_ns));
}

/* Returns the site and the operation: "forward train.py:44, by embedding functional.py:2567". */
static const char *origin(const struct mt_block_stack *stack, const struct mt_block_shape *shape)
{
    const char *site = mt_chart_frame_short(stack->drawing, shape->site ? shape->site : "", 160);

    if (!shape->operation)
        return site;
    return mt_arena_printf(&stack->drawing->arena, "%s, by %s", site,
                           mt_chart_frame_short(stack->drawing, shape->operation, 80));
}

/* Returns short hover text, for a block whose key lets a script find the other facts. */
static const char *short_title(const struct mt_block_stack *stack,
                               const struct mt_block_shape *shape)
{
    char size[MT_UNITS_TEXT];

    return mt_arena_printf(&stack->drawing->arena, "%s, %s\n%s",
                           mt_format_bytes(size, shape->life.block_bytes),
                           mt_role_name(shape->life.role), origin(stack, shape));
}

static const char *title_of(const struct mt_block_stack *stack, const struct mt_block_shape *shape)
{
    char size[MT_UNITS_TEXT], exact[MT_UNITS_TEXT], asked[MT_UNITS_TEXT];

    if (stack->keyed)
        return short_title(stack, shape);
    mt_format_count(asked, shape->life.requested_bytes);
    return mt_arena_printf(
        &stack->drawing->arena, "%s (%s B%s%s%s)\n%s\n%s, %s\n%s",
        mt_format_bytes(size, shape->life.block_bytes),
        mt_format_count(exact, shape->life.block_bytes),
        shape->life.requested_bytes == shape->life.block_bytes ? "" : ", requested ",
        shape->life.requested_bytes == shape->life.block_bytes ? "" : asked,
        shape->life.requested_bytes == shape->life.block_bytes ? "" : " B", origin(stack, shape),
        mt_role_name(shape->life.role), allocated(stack, shape), ended(stack, shape));
}

uint8_t mt_block_shade(const struct mt_block_shape *shape)
{
    return (uint8_t)(mt_mix_u64(shape->life.birth_event) >> 7 & 3);
}

static void draw_band(const struct mt_block_stack *stack, const struct mt_block_band *band,
                      struct mt_point *points)
{
    double base = stack->plot.y + stack->plot.height;
    uint32_t count = band->edge_count;
    struct mt_paint paint = {.fill = mt_role_color(band->shape->life.role),
                             .shade = mt_block_shade(band->shape)};

    if (band->flat.height >= 4) {
        paint.stroke = MT_COLOR_BACKGROUND;
        paint.stroke_width = 0.5;
    }
    for (uint32_t i = 0; i < count; i++)
        points[i] = band->edge[i];
    points[count] = (struct mt_point){band->edge[count - 1].x, base};
    points[count + 1] = (struct mt_point){band->edge[0].x, base};
    mt_draw_path(stack->drawing, points, count + 2, true, true, &paint,
                 title_of(stack, band->shape), "block");
    if (stack->keyed)
        mt_draw_key(stack->drawing, mt_block_key(&stack->drawing->arena, band->shape));
}

/* Traces the upper edge of levels by column, or of the whole stack if `levels` is NULL. Returns the
 * number of points. */
static uint32_t trace(const struct mt_block_stack *stack, const uint64_t *levels,
                      struct mt_point *points)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < stack->column_count; i++) {
        double y = mt_block_stack_y(stack, levels ? levels[i] : stack->columns[i].allocated);

        if (count && points[count - 1].y == y)
            continue;
        if (count) {
            points[count] = (struct mt_point){stack->columns[i].x, points[count - 1].y};
            count++;
        }
        points[count++] = (struct mt_point){stack->columns[i].x, y};
    }
    points[count] = (struct mt_point){stack->plot.x + stack->plot.width, points[count - 1].y};
    return count + 1;
}

static struct mt_point *points_for(const struct mt_block_stack *stack)
{
    size_t most = 2 * (size_t)stack->column_count + 8;
    struct mt_point *points = mt_arena_array(&stack->drawing->arena, most, sizeof *points);

    return points;
}

static void draw_rest(const struct mt_block_stack *stack, struct mt_point *points)
{
    const struct mt_paint paint = {.fill = MT_COLOR_UNUSED};
    double base = stack->plot.y + stack->plot.height;
    char most[MT_UNITS_TEXT], count[MT_UNITS_TEXT];
    uint32_t used = trace(stack, NULL, points);

    points[used] = (struct mt_point){points[used - 1].x, base};
    points[used + 1] = (struct mt_point){points[0].x, base};
    mt_draw_path(stack->drawing, points, used + 2, true, true, &paint,
                 mt_arena_printf(&stack->drawing->arena, "small blocks, summed: %s, at most %s",
                                 mt_format_count(count, stack->rest_count),
                                 mt_format_bytes(most, stack->rest_most)),
                 "rest");
}

static void draw_rest_of_role(const struct mt_block_stack *stack, const struct mt_block_rest *rest,
                              struct mt_point *points)
{
    const struct mt_paint paint = {.fill = mt_role_color(rest->role), .tint = MT_BLOCK_REST_TINT};
    double base = stack->plot.y + stack->plot.height;
    uint32_t used = trace(stack, rest->upper, points);
    char most[MT_UNITS_TEXT];

    points[used] = (struct mt_point){points[used - 1].x, base};
    points[used + 1] = (struct mt_point){points[0].x, base};
    mt_draw_path(stack->drawing, points, used + 2, true, true, &paint,
                 mt_arena_printf(&stack->drawing->arena, "small blocks, summed: %s, at most %s",
                                 mt_role_name(rest->role), mt_format_bytes(most, rest->most_bytes)),
                 "rest-of-role");
}

void mt_block_stack_draw(const struct mt_block_stack *stack)
{
    struct mt_point *points = points_for(stack);

    if (stack->grey_most)
        draw_rest(stack, points);
    for (uint32_t i = stack->rest_roles; i > 0; i--)
        draw_rest_of_role(stack, &stack->rests[i - 1], points);
    for (uint32_t i = stack->band_count; i > 0; i--)
        draw_band(stack, &stack->bands[i - 1], points);
}

void mt_block_stack_outline(const struct mt_block_stack *stack)
{
    struct mt_paint line = {.stroke = MT_COLOR_RESERVED, .stroke_width = 1.2};
    struct mt_point *points = points_for(stack);
    uint32_t count = trace(stack, NULL, points);

    /* A line that moves in every column would hide everything else. */
    if (count > stack->column_count)
        line.stroke_width = 0.4;
    mt_draw_path(stack->drawing, points, count, false, true, &line, NULL, "outline");
}
