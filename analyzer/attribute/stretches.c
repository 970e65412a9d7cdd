/* The second pass: the cut. */
#include <stdlib.h>
#include <string.h>

#include "event.h"
#include "grow.h"
#include "phase.h"
#include "places.h"
#include "process_memory.h"
#include "stretches.h"
#include "xla_runs.h"

#define MT_STRETCHES_MAX (1u << 20) /* more are not distinguished */

/* The first pass: collects the available evidence. */

/* Maximum number of open ranges that are tracked. */
#define MT_SEGMENTS_RANGES 32

/* Facts about a name in one word: its kind, and */
#define MT_NAME_KIND     0x0Fu
#define MT_NAME_STEP     0x10u
#define MT_NAME_PLUMBING 0x20u

/* Finds or adds the index of a name in `names`. Each name is parsed once. */
static void stretches_name(struct mt_stretches *stretches, uint32_t name, uint32_t *id)
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

/* Returns the state of a thread, created if missing. */
static struct mt_stretch_thread *stretches_thread(struct mt_stretches *stretches, uint16_t id)
{
    mt_grow_zeroed_to(&stretches->threads, &stretches->thread_count, id + 1u,
                      sizeof *stretches->threads);
    return &stretches->threads[id];
}

static void learn_push(struct mt_stretches *stretches, uint32_t name)
{
    uint32_t id, kind, facts;

    stretches_name(stretches, name, &id);
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
        struct mt_stretch_thread *thread = is ? stretches_thread(stretches, (uint16_t)i) : NULL;

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

/* Evidence of an event. */
struct told {
    uint8_t kind, source;
    bool covered;
    uint32_t place;
};

void mt_stretches_init(struct mt_stretches *stretches, struct mt_symbols *symbols,
                       bool has_framework)
{
    memset(stretches, 0, sizeof *stretches);
    stretches->symbols = symbols;
    stretches->has_framework = has_framework;
    stretches->last_place = stretches->turn_place = stretches->trained_place = MT_NO_ID;
    stretches->main_thread = -1;
}

void mt_stretches_release(struct mt_stretches *stretches)
{
    mt_stack_kinds_release(&stretches->stacks);
    mt_places_release(&stretches->places);
    free(stretches->threads);
    free(stretches->list);
    free(stretches->names);
    mt_map_release(&stretches->name_ids);
    mt_map_release(&stretches->gradients);
    mt_xla_runs_release(&stretches->xla_runs);
    memset(stretches, 0, sizeof *stretches);
}

static void push_range(struct mt_stretch_thread *thread, uint32_t name, uint32_t facts)
{
    if (thread->depth < MT_SEGMENTS_RANGES) {
        thread->names[thread->depth] = name;
        thread->facts[thread->depth] = (uint8_t)facts;
    }
    thread->depth++;
}

/* Removes the innermost range of that name; returns false if there is none. */
static bool pop_range(struct mt_stretch_thread *thread, uint32_t name)
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

/* Ranges of the program on a thread: those that name a part, or all. */
static uint32_t user_ranges(const struct mt_stretch_thread *thread, bool with_kind)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < thread->depth && i < MT_SEGMENTS_RANGES; i++)
        count += !(thread->facts[i] & MT_NAME_PLUMBING) &&
                 (!with_kind || (thread->facts[i] & MT_NAME_KIND));
    return count;
}

static void close(struct mt_stretches *stretches)
{
    if (!stretches->is_open)
        return;
    stretches->is_open = false;
    if (stretches->count == MT_STRETCHES_MAX)
        return;
    mt_grow_to(&stretches->list, &stretches->capacity, stretches->count + 1,
               sizeof *stretches->list);
    stretches->list[stretches->count++] = stretches->now;
}

