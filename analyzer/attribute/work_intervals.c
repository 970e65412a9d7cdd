/* The first pass collects evidence, the second one cuts the trace. */
#include <stdlib.h>
#include <string.h>

#include "event.h"
#include "grow.h"
#include "phase.h"
#include "process_memory.h"
#include "python_tree.h"
#include "source.h"
#include "work_intervals.h"
#include "xla_runs.h"

#define MAX_INTERVALS (1u << 20) /* more are not distinguished */

/* The first pass: collects the available evidence. */

/* Maximum number of open ranges that are tracked. */
#define MAX_RANGES 32

/* Facts about a name in one word: its kind, and */
#define NAME_KIND     0x0Fu
#define NAME_STEP     0x10u
#define NAME_PLUMBING 0x20u

/* Finds or adds the index of a name in `names`. Each name is parsed once. */
static void stretches_name(struct mt_work_intervals *intervals, uint32_t name, uint32_t *id)
{
    const char *text = mt_symbols_text(intervals->symbols, name);
    struct mt_work_interval_name *facts;
    int64_t number;

    *id = mt_map_get(&intervals->name_ids, name);
    if (*id != MT_MAP_NONE)
        return;
    if (intervals->name_count == MT_MAP_NONE)
        mt_memory_end();
    mt_grow_to(&intervals->names, &intervals->name_capacity, intervals->name_count + 1,
               sizeof *facts);
    mt_map_put(&intervals->name_ids, name, (uint32_t)intervals->name_count);
    *id = (uint32_t)intervals->name_count++;
    facts = &intervals->names[*id];
    *facts = (struct mt_work_interval_name){.facts = (uint32_t)mt_phase_kind_of(text)};
    if (mt_phase_name_is_plumbing(text))
        facts->facts |= NAME_PLUMBING;
    else if (mt_phase_step_rank(text, &number) >= 2)
        facts->facts |= NAME_STEP;
}

/* Returns the state of a thread, created if missing. */
static struct mt_work_thread *stretches_thread(struct mt_work_intervals *intervals, uint16_t id)
{
    mt_grow_zeroed_to(&intervals->threads, &intervals->thread_count, id + 1u,
                      sizeof *intervals->threads);
    return &intervals->threads[id];
}

static void learn_push(struct mt_work_intervals *intervals, uint32_t name)
{
    uint32_t id;

    stretches_name(intervals, name, &id);
    uint32_t facts = intervals->names[id].facts;
    uint32_t kind = facts & NAME_KIND;
    intervals->kinds_told |= 1u << kind;
    if (facts & NAME_PLUMBING)
        return;
    intervals->user_named = true;
    intervals->user_steps |= !!(facts & NAME_STEP);
    intervals->user_parts |=
        kind == MT_PHASE_FORWARD || kind == MT_PHASE_BACKWARD || kind == MT_PHASE_OPTIMIZER;
    intervals->names[id].pushes++;
    if (intervals->open_count < MAX_RANGES)
        intervals->open_names[intervals->open_count++] = id;
}

static void learn_pop(struct mt_work_intervals *intervals, uint32_t name)
{
    uint32_t id = mt_map_get(&intervals->name_ids, name), at = intervals->open_count;

    while (at > 0 && intervals->open_names[at - 1] != id)
        at--;
    if (at)
        intervals->open_count = at - 1;
}

static void learn_alloc(struct mt_work_intervals *intervals)
{
    if (!intervals->user_named)
        return;
    uint32_t innermost =
        intervals->open_count ? intervals->open_names[intervals->open_count - 1] : 0;
    if (!intervals->open_count || (intervals->names[innermost].facts & NAME_STEP))
        intervals->beside++;
    else
        intervals->names[innermost].allocations++;
}

/* Whether the program's own names describe its work, except for its steps. */
static bool names_tell(const struct mt_work_intervals *intervals)
{
    uint64_t within = 0, others = intervals->beside;

    for (size_t i = 0; i < intervals->name_count; i++) {
        within += intervals->names[i].pushes > 1 ? intervals->names[i].allocations : 0;
        others += intervals->names[i].pushes > 1 ? 0 : intervals->names[i].allocations;
    }
    return within && within >= others;
}

