#include "schedule.h"

#include "analysis.h"
#include "check.h"

#include <string.h>

static bool receives_events(const struct mt_pass *pass)
{
    return pass->batch || pass->drive;
}

static bool pass_is_sound(const struct mt_pass *pass, const char **why)
{
    MT_SOUND(why, pass->name && *pass->name);
    MT_SOUND(why, pass->gives);
    MT_SOUND(why, !(pass->needs & pass->gives));
    MT_SOUND(why, pass->begin || receives_events(pass));
    MT_SOUND(why, !pass->batch || !pass->drive);
    MT_SOUND(why, receives_events(pass) || !pass->hears_all_heaps);
    /* a replay reads what is in view */
    MT_SOUND(why, !pass->drive || !pass->hears_all_heaps);
    return true;
}

bool mt_schedule_is_sound(const struct mt_pass *passes, size_t count, const char **why)
{
    unsigned known = 0;

    MT_SOUND(why, count > 0 && count <= MT_MAX_PASSES);
    for (size_t i = 0; i < count; i++) {
        if (!pass_is_sound(&passes[i], why))
            return false;
        for (size_t j = 0; j < i; j++)
            MT_SOUND(why, strcmp(passes[i].name, passes[j].name) != 0);
        MT_SOUND(why, !(passes[i].needs & ~known)); /* no pass before it has this result */
        MT_SOUND(why, !(passes[i].gives & known));  /* two passes have the same result */
        known |= passes[i].gives;
    }
    return true;
}

struct schedule {
    const struct mt_pass *passes;
    size_t count;
    struct mt_analysis *analysis;
    unsigned known;
    bool done[MT_MAX_PASSES];
    const struct mt_pass *group[MT_MAX_PASSES]; /* that share the next pass over the source */
    size_t group_count;
};

static bool can_begin(const struct schedule *schedule, const struct mt_pass *pass)
{
    return !schedule->done[pass - schedule->passes] && !(pass->needs & ~schedule->known);
}

static void finish(struct schedule *schedule, const struct mt_pass *pass)
{
    MT_ASSERT(!(schedule->known & pass->gives));
    schedule->done[pass - schedule->passes] = true;
    schedule->known |= pass->gives;
}

/* Completes the passes that are not wanted. Their results may let others begin, including others
 * that are not wanted. */
static void drop_unwanted(struct schedule *schedule)
{
    for (size_t i = 0; i < schedule->count; i++) {
        const struct mt_pass *pass = &schedule->passes[i];

        if (can_begin(schedule, pass) && pass->is_wanted && !pass->is_wanted(schedule->analysis))
            finish(schedule, pass);
    }
}

/* NULL = none. */
static const struct mt_pass *next_pass(const struct schedule *schedule, bool with_events)
{
    for (size_t i = 0; i < schedule->count; i++)
        if (can_begin(schedule, &schedule->passes[i]) &&
            receives_events(&schedule->passes[i]) == with_events)
            return &schedule->passes[i];
    return NULL;
}

static enum mt_status begin_pass(struct schedule *schedule, const struct mt_pass *pass)
{
    MT_ASSERT(!(pass->needs & ~schedule->known));
    return pass->begin ? pass->begin(schedule->analysis) : MT_OK;
}

static void end_pass(struct schedule *schedule, const struct mt_pass *pass)
{
    struct mt_analysis *analysis = schedule->analysis;

    if (pass->end)
        pass->end(analysis);
    if (pass->memory_bytes)
        mt_readings_hold(&analysis->readings, pass->memory_bytes(analysis));
    finish(schedule, pass);
}

static enum mt_status run_alone(struct schedule *schedule, const struct mt_pass *pass)
{
    struct mt_readings *readings = &schedule->analysis->readings;
    uint32_t outer = mt_readings_enter(readings, pass->name);
    enum mt_status status = begin_pass(schedule, pass);

    if (status == MT_OK)
        end_pass(schedule, pass);
    mt_readings_leave(readings, outer);
    return status;
}