static void begin(struct mt_stretches *stretches, const struct mt_event *event,
                  const struct told *told)
{
    uint64_t seq = stretches->waits ? stretches->waiting_seq : event->seq;

    close(stretches);
    stretches->is_open = true;
    stretches->now =
        (struct mt_stretch){.begin_seq = seq,
                            .begin_t_ns = stretches->waits ? stretches->waiting_t_ns : event->t_ns,
                            .low_bytes = stretches->allocated,
                            .low_seq = seq ? seq - 1 : 0,
                            .low_t_ns = stretches->last_t_ns,
                            .place = told->place,
                            .turn.body = MT_NO_ID,
                            .thread = event->thread,
                            .kind = told->kind,
                            .source = told->source,
                            .covered = told->covered,
                            .callees = true};
}

static void attach(struct mt_stretches *stretches, const struct mt_event *event)
{
    struct mt_stretch *now = &stretches->now;

    if (!stretches->is_open)
        return;
    now->end_seq = event->seq;
    now->end_t_ns = event->t_ns;
    if (stretches->allocated < now->low_bytes) {
        now->low_bytes = stretches->allocated;
        now->low_seq = event->seq;
        now->low_t_ns = event->t_ns;
    }
}

/* Whether the program's own name covers events on this thread. A thread in no range inherits, as in
 * phases.h. */
static bool is_covered(const struct mt_stretches *stretches, const struct mt_stretch_thread *thread)
{
    return thread && user_ranges(thread, false) ? user_ranges(thread, true) > 0
                                                : stretches->user_open > 0;
}

/* A missing Python stack, among threads that have them, means autograd, if no thread name
 * identifies it. */
static bool is_of_nameless_engine(const struct mt_stretches *stretches,
                                  const struct mt_event *event)
{
    return event->kind == MT_EVENT_ALLOC && event->stack == MT_NO_ID && stretches->has_stacks &&
           stretches->is_training && stretches->has_framework && !stretches->has_engine;
}

/* An optimizer with a closure (LBFGS; every optimizer under Lightning) runs the other parts in its
 * range. Stacks and threads identify them; a free without a stack continues them. */
static bool is_of_closure(const struct mt_stretches *stretches, const struct mt_event *event,
                          const struct mt_stretch_thread *thread)
{
    uint8_t judged = mt_stack_kind(&stretches->stacks, event->stack);

    if (thread->is_engine || is_of_nameless_engine(stretches, event))
        return true;
    if (event->stack == MT_NO_ID)
        return event->kind == MT_EVENT_FREE_REQUESTED && stretches->is_open &&
               mt_stack_kind_trains(stretches->now.kind);
    return (judged & MT_STACK_CLOSURE) || mt_stack_kind_trains(judged & MT_STACK_KIND_MASK);
}

static struct told tell(const struct mt_stretches *stretches, const struct mt_event *event)
{
    const struct mt_stretch_thread *thread =
        event->thread < stretches->thread_count ? &stretches->threads[event->thread] : NULL;
    struct told told = {MT_PHASE_UNKNOWN, MT_PHASE_STACKS, false,
                        mt_place_of(&stretches->places, event->stack)};

    told.covered = stretches->user_named && is_covered(stretches, thread);
    for (uint32_t i = thread ? thread->depth : 0; i > 0; i--) {
        uint8_t facts = i <= MT_SEGMENTS_RANGES ? thread->facts[i - 1] : 0;

        if (!(facts & MT_NAME_KIND))
            continue;
        if ((facts & MT_NAME_PLUMBING) && (facts & MT_NAME_KIND) == MT_PHASE_OPTIMIZER &&
            is_of_closure(stretches, event, thread))
            break;
        told.kind = facts & MT_NAME_KIND;
        told.source = facts & MT_NAME_PLUMBING ? MT_PHASE_SCOPES : MT_PHASE_ANNOTATED;
        return told;
    }
    if (thread && thread->is_engine) {
        told.kind = MT_PHASE_BACKWARD;
        told.source = MT_PHASE_THREADS;
    } else if (event->stack != MT_NO_ID) {
        told.kind = mt_stack_kind(&stretches->stacks, event->stack) & MT_STACK_KIND_MASK;
    } else if (is_of_nameless_engine(stretches, event)) {
        told.kind = MT_PHASE_BACKWARD;
        told.source = MT_PHASE_THREADS;
    }
    return told;
}

