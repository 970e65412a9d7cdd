/* Phases and steps as slices. The slices of a track nest; a range that ends after the one in which
 * it began is on another track of its thread. */
#include <stdlib.h>

#include "grow.h"
#include "map.h"
#include "perfetto_parts.h"

struct lane {
    uint16_t thread;
    uint32_t next; /* of the same thread, MT_NO_ID */
    uint64_t track;
    uint32_t *open; /* phases, the innermost last */
    uint32_t open_count;
    size_t open_capacity;
};

struct lanes {
    struct mt_perfetto_process *process;
    struct mt_buf event;
    struct lane *list;
    uint32_t count;
    size_t capacity;
    struct mt_map first; /* by thread */
};

static const struct mt_phase *phase_at(const struct lanes *lanes, uint32_t phase)
{
    return &lanes->process->report->phases[phase];
}

static void add_begin(struct lanes *lanes, const struct lane *lane, const struct mt_phase *phase)
{
    struct mt_buf *event = &lanes->event;

    mt_perfetto_event(event, MT_PERFETTO_BEGIN, lane->track);
    mt_perfetto_event_name(lanes->process, event, phase->name);
    mt_perfetto_event_category(event, phase->is_step ? "step" : "phase");
    mt_perfetto_event_category(event, mt_phase_source_name((enum mt_phase_source)phase->source));
    if (phase->cut)
        mt_perfetto_event_text(event, "end", "not recorded");
    mt_perfetto_event_end(lanes->process, event,
                          mt_perfetto_time(lanes->process, phase->begin_t_ns, phase->begin_event));
}

static void add_end(struct lanes *lanes, struct lane *lane)
{
    const struct mt_phase *phase = phase_at(lanes, lane->open[--lane->open_count]);

    mt_perfetto_event(&lanes->event, MT_PERFETTO_END, lane->track);
    mt_perfetto_event_end(lanes->process, &lanes->event,
                          mt_perfetto_time(lanes->process, phase->end_t_ns, phase->end_event));
}

/* Ends the phases that are over when the next one begins. An inferred one contains its end. */
static void end_before(struct lanes *lanes, struct lane *lane, const struct mt_phase *next)
{
    while (lane->open_count) {
        const struct mt_phase *open = phase_at(lanes, lane->open[lane->open_count - 1]);

        if (open->end_event > next->begin_event ||
            (open->end_event == next->begin_event && open->end_event >= next->end_event))
            return;
        add_end(lanes, lane);
    }
}

static bool has_room(const struct lanes *lanes, const struct lane *lane,
                     const struct mt_phase *phase)
{
    return !lane->open_count ||
           phase_at(lanes, lane->open[lane->open_count - 1])->end_event >= phase->end_event;
}

static uint64_t add_lane_track(struct lanes *lanes, uint16_t thread, uint32_t number)
{
    const struct mt_symbols *symbols = lanes->process->report->symbols;
    const uint32_t name = thread < symbols->thread_count ? symbols->threads[thread].name : MT_NO_ID;
    struct mt_buf text = {0};

    mt_buf_add_text(&text, "steps and phases");
    if (name != MT_NO_ID)
        mt_buf_printf(&text, ": %s", mt_symbols_text(symbols, name));
    else if (thread)
        mt_buf_printf(&text, ": thread %u", (unsigned)thread);
    if (number)
        mt_buf_printf(&text, " (%u)", (unsigned)number + 1);
    uint64_t track =
        mt_perfetto_add_track(lanes->process, &(struct mt_perfetto_track){.name = text.data});
    mt_buf_release(&text);
    return track;
}

/* The lane on which the phase nests, which is added if there is none. */
static struct lane *lane_of(struct lanes *lanes, const struct mt_phase *phase)
{
    uint32_t at = mt_map_get(&lanes->first, phase->thread), last = MT_NO_ID, number = 0;

    for (; at != MT_NO_ID; last = at, at = lanes->list[at].next, number++) {
        end_before(lanes, &lanes->list[at], phase);
        if (has_room(lanes, &lanes->list[at], phase))
            return &lanes->list[at];
    }
    mt_grow_to(&lanes->list, &lanes->capacity, (size_t)lanes->count + 1, sizeof *lanes->list);
    lanes->list[lanes->count] =
        (struct lane){.thread = phase->thread,
                      .next = MT_NO_ID,
                      .track = add_lane_track(lanes, phase->thread, number)};
    if (last == MT_NO_ID)
        mt_map_put(&lanes->first, phase->thread, lanes->count);
    else
        lanes->list[last].next = lanes->count;
    return &lanes->list[lanes->count++];
}

void mt_perfetto_add_phases(struct mt_perfetto_process *process)
{
    struct lanes lanes = {.process = process};

    for (uint32_t i = 0; i < process->report->phase_count; i++) {
        struct lane *lane = lane_of(&lanes, phase_at(&lanes, i));

        add_begin(&lanes, lane, phase_at(&lanes, i));
        mt_grow_to(&lane->open, &lane->open_capacity, (size_t)lane->open_count + 1,
                   sizeof *lane->open);
        lane->open[lane->open_count++] = i;
    }
    for (uint32_t i = 0; i < lanes.count; i++) {
        while (lanes.list[i].open_count)
            add_end(&lanes, &lanes.list[i]);
        free(lanes.list[i].open);
    }
    free(lanes.list);
    mt_map_release(&lanes.first);
    mt_buf_release(&lanes.event);
}
