/* Open ranges are a linked list per thread, innermost first, in one pool; threads in a range are a
 * list sorted by last activity. */
#include "grow.h"
#include "phases.h"
#include "process_memory.h"
#include "symbols.h"
#include "util.h"
#include "work_kinds.h"
#include "xla_names.h"

#include <stdlib.h>
#include <string.h>

/* Longer paths lose their middle: names come from the input. */
#define PATH_MAX_BYTES 200

void mt_phases_init(struct mt_phases *phases, struct mt_arena *arena,
                    const struct mt_symbols *symbols)
{
    memset(phases, 0, sizeof *phases);
    phases->arena = arena;
    phases->symbols = symbols;
    phases->newest = -1;
    phases->latest = MT_NO_PHASE;
    phases->limit = MT_PHASES_MAX;
}

void mt_phases_release(struct mt_phases *phases)
{
    free(phases->phases);
    free(phases->facts);
    free(phases->threads);
    free(phases->open);
    free(phases->names);
    mt_map_release(&phases->name_ids);
    mt_map_release(&phases->xla_ids);
    mt_strings_release(&phases->xla_texts);
    memset(phases, 0, sizeof *phases);
}

static uint32_t add_name(struct mt_phases *phases, const struct mt_phase_name *name)
{
    mt_grow_to(&phases->names, &phases->name_capacity, (size_t)phases->name_count + 1,
               sizeof *phases->names);
    phases->names[phases->name_count] = *name;
    return phases->name_count++;
}

static uint32_t plain_name(struct mt_phases *phases, const char *text)
{
    struct mt_phase_name name = {.text = text,
                                 .kind = (uint8_t)mt_phase_kind_of(text),
                                 .is_plumbing = mt_phase_name_is_plumbing(text)};

    name.step_rank = (uint8_t)mt_phase_step_rank(text, &name.number);
    return add_name(phases, &name);
}

/* A name of XLA's as in reports: "jit_step", "compile jit_step", "thunk copy.1". The rest of it is
 * numbers, and passes of the compiler. */
static const char *speak_xla(struct mt_phases *phases, enum mt_xla_range kind, const char *module,
                             size_t length)
{
    static const char *const before[] = {
        [MT_XLA_MODULE] = "", [MT_XLA_COMPILE] = "compile ", [MT_XLA_THUNK] = "thunk "};

    if (!length)
        return kind == MT_XLA_COMPILE ? "compile" : "XLA";
    return mt_arena_printf(phases->arena, "%s%.*s", before[kind],
                           (int)mt_min_u64(length, PATH_MAX_BYTES), module);
}

/* Their words concern XLA, not parts of a training step. */
static uint32_t xla_name(struct mt_phases *phases, enum mt_xla_range kind, const char *module,
                         size_t length)
{
    const char *text = speak_xla(phases, kind, module, length);
    const struct mt_phase_name name = {.text = text, .xla = (uint8_t)kind, .is_plumbing = true};
    uint32_t id;

    mt_strings_put(&phases->xla_texts, text, strlen(text), &id);
    uint32_t index = mt_map_get(&phases->xla_ids, id);
    if (index != MT_MAP_NONE)
        return index;
    index = add_name(phases, &name);
    mt_map_put(&phases->xla_ids, id, index);
    return index;
}

/* Index of the parsed name. */
static uint32_t name_index(struct mt_phases *phases, uint32_t name)
{
    uint32_t index = mt_map_get(&phases->name_ids, name);
    const char *text = mt_symbols_text(phases->symbols, name), *module;
    size_t length;

    if (index != MT_MAP_NONE)
        return index;
    enum mt_xla_range kind = mt_xla_range_of(text, &module, &length);
    index = kind ? xla_name(phases, kind, module, length) : plain_name(phases, text);
    mt_map_put(&phases->name_ids, name, index);
    return index;
}

