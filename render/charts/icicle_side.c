/* The parts around the cells of an icicle: ruler, legend, and the table of the largest holders. */
#include <stdlib.h>
#include <string.h>

#include "chart_frame.h"
#include "icicle.h"
#include "icicle_view.h"
#include "report_query.h"
#include "site.h"
#include "sorted.h"
#include "units.h"
#include "util.h"

/* The blocks of an icicle, at an instant or over a whole run, and functions that its parts
 * share. */

#define ENGINE_COLOR ((enum mt_color)(MT_COLOR_ORIGIN_0 + (int)MT_ORIGIN_ENGINE))
#define USER_COLOR   ((enum mt_color)(MT_COLOR_ORIGIN_0 + (int)MT_ORIGIN_USER))

static const char *when(struct mt_drawing *drawing, const struct mt_report *report,
                        const struct mt_instant *instant)
{
    const char *where = mt_chart_frame_where(drawing, report, instant->phase, instant->step);
    char event[MT_UNITS_TEXT];

    if (!mt_report_has_times(report))
        return mt_arena_printf(&drawing->arena, "at event %s%s%s",
                               mt_format_count(event, instant->event), *where ? ", " : "", where);
    return mt_arena_printf(&drawing->arena, "at t = %s%s%s",
                           mt_chart_frame_when(drawing, report, instant->t_ns), *where ? ", " : "",
                           where);
}

static const char *instant_title(struct mt_drawing *drawing, const struct mt_report *report,
                                 const struct mt_answer *answer)
{
    char text[MT_UNITS_TEXT];

    switch (answer ? answer->question->at : MT_AT_PEAK) {
    case MT_AT_PEAK: break;
    case MT_AT_RESERVED_PEAK: return "what holds memory at the reserved peak";
    case MT_AT_OOM: return "what holds memory when it ran out";
    case MT_AT_END: return "what holds memory at the end";
    case MT_AT_TIME:
        return mt_arena_printf(&drawing->arena, "what holds memory at %s",
                               mt_format_duration(text, answer->question->value));
    case MT_AT_EVENT:
        return mt_arena_printf(&drawing->arena, "what holds memory after event %s",
                               mt_format_count(text, answer->question->value));
    case MT_AT_PHASE:
        return mt_arena_printf(&drawing->arena, "what holds memory at the peak of %s",
                               answer->selected_phase == MT_NO_PHASE
                                   ? answer->question->phase
                                   : report->phases[answer->selected_phase].path);
    }
    return "what holds memory at the peak";
}

static void fill_instant(struct mt_drawing *drawing, const struct mt_report *report,
                         const struct mt_device_report *device, enum mt_weigh weigh,
                         struct mt_icicle_subject *subject)
{
    const struct mt_answer *answer = device ? device->answer : NULL;
    const struct mt_instant *instant = device && device->instant_count ? device->instants : NULL;
    bool has_peak = device && !mt_lacks_history(report, device);

    if (answer)
        instant = answer->missing ? NULL : &answer->instant;
    subject->title = instant_title(drawing, report, answer);
    if (device && mt_lacks_history(report, device))
        subject->title = "what holds memory in the snapshot";
    subject->verb = "live";
    subject->heading = "Largest holders";
    has_peak &= !answer || answer->question->at == MT_AT_PEAK;
    subject->share = has_peak ? "of peak" : "of all";
    if (weigh != MT_WEIGH_ALLOCATED)
        subject->root = weigh == MT_WEIGH_COUNT ? "live" : "requested";
    else
        subject->root = has_peak ? "peak allocated" : "allocated";
    subject->why_nothing = device ? "No block was allocated" : "No allocator events";
    subject->about_nothing = "There are no blocks to show.";
    if (!instant)
        return;
    subject->holdings = instant->holdings;
    subject->holding_count = instant->holding_count;
    subject->facts = device && mt_lacks_history(report, device) ? "at one instant"
                                                                : when(drawing, report, instant);
}

static const char *steps_text(struct mt_drawing *drawing, const struct mt_population *population)
{
    long long first = (long long)population->first_step, last = (long long)population->last_step;

    if (first == last)
        return mt_arena_printf(&drawing->arena, "step %lld", first);
    return mt_arena_printf(&drawing->arena, "steps %lld to %lld", first, last);
}