static bool turns(struct mt_stretches *stretches, const struct told *told, struct mt_turn *turn)
{
    uint32_t last = stretches->last_place, from = stretches->turn_place;

    if (told->place == MT_NO_ID)
        return false;
    stretches->last_place = told->place;
    if (from != MT_NO_ID && mt_places_encloses(&stretches->places, told->place, from))
        from = MT_NO_ID; /* back in a caller: it may call the same function again */
    else
        stretches->turn_place = told->place;
    if (last == told->place && told->kind == MT_PHASE_FORWARD &&
        stretches->trained_place == told->place) {
        *turn = mt_places_at(&stretches->places, last); /* all of it on one line */
        return true;
    }
    return from != MT_NO_ID && from != told->place &&
           mt_places_turn(&stretches->places, from, told->place, turn);
}

/* Backward or an update ran while the program was at its last place. Events between that and the
 * next call of a model (clearing gradients, making a batch) do not change it. */
static void note_training(struct mt_stretches *stretches, const struct told *told)
{
    if (told->kind == MT_PHASE_BACKWARD || told->kind == MT_PHASE_OPTIMIZER)
        stretches->trained_place = stretches->last_place;
    else if (told->kind == MT_PHASE_FORWARD && told->place != MT_NO_ID)
        stretches->trained_place = MT_NO_ID;
}

/* A range of the framework (FSDP's) began the model's call before a stack showed its place. */
static bool begun_by_range(const struct mt_stretches *stretches, const struct mt_event *event,
                           const struct told *told)
{
    const struct mt_stretch *now = &stretches->now;

    return stretches->is_open && now->kind == MT_PHASE_FORWARD && told->kind == now->kind &&
           now->source == MT_PHASE_SCOPES && now->place == MT_NO_ID && !now->allocates &&
           now->thread == event->thread && now->covered == told->covered;
}

/* A loss in a model's forward: the forward continues. */
static bool returns_to_forward(const struct mt_stretches *stretches, const struct told *told,
                               bool same_place)
{
    const struct mt_stretch *last =
        stretches->count ? &stretches->list[stretches->count - 1] : NULL;

    return last && same_place && told->kind == MT_PHASE_FORWARD && last->kind == MT_PHASE_FORWARD &&
           stretches->now.kind == MT_PHASE_LOSS && last->covered == told->covered &&
           last->place == stretches->now.place;
}

/* Known events name the part that the same statement began. */
static bool goes_on(struct mt_stretches *stretches, const struct told *told, bool same_place)
{
    struct mt_stretch *now = &stretches->now;

    if (!stretches->is_open || now->covered != told->covered)
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
    if (returns_to_forward(stretches, told, same_place)) {
        uint64_t end_seq = now->end_seq, end_t_ns = now->end_t_ns;

        *now = stretches->list[--stretches->count];
        now->end_seq = end_seq;
        now->end_t_ns = end_t_ns;
        return true;
    }
    return false;
}

/* If frees have no stacks: a block that an autograd thread allocated and another thread frees was a
 * gradient. */
static void follow_gradient(struct mt_stretches *stretches, const struct mt_event *event,
                            struct told *told)
{
    const struct mt_stretch_thread *thread =
        event->thread < stretches->thread_count ? &stretches->threads[event->thread] : NULL;
    bool is_engine = thread && thread->is_engine;
    uint64_t key = event->addr ^ mt_hash_u64(event->device);