void mt_work_intervals_learn(struct mt_work_intervals *intervals, const struct mt_event *event)
{
    if (event->kind == MT_EVENT_PHASE_PUSH) {
        learn_push(intervals, event->name);
        return;
    }
    if (event->kind == MT_EVENT_PHASE_POP)
        learn_pop(intervals, event->name);
    if (event->kind == MT_EVENT_ALLOC)
        learn_alloc(intervals);
    if (event->stack == MT_NO_ID || (event->flags & MT_EVENT_INITIAL) ||
        (event->kind != MT_EVENT_ALLOC && event->kind != MT_EVENT_FREE_REQUESTED))
        return;
    if (event->stack >= intervals->places.count)
        mt_loop_places_update(&intervals->places, intervals->symbols);
    intervals->has_stacks |= event->kind == MT_EVENT_ALLOC;
    intervals->free_stacks |= event->kind == MT_EVENT_FREE_REQUESTED;
    if (event->stack < intervals->places.count)
        intervals->places.used[event->stack] = 1;
}

void mt_work_intervals_learn_stacks(struct mt_work_intervals *intervals, const uint8_t *uses)
{
    mt_loop_places_update(&intervals->places, intervals->symbols);
    for (uint32_t i = 0; i < intervals->places.count; i++) {
        intervals->has_stacks |= (uses[i] & MT_STACK_ALLOCATES) != 0;
        intervals->free_stacks |= (uses[i] & MT_STACK_FREES) != 0;
        intervals->places.used[i] = uses[i] != 0;
    }
}

static void find_engine(struct mt_work_intervals *intervals)
{
    for (uint32_t i = 0; i < intervals->thread_count; i++)
        intervals->threads[i].depth = 0;
    for (uint32_t i = 0; i < intervals->symbols->thread_count && i <= UINT16_MAX; i++) {
        const struct mt_thread_info *info = &intervals->symbols->threads[i];
        bool is = info->name != MT_NO_ID &&
                  !strncmp(mt_symbols_text(intervals->symbols, info->name), "pt_autograd", 11);
        struct mt_work_thread *thread = is ? stretches_thread(intervals, (uint16_t)i) : NULL;

        if (thread)
            thread->is_engine = intervals->has_engine = true;
    }
}

void mt_work_intervals_prepare(struct mt_work_intervals *intervals)
{
    uint32_t update = (1u << MT_PHASE_OPTIMIZER) | (1u << MT_PHASE_BACKWARD);

    intervals->user_turns = names_tell(intervals);
    mt_loop_places_update(&intervals->places, intervals->symbols);
    mt_stack_kinds_update(&intervals->stacks, intervals->symbols);
    for (uint32_t i = 0; i < intervals->places.count; i++) {
        uint8_t kind = mt_stack_kind(&intervals->stacks, i) & MT_STACK_KIND_MASK;

        if (!intervals->places.used[i])
            continue;
        intervals->places.used[i] = mt_loop_places_bit(kind);
        intervals->kinds_told |= 1u << kind;
    }
    find_engine(intervals);
    intervals->is_training = intervals->has_engine || (intervals->kinds_told & update);
    intervals->named_turns = !intervals->user_steps && intervals->user_turns;
    mt_loop_places_find(&intervals->places, &intervals->stacks, intervals->is_training);
    intervals->passes.places = &intervals->places;
}

/* Evidence of an event. */
struct told {
    uint8_t kind, source;
    bool covered;
    uint32_t place, line;
};

void mt_work_intervals_init(struct mt_work_intervals *intervals, struct mt_symbols *symbols,
                            bool has_framework)
{
    memset(intervals, 0, sizeof *intervals);
    intervals->symbols = symbols;
    intervals->has_framework = has_framework;
    intervals->last_place = intervals->turn_place = intervals->trained_place = MT_NO_ID;
    intervals->main_thread = -1;
}