static void fill_allocated(struct mt_drawing *drawing, const struct mt_report *report,
                           const struct mt_population *population,
                           struct mt_icicle_subject *subject)
{
    subject->verb = "allocated";
    subject->root = "total allocated";
    subject->title = "what allocated, including what was freed";
    subject->facts = "in the whole run";
    subject->why_nothing = population->missing ? "No such phase or step" : "Nothing was allocated";
    if (population->phase != MT_NO_PHASE) {
        const char *path = report->phases[population->phase].path;

        subject->title = mt_arena_printf(&drawing->arena, "what allocated in %s", path);
        subject->facts = mt_arena_printf(&drawing->arena, "in %s", path);
    }
}

static void fill_grew(struct mt_drawing *drawing, const struct mt_population *population,
                      struct mt_icicle_subject *subject)
{
    subject->verb = "left behind";
    subject->root = "left behind";
    subject->title = "what steps leave behind";
    subject->why_nothing = population->missing ? "Not enough steps" : "Nothing grew";
    subject->about_nothing =
        population->missing
            ? "Growth needs at least five steps: two warm up, and the last two may still free "
              "memory."
            : "Everything allocated after the warm-up was freed before the last step began.";
    subject->facts = mt_arena_printf(&drawing->arena, "by %s, still there in the last step",
                                     steps_text(drawing, population));
}

static void fill_kept(struct mt_drawing *drawing, const struct mt_population *population,
                      struct mt_icicle_subject *subject)
{
    subject->verb = "kept";
    subject->root = "kept";
    subject->title = "what a step keeps";
    subject->why_nothing = population->missing ? "No such step" : "The step keeps nothing";
    subject->about_nothing = population->missing
                                 ? "Only a step that another step follows can keep memory."
                                 : "Everything it allocated was freed before the next step began.";
    if (population->missing)
        return;
    subject->title = mt_arena_printf(&drawing->arena, "what %s keeps for the next",
                                     steps_text(drawing, population));
    subject->facts = mt_arena_printf(&drawing->arena, "from %s until the next begins",
                                     steps_text(drawing, population));
}

struct mt_icicle_subject mt_icicle_subject(struct mt_drawing *drawing,
                                           const struct mt_report *report,
                                           const struct mt_device_report *device,
                                           enum mt_weigh weigh)
{
    const struct mt_population *population = device ? device->population : NULL;
    struct mt_icicle_subject subject = {
        .facts = "", .about_nothing = "", .heading = "Largest groups", .share = "of all"};

    if (!population) {
        fill_instant(drawing, report, device, weigh, &subject);
        return subject;
    }
    switch (population->of) {
    case MT_POPULATION_ALLOCATED: fill_allocated(drawing, report, population, &subject); break;
    case MT_POPULATION_GREW: fill_grew(drawing, population, &subject); break;
    case MT_POPULATION_KEPT: fill_kept(drawing, population, &subject); break;
    }
    if (!population->missing) {
        subject.holdings = population->holdings;
        subject.holding_count = population->holding_count;
    }
    return subject;
}

double mt_icicle_pixels(const struct mt_icicle_view *view, uint64_t weight)
{
    return (double)weight * view->scale;
}

enum mt_color mt_icicle_color(const struct mt_icicle_view *view, const struct mt_node *node)
{
    switch (node->kind) {
    case MT_NODE_ROOT: return MT_COLOR_ROOT;
    case MT_NODE_NO_STACK:
    case MT_NODE_TIED: return ENGINE_COLOR;
    case MT_NODE_BLOCKS: return mt_role_color(node->role);
    case MT_NODE_FRAME: break;
    }
    return MT_COLOR_ORIGIN_0 + (unsigned)mt_frame_origin(view->symbols, node->frame);
}

const char *mt_icicle_exact(const struct mt_icicle_view *view, uint64_t weight)
{
    char text[MT_UNITS_TEXT], exact[MT_UNITS_TEXT];

    mt_weigh_format(text, view->icicle->weigh, weight);
    return view->icicle->weigh == MT_WEIGH_COUNT
               ? mt_arena_printf(&view->drawing->arena, "%s", text)
               : mt_arena_printf(&view->drawing->arena, "%s (%s B)", text,
                                 mt_format_count(exact, weight));
}

#define LEGEND_PITCH 21.0
#define MIN_PATH     110.0 /* pixels; a shorter list of callers is not readable */