/* `first` and the passes that can share its pass over the source. */
static const struct mt_pass *choose_group(struct schedule *schedule, const struct mt_pass *first)
{
    const struct mt_pass *driver = NULL;

    schedule->group_count = 0;
    for (size_t i = 0; i < schedule->count; i++) {
        const struct mt_pass *pass = &schedule->passes[i];

        if (!can_begin(schedule, pass) || !receives_events(pass) || (driver && pass->drive) ||
            pass->hears_all_heaps != first->hears_all_heaps)
            continue;
        driver = pass->drive ? pass : driver;
        schedule->group[schedule->group_count++] = pass;
    }
    return driver;
}

/* "trials, blocks": lives as long as the report. */
static const char *name_group(const struct schedule *schedule)
{
    struct mt_arena *arena = &schedule->analysis->report->arena;
    const char *name = schedule->group[0]->name;

    for (size_t i = 1; i < schedule->group_count && name; i++)
        name = mt_arena_printf(arena, "%s, %s", name, schedule->group[i]->name);
    return name;
}

static void tell_batch(struct schedule *schedule, const struct mt_event *events, size_t count)
{
    for (size_t i = 0; i < schedule->group_count; i++)
        if (schedule->group[i]->batch)
            schedule->group[i]->batch(schedule->analysis, events, count);
}

static enum mt_status tell_event(void *context, const struct mt_event *event)
{
    tell_batch(context, event, 1);
    return MT_OK;
}

static enum mt_status read_source(struct schedule *schedule)
{
    struct mt_analysis *analysis = schedule->analysis;
    struct mt_event_batch batch;
    enum mt_status status = MT_OK;

    while (status == MT_OK) {
        status = mt_source_next(analysis->source, &batch, analysis->error);
        if (status == MT_OK)
            tell_batch(schedule, batch.events, batch.count);
    }
    return status == MT_END ? MT_OK : status;
}

static enum mt_status read_for_group(struct schedule *schedule, const struct mt_pass *driver)
{
    const struct mt_replay_listener listener = {schedule, tell_event};
    struct mt_analysis *analysis = schedule->analysis;
    struct mt_heap_view *view = &analysis->source->view;
    const enum mt_view_level level = view->level;
    enum mt_status status = mt_source_rewind(analysis->source, analysis->error);

    if (schedule->group[0]->hears_all_heaps)
        view->level = MT_VIEW_EVERYTHING;
    if (status == MT_OK)
        status = driver ? driver->drive(analysis, &listener) : read_source(schedule);
    view->level = level;
    return status;
}

static enum mt_status run_together(struct schedule *schedule, const struct mt_pass *first)
{
    const struct mt_pass *driver = choose_group(schedule, first);
    const char *name = name_group(schedule);
    struct mt_readings *readings = &schedule->analysis->readings;
    enum mt_status status = MT_OK;
    uint32_t outer;

    outer = mt_readings_enter(readings, name);
    for (size_t i = 0; i < schedule->group_count && status == MT_OK; i++)
        status = begin_pass(schedule, schedule->group[i]);
    if (status == MT_OK)
        status = read_for_group(schedule, driver);
    for (size_t i = 0; i < schedule->group_count && status == MT_OK; i++)
        end_pass(schedule, schedule->group[i]);
    mt_readings_leave(readings, outer);
    return status;
}

enum mt_status mt_schedule_run(const struct mt_pass *passes, size_t count,
                               struct mt_analysis *analysis)
{
    struct schedule schedule = {.passes = passes, .count = count, .analysis = analysis};
    enum mt_status status = MT_OK;
    const struct mt_pass *pass;
    const char *why = "";

    MT_ASSERT_SOUND(mt_schedule_is_sound(passes, count, &why), why);
    while (status == MT_OK) {
        drop_unwanted(&schedule);
        if ((pass = next_pass(&schedule, false)))
            status = run_alone(&schedule, pass);
        else if ((pass = next_pass(&schedule, true)))
            status = run_together(&schedule, pass);
        else
            break;
        MT_ASSERT_SOUND(mt_readings_is_sound(&analysis->readings, &why), why);
    }
    for (size_t i = 0; i < count; i++)
        MT_ASSERT(status != MT_OK || schedule.done[i]);
    return status;
}