void mt_work_intervals_release(struct mt_work_intervals *intervals)
{
    mt_stack_kinds_release(&intervals->stacks);
    mt_loop_places_release(&intervals->places);
    mt_model_passes_release(&intervals->passes);
    free(intervals->threads);
    free(intervals->list);
    free(intervals->names);
    mt_map_release(&intervals->name_ids);
    mt_map_release(&intervals->gradients);
    mt_xla_runs_release(&intervals->xla_runs);
    memset(intervals, 0, sizeof *intervals);
}

static void push_range(struct mt_work_thread *thread, uint32_t name, uint32_t facts)
{
    if (thread->depth < MAX_RANGES) {
        thread->names[thread->depth] = name;
        thread->facts[thread->depth] = (uint8_t)facts;
    }
    thread->depth++;
}

/* Removes the innermost range of that name; returns false if there is none. */
static bool pop_range(struct mt_work_thread *thread, uint32_t name)
{
    uint32_t at = thread->depth;

    if (thread->depth > MAX_RANGES) {
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
static uint32_t user_ranges(const struct mt_work_thread *thread, bool with_kind)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < thread->depth && i < MAX_RANGES; i++)
        count +=
            !(thread->facts[i] & NAME_PLUMBING) && (!with_kind || (thread->facts[i] & NAME_KIND));
    return count;
}

static void close(struct mt_work_intervals *intervals)
{
    if (!intervals->is_open)
        return;
    intervals->is_open = false;
    if (intervals->count == MAX_INTERVALS)
        return;
    mt_grow_to(&intervals->list, &intervals->capacity, intervals->count + 1,
               sizeof *intervals->list);
    intervals->list[intervals->count++] = intervals->now;
}

static void begin(struct mt_work_intervals *intervals, const struct mt_event *event,
                  const struct told *told)
{
    uint64_t seq = intervals->waits ? intervals->waiting_seq : event->seq;

    close(intervals);
    intervals->is_open = true;
    intervals->now = (struct mt_work_interval){
        .begin_seq = seq,
        .begin_t_ns = intervals->waits ? intervals->waiting_t_ns : event->t_ns,
        .low_bytes = intervals->allocated,
        .low_seq = seq ? seq - 1 : 0,
        .low_t_ns = intervals->last_t_ns,
        .place = told->place,
        .line = told->line,
        .turn = {.body = MT_NO_ID, .at = MT_NO_ID},
        .pass.call = MT_NO_ID,
        .thread = event->thread,
        .kind = told->kind,
        .source = told->source,
        .covered = told->covered,
        .callees = true};
}

static void attach(struct mt_work_intervals *intervals, const struct mt_event *event)
{
    struct mt_work_interval *now = &intervals->now;

    if (!intervals->is_open)
        return;
    now->end_seq = event->seq;
    now->end_t_ns = event->t_ns;
    if (intervals->allocated < now->low_bytes) {
        now->low_bytes = intervals->allocated;
        now->low_seq = event->seq;
        now->low_t_ns = event->t_ns;
    }
}

/* Whether the program's own name covers events on this thread. A thread in no range inherits, as in
 * phases.h. */
static bool is_covered(const struct mt_work_intervals *intervals,
                       const struct mt_work_thread *thread)
{
    return thread && user_ranges(thread, false) ? user_ranges(thread, true) > 0
                                                : intervals->user_open > 0;
}

/* A missing Python stack, among threads that have them, means autograd, if no thread name
 * identifies it. */
static bool is_of_nameless_engine(const struct mt_work_intervals *intervals,
                                  const struct mt_event *event)
{
    return event->kind == MT_EVENT_ALLOC && event->stack == MT_NO_ID && intervals->has_stacks &&
           intervals->is_training && intervals->has_framework && !intervals->has_engine;
}

/* An optimizer with a closure (LBFGS; every optimizer under Lightning) runs the other parts in its
 * range. Stacks and threads identify them; a free without a stack continues them. */