static void draw_tick(const struct mt_icicle_view *view, double y, uint64_t weight,
                      const char *label)
{
    const struct mt_paint tick = {.stroke = MT_COLOR_AXIS};
    double x = view->x + mt_icicle_pixels(view, weight);

    mt_draw_line(view->drawing, x, y - 5, x, y + 4, &tick);
    mt_chart_frame_text(view->drawing, x - 5, y - 5, label, MT_SIZE_SMALL, MT_REGULAR,
                        MT_COLOR_MUTED, MT_ANCHOR_END, "tick-x");
}

void mt_icicle_draw_ruler(const struct mt_icicle_view *view, double y)
{
    const struct mt_paint line = {.stroke = MT_COLOR_GRID};
    uint64_t total = view->icicle->nodes[0].weight;
    size_t most = view->width < 900 ? 6 : 9;
    struct mt_ticks ticks;
    char label[MT_UNITS_TEXT];

    mt_draw_line(view->drawing, view->x, y, view->x + view->width, y, &line);
    if (view->icicle->weigh == MT_WEIGH_COUNT) {
        uint64_t step = mt_scale_count_step((double)total / (double)most);
        for (uint64_t at = step; at <= total && at >= step; at += step)
            draw_tick(view, y, at, mt_format_count(label, at));
        return;
    }
    mt_byte_ticks(&ticks, total, total, most);
    for (size_t i = 1; i < ticks.count; i++)
        draw_tick(view, y, ticks.ticks[i].value, ticks.ticks[i].label);
}

struct legend {
    struct mt_swatch origins[MT_ORIGIN_COUNT], roles[MT_ROLE_COUNT];
    size_t origin_count, role_count;
};

static void collect_legend(const struct mt_icicle_view *view, struct legend *legend)
{
    bool has_origin[MT_ORIGIN_COUNT] = {false}, has_role[MT_ROLE_COUNT] = {false};
    bool has_engine = false;

    memset(legend, 0, sizeof *legend);
    for (uint32_t i = 1; i < view->icicle->count; i++) {
        const struct mt_node *node = &view->icicle->nodes[i];

        if (node->kind == MT_NODE_BLOCKS)
            has_role[node->role] = true;
        else
            has_origin[mt_icicle_color(view, node) - MT_COLOR_ORIGIN_0] = true;
        has_engine |= node->is_engine ||
                      (node->kind == MT_NODE_FRAME && mt_icicle_color(view, node) == ENGINE_COLOR);
    }
    for (unsigned i = 0; i < MT_ORIGIN_COUNT; i++)
        if (has_origin[i])
            legend->origins[legend->origin_count++] = (struct mt_swatch){
                i == MT_ORIGIN_ENGINE && !has_engine ? "no stack recorded"
                                                     : mt_origin_name((enum mt_origin)i),
                MT_COLOR_ORIGIN_0 + i};
    for (unsigned i = 0; i < MT_ROLE_COUNT; i++)
        if (has_role[i])
            legend->roles[legend->role_count++] =
                (struct mt_swatch){mt_role_title((enum mt_role)i), mt_role_color((enum mt_role)i)};
}

static double swatch_width(const struct mt_swatch *swatch)
{
    return 37 + 1.05 * mt_text_width(swatch->text, 12.5, MT_REGULAR);
}

static double heading_width(const char *heading)
{
    return 1.05 * mt_text_width(heading, 12.5, MT_REGULAR) + 12;
}

static double legend_width(const char *heading, const struct mt_swatch *swatches, size_t count)
{
    double width = heading_width(heading);

    for (size_t i = 0; i < count; i++)
        width += swatch_width(&swatches[i]);
    return width;
}

/* Draws a heading and its swatches from (x, *y), in as many lines as necessary, and sets *y to the
 * last baseline. Returns the x after the last swatch. */
static double draw_legend_part(const struct mt_icicle_view *view, double x, double *y,
                               const char *heading, const struct mt_swatch *swatches, size_t count)
{
    double left = x + heading_width(heading), right = view->x + view->width;

    mt_chart_frame_text(view->drawing, x, *y, heading, 12.5, MT_REGULAR, MT_COLOR_FAINT,
                        MT_ANCHOR_START, "legend-heading");
    x = left;
    for (size_t i = 0; i < count; i++) {
        if (i && x + swatch_width(&swatches[i]) - 20 > right) {
            *y += LEGEND_PITCH;
            x = left;
        }
        x = mt_chart_frame_swatches(view->drawing, x, *y, right, &swatches[i], 1);
    }
    return x;
}

