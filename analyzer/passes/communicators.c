#include "communicators.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "util.h"

void mt_communicators_release(struct mt_communicators *communicators)
{
    mt_map_release(&communicators->by_id);
    mt_map_release(&communicators->by_range);
    free(communicators->list);
    *communicators = (struct mt_communicators){0};
}

static void add(struct mt_communicators *communicators, uint64_t id, uint32_t *index)
{
    if (communicators->count >= MT_COMMUNICATORS_MAX) {
        *index = MT_MAP_NONE;
        return;
    }
    mt_grow_to(&communicators->list, &communicators->capacity, communicators->count + 1,
               sizeof *communicators->list);
    *index = (uint32_t)communicators->count++;
    communicators->list[*index] = (struct mt_communicator){.id = id};
    if (id)
        mt_map_put(&communicators->by_id, id, *index);
}

/* *index: MT_MAP_NONE if there are too many. */
static void find(struct mt_communicators *communicators, uint64_t id, uint32_t *index)
{
    *index = mt_map_get(&communicators->by_id, id);
    if (*index == MT_MAP_NONE)
        add(communicators, id, index);
}

/* The innermost range of the thread, if the event concerns it. */
static int32_t range_of(const struct mt_phases *phases, const struct mt_event *event)
{
    int32_t phase = event->thread < phases->thread_count ? phases->threads[event->thread].innermost
                                                         : MT_NO_PHASE;

    if (phase == MT_NO_PHASE || event->name == MT_NO_ID ||
        strcmp(phases->phases[phase].name, mt_symbols_text(phases->symbols, event->name)) != 0)
        return MT_NO_PHASE;
    return phase;
}

static void learn_ranks(struct mt_communicator *of, uint64_t ranks, uint64_t rank)
{
    of->is_shared |= of->ranks && (of->ranks != ranks || of->rank != rank);
    of->ranks = of->is_shared ? 0 : ranks;
    of->rank = of->is_shared ? 0 : rank;
}

static void on_told(struct mt_communicators *communicators, const struct mt_phases *phases,
                    const struct mt_event *event)
{
    int32_t range = range_of(phases, event);
    uint32_t index;

    if (!event->addr && range == MT_NO_PHASE)
        return;
    if (event->addr)
        find(communicators, event->addr, &index);
    else
        add(communicators, 0, &index);
    if (index == MT_MAP_NONE)
        return;
    if (event->size_bytes && event->aux_bytes < event->size_bytes)
        learn_ranks(&communicators->list[index], event->size_bytes, event->aux_bytes);
    if (range != MT_NO_PHASE)
        mt_map_put(&communicators->by_range, (uint64_t)range + 1, index);
}

static void on_buffer(struct mt_communicators *communicators, const struct mt_event *event)
{
    uint32_t index;

    if (!event->aux_bytes)
        return;
    find(communicators, event->aux_bytes, &index);
    if (index == MT_MAP_NONE)
        return;
    struct mt_communicator *of = &communicators->list[index];
    if (event->kind == MT_EVENT_BUFFER_DEREGISTERED) {
        of->registered_now = mt_sub_or_0_u64(of->registered_now, event->size_bytes);
        return;
    }
    of->registered_now = mt_add_most_u64(of->registered_now, event->size_bytes);
    if (of->registered_now > of->registered_peak_bytes) {
        of->registered_peak_bytes = of->registered_now;
        of->registered_peak_t_ns = event->t_ns;
    }
}

void mt_communicators_event(struct mt_communicators *communicators, const struct mt_phases *phases,
                            const struct mt_event *event)
{
    switch (event->kind) {
    case MT_EVENT_COMMUNICATOR: on_told(communicators, phases, event); return;
    case MT_EVENT_BUFFER_REGISTERED:
    case MT_EVENT_BUFFER_DEREGISTERED: on_buffer(communicators, event); return;
    default: return;
    }
}

const struct mt_communicator *mt_communicator_of(const struct mt_communicators *communicators,
                                                 int32_t phase)
{
    uint32_t index = phase == MT_NO_PHASE
                         ? MT_MAP_NONE
                         : mt_map_get(&communicators->by_range, (uint64_t)phase + 1);

    return index == MT_MAP_NONE ? NULL : &communicators->list[index];
}