static bool is_of_closure(const struct mt_work_intervals *intervals, const struct mt_event *event,
                          const struct mt_work_thread *thread)
{
    uint8_t judged = mt_stack_kind(&intervals->stacks, event->stack);

    if (thread->is_engine || is_of_nameless_engine(intervals, event))
        return true;
    if (event->stack == MT_NO_ID)
        return event->kind == MT_EVENT_FREE_REQUESTED && intervals->is_open &&
               mt_stack_kind_trains(intervals->now.kind);
    return (judged & MT_STACK_CLOSURE) || mt_stack_kind_trains(judged & MT_STACK_KIND_MASK);
}

static struct told tell(const struct mt_work_intervals *intervals, const struct mt_event *event)
{
    const struct mt_work_thread *thread =
        event->thread < intervals->thread_count ? &intervals->threads[event->thread] : NULL;
    struct told told = {MT_PHASE_UNKNOWN, MT_PHASE_STACKS, false,
                        mt_loop_places_of(&intervals->places, event->stack),
                        mt_loop_places_line(&intervals->places, event->stack)};

    told.covered = intervals->user_named && is_covered(intervals, thread);
    for (uint32_t i = thread ? thread->depth : 0; i > 0; i--) {
        uint8_t facts = i <= MAX_RANGES ? thread->facts[i - 1] : 0;

        if (!(facts & NAME_KIND))
            continue;
        if ((facts & NAME_PLUMBING) && (facts & NAME_KIND) == MT_PHASE_OPTIMIZER &&
            is_of_closure(intervals, event, thread))
            break;
        told.kind = facts & NAME_KIND;
        told.source = facts & NAME_PLUMBING ? MT_PHASE_SCOPES : MT_PHASE_ANNOTATED;
        return told;
    }
    if (thread && thread->is_engine) {
        told.kind = MT_PHASE_BACKWARD;
        told.source = MT_PHASE_THREADS;
    } else if (event->stack != MT_NO_ID) {
        told.kind = mt_stack_kind(&intervals->stacks, event->stack) & MT_STACK_KIND_MASK;
        if (told.kind == MT_PHASE_UNKNOWN && told.line != MT_NO_ID &&
            mt_line_is_of_forward(&intervals->places, told.line))
            told.kind = MT_PHASE_FORWARD;
    } else if (is_of_nameless_engine(intervals, event)) {
        told.kind = MT_PHASE_BACKWARD;
        told.source = MT_PHASE_THREADS;
    }
    return told;
}

/* Whether the program that trains begins another turn. */
static bool turns(struct mt_work_intervals *intervals, const struct told *told,
                  struct mt_turn *turn)
{
    uint32_t last = intervals->last_place, from = intervals->turn_place;

    if (told->place == MT_NO_ID)
        return false;
    intervals->last_place = told->place;
    if (from != MT_NO_ID && mt_loop_places_encloses(&intervals->places, told->place, from))
        from = MT_NO_ID; /* back in a caller: it may call the same function again */
    else
        intervals->turn_place = told->place;
    if (!intervals->is_training)
        return false;
    if (last == told->place && told->kind == MT_PHASE_FORWARD &&
        intervals->trained_place == told->place) {
        *turn = mt_loop_places_at(&intervals->places, last); /* all of it on one line */
        return true;
    }
    return from != MT_NO_ID && from != told->place &&
           mt_loop_places_turn(&intervals->places, from, told->place, turn);
}

/* Whether control enters the function of the last place again, from a later line. */
static bool comes_again(const struct mt_work_intervals *intervals, uint32_t from, uint32_t to,
                        struct mt_line_parting *parting)
{
    const struct mt_loop_places *places = &intervals->places;

    return intervals->is_training && from != MT_NO_ID && to != MT_NO_ID && from != to &&
           mt_line_is_of_function(places, from, to) &&
           mt_line_move_between(places, from, to, parting) == MT_LINE_ON && parting->to != to;
}

/* Backward or an update ran while the program was at its last place. Events between that and the
 * next call of a model (clearing gradients, making a batch) do not change it. */
