/* The second reading: the cut. */
#include "segments.h"

#include "grow.h"

#include <stdlib.h>
#include <string.h>

/* What an event says. */
struct told {
    uint8_t kind, source;
    bool covered;
    uint32_t place;
};

void mt_segments_init(struct mt_segments *segments, struct mt_symbols *symbols, bool has_framework)
{
    memset(segments, 0, sizeof *segments);
    segments->symbols = symbols;
    segments->has_framework = has_framework;
    segments->last_place = segments->turn_place = MT_NO_ID;
    segments->main_thread = -1;
}

void mt_segments_release(struct mt_segments *segments)
{
    mt_stack_kinds_release(&segments->stacks);
    mt_places_release(&segments->places);
    free(segments->threads);
    free(segments->list);
    free(segments->names);
    mt_map_release(&segments->name_ids);
    mt_map_release(&segments->gradients);
    memset(segments, 0, sizeof *segments);
}

static void push_range(struct mt_segment_thread *thread, uint32_t name, uint32_t facts)
{
    if (thread->depth < MT_SEGMENTS_RANGES) {
        thread->names[thread->depth] = name;
        thread->facts[thread->depth] = (uint8_t)facts;
    }
    thread->depth++;
}

/* Takes the innermost range of that name out; false = there is none. */
static bool pop_range(struct mt_segment_thread *thread, uint32_t name)
{
    uint32_t at = thread->depth;

    if (thread->depth > MT_SEGMENTS_RANGES) {
        thread->depth--;
        return false;
    }
    while (at > 0 && thread->names[at - 1] != name)
        at--;
    if (at == 0)
        return false;
    memmove(&thread->names[at - 1], &thread->names[at],
            (thread->depth - at) * sizeof thread->names[0]);
    memmove(&thread->facts[at - 1], &thread->facts[at], thread->depth - at);
    thread->depth--;
    return true;
}

/* Ranges of the program on a thread that it named a part with, or all. */
static uint32_t user_ranges(const struct mt_segment_thread *thread, bool with_kind)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < thread->depth && i < MT_SEGMENTS_RANGES; i++)
        count += !(thread->facts[i] & MT_NAME_PLUMBING) &&
                 (!with_kind || (thread->facts[i] & MT_NAME_KIND));
    return count;
}

static enum mt_status close(struct mt_segments *segments)
{
    if (!segments->is_open)
        return MT_OK;
    segments->is_open = false;
    if (segments->count == MT_SEGMENTS_MAX)
        return MT_OK;
    if (mt_grow(&segments->list, &segments->capacity, segments->count + 1, sizeof *segments->list))
        return MT_ERR_MEMORY;
    segments->list[segments->count++] = segments->now;
    return MT_OK;
}

static enum mt_status begin(struct mt_segments *segments, const struct mt_event *event,
                            const struct told *told)
{
    uint64_t seq = segments->waits ? segments->waiting_seq : event->seq;
    enum mt_status status = close(segments);

    segments->is_open = true;
    segments->now =
        (struct mt_segment){.begin_seq = seq,
                            .begin_t_ns = segments->waits ? segments->waiting_t_ns : event->t_ns,
                            .low_bytes = segments->allocated,
                            .low_seq = seq ? seq - 1 : 0,
                            .low_t_ns = segments->last_t_ns,
                            .place = told->place,
                            .turn.body = MT_NO_ID,
                            .thread = event->thread,
                            .kind = told->kind,
                            .source = told->source,
                            .covered = told->covered,
                            .callees = true};
    return status;
}

static void attach(struct mt_segments *segments, const struct mt_event *event)
{
    struct mt_segment *now = &segments->now;

    if (!segments->is_open)
        return;
    now->end_seq = event->seq;
    now->end_t_ns = event->t_ns;
    if (segments->allocated < now->low_bytes) {
        now->low_bytes = segments->allocated;
        now->low_seq = event->seq;
        now->low_t_ns = event->t_ns;
    }
}

/* Does the program's own name for it cover what happens on this thread? A
 * thread in no range inherits, as in phases.h. */