    if (!stretches->has_engine || stretches->free_stacks || !stretches->has_stacks)
        return;
    if (event->kind == MT_EVENT_ALLOC) {
        if (is_engine)
            mt_map_put(&stretches->gradients, key, 1);
        return;
    }
    if (mt_map_take(&stretches->gradients, key) != MT_MAP_NONE && !is_engine &&
        told->kind == MT_PHASE_UNKNOWN) {
        told->kind = MT_PHASE_ZERO_GRAD;
        told->source = MT_PHASE_THREADS;
    }
}

static void on_block(struct mt_stretches *stretches, const struct mt_event *event)
{
    struct told told = tell(stretches, event);
    bool is_alloc = event->kind == MT_EVENT_ALLOC;
    uint32_t last_place = stretches->last_place;
    struct mt_turn turn = {MT_NO_ID, 0};
    bool speaks, same_place, goes_back;

    follow_gradient(stretches, event, &told);
    if (stretches->main_thread < 0 && told.kind > MT_PHASE_DATA && told.place != MT_NO_ID)
        stretches->main_thread = event->thread;
    if (stretches->main_thread >= 0 && event->thread != stretches->main_thread)
        told.place = MT_NO_ID; /* lines of several threads do not form a loop */
    speaks = told.kind != MT_PHASE_UNKNOWN ||
             (is_alloc && (told.place != MT_NO_ID || !stretches->has_stacks));

    if (!speaks && told.place != MT_NO_ID && told.place != last_place)
        close(stretches); /* a free by a later statement */
    if (speaks) {
        goes_back = turns(stretches, &told, &turn);
        note_training(stretches, &told);
        same_place = !goes_back && told.place == last_place &&
                     (told.place != MT_NO_ID || !stretches->has_stacks);
        if (goes_back && begun_by_range(stretches, event, &told)) {
            stretches->now.turns = true;
            stretches->now.turn = turn;
        } else if (goes_back || !goes_on(stretches, &told, same_place)) {
            begin(stretches, event, &told);
            stretches->now.turns = goes_back || stretches->step_begins;
            stretches->now.turn = turn;
            stretches->step_begins = false;
        }
        if (stretches->now.place == MT_NO_ID)
            stretches->now.place = told.place;
    }
    stretches->allocated += is_alloc ? event->size_bytes : 0 - event->size_bytes;
    if (is_alloc && stretches->is_open) {
        stretches->now.allocates = true;
        stretches->now.callees &= event->stack != told.place;
    }
    stretches->waits = stretches->empties = false;
    attach(stretches, event);
}

/* A top-level range whose name was already in this turn begins another one. */
static bool turns_name(struct mt_stretches *stretches, uint32_t name)
{
    bool seen = false;

    for (uint32_t i = 0; i < stretches->turn_name_count; i++)
        seen |= stretches->turn_names[i] == name;
    if (seen)
        stretches->turn_name_count = 0;
    if (stretches->turn_name_count < sizeof stretches->turn_names / sizeof *stretches->turn_names)
        stretches->turn_names[stretches->turn_name_count++] = name;
    return seen;
}

static void on_user_push(struct mt_stretches *stretches, const struct mt_event *event,
                         uint32_t facts, bool outermost)
{
    struct told told = {(uint8_t)(facts & MT_NAME_KIND), MT_PHASE_ANNOTATED, true, MT_NO_ID};

    stretches->step_begins |= !!(facts & MT_NAME_STEP);
    if (stretches->named_turns)
        told.place = event->name;
    if (stretches->named_turns && !outermost)
        return;
    close(stretches);
    if ((stretches->named_turns || told.kind)) {
        begin(stretches, event, &told);
        stretches->now.turns = stretches->named_turns && turns_name(stretches, event->name);
        attach(stretches, event);
    }
}

