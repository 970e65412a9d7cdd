/* The blocks of an icicle, at an instant or over a whole run, and functions that its parts
 * share. */
#include "icicle_view.h"

#include "chart_frame.h"
#include "report_query.h"
#include "units.h"

static const char *said(const char *text)
{
    return text ? text : "";
}

static const char *when(struct mt_drawing *drawing, const struct mt_report *report,
                        const struct mt_instant *instant)
{
    const char *where = mt_chart_frame_where(drawing, report, instant->phase, instant->step);
    char event[MT_UNITS_TEXT];

    if (!mt_report_has_times(report))
        return said(mt_arena_printf(&drawing->arena, "at event %s%s%s",
                                    mt_format_count(event, instant->event), *where ? ", " : "",
                                    where));
    return said(mt_arena_printf(&drawing->arena, "at t = %s%s%s",
                                mt_chart_frame_when(drawing, report, instant->t_ns),
                                *where ? ", " : "", where));
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
        return said(mt_arena_printf(&drawing->arena, "what holds memory at %s",
                                    mt_format_duration(text, answer->question->value)));
    case MT_AT_EVENT:
        return said(mt_arena_printf(&drawing->arena, "what holds memory after event %s",
                                    mt_format_count(text, answer->question->value)));
    case MT_AT_PHASE:
        return said(mt_arena_printf(&drawing->arena, "what holds memory at the peak of %s",
                                    answer->selected_phase == MT_NO_PHASE
                                        ? answer->question->phase
                                        : report->phases[answer->selected_phase].path));
    }
    return "what holds memory at the peak";
}

static void fill_instant(struct mt_drawing *drawing, const struct mt_report *report,
                         const struct mt_device_report *device, enum mt_weigh weigh,
                         struct mt_icicle_subject *subject)
{
    const struct mt_answer *answer = device ? device->answer : NULL;
    const struct mt_instant *instant = device && device->instant_count ? device->instants : NULL;

    if (answer)
        instant = answer->missing ? NULL : &answer->instant;
    subject->title = instant_title(drawing, report, answer);
    subject->verb = "live";
    subject->heading = "Largest holders";
    subject->share = answer && answer->question->at != MT_AT_PEAK ? "of all" : "of peak";
    if (weigh != MT_WEIGH_ALLOCATED)
        subject->root = weigh == MT_WEIGH_COUNT ? "live" : "requested";
    else
        subject->root =
            answer && answer->question->at != MT_AT_PEAK ? "allocated" : "peak allocated";
    subject->why_nothing = device ? "No block was allocated" : "No allocator events";
    subject->about_nothing = "There are no blocks to show.";
    if (!instant)
        return;
    subject->holdings = instant->holdings;
    subject->holding_count = instant->holding_count;
    subject->facts = when(drawing, report, instant);
}

static const char *steps_text(struct mt_drawing *drawing, const struct mt_population *population)
{
    long long first = (long long)population->first_step, last = (long long)population->last_step;

    if (first == last)
        return said(mt_arena_printf(&drawing->arena, "step %lld", first));
    return said(mt_arena_printf(&drawing->arena, "steps %lld to %lld", first, last));
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

        subject->title = said(mt_arena_printf(&drawing->arena, "what allocated in %s", path));
        subject->facts = said(mt_arena_printf(&drawing->arena, "in %s", path));
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
    subject->facts = said(mt_arena_printf(&drawing->arena, "by %s, still there in the last step",
                                          steps_text(drawing, population)));
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
    subject->title = said(mt_arena_printf(&drawing->arena, "what %s keeps for the next",
                                          steps_text(drawing, population)));
    subject->facts = said(mt_arena_printf(&drawing->arena, "from %s until the next begins",
                                          steps_text(drawing, population)));
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
    case MT_NODE_TIED: return MT_ENGINE_COLOR;
    case MT_NODE_BLOCKS: return mt_role_color(node->role);
    case MT_NODE_FRAME: break;
    }
    return MT_COLOR_ORIGIN_0 + (unsigned)mt_frame_origin(view->symbols, node->frame);
}

const char *mt_icicle_exact(const struct mt_icicle_view *view, uint64_t weight)
{
    char text[MT_UNITS_TEXT], exact[MT_UNITS_TEXT];
    const char *said;

    mt_weigh_format(text, view->icicle->weigh, weight);
    said = view->icicle->weigh == MT_WEIGH_COUNT
               ? mt_arena_printf(&view->drawing->arena, "%s", text)
               : mt_arena_printf(&view->drawing->arena, "%s (%s B)", text,
                                 mt_format_count(exact, weight));
    return said;
}