static bool is_covered(const struct mt_segments *segments, const struct mt_segment_thread *thread)
{
    return thread && user_ranges(thread, false) ? user_ranges(thread, true) > 0
                                                : segments->user_open > 0;
}

static struct told tell(const struct mt_segments *segments, const struct mt_event *event)
{
    const struct mt_segment_thread *thread =
        event->thread < segments->thread_count ? &segments->threads[event->thread] : NULL;
    struct told told = {MT_PHASE_UNKNOWN, MT_PHASE_STACKS, false,
                        mt_place_of(&segments->places, event->stack)};

    told.covered = segments->user_named && is_covered(segments, thread);
    for (uint32_t i = thread ? thread->depth : 0; i > 0; i--) {
        uint8_t facts = i <= MT_SEGMENTS_RANGES ? thread->facts[i - 1] : 0;

        if (!(facts & MT_NAME_KIND))
            continue;
        told.kind = facts & MT_NAME_KIND;
        told.source = facts & MT_NAME_PLUMBING ? MT_PHASE_SCOPES : MT_PHASE_ANNOTATED;
        return told;
    }
    if (thread && thread->is_engine) {
        told.kind = MT_PHASE_BACKWARD;
        told.source = MT_PHASE_THREADS;
    } else if (event->stack != MT_NO_ID) {
        told.kind = mt_stack_kind(&segments->stacks, event->stack) & MT_STACK_KIND_MASK;
    } else if (event->kind == MT_EVENT_ALLOC && segments->has_stacks && segments->is_training &&
               segments->has_framework && !segments->has_engine) {
        /* who has no frames among threads that have is autograd's */
        told.kind = MT_PHASE_BACKWARD;
        told.source = MT_PHASE_THREADS;
    }
    return told;
}

static bool turns(struct mt_segments *segments, const struct told *told, struct mt_turn *turn)
{
    uint32_t last = segments->last_place, from = segments->turn_place;

    if (told->place == MT_NO_ID)
        return false;
    segments->last_place = told->place;
    if (from != MT_NO_ID && mt_places_encloses(&segments->places, told->place, from))
        from = MT_NO_ID; /* back in a caller: it may call the same again */
    else
        segments->turn_place = told->place;
    if (last == told->place && told->kind == MT_PHASE_FORWARD && segments->is_open &&
        (segments->now.kind == MT_PHASE_BACKWARD || segments->now.kind == MT_PHASE_OPTIMIZER)) {
        *turn = mt_places_at(&segments->places, last); /* all of it on one line */
        return true;
    }
    return from != MT_NO_ID && from != told->place &&
           mt_places_turn(&segments->places, from, told->place, turn);
}

/* A loss within a model's forward: it goes on. */
static bool returns_to_forward(const struct mt_segments *segments, const struct told *told,
                               bool same_place)
{
    const struct mt_segment *last = segments->count ? &segments->list[segments->count - 1] : NULL;

    return last && same_place && told->kind == MT_PHASE_FORWARD && last->kind == MT_PHASE_FORWARD &&
           segments->now.kind == MT_PHASE_LOSS && last->covered == told->covered &&
           last->place == segments->now.place;
}

/* Known events name what the same statement began. */
static bool goes_on(struct mt_segments *segments, const struct told *told, bool same_place)
{
    struct mt_segment *now = &segments->now;

    if (!segments->is_open || now->covered != told->covered)
        return false;
    if (told->kind == now->kind)
        return told->kind != MT_PHASE_UNKNOWN || same_place;
    if (told->kind == MT_PHASE_UNKNOWN)
        return same_place && told->place != MT_NO_ID;
    if (now->kind == MT_PHASE_UNKNOWN && same_place && told->place != MT_NO_ID) {
        now->kind = told->kind;
        now->source = told->source;
        return true;
    }
    if (returns_to_forward(segments, told, same_place)) {
        uint64_t end_seq = now->end_seq, end_t_ns = now->end_t_ns;

        *now = segments->list[--segments->count];
        now->end_seq = end_seq;
        now->end_t_ns = end_t_ns;
        return true;
    }
    return false;
}