double mt_icicle_draw_legend(const struct mt_icicle_view *view, double y)
{
    struct legend legend;
    double x = view->x;

    collect_legend(view, &legend);
    double first = legend_width("call stack", legend.origins, legend.origin_count);
    double second = legend_width("blocks", legend.roles, legend.role_count);
    y += 14;
    if (legend.origin_count)
        x = draw_legend_part(view, x, &y, "call stack", legend.origins, legend.origin_count) + 12;
    if (legend.origin_count && first + second + 12 > view->width) {
        x = view->x;
        y += LEGEND_PITCH;
    }
    draw_legend_part(view, x, &y, "blocks", legend.roles, legend.role_count);
    return y + 10;
}

/* The node decides last, as in the picture. */
MT_DEFINE_ORDER(compare_holders, struct mt_icicle_holder,
                MT_DESCENDING(weight) || MT_ASCENDING(node))

/* Returns the role with the most bytes below a node. */
static enum mt_role role_below(const struct mt_icicle *icicle, const struct mt_node *node)
{
    uint64_t bytes[MT_ROLE_COUNT] = {0};
    unsigned best = 0;

    for (const struct mt_node *at = node; at < icicle->nodes + node->end; at++)
        if (at->kind == MT_NODE_BLOCKS)
            bytes[at->role] += at->bytes;
    for (unsigned role = 1; role < MT_ROLE_COUNT; role++)
        if (bytes[role] > bytes[best])
            best = role;
    return (enum mt_role)best;
}

struct mt_icicle_holder *mt_icicle_find_holders(const struct mt_icicle_view *view, size_t *count)
{
    const struct mt_icicle *icicle = view->icicle;
    struct mt_icicle_holder *holders =
        mt_arena_array(&view->drawing->arena, icicle->count, sizeof *holders);

    *count = 0;
    for (uint32_t i = 1; i < icicle->count; i++) {
        const struct mt_node *node = &icicle->nodes[i];

        if (view->reversed && node->depth == 1)
            holders[(*count)++] = (struct mt_icicle_holder){node, node->weight, node->blocks,
                                                            role_below(icicle, node)};
        else if (!view->reversed && node->own_weight)
            holders[(*count)++] =
                (struct mt_icicle_holder){node, node->own_weight, node->own_blocks, node->role};
    }
    if (*count)
        qsort(holders, *count, sizeof *holders, compare_holders);
    return holders;
}

/* Returns " train.py:58", the innermost user frame around a node that is not the user's. The frame
 * distinguishes two calls of one function. */
static const char *user_line(const struct mt_icicle_view *view, const struct mt_node *node,
                             uint32_t caller)
{
    const struct mt_node *nodes = view->icicle->nodes;

    if (mt_icicle_color(view, &nodes[caller]) != USER_COLOR ||
        mt_icicle_color(view, node) == USER_COLOR)
        return "";
    for (uint32_t i = node->parent; i != caller; i = nodes[i].parent)
        if (mt_icicle_color(view, &nodes[i]) == USER_COLOR)
            return "";
    return mt_arena_printf(
        &view->drawing->arena, " %s",
        mt_frame_position(&view->drawing->arena, view->symbols, nodes[caller].frame));
}

/* Returns the callers, outermost first: "in <module> › main › train". */
static const char *path_text(const struct mt_icicle_view *view, const struct mt_node *node)
{
    struct mt_arena *arena = &view->drawing->arena;
    const struct mt_node *nodes = view->icicle->nodes;
    const char *path = "";

    if (node->kind == MT_NODE_NO_STACK)
        return node->is_engine ? "no Python stack, allocated in backward" : "";
    for (uint32_t i = node->parent; i; i = nodes[i].parent) {
        const char *name = nodes[i].kind == MT_NODE_FRAME
                               ? mt_frame_function(arena, view->symbols, nodes[i].frame)
                               : mt_node_label(arena, view->symbols, &nodes[i]);
        path = mt_arena_printf(arena, "%s%s%s%s", name, user_line(view, node, i),
                               *path ? " › " : "", path);
    }
    return *path ? mt_arena_printf(arena, "in %s", path) : path;
}

struct columns {
    double bytes, share, blocks, role, role_width;
};