static const char *make_path(struct mt_phases *phases, int32_t parent, const char *name)
{
    const char *outer = parent == MT_NO_PHASE ? "" : phases->phases[parent].path;
    size_t outer_length = strlen(outer), length = strlen(name);

    if (parent == MT_NO_PHASE && length <= PATH_MAX_BYTES)
        return name;
    if (outer_length + length < PATH_MAX_BYTES)
        return mt_arena_printf(phases->arena, "%s/%s", outer, name);
    if (length > PATH_MAX_BYTES / 2)
        length = PATH_MAX_BYTES / 2;
    if (outer_length > PATH_MAX_BYTES / 2)
        outer_length = PATH_MAX_BYTES / 2;
    return mt_arena_printf(phases->arena, "%.*s/…/%.*s", (int)outer_length, outer, (int)length,
                           name);
}

static struct mt_phase_thread *thread_at(struct mt_phases *phases, uint16_t id)
{
    size_t i = phases->thread_count;

    mt_grow_to(&phases->threads, &phases->thread_count, id + 1u, sizeof *phases->threads);
    for (; i < phases->thread_count; i++)
        phases->threads[i] = (struct mt_phase_thread){MT_NO_PHASE, 0, 0, 0, -1, -1, false};
    return &phases->threads[id];
}

static void unlist(struct mt_phases *phases, struct mt_phase_thread *thread)
{
    if (!thread->listed)
        return;
    if (thread->older >= 0)
        phases->threads[thread->older].newer = thread->newer;
    if (thread->newer >= 0)
        phases->threads[thread->newer].older = thread->older;
    else
        phases->newest = thread->older;
    thread->listed = false;
}

/* The thread was active: moves it to the front, or removes it from the list. */
static void touch(struct mt_phases *phases, struct mt_phase_thread *thread)
{
    unlist(phases, thread);
    if (thread->innermost != MT_NO_PHASE) {
        thread->newer = -1;
        thread->older = phases->newest;
        if (phases->newest >= 0)
            phases->threads[phases->newest].newer = (int32_t)(thread - phases->threads);
        phases->newest = (int32_t)(thread - phases->threads);
        thread->listed = true;
    }
    phases->latest = phases->newest < 0 ? MT_NO_PHASE : phases->threads[phases->newest].innermost;
}

static void set_owner(struct mt_phases *phases, struct mt_phase_facts *facts, int32_t index)
{
    const struct mt_phase *phase = &phases->phases[index];
    const struct mt_phase_facts *parent =
        phase->parent == MT_NO_PHASE ? NULL : &phases->facts[phase->parent];
    bool is_named = facts->kind != MT_PHASE_UNKNOWN || !phase->is_plumbing;

    facts->owner = is_named ? index : MT_NO_PHASE;
    if (!parent)
        return;
    if (facts->kind == MT_PHASE_UNKNOWN && parent->kind != MT_PHASE_UNKNOWN) {
        facts->kind = parent->kind;
        facts->owner = parent->owner;
    } else if (!is_named || (facts->kind != MT_PHASE_UNKNOWN && facts->kind == parent->kind)) {
        facts->owner = parent->owner;
    }
}

/* A range that the framework inserted on a thread without ranges (a node of the autograd graph) is
 * inside the current activity of the program. */
static int32_t parent_of(const struct mt_phases *phases, const struct mt_phase_thread *thread,
                         bool is_plumbing)
{
    bool inherits = is_plumbing && thread->innermost == MT_NO_PHASE &&
                    phases->latest != MT_NO_PHASE &&
                    phases->phases[phases->latest].depth < MT_PHASES_MAX_DEPTH;

    return inherits ? phases->latest : thread->innermost;
}

/* Inferred ranges have their origin (source.h); recorded ones do not. */
static uint8_t source_of(const struct mt_event *event, bool is_plumbing)
{
    if (event->aux_bytes && event->aux_bytes < MT_PHASE_SOURCE_COUNT)
        return (uint8_t)event->aux_bytes;
    return is_plumbing ? MT_PHASE_SCOPES : MT_PHASE_ANNOTATED;
}

/* Events of inferred steps have the name of their loop, if there are several (source.h). */
static const char *loop_of(const struct mt_phases *phases, const struct mt_event *event)
{
    return event->aux_bytes && event->size_bytes &&
                   event->size_bytes <= phases->symbols->strings.count
               ? mt_symbols_text(phases->symbols, (uint32_t)(event->size_bytes - 1))
               : NULL;
}