/* Where frees have no stacks: a block that an autograd thread allocated and
 * another one frees was a gradient. */
static enum mt_status follow_gradient(struct mt_segments *segments, const struct mt_event *event,
                                      struct told *told)
{
    const struct mt_segment_thread *thread =
        event->thread < segments->thread_count ? &segments->threads[event->thread] : NULL;
    bool is_engine = thread && thread->is_engine;
    uint64_t key = event->addr ^ mt_hash_u64(event->device);

    if (!segments->has_engine || segments->free_stacks || !segments->has_stacks)
        return MT_OK;
    if (event->kind == MT_EVENT_ALLOC)
        return is_engine ? mt_map_set(&segments->gradients, key, 1) : MT_OK;
    if (mt_map_take(&segments->gradients, key) != MT_MAP_NONE && !is_engine &&
        told->kind == MT_PHASE_UNKNOWN) {
        told->kind = MT_PHASE_ZERO_GRAD;
        told->source = MT_PHASE_THREADS;
    }
    return MT_OK;
}

static enum mt_status on_block(struct mt_segments *segments, const struct mt_event *event)
{
    struct told told = tell(segments, event);
    bool is_alloc = event->kind == MT_EVENT_ALLOC;
    uint32_t last_place = segments->last_place;
    struct mt_turn turn = {MT_NO_ID, 0};
    bool speaks, same_place, goes_back;
    enum mt_status status = follow_gradient(segments, event, &told);

    if (segments->main_thread < 0 && told.kind > MT_PHASE_DATA && told.place != MT_NO_ID)
        segments->main_thread = event->thread;
    if (segments->main_thread >= 0 && event->thread != segments->main_thread)
        told.place = MT_NO_ID; /* lines of several threads make no loop */
    speaks = told.kind != MT_PHASE_UNKNOWN ||
             (is_alloc && (told.place != MT_NO_ID || !segments->has_stacks));

    if (!status && !speaks && told.place != MT_NO_ID && told.place != last_place)
        status = close(segments); /* a free by a later statement */
    if (speaks && !status) {
        goes_back = turns(segments, &told, &turn);
        same_place = !goes_back && told.place == last_place &&
                     (told.place != MT_NO_ID || !segments->has_stacks);
        if (goes_back || !goes_on(segments, &told, same_place)) {
            status = begin(segments, event, &told);
            segments->now.turns = goes_back || segments->step_begins;
            segments->now.turn = turn;
            segments->step_begins = false;
        }
        if (segments->now.place == MT_NO_ID)
            segments->now.place = told.place;
    }
    segments->allocated += is_alloc ? event->size_bytes : 0 - event->size_bytes;
    if (is_alloc && segments->is_open) {
        segments->now.allocates = true;
        segments->now.callees &= event->stack != told.place;
    }
    segments->waits = segments->empties = false;
    attach(segments, event);
    return status;
}

/* A top-level range whose name was there before begins another turn. */
static bool turns_name(struct mt_segments *segments, uint32_t name)
{
    bool seen = false;

    for (uint32_t i = 0; i < segments->turn_name_count; i++)
        seen |= segments->turn_names[i] == name;
    if (seen)
        segments->turn_name_count = 0;
    if (segments->turn_name_count < sizeof segments->turn_names / sizeof *segments->turn_names)
        segments->turn_names[segments->turn_name_count++] = name;
    return seen;
}

static enum mt_status on_user_push(struct mt_segments *segments, const struct mt_event *event,
                                   uint32_t facts, bool outermost)
{
    struct told told = {(uint8_t)(facts & MT_NAME_KIND), MT_PHASE_ANNOTATED, true, MT_NO_ID};
    enum mt_status status;

    segments->step_begins |= !!(facts & MT_NAME_STEP);
    if (segments->named_turns)
        told.place = event->name;
    if (segments->named_turns && !outermost)
        return MT_OK;
    status = close(segments);
    if (!status && (segments->named_turns || told.kind)) {
        status = begin(segments, event, &told);
        segments->now.turns = segments->named_turns && turns_name(segments, event->name);
        attach(segments, event);
    }
    return status;
}

