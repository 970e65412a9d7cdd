/* The first pass: collects the available evidence. */
#include "stretches_learn.h"

#include "grow.h"
#include "process_memory.h"

#include <stdlib.h>
#include <string.h>

void mt_stretches_name(struct mt_stretches *stretches, uint32_t name, uint32_t *id)
{
    const char *text = mt_symbols_text(stretches->symbols, name);
    struct mt_stretch_name *facts;
    int64_t number;

    *id = mt_map_get(&stretches->name_ids, name);
    if (*id != MT_MAP_NONE)
        return;
    if (stretches->name_count == MT_MAP_NONE)
        mt_memory_end();
    mt_grow_to(&stretches->names, &stretches->name_capacity, stretches->name_count + 1,
               sizeof *facts);
    mt_map_put(&stretches->name_ids, name, (uint32_t)stretches->name_count);
    *id = (uint32_t)stretches->name_count++;
    facts = &stretches->names[*id];
    *facts = (struct mt_stretch_name){.facts = (uint32_t)mt_phase_kind_of(text)};
    if (mt_phase_name_is_plumbing(text))
        facts->facts |= MT_NAME_PLUMBING;
    else if (mt_phase_step_rank(text, &number) >= 2)
        facts->facts |= MT_NAME_STEP;
}

struct mt_stretch_thread *mt_stretches_thread(struct mt_stretches *stretches, uint16_t id)
{
    mt_grow_zeroed_to(&stretches->threads, &stretches->thread_count, id + 1u,
                      sizeof *stretches->threads);
    return &stretches->threads[id];
}

static void learn_push(struct mt_stretches *stretches, uint32_t name)
{
    uint32_t id, kind, facts;

    mt_stretches_name(stretches, name, &id);
    facts = stretches->names[id].facts;
    kind = facts & MT_NAME_KIND;
    stretches->kinds_told |= 1u << kind;
    if (facts & MT_NAME_PLUMBING)
        return;
    stretches->user_named = true;
    stretches->user_steps |= !!(facts & MT_NAME_STEP);
    stretches->user_parts |=
        kind == MT_PHASE_FORWARD || kind == MT_PHASE_BACKWARD || kind == MT_PHASE_OPTIMIZER;
    stretches->names[id].pushes++;
    if (stretches->open_count < MT_SEGMENTS_RANGES)
        stretches->open_names[stretches->open_count++] = id;
}

static void learn_pop(struct mt_stretches *stretches, uint32_t name)
{
    uint32_t id = mt_map_get(&stretches->name_ids, name), at = stretches->open_count;

    while (at > 0 && stretches->open_names[at - 1] != id)
        at--;
    if (at)
        stretches->open_count = at - 1;
}

static void learn_alloc(struct mt_stretches *stretches)
{
    uint32_t innermost;

    if (!stretches->user_named)
        return;
    innermost = stretches->open_count ? stretches->open_names[stretches->open_count - 1] : 0;
    if (!stretches->open_count || (stretches->names[innermost].facts & MT_NAME_STEP))
        stretches->beside++;
    else
        stretches->names[innermost].allocations++;
}

/* Whether the program's own names describe its work, except for its steps. */
static bool names_tell(const struct mt_stretches *stretches)
{
    uint64_t within = 0, others = stretches->beside;

    for (size_t i = 0; i < stretches->name_count; i++) {
        within += stretches->names[i].pushes > 1 ? stretches->names[i].allocations : 0;
        others += stretches->names[i].pushes > 1 ? 0 : stretches->names[i].allocations;
    }
    return within && within >= others;
}

void mt_stretches_learn(struct mt_stretches *stretches, const struct mt_event *event)
{
    if (event->kind == MT_EVENT_PHASE_PUSH) {
        learn_push(stretches, event->name);
        return;
    }
    if (event->kind == MT_EVENT_PHASE_POP)
        learn_pop(stretches, event->name);
    if (event->kind == MT_EVENT_ALLOC)
        learn_alloc(stretches);
    if (event->stack == MT_NO_ID || (event->flags & MT_EVENT_INITIAL) ||
        (event->kind != MT_EVENT_ALLOC && event->kind != MT_EVENT_FREE_REQUESTED))
        return;
    if (event->stack >= stretches->places.count)
        mt_places_update(&stretches->places, stretches->symbols);
    stretches->has_stacks |= event->kind == MT_EVENT_ALLOC;
    stretches->free_stacks |= event->kind == MT_EVENT_FREE_REQUESTED;
    if (event->stack < stretches->places.count)
        stretches->places.used[event->stack] = 1;
}

static void find_engine(struct mt_stretches *stretches)
{
    for (uint32_t i = 0; i < stretches->thread_count; i++)
        stretches->threads[i].depth = 0;
    for (uint32_t i = 0; i < stretches->symbols->thread_count && i <= UINT16_MAX; i++) {
        const struct mt_thread_info *info = &stretches->symbols->threads[i];
        bool is = info->name != MT_NO_ID &&
                  !strncmp(mt_symbols_text(stretches->symbols, info->name), "pt_autograd", 11);
        struct mt_stretch_thread *thread = is ? mt_stretches_thread(stretches, (uint16_t)i) : NULL;

        if (thread)
            thread->is_engine = stretches->has_engine = true;
    }
}

void mt_stretches_prepare(struct mt_stretches *stretches)
{
    uint32_t update = (1u << MT_PHASE_OPTIMIZER) | (1u << MT_PHASE_BACKWARD);

    stretches->user_turns = names_tell(stretches);
    mt_places_update(&stretches->places, stretches->symbols);
    mt_stack_kinds_update(&stretches->stacks, stretches->symbols);
    for (uint32_t i = 0; i < stretches->places.count; i++) {
        uint8_t kind = mt_stack_kind(&stretches->stacks, i) & MT_STACK_KIND_MASK;

        if (!stretches->places.used[i])
            continue;
        stretches->places.used[i] = mt_place_bit(kind);
        stretches->kinds_told |= 1u << kind;
    }
    find_engine(stretches);
    stretches->is_training = stretches->has_engine || (stretches->kinds_told & update);
    stretches->named_turns = !stretches->user_steps && stretches->user_turns;
    mt_places_find(&stretches->places, &stretches->stacks, stretches->is_training);
}