static void note_training(struct mt_work_intervals *intervals, const struct told *told)
{
    if (told->kind == MT_PHASE_BACKWARD || told->kind == MT_PHASE_OPTIMIZER)
        intervals->trained_place = intervals->last_place;
    else if (told->kind == MT_PHASE_FORWARD && told->place != MT_NO_ID)
        intervals->trained_place = MT_NO_ID;
}

/* A range of the framework (FSDP's) began the model's call before a stack showed its place. */
static bool begun_by_range(const struct mt_work_intervals *intervals, const struct mt_event *event,
                           const struct told *told)
{
    const struct mt_work_interval *now = &intervals->now;

    return intervals->is_open && now->kind == MT_PHASE_FORWARD && told->kind == now->kind &&
           now->source == MT_PHASE_SCOPES && now->place == MT_NO_ID && !now->allocates &&
           now->thread == event->thread && now->covered == told->covered;
}

/* A loss in a model's forward: the forward continues. */
static bool returns_to_forward(const struct mt_work_intervals *intervals, const struct told *told,
                               bool same_place)
{
    const struct mt_work_interval *last =
        intervals->count ? &intervals->list[intervals->count - 1] : NULL;

    return last && same_place && told->kind == MT_PHASE_FORWARD && last->kind == MT_PHASE_FORWARD &&
           intervals->now.kind == MT_PHASE_LOSS && last->covered == told->covered &&
           last->place == intervals->now.place;
}

/* Known events name the part that the same statement began. */
static bool goes_on(struct mt_work_intervals *intervals, const struct told *told, bool same_place)
{
    struct mt_work_interval *now = &intervals->now;

    if (!intervals->is_open || now->covered != told->covered)
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
    if (returns_to_forward(intervals, told, same_place)) {
        uint64_t end_seq = now->end_seq, end_t_ns = now->end_t_ns;

        *now = intervals->list[--intervals->count];
        now->end_seq = end_seq;
        now->end_t_ns = end_t_ns;
        return true;
    }
    return false;
}

/* If frees have no stacks: a block that an autograd thread allocated and another thread frees was a
 * gradient. */
static void follow_gradient(struct mt_work_intervals *intervals, const struct mt_event *event,
                            struct told *told)
{
    const struct mt_work_thread *thread =
        event->thread < intervals->thread_count ? &intervals->threads[event->thread] : NULL;
    bool is_engine = thread && thread->is_engine;
    uint64_t key = event->addr ^ mt_hash_u64(event->device);

    if (!intervals->has_engine || intervals->free_stacks || !intervals->has_stacks)
        return;
    if (event->kind == MT_EVENT_ALLOC) {
        if (is_engine)
            mt_map_put(&intervals->gradients, key, 1);
        return;
    }
    if (mt_map_take(&intervals->gradients, key) != MT_MAP_NONE && !is_engine &&
        told->kind == MT_PHASE_UNKNOWN) {
        told->kind = MT_PHASE_ZERO_GRAD;
        told->source = MT_PHASE_THREADS;
    }
}

/* Lines of several threads do not form a loop. */
static void forget_other_threads(struct mt_work_intervals *intervals, const struct mt_event *event,
                                 struct told *told)
{
    if (intervals->main_thread < 0 && told->kind > MT_PHASE_DATA && told->place != MT_NO_ID)
        intervals->main_thread = event->thread;
    if (intervals->main_thread >= 0 && event->thread != intervals->main_thread)
        told->place = told->line = MT_NO_ID;
}

/* Whether a forward pass ends here, and another one begins in the same part of the work. */
static bool parts_passes(const struct mt_work_intervals *intervals, const struct told *told,
                         bool passes)
{
    bool forward = told->kind == MT_PHASE_FORWARD && (intervals->now.kind == MT_PHASE_FORWARD ||
                                                      intervals->now.kind == MT_PHASE_LOSS);

    return forward && (passes || (!intervals->is_training && intervals->passes.moved));
}