static void record(struct mt_phases *phases, const struct mt_event *event,
                   const struct mt_phase_thread *thread, uint32_t index)
{
    const struct mt_phase_name *name = &phases->names[index];
    size_t facts_capacity = phases->capacity;

    mt_grow_to(&phases->facts, &facts_capacity, (size_t)phases->count + 1, sizeof *phases->facts);
    mt_grow_to(&phases->phases, &phases->capacity, (size_t)phases->count + 1,
               sizeof *phases->phases);
    struct mt_phase *phase = &phases->phases[phases->count];
    struct mt_phase_facts *facts = &phases->facts[phases->count];
    *phase = (struct mt_phase){.name = name->text,
                               .step = MT_NO_STEP,
                               .parent = parent_of(phases, thread, name->is_plumbing),
                               .thread = event->thread,
                               .loop = loop_of(phases, event),
                               .source = source_of(event, name->is_plumbing),
                               .is_plumbing = name->is_plumbing,
                               .cut = true,
                               .begin_t_ns = event->t_ns,
                               .end_t_ns = event->t_ns,
                               .begin_event = event->seq,
                               .end_event = event->seq};
    if (phase->parent != MT_NO_PHASE)
        phase->depth = phases->phases[phase->parent].depth + 1;
    phase->path = make_path(phases, phase->parent, phase->name);
    *facts = (struct mt_phase_facts){.kind = name->kind,
                                     .step_rank = name->is_plumbing ? 0 : name->step_rank,
                                     .number = name->number};
    set_owner(phases, facts, (int32_t)phases->count);
    phases->xla_modules += name->xla == MT_XLA_MODULE;
    phases->count++;
}

static struct mt_open_range *open_range(struct mt_phases *phases, uint32_t *index)
{
    if (phases->open_free) {
        *index = phases->open_free - 1;
        phases->open_free = phases->open[*index].outer;
        return &phases->open[*index];
    }
    mt_grow_to(&phases->open, &phases->open_capacity, (size_t)phases->open_count + 1,
               sizeof *phases->open);
    *index = phases->open_count++;
    return &phases->open[*index];
}

/* A range directly inside one of the same name adds nothing: the program was named with both NVTX
 * and record_function, for example. Nor do XLA's thunks inside their module, or the passes of its
 * compiler inside the compilation. */
static bool is_told_already(const struct mt_phases *phases, const struct mt_phase_thread *thread,
                            uint32_t name)
{
    uint32_t outer = thread->top ? phases->open[thread->top - 1].name : MT_MAP_NONE;

    if (outer == MT_MAP_NONE)
        return false;
    return outer == name || (phases->names[outer].xla && phases->names[name].xla > MT_XLA_MODULE);
}

void mt_phases_push(struct mt_phases *phases, const struct mt_event *event, int32_t *phase)
{
    struct mt_phase_thread *thread = thread_at(phases, event->thread);
    uint32_t index, name = name_index(phases, event->name);

    *phase = MT_NO_PHASE;
    if (!thread || name == MT_MAP_NONE)
        mt_memory_end();
    if (thread->depth == MT_PHASES_MAX_DEPTH) {
        thread->overflow++;
        phases->not_recorded++;
        return;
    }
    struct mt_open_range *range = open_range(phases, &index);
    bool is_new = !is_told_already(phases, thread, name);
    if (is_new && phases->next < phases->limit) {
        if (phases->next == phases->count)
            record(phases, event, thread, name);
        *phase = (int32_t)phases->next++;
    } else {
        phases->not_recorded += is_new;
    }
    range->recorded = *phase != MT_NO_PHASE;
    range->phase = range->recorded ? *phase : thread->innermost;
    range->name = name;
    range->outer = thread->top;
    thread->top = index + 1;
    thread->depth++;
    thread->innermost = range->phase;
    touch(phases, thread);
}