static struct columns table_columns(const struct mt_icicle_view *view)
{
    double right = view->x + view->width;
    struct columns columns = {.role_width = 104, .role = right - 118};

    columns.blocks = columns.role - 22;
    columns.share = columns.blocks - 62;
    columns.bytes = columns.share - 74;
    return columns;
}

static void draw_holder(const struct mt_icicle_view *view, const struct mt_icicle_holder *holder,
                        double y)
{
    struct mt_drawing *drawing = view->drawing;
    struct columns columns = table_columns(view);
    struct mt_paint swatch = {.fill = mt_role_color(holder->role), .radius = 2};
    double room = columns.bytes - 76 - view->x;
    char text[MT_UNITS_TEXT];
    const char *label = mt_node_label(&drawing->arena, view->symbols, holder->node);

    label = mt_text_fit(drawing, label, 13, MT_SEMIBOLD, room, true);
    double used = 1.06 * mt_chart_frame_text(drawing, view->x, y, label, 13, MT_SEMIBOLD,
                                             MT_COLOR_TEXT, MT_ANCHOR_START, "holder-name");
    const char *path = path_text(view, holder->node);
    if (mt_text_room(path, MT_SIZE_SMALL, MT_REGULAR) > room - used - 12)
        path = room - used - 12 < MIN_PATH
                   ? ""
                   : mt_text_fit(drawing, path, MT_SIZE_SMALL, MT_REGULAR, room - used - 12, true);
    if (*path)
        mt_chart_frame_text(drawing, view->x + used + 12, y, path, MT_SIZE_SMALL, MT_REGULAR,
                            MT_COLOR_MUTED, MT_ANCHOR_START, "holder-path");
    if (view->icicle->weigh == MT_WEIGH_COUNT) /* the last column already shows it */
        mt_format_bytes(text, view->reversed ? holder->node->bytes : holder->node->own_bytes);
    else
        mt_format_bytes(text, holder->weight);
    mt_chart_frame_text(drawing, columns.bytes, y, text, 13, MT_SEMIBOLD, MT_COLOR_TEXT,
                        MT_ANCHOR_END, "holder-bytes");
    mt_format_percent(text, (double)holder->weight / (double)view->icicle->nodes[0].weight);
    mt_chart_frame_text(drawing, columns.share, y, text, 13, MT_REGULAR, MT_COLOR_MUTED,
                        MT_ANCHOR_END, "holder-share");
    mt_chart_frame_text(drawing, columns.blocks, y, mt_format_count(text, holder->blocks), 13,
                        MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_END, "holder-blocks");
    mt_draw_rect(drawing, columns.role, y - 10, 11, 11, &swatch, NULL, "swatch");
    mt_chart_frame_text(drawing, columns.role + 17, y, mt_role_title(holder->role), MT_SIZE_SMALL,
                        MT_REGULAR, MT_COLOR_MUTED, MT_ANCHOR_START, "holder-role");
}

void mt_icicle_draw_table(const struct mt_icicle_view *view, double y, size_t most)
{
    const char *const headings[] = {view->icicle->weigh == MT_WEIGH_REQUESTED ? "requested"
                                                                              : "bytes",
                                    view->subject->share, "blocks"};
    const struct mt_paint line = {.stroke = MT_COLOR_GRID};
    struct columns columns = table_columns(view);
    const double ends[] = {columns.bytes, columns.share, columns.blocks};

    mt_chart_frame_text(view->drawing, view->x, y, view->subject->heading, 14, MT_SEMIBOLD,
                        MT_COLOR_TEXT, MT_ANCHOR_START, "heading");
    for (size_t i = 0; i < MT_ARRAY_LEN(headings); i++)
        mt_chart_frame_text(view->drawing, ends[i], y, headings[i], MT_SIZE_SMALL, MT_REGULAR,
                            MT_COLOR_FAINT, MT_ANCHOR_END, "heading");
    mt_chart_frame_text(view->drawing, columns.role, y, "mostly", MT_SIZE_SMALL, MT_REGULAR,
                        MT_COLOR_FAINT, MT_ANCHOR_START, "heading");
    for (size_t i = 0; i < most; i++) {
        double rule = y + 7;

        mt_draw_line(view->drawing, view->x, rule, view->x + view->width, rule, &line);
        y += MT_TABLE_PITCH;
        draw_holder(view, &view->holders[i], y);
    }
}
