/* The first reading: what there is to go by. */
#include "segments_learn.h"

#include "grow.h"

#include <stdlib.h>
#include <string.h>

enum mt_status mt_segments_name(struct mt_segments *segments, uint32_t name, uint32_t *id)
{
    const char *text = mt_symbols_text(segments->symbols, name);
    struct mt_segment_name *facts;
    int64_t number;

    *id = mt_map_get(&segments->name_ids, name);
    if (*id != MT_MAP_NONE)
        return MT_OK;
    if (segments->name_count == MT_MAP_NONE ||
        mt_grow(&segments->names, &segments->name_capacity, segments->name_count + 1,
                sizeof *facts) ||
        mt_map_set(&segments->name_ids, name, (uint32_t)segments->name_count))
        return MT_ERR_MEMORY;
    *id = (uint32_t)segments->name_count++;
    facts = &segments->names[*id];
    *facts = (struct mt_segment_name){.facts = (uint32_t)mt_phase_kind_of(text)};
    if (mt_phase_name_is_plumbing(text))
        facts->facts |= MT_NAME_PLUMBING;
    else if (mt_phase_step_rank(text, &number) >= 2)
        facts->facts |= MT_NAME_STEP;
    return MT_OK;
}

struct mt_segment_thread *mt_segments_thread(struct mt_segments *segments, uint16_t id)
{
    enum mt_status status = mt_grow_zeroed(&segments->threads, &segments->thread_count, id + 1u,
                                           sizeof *segments->threads);

    return status == MT_OK ? &segments->threads[id] : NULL;
}

static enum mt_status learn_push(struct mt_segments *segments, uint32_t name)
{
    uint32_t id, kind, facts;

    if (mt_segments_name(segments, name, &id))
        return MT_ERR_MEMORY;
    facts = segments->names[id].facts;
    kind = facts & MT_NAME_KIND;
    segments->kinds_told |= 1u << kind;
    if (facts & MT_NAME_PLUMBING)
        return MT_OK;
    segments->user_named = true;
    segments->user_steps |= !!(facts & MT_NAME_STEP);
    segments->user_parts |=
        kind == MT_PHASE_FORWARD || kind == MT_PHASE_BACKWARD || kind == MT_PHASE_OPTIMIZER;
    segments->names[id].pushes++;
    if (segments->open_count < MT_SEGMENTS_RANGES)
        segments->open_names[segments->open_count++] = id;
    return MT_OK;
}

static void learn_pop(struct mt_segments *segments, uint32_t name)
{
    uint32_t id = mt_map_get(&segments->name_ids, name), at = segments->open_count;

    while (at > 0 && segments->open_names[at - 1] != id)
        at--;
    if (at)
        segments->open_count = at - 1;
}

static void learn_alloc(struct mt_segments *segments)
{
    uint32_t innermost;

    if (!segments->user_named)
        return;
    innermost = segments->open_count ? segments->open_names[segments->open_count - 1] : 0;
    if (!segments->open_count || (segments->names[innermost].facts & MT_NAME_STEP))
        segments->beside++;
    else
        segments->names[innermost].allocations++;
}

/* Do the program's own names tell what it does, but for its steps? */
static bool names_tell(const struct mt_segments *segments)
{
    uint64_t within = 0, others = segments->beside;

    for (size_t i = 0; i < segments->name_count; i++) {
        within += segments->names[i].pushes > 1 ? segments->names[i].allocations : 0;
        others += segments->names[i].pushes > 1 ? 0 : segments->names[i].allocations;
    }
    return within && within >= others;
}

enum mt_status mt_segments_learn(struct mt_segments *segments, const struct mt_event *event)
{
    if (event->kind == MT_EVENT_PHASE_PUSH)
        return learn_push(segments, event->name);
    if (event->kind == MT_EVENT_PHASE_POP)
        learn_pop(segments, event->name);
    if (event->kind == MT_EVENT_ALLOC)
        learn_alloc(segments);
    if (event->stack == MT_NO_ID || (event->flags & MT_EVENT_INITIAL) ||
        (event->kind != MT_EVENT_ALLOC && event->kind != MT_EVENT_FREE_REQUESTED))
        return MT_OK;
    if (event->stack >= segments->places.count &&
        mt_places_update(&segments->places, segments->symbols))
        return MT_ERR_MEMORY;
    segments->has_stacks |= event->kind == MT_EVENT_ALLOC;
    segments->free_stacks |= event->kind == MT_EVENT_FREE_REQUESTED;
    if (event->stack < segments->places.count)
        segments->places.used[event->stack] = 1;
    return MT_OK;
}

static void find_engine(struct mt_segments *segments)
{
    for (uint32_t i = 0; i < segments->thread_count; i++)
        segments->threads[i].depth = 0;
    for (uint32_t i = 0; i < segments->symbols->thread_count && i <= UINT16_MAX; i++) {
        const struct mt_thread_info *info = &segments->symbols->threads[i];
        bool is = info->name != MT_NO_ID &&
                  !strncmp(mt_symbols_text(segments->symbols, info->name), "pt_autograd", 11);
        struct mt_segment_thread *thread = is ? mt_segments_thread(segments, (uint16_t)i) : NULL;

        if (thread)
            thread->is_engine = segments->has_engine = true;
    }
}

enum mt_status mt_segments_prepare(struct mt_segments *segments)
{
    uint32_t update = (1u << MT_PHASE_OPTIMIZER) | (1u << MT_PHASE_BACKWARD);

    segments->user_turns = names_tell(segments);
    if (mt_places_update(&segments->places, segments->symbols) ||
        mt_stack_kinds_update(&segments->stacks, segments->symbols))
        return MT_ERR_MEMORY;
    for (uint32_t i = 0; i < segments->places.count; i++) {
        uint8_t kind = mt_stack_kind(&segments->stacks, i) & MT_STACK_KIND_MASK;

        if (!segments->places.used[i])
            continue;
        segments->places.used[i] = mt_place_bit(kind);
        segments->kinds_told |= 1u << kind;
    }
    find_engine(segments);
    segments->is_training = segments->has_engine || (segments->kinds_told & update);
    segments->named_turns = !segments->user_steps && segments->user_turns;
    return mt_places_find(&segments->places, &segments->stacks, segments->is_training);
}