/* The event continues the open interval, or begins another one. */
static void place_event(struct mt_work_intervals *intervals, const struct mt_event *event,
                        const struct told *told)
{
    uint32_t last_place = intervals->last_place;
    struct mt_turn turn = {.body = MT_NO_ID, .at = MT_NO_ID};
    struct mt_pass_turn pass;
    struct mt_line_parting parting = {MT_NO_ID, MT_NO_ID};
    bool passes = mt_model_passes_move(&intervals->passes, told->line, false, &pass);
    bool again = comes_again(intervals, intervals->turn_place, told->place, &parting);
    bool goes_back = turns(intervals, told, &turn);

    if (!intervals->is_training && passes) {
        goes_back = true;
        turn = pass.turn;
    }
    note_training(intervals, told);
    bool same_place = !goes_back && told->place == last_place &&
                      (told->place != MT_NO_ID || !intervals->has_stacks);
    if (goes_back && begun_by_range(intervals, event, told)) {
        intervals->now.turns = true;
        intervals->now.turn = turn;
    } else if (goes_back || again || parts_passes(intervals, told, passes) ||
               !goes_on(intervals, told, same_place)) {
        begin(intervals, event, told);
        intervals->now.turns = goes_back || intervals->step_begins;
        intervals->now.turn = turn;
        intervals->step_begins = false;
    }
    if (again && !goes_back) {
        intervals->now.again = true;
        intervals->now.parting = parting;
    }
    if (passes) {
        intervals->now.passes = true;
        intervals->now.pass = pass;
    }
    if (intervals->now.place == MT_NO_ID)
        intervals->now.place = told->place;
    if (intervals->now.line == MT_NO_ID)
        intervals->now.line = told->line;
}

static void on_block(struct mt_work_intervals *intervals, const struct mt_event *event)
{
    struct told told = tell(intervals, event);
    bool is_alloc = event->kind == MT_EVENT_ALLOC;
    struct mt_pass_turn none;

    follow_gradient(intervals, event, &told);
    forget_other_threads(intervals, event, &told);
    bool speaks = told.kind != MT_PHASE_UNKNOWN ||
                  (is_alloc && (told.place != MT_NO_ID || !intervals->has_stacks));
    if (!speaks && told.place != MT_NO_ID && told.place != intervals->last_place)
        close(intervals); /* a free by a later statement */
    if (speaks)
        place_event(intervals, event, &told);
    else
        mt_model_passes_move(&intervals->passes, told.line, true, &none);
    intervals->allocated += is_alloc ? event->size_bytes : 0 - event->size_bytes;
    if (is_alloc && intervals->is_open) {
        intervals->now.allocates = true;
        intervals->now.callees &= event->stack != told.place;
    }
    intervals->waits = intervals->empties = false;
    attach(intervals, event);
}

/* A top-level range whose name was already in this turn begins another one. */
static bool turns_name(struct mt_work_intervals *intervals, uint32_t name)
{
    bool seen = false;

    for (uint32_t i = 0; i < intervals->turn_name_count; i++)
        seen |= intervals->turn_names[i] == name;
    if (seen)
        intervals->turn_name_count = 0;
    if (intervals->turn_name_count < sizeof intervals->turn_names / sizeof *intervals->turn_names)
        intervals->turn_names[intervals->turn_name_count++] = name;
    return seen;
}

static void on_user_push(struct mt_work_intervals *intervals, const struct mt_event *event,
                         uint32_t facts, bool outermost)
{
    struct told told = {(uint8_t)(facts & NAME_KIND), MT_PHASE_ANNOTATED, true, MT_NO_ID, MT_NO_ID};

    intervals->step_begins |= !!(facts & NAME_STEP);
    if (intervals->named_turns)
        told.place = event->name;
    if (intervals->named_turns && !outermost)
        return;
    close(intervals);
    if ((intervals->named_turns || told.kind)) {
        begin(intervals, event, &told);
        intervals->now.turns = intervals->named_turns && turns_name(intervals, event->name);
        attach(intervals, event);
    }
}