static void end_range(struct mt_phases *phases, uint32_t index, const struct mt_event *event,
                      bool cut)
{
    struct mt_open_range *range = &phases->open[index];

    if (range->recorded) {
        struct mt_phase *phase = &phases->phases[range->phase];

        phase->end_t_ns = event->t_ns;
        phase->end_event = event->seq;
        phase->cut = cut;
        phases->ended[phases->ended_count++] = range->phase;
    }
    range->outer = phases->open_free;
    phases->open_free = index + 1;
}

/* Returns the link to the innermost open range of that name, or NULL. */
static uint32_t *find_open(struct mt_phases *phases, struct mt_phase_thread *thread, uint32_t name)
{
    for (uint32_t *link = &thread->top; *link; link = &phases->open[*link - 1].outer)
        if (phases->open[*link - 1].name == name)
            return link;
    return NULL;
}

/* A range of the framework that was pushed before a user's and ends before it
 * comes from another thread (snapshots do not record which). */
static bool ends_alone(const struct mt_phases *phases, const struct mt_phase_thread *thread,
                       uint32_t target)
{
    const struct mt_open_range *range = &phases->open[target - 1];

    if (!range->recorded || !phases->phases[range->phase].is_plumbing)
        return false;
    for (uint32_t at = thread->top; at != target; at = phases->open[at - 1].outer)
        if (phases->open[at - 1].recorded &&
            !phases->phases[phases->open[at - 1].phase].is_plumbing)
            return true;
    return false;
}

void mt_phases_pop(struct mt_phases *phases, const struct mt_event *event)
{
    struct mt_phase_thread *thread = thread_at(phases, event->thread);

    phases->ended_count = 0;
    if (thread && thread->overflow) {
        thread->overflow--;
        return;
    }
    uint32_t *link =
        thread ? find_open(phases, thread, mt_map_get(&phases->name_ids, event->name)) : NULL;
    if (!link) {
        phases->unmatched++;
        return;
    }
    uint32_t target = *link;
    uint32_t outer = phases->open[target - 1].outer;
    if (ends_alone(phases, thread, target)) {
        *link = outer;
    } else {
        for (uint32_t at = thread->top; at != target; thread->depth--) {
            uint32_t next = phases->open[at - 1].outer;

            end_range(phases, at - 1, event, true);
            at = next;
        }
        thread->top = outer;
    }
    end_range(phases, target - 1, event, false);
    thread->depth--;
    thread->innermost = thread->top ? phases->open[thread->top - 1].phase : MT_NO_PHASE;
    touch(phases, thread);
}

static void end_what_is_open(struct mt_phases *phases, uint64_t last_t_ns, uint64_t last_event)
{
    for (uint32_t i = 0; i < phases->thread_count; i++) {
        for (uint32_t at = phases->threads[i].top; at; at = phases->open[at - 1].outer) {
            struct mt_open_range *range = &phases->open[at - 1];

            if (range->recorded) {
                phases->phases[range->phase].end_t_ns = last_t_ns;
                phases->phases[range->phase].end_event = last_event;
            }
        }
    }
}

void mt_phases_finish(struct mt_phases *phases, uint64_t last_t_ns, uint64_t last_event)
{
    uint8_t best = 1;

    end_what_is_open(phases, last_t_ns, last_event);
    mt_phases_stop(phases);
    for (uint32_t i = 0; i < phases->count; i++)
        if (phases->facts[i].step_rank > best)
            best = phases->facts[i].step_rank;
    for (uint32_t i = 0; i < phases->count; i++) {
        struct mt_phase *phase = &phases->phases[i];

        phase->is_step = phases->facts[i].step_rank == best;
        phase->step = phase->is_step                 ? phases->facts[i].number
                      : phase->parent == MT_NO_PHASE ? MT_NO_STEP
                                                     : phases->phases[phase->parent].step;
    }
}

void mt_phases_rewind(struct mt_phases *phases)
{
    for (uint32_t i = 0; i < phases->thread_count; i++)
        phases->threads[i] = (struct mt_phase_thread){MT_NO_PHASE, 0, 0, 0, -1, -1, false};
    phases->open_count = 0;
    phases->open_free = 0;
    phases->next = 0;
    phases->newest = -1;
    phases->latest = MT_NO_PHASE;
}