static enum mt_status on_push(struct mt_segments *segments, const struct mt_event *event)
{
    struct mt_segment_thread *thread = mt_segments_thread(segments, event->thread);
    struct told told = {MT_PHASE_UNKNOWN, MT_PHASE_SCOPES, false, MT_NO_ID};
    bool outermost = thread && user_ranges(thread, false) == 0;
    enum mt_status status = MT_OK;
    uint32_t id, facts;

    if (!thread || mt_segments_name(segments, event->name, &id))
        return MT_ERR_MEMORY;
    facts = segments->names[id].facts;
    told.kind = facts & MT_NAME_KIND;
    push_range(thread, event->name, facts);
    if (!(facts & MT_NAME_PLUMBING)) {
        segments->user_open += !!(facts & MT_NAME_KIND);
        return on_user_push(segments, event, facts, outermost);
    }
    told.covered = is_covered(segments, thread);
    if (segments->named_turns || told.kind == MT_PHASE_UNKNOWN || told.covered)
        return MT_OK;
    if (!goes_on(segments, &told, false))
        status = begin(segments, event, &told);
    attach(segments, event);
    return status;
}

static enum mt_status on_pop(struct mt_segments *segments, const struct mt_event *event)
{
    struct mt_segment_thread *thread = mt_segments_thread(segments, event->thread);
    uint32_t id, facts;

    if (!thread || mt_segments_name(segments, event->name, &id))
        return MT_ERR_MEMORY;
    facts = segments->names[id].facts;
    if (!pop_range(thread, event->name))
        return MT_OK;
    if (!(facts & MT_NAME_PLUMBING)) {
        if ((facts & MT_NAME_KIND) && segments->user_open)
            segments->user_open--;
        if (segments->now.covered)
            attach(segments, event);
        if (!segments->named_turns || user_ranges(thread, false) == 0)
            return close(segments);
    } else if (segments->is_open && (facts & MT_NAME_KIND) == segments->now.kind) {
        attach(segments, event);
    }
    return MT_OK;
}

/* What the allocator does before it serves a request is part of serving it. */
static void wait_for_block(struct mt_segments *segments, const struct mt_event *event)
{
    segments->empties |= event->kind == MT_EVENT_EMPTY_CACHE;
    if (segments->waits || segments->empties || segments->named_turns)
        return;
    segments->waits = true;
    segments->waiting_seq = event->seq;
    segments->waiting_t_ns = event->t_ns;
}

enum mt_status mt_segments_cut(struct mt_segments *segments, const struct mt_event *event)
{
    enum mt_status status = MT_OK;

    if (event->flags & MT_EVENT_INITIAL)
        return MT_OK;
    switch (event->kind) {
    case MT_EVENT_ALLOC:
    case MT_EVENT_FREE_REQUESTED:
        segments->died = segments->died && event->kind != MT_EVENT_ALLOC;
        if (!segments->named_turns)
            status = on_block(segments, event);
        break;
    case MT_EVENT_FREE_COMPLETED: attach(segments, event); break;
    case MT_EVENT_SEGMENT_ALLOC:
    case MT_EVENT_SEGMENT_FREE:
    case MT_EVENT_SEGMENT_MAP:
    case MT_EVENT_SEGMENT_UNMAP:
    case MT_EVENT_ALLOC_FAILED:
    case MT_EVENT_EMPTY_CACHE: wait_for_block(segments, event); break;
    case MT_EVENT_OOM:
        segments->died = true;
        attach(segments, event);
        break;
    case MT_EVENT_PHASE_PUSH: status = on_push(segments, event); break;
    case MT_EVENT_PHASE_POP: status = on_pop(segments, event); break;
    default: break;
    }
    segments->last_t_ns = event->t_ns;
    return status;
}

enum mt_status mt_segments_finish(struct mt_segments *segments)
{
    bool is_guess =
        segments->now.kind == MT_PHASE_ZERO_GRAD && segments->now.source == MT_PHASE_THREADS;

    if (is_guess) /* the end of the program frees gradients, too */
        segments->now.kind = MT_PHASE_UNKNOWN;
    return close(segments);
}