static void on_push(struct mt_stretches *stretches, const struct mt_event *event)
{
    struct mt_stretch_thread *thread = stretches_thread(stretches, event->thread);
    struct told told = {MT_PHASE_UNKNOWN, MT_PHASE_SCOPES, false, MT_NO_ID};
    bool outermost = thread && user_ranges(thread, false) == 0;
    uint32_t id, facts;

    stretches_name(stretches, event->name, &id);
    facts = stretches->names[id].facts;
    told.kind = facts & MT_NAME_KIND;
    push_range(thread, event->name, facts);
    if (!(facts & MT_NAME_PLUMBING)) {
        stretches->user_open += !!(facts & MT_NAME_KIND);
        on_user_push(stretches, event, facts, outermost);
        return;
    }
    told.covered = is_covered(stretches, thread);
    if (stretches->named_turns || told.kind == MT_PHASE_UNKNOWN || told.covered)
        return;
    note_training(stretches, &told);
    if (!goes_on(stretches, &told, false))
        begin(stretches, event, &told);
    attach(stretches, event);
}

static void on_pop(struct mt_stretches *stretches, const struct mt_event *event)
{
    struct mt_stretch_thread *thread = stretches_thread(stretches, event->thread);
    uint32_t id, facts;

    stretches_name(stretches, event->name, &id);
    facts = stretches->names[id].facts;
    if (!pop_range(thread, event->name))
        return;
    if (!(facts & MT_NAME_PLUMBING)) {
        if ((facts & MT_NAME_KIND) && stretches->user_open)
            stretches->user_open--;
        if (stretches->now.covered)
            attach(stretches, event);
        if (!stretches->named_turns || user_ranges(thread, false) == 0) {
            close(stretches);
            return;
        }
    } else if (stretches->is_open && (facts & MT_NAME_KIND) == stretches->now.kind) {
        attach(stretches, event);
    }
}

/* Actions of the allocator before it serves a request are part of serving it. */
static void wait_for_block(struct mt_stretches *stretches, const struct mt_event *event)
{
    stretches->empties |= event->kind == MT_EVENT_EMPTY_CACHE;
    if (stretches->waits || stretches->empties || stretches->named_turns)
        return;
    stretches->waits = true;
    stretches->waiting_seq = event->seq;
    stretches->waiting_t_ns = event->t_ns;
}

void mt_stretches_cut(struct mt_stretches *stretches, const struct mt_event *event)
{
    if (event->flags & MT_EVENT_INITIAL)
        return;
    if (!stretches->has_framework &&
        (event->kind == MT_EVENT_PHASE_PUSH || event->kind == MT_EVENT_PHASE_POP))
        mt_xla_runs_range(&stretches->xla_runs, stretches->symbols, event);
    switch (event->kind) {
    case MT_EVENT_ALLOC:
    case MT_EVENT_FREE_REQUESTED:
        stretches->died = stretches->died && event->kind != MT_EVENT_ALLOC;
        if (!stretches->named_turns)
            on_block(stretches, event);
        break;
    case MT_EVENT_FREE_COMPLETED: attach(stretches, event); break;
    case MT_EVENT_SEGMENT_ALLOC:
    case MT_EVENT_SEGMENT_FREE:
    case MT_EVENT_SEGMENT_MAP:
    case MT_EVENT_SEGMENT_UNMAP:
    case MT_EVENT_ALLOC_FAILED:
    case MT_EVENT_EMPTY_CACHE: wait_for_block(stretches, event); break;
    case MT_EVENT_OOM:
        stretches->died = true;
        attach(stretches, event);
        break;
    case MT_EVENT_PHASE_PUSH: on_push(stretches, event); break;
    case MT_EVENT_PHASE_POP: on_pop(stretches, event); break;
    default: break;
    }
    stretches->last_t_ns = event->t_ns;
}

void mt_stretches_finish(struct mt_stretches *stretches)
{
    bool is_guess =
        stretches->now.kind == MT_PHASE_ZERO_GRAD && stretches->now.source == MT_PHASE_THREADS;

    if (is_guess) /* the end of the program also frees gradients */
        stretches->now.kind = MT_PHASE_UNKNOWN;
    close(stretches);
}
