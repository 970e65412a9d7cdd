/* The course of a run, from the state after each event. Leaving a column closes it and opens the
 * next ones with the current levels, so every event costs O(1). */
#include "analysis.h"
#include "level_over_time_model.h"
#include "model_feed.h"
#include "stable_hash.h"
#include "timeline_model.h"
#include "util.h"

struct course_feed {
    struct mt_level_over_time *course;
    uint32_t at;                      /* column of the last event */
    uint64_t end_t_ns;                /* first time after it */
    bool begun;                       /* the first event of the recorded history has passed */
    bool has_many_levels;             /* more than the course has room for */
    struct mt_bytes state;            /* after the last event */
    uint64_t first_event, last_event; /* the step's requests are between these */
    uint64_t hash, requests;
};

static void set_end(struct course_feed *feed)
{
    const struct mt_level_over_time *course = feed->course;
    uint64_t length = course->end_t_ns - course->begin_t_ns;
    unsigned __int128 part = (unsigned __int128)length * (feed->at + 1);

    feed->end_t_ns = feed->at + 1 >= course->column_count
                         ? UINT64_MAX
                         : course->begin_t_ns +
                               (uint64_t)((part + course->column_count - 1) / course->column_count);
}

static void raise_column(struct course_feed *feed)
{
    struct mt_level_over_time_column *column = &feed->course->columns[feed->at];

    column->allocated_bytes = mt_max_u64(column->allocated_bytes, feed->state.allocated);
    column->reserved_bytes = mt_max_u64(column->reserved_bytes, feed->state.reserved);
}

/* Columns up to that of `t_ns` start with the previous state. */
static void advance(struct course_feed *feed, uint64_t t_ns)
{
    while (t_ns >= feed->end_t_ns && feed->at + 1 < feed->course->column_count) {
        feed->at++;
        raise_column(feed);
        set_end(feed);
    }
}

static void add_level(struct course_feed *feed, uint64_t t_ns)
{
    struct mt_level_over_time *course = feed->course;
    uint32_t count = course->level_count;

    if (count && course->levels[count - 1].reserved_bytes == feed->state.reserved)
        return;
    feed->has_many_levels |= count == MT_LEVEL_OVER_TIME_ENTRIES;
    if (!feed->has_many_levels)
        course->levels[course->level_count++] =
            (struct mt_level_over_time_entry){t_ns, feed->state.reserved};
}

static void hash_request(struct course_feed *feed, const struct mt_event *event)
{
    if (event->kind != MT_EVENT_ALLOC || event->seq < feed->first_event ||
        event->seq > feed->last_event)
        return;
    feed->hash = mt_stable_hash_u64(feed->hash, event->size_bytes);
    feed->requests++;
}

static void on_state(void *context, const struct mt_model_state *state)
{
    struct course_feed *feed = context;

    if (state->event->flags & MT_EVENT_INITIAL) {
        feed->state = *state->now;
        return;
    }
    if (feed->course->column_count) {
        if (!feed->begun)
            raise_column(feed);
        advance(feed, state->event->t_ns);
    }
    if (!feed->begun)
        add_level(feed, feed->course->begin_t_ns);
    feed->begun = true;
    feed->state = *state->now;
    if (feed->course->column_count)
        raise_column(feed);
    add_level(feed, state->event->t_ns);
    hash_request(feed, state->event);
}

/* The last step whose start and end are both recorded. */
static void find_step(struct course_feed *feed, const struct mt_survey *survey)
{
    feed->first_event = 1; /* no event is in it */
    for (uint32_t i = survey->phases.count; i-- > 0;) {
        const struct mt_phase *phase = &survey->phases.phases[i];

        if (!phase->is_step || phase->cut ||
            mt_phase_last_event_before(phase) + 1 < survey->first_event)
            continue;
        feed->first_event = mt_phase_last_event_before(phase) + 1;
        feed->last_event = phase->end_event;
        return;
    }
}

static enum mt_status begin(struct mt_analysis *analysis, uint32_t slot, struct mt_model_feed *feed)
{
    const struct mt_survey *survey = &analysis->survey;
    struct mt_arena *arena = &analysis->report->arena;
    struct course_feed *made = mt_arena_alloc(arena, sizeof *made);
    struct mt_level_over_time *course = mt_arena_alloc(arena, sizeof *course);

    (void)slot;
    course->begin_t_ns = survey->first_t_ns;
    course->end_t_ns = survey->last_t_ns;
    if (course->end_t_ns > course->begin_t_ns) {
        course->column_count = mt_model_bins(analysis);
        course->columns = mt_arena_array(arena, course->column_count, sizeof *course->columns);
    }
    course->levels = mt_arena_array(arena, MT_LEVEL_OVER_TIME_ENTRIES, sizeof *course->levels);
    made->course = course;
    made->hash = MT_STABLE_HASH_START;
    if (course->column_count)
        set_end(made);
    find_step(made, survey);
    *feed = (struct mt_model_feed){.builder = made, .on_state = on_state};
    return MT_OK;
}

static enum mt_status finish(struct mt_analysis *analysis, void *context,
                             struct mt_device_report *out)
{
    struct course_feed *feed = context;

    (void)analysis;
    if (feed->course->column_count) {
        if (!feed->begun) /* all blocks are older than the history */
            raise_column(feed);
        advance(feed, UINT64_MAX - 1);
    }
    if (!feed->begun)
        add_level(feed, feed->course->begin_t_ns);
    if (feed->has_many_levels)
        feed->course->level_count = 0;
    feed->course->step_hash = feed->requests ? feed->hash : 0;
    out->level_over_time = feed->course;
    return MT_OK;
}

const struct mt_model_ops mt_model_level_over_time = {.begin = begin, .finish = finish};