static void on_push(struct mt_work_intervals *intervals, const struct mt_event *event)
{
    struct mt_work_thread *thread = stretches_thread(intervals, event->thread);
    struct told told = {MT_PHASE_UNKNOWN, MT_PHASE_SCOPES, false, MT_NO_ID, MT_NO_ID};
    bool outermost = thread && user_ranges(thread, false) == 0;
    uint32_t id;

    stretches_name(intervals, event->name, &id);
    uint32_t facts = intervals->names[id].facts;
    told.kind = facts & NAME_KIND;
    push_range(thread, event->name, facts);
    if (!(facts & NAME_PLUMBING)) {
        intervals->user_open += !!(facts & NAME_KIND);
        on_user_push(intervals, event, facts, outermost);
        return;
    }
    told.covered = is_covered(intervals, thread);
    if (intervals->named_turns || told.kind == MT_PHASE_UNKNOWN || told.covered)
        return;
    note_training(intervals, &told);
    if (!goes_on(intervals, &told, false))
        begin(intervals, event, &told);
    attach(intervals, event);
}

static void on_pop(struct mt_work_intervals *intervals, const struct mt_event *event)
{
    struct mt_work_thread *thread = stretches_thread(intervals, event->thread);
    uint32_t id;

    stretches_name(intervals, event->name, &id);
    uint32_t facts = intervals->names[id].facts;
    if (!pop_range(thread, event->name))
        return;
    if (!(facts & NAME_PLUMBING)) {
        if ((facts & NAME_KIND) && intervals->user_open)
            intervals->user_open--;
        if (intervals->now.covered)
            attach(intervals, event);
        if (!intervals->named_turns || user_ranges(thread, false) == 0) {
            close(intervals);
            return;
        }
    } else if (intervals->is_open && (facts & NAME_KIND) == intervals->now.kind) {
        attach(intervals, event);
    }
}

/* Actions of the allocator before it serves a request are part of serving it. */
static void wait_for_block(struct mt_work_intervals *intervals, const struct mt_event *event)
{
    intervals->empties |= event->kind == MT_EVENT_EMPTY_CACHE;
    if (intervals->waits || intervals->empties || intervals->named_turns)
        return;
    intervals->waits = true;
    intervals->waiting_seq = event->seq;
    intervals->waiting_t_ns = event->t_ns;
}

void mt_work_intervals_cut(struct mt_work_intervals *intervals, const struct mt_event *event)
{
    if (event->flags & MT_EVENT_INITIAL)
        return;
    if (!intervals->has_framework &&
        (event->kind == MT_EVENT_PHASE_PUSH || event->kind == MT_EVENT_PHASE_POP))
        mt_xla_runs_range(&intervals->xla_runs, intervals->symbols, event);
    switch (event->kind) {
    case MT_EVENT_ALLOC:
    case MT_EVENT_FREE_REQUESTED:
        intervals->died = intervals->died && event->kind != MT_EVENT_ALLOC;
        if (!intervals->named_turns)
            on_block(intervals, event);
        break;
    case MT_EVENT_FREE_COMPLETED: attach(intervals, event); break;
    case MT_EVENT_SEGMENT_ALLOC:
    case MT_EVENT_SEGMENT_FREE:
    case MT_EVENT_SEGMENT_MAP:
    case MT_EVENT_SEGMENT_UNMAP:
    case MT_EVENT_ALLOC_FAILED:
    case MT_EVENT_EMPTY_CACHE: wait_for_block(intervals, event); break;
    case MT_EVENT_OOM:
        intervals->died = true;
        attach(intervals, event);
        break;
    case MT_EVENT_PHASE_PUSH: on_push(intervals, event); break;
    case MT_EVENT_PHASE_POP: on_pop(intervals, event); break;
    default: break;
    }
    intervals->last_t_ns = event->t_ns;
}

void mt_work_intervals_finish(struct mt_work_intervals *intervals)
{
    bool is_guess =
        intervals->now.kind == MT_PHASE_ZERO_GRAD && intervals->now.source == MT_PHASE_THREADS;

    if (is_guess) /* the end of the program also frees gradients */
        intervals->now.kind = MT_PHASE_UNKNOWN;
    close(intervals);
}
