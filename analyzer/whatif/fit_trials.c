/* Replays under limits, each at most once, and the first request that a replay could not serve. */
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "check.h"
#include "fit_trials.h"
#include "grow.h"
#include "inferred_phases.h"
#include "map.h"
#include "phases.h"
#include "process_memory.h"
#include "replay.h"
#include "report_query.h"
#include "site.h"
#include "sorted.h"
#include "util.h"
#include "work_kinds.h"

/* Whether the policy had no memory for this event of a replay. Blocks of the initial state do not
 * count. */
static inline bool fit_is_failure(const struct mt_event *event, const struct mt_replay_view *view,
                                  uint64_t died_at)
{
    bool wanted = (event->kind == MT_EVENT_ALLOC && !(event->flags & MT_EVENT_INITIAL)) ||
                  (event->kind == MT_EVENT_OOM && event->seq >= died_at);

    return wanted && !view->block_bytes && !view->is_left_out;
}

/* Live memory is counted by stack; blocks without one by where they were allocated. */
enum { NO_STACK, NO_STACK_IN_BACKWARD, FIRST_STACK };

struct holding {
    uint64_t block_bytes, blocks;
};

struct witness {
    const struct mt_symbols *symbols;
    uint16_t device;
    uint64_t died_at;
    struct mt_arena *arena; /* of the answer */
    struct mt_fit_failure *failure;
    struct mt_arena scratch;
    struct mt_phases phases;
    struct mt_map alive; /* recorded address -> index of its holding */
    struct holding *holdings;
    size_t holding_count, holding_capacity;
};

static bool is_in_backward(const struct witness *witness, const struct mt_event *event)
{
    int32_t phase = mt_phases_current(&witness->phases, event->thread);

    return phase != MT_NO_PHASE && witness->phases.facts[phase].kind == MT_PHASE_BACKWARD;
}

static uint32_t holding_of(const struct witness *witness, const struct mt_event *event)
{
    if (event->stack != MT_NO_ID)
        return FIRST_STACK + event->stack;
    return is_in_backward(witness, event) ? NO_STACK_IN_BACKWARD : NO_STACK;
}

static void forget(struct witness *witness, const struct mt_event *event,
                   const struct mt_replay_view *view)
{
    uint32_t at = mt_map_take(&witness->alive, event->addr);

    if (at == MT_MAP_NONE)
        return;
    witness->holdings[at].block_bytes -= view->block_bytes;
    witness->holdings[at].blocks--;
}

static void remember(struct witness *witness, const struct mt_event *event,
                     const struct mt_replay_view *view)
{
    size_t at = holding_of(witness, event), count = witness->holding_count;

    if (!view->block_bytes || at >= MT_MAP_NONE)
        return;
    if (at >= count) {
        mt_grow_to(&witness->holdings, &witness->holding_capacity, at + 1,
                   sizeof *witness->holdings);
        witness->holding_count = at + 1;
        memset(witness->holdings + count, 0, (at + 1 - count) * sizeof *witness->holdings);
    }
    witness->holdings[at].block_bytes += view->block_bytes;
    witness->holdings[at].blocks++;
    mt_map_put(&witness->alive, event->addr, (uint32_t)at);
}

struct site_sum {
    struct mt_site site; /* its frame is MT_NO_ID: no stack */
    uint32_t holding;
    struct holding sum;
};

MT_DEFINE_ORDER(by_place, struct site_sum,
                MT_ASCENDING(site.frame) || MT_ASCENDING(site.own) || MT_ASCENDING(holding))
MT_DEFINE_ORDER(by_size, struct site_sum, MT_DESCENDING(sum.block_bytes) || MT_THEN(by_place))

static bool is_same_site(struct mt_site a, struct mt_site b)
{
    return a.frame != MT_NO_ID && a.frame == b.frame && a.own == b.own;
}

/* One entry per holding becomes one per site: stacks with the same site are joined. */
static size_t sum_sites(const struct witness *witness, struct site_sum *sums)
{
    size_t count = 0, joined = 0, i;

    for (i = 0; i < witness->holding_count; i++) {
        uint32_t stack = i < FIRST_STACK ? MT_NO_ID : (uint32_t)(i - FIRST_STACK);
        if (!witness->holdings[i].blocks)
            continue;
        sums[count].site = mt_stack_site(witness->symbols, stack);
        sums[count].holding = (uint32_t)i;
        sums[count++].sum = witness->holdings[i];
    }
    qsort(sums, count, sizeof *sums, by_place);
    for (i = 0; i < count; i++) {
        if (joined && is_same_site(sums[i].site, sums[joined - 1].site)) {
            sums[joined - 1].sum.block_bytes += sums[i].sum.block_bytes;
            sums[joined - 1].sum.blocks += sums[i].sum.blocks;
        } else {
            sums[joined++] = sums[i];
        }
    }
    qsort(sums, joined, sizeof *sums, by_size);
    return joined;
}

static const char *site_of(const struct witness *witness, const struct site_sum *sum)
{
    uint32_t stack = sum->holding < FIRST_STACK ? MT_NO_ID : sum->holding - FIRST_STACK;

    return mt_site_label(witness->arena, witness->symbols, stack,
                         sum->holding == NO_STACK_IN_BACKWARD);
}

static void name_holders(const struct witness *witness)
{
    struct mt_fit_failure *failure = witness->failure;
    struct site_sum *sums;
    size_t count, i;

    if (!witness->holding_count)
        return;
    sums = mt_memory_zeroed(witness->holding_count, sizeof *sums);
    count = sum_sites(witness, sums);
    for (i = 0; i < count && i < MT_FIT_SITES; i++) {
        struct mt_fit_site *site = &failure->sites[failure->site_count++];
        site->label = site_of(witness, &sums[i]);
        site->block_bytes = sums[i].sum.block_bytes;
        site->blocks = sums[i].sum.blocks;
    }
    free(sums);
}

static void tell(struct witness *witness, const struct mt_event *event,
                 const struct mt_replay_view *view)
{
    struct mt_fit_failure *failure = witness->failure;
    int32_t phase = mt_phases_current(&witness->phases, event->thread);

    failure->known = true;
    failure->event = event->seq;
    failure->size_bytes = event->size_bytes;
    failure->alive = mt_counters_bytes(view->counters);
    failure->site = mt_site_label(witness->arena, witness->symbols, event->stack,
                                  is_in_backward(witness, event));
    if (phase != MT_NO_PHASE) {
        const struct mt_phase *in = &witness->phases.phases[phase];
        mt_phases_finish(&witness->phases, event->t_ns, event->seq); /* finds the steps */
        const char *where = mt_phase_where(witness->arena, witness->phases.phases, phase, in->step);
        failure->phase = mt_arena_text(witness->arena, in->path, strlen(in->path));
        failure->where = mt_arena_text(witness->arena, where, strlen(where));
    }
    name_holders(witness);
}

static enum mt_status observe(void *context, const struct mt_event *event,
                              const struct mt_replay_view *view)
{
    struct witness *witness = context;
    int32_t phase;

    if (event->kind == MT_EVENT_PHASE_PUSH) {
        mt_phases_push(&witness->phases, event, &phase);
        return MT_OK;
    }
    if (event->kind == MT_EVENT_PHASE_POP)
        mt_phases_pop(&witness->phases, event);
    if (event->device != witness->device)
        return MT_OK;
    if (fit_is_failure(event, view, witness->died_at)) {
        tell(witness, event, view);
        return MT_END;
    }
    if (event->kind == MT_EVENT_ALLOC) {
        remember(witness, event, view);
        return MT_OK;
    }
    if (event->kind == MT_EVENT_FREE_REQUESTED || event->kind == MT_EVENT_FREE_COMPLETED)
        forget(witness, event, view);
    return MT_OK;
}

enum mt_status mt_fit_failure_find(struct mt_source *source,
                                   const struct mt_replay_options *options, uint16_t device,
                                   uint64_t died_at, struct mt_replay_summary *trial,
                                   struct mt_arena *arena, struct mt_fit_failure *failure,
                                   struct mt_error *error)
{
    struct witness witness = {.symbols = &source->symbols,
                              .device = device,
                              .died_at = died_at,
                              .arena = arena,
                              .failure = failure};
    const struct mt_replay_observer observer = {&witness, observe, NULL};
    enum mt_status status;

    memset(failure, 0, sizeof *failure);
    mt_phases_init(&witness.phases, &witness.scratch, witness.symbols);
    status = mt_source_rewind(source, error);
    if (status == MT_OK)
        status = mt_inferred_phases_insert(source, error);
    if (status == MT_OK)
        status = mt_replay_run(source, options, &observer, trial, error);
    mt_phases_release(&witness.phases);
    mt_arena_release(&witness.scratch);
    mt_map_release(&witness.alive);
    free(witness.holdings);
    return status;
}

/* One replay of a reading. */
struct attempt {
    struct mt_fit_trial *trial;
    uint64_t died_at;
    struct mt_replay_options replay;
    struct mt_replay_observer observer;
};

void mt_fit_trials_release(struct mt_fit_trials *trials)
{
    free(trials->known);
    trials->known = NULL;
    trials->known_count = trials->known_capacity = 0;
}

static bool is_of(const struct mt_fit_trial *trial, const struct mt_fit_subject *subject)
{
    return trial->subject.device == subject->device && trial->subject.blind == subject->blind &&
           (trial->any_order || (trial->subject.order.rule == subject->order.rule &&
                                 trial->subject.order.seed == subject->order.seed));
}

/* NULL = none. */
static const struct mt_fit_trial *find(const struct mt_fit_trial *trials, size_t count,
                                       const struct mt_fit_subject *subject, uint64_t limit_bytes)
{
    for (size_t i = 0; i < count; i++)
        if (is_of(&trials[i], subject) && limit_bytes >= trials[i].from_bytes &&
            limit_bytes < trials[i].until_bytes)
            return &trials[i];
    return NULL;
}

const struct mt_fit_trial *mt_fit_trials_find(const struct mt_fit_trials *trials,
                                              const struct mt_fit_subject *subject,
                                              uint64_t limit_bytes)
{
    return find(trials->known, trials->known_count, subject, mt_max_u64(limit_bytes, 1));
}

bool mt_fit_trials_want(struct mt_fit_trials *trials, const struct mt_fit_subject *subject,
                        uint64_t limit_bytes)
{
    size_t at;

    limit_bytes = mt_max_u64(limit_bytes, 1); /* 0 would mean no limit */
    if (find(trials->known, trials->known_count, subject, limit_bytes) ||
        find(trials->wanted, trials->wanted_count, subject, limit_bytes))
        return true;
    if (trials->wanted_count == MT_FIT_TOGETHER)
        return false;
    for (at = trials->wanted_count++; at > 0; at--) { /* larger limits first: one_replay.h */
        if (!is_of(&trials->wanted[at - 1], subject) ||
            trials->wanted[at - 1].from_bytes > limit_bytes)
            break;
        trials->wanted[at] = trials->wanted[at - 1];
    }
    trials->wanted[at] = (struct mt_fit_trial){
        .subject = *subject, .from_bytes = limit_bytes, .until_bytes = limit_bytes + 1};
    return true;
}

static enum mt_status stop_at_failure(void *context, const struct mt_event *event,
                                      const struct mt_replay_view *view)
{
    struct attempt *attempt = context;

    if (event->device != attempt->trial->subject.device || view->block_bytes || view->is_left_out)
        return MT_OK;
    if (fit_is_failure(event, view, attempt->died_at)) {
        attempt->trial->failed = true;
        return MT_END;
    }
    if (event->kind == MT_EVENT_ALLOC)
        attempt->trial->unplaced++;
    return MT_OK;
}

static void prepare(const struct mt_fit_trials *trials, struct mt_fit_trial *trial,
                    struct attempt *attempt)
{
    *attempt = (struct attempt){.trial = trial,
                                .died_at = trials->died_at[trial->subject.device],
                                .replay = trials->replay,
                                .observer = {attempt, stop_at_failure, NULL}};
    attempt->replay.limit_bytes = trial->from_bytes;
    attempt->replay.blind = trial->subject.blind;
    attempt->replay.order = trial->subject.order;
}

static void note_result(struct mt_fit_trial *trial, const struct mt_replay_result *result)
{
    trial->has_events = true;
    trial->from_bytes = result->same_from_bytes;
    trial->until_bytes = result->same_until_bytes;
    trial->recorded_addresses = result->recorded_addresses;
    trial->any_order = result->any_order;
    trial->ties_recorded = result->ties_recorded;
    trial->address_ties = result->address_ties;
    trial->start_reserved_bytes = result->start_reserved_bytes;
    trial->reserved_peak_bytes = result->counters.reserved.peak;
}

static void keep(struct mt_fit_trial *trial, const struct mt_replay_summary *summary)
{
    for (size_t i = 0; i < summary->device_count; i++) {
        const struct mt_replay_result *result = &summary->devices[i];

        if (result->device != trial->subject.device)
            continue;
        MT_ASSERT(result->same_from_bytes <= trial->from_bytes &&
                  result->same_until_bytes >= trial->until_bytes);
        note_result(trial, result);
    }
}

void mt_fit_trials_keep(struct mt_fit_trials *trials, const struct mt_replay_result *result,
                        uint64_t unplaced)
{
    const struct mt_replay_options *replay = &trials->replay;
    struct mt_fit_trial *trial;

    mt_grow_to(&trials->known, &trials->known_capacity, trials->known_count + 1,
               sizeof *trials->known);
    trial = &trials->known[trials->known_count++];
    *trial = (struct mt_fit_trial){.subject = {result->device, replay->blind, replay->order},
                                   .unplaced = unplaced};
    note_result(trial, result);
}

enum mt_status mt_fit_trials_read(struct mt_fit_trials *trials, struct mt_error *error)
{
    const size_t count = trials->wanted_count;
    struct mt_replay_summary *summaries = mt_memory_new(count * sizeof *summaries);
    struct attempt attempts[MT_FIT_TOGETHER];
    struct mt_replay_job jobs[MT_FIT_TOGETHER];
    enum mt_status status;

    MT_ASSERT(count > 0);
    for (size_t i = 0; i < count; i++) {
        prepare(trials, &trials->wanted[i], &attempts[i]);
        jobs[i] = (struct mt_replay_job){&attempts[i].replay, &attempts[i].observer, &summaries[i]};
    }
    mt_grow_to(&trials->known, &trials->known_capacity, trials->known_count + count,
               sizeof *trials->known);
    status = mt_source_rewind(trials->source, error);
    if (status == MT_OK)
        status = mt_replay_run_together(trials->source, jobs, count, NULL, error);
    for (size_t i = 0; i < count && status == MT_OK; i++) {
        keep(&trials->wanted[i], &summaries[i]);
        trials->known[trials->known_count++] = trials->wanted[i];
    }
    trials->wanted_count = 0;
    trials->readings++;
    free(summaries);
    return status;
}

uint64_t mt_fit_trials_smallest(const struct mt_fit_trials *trials,
                                const struct mt_fit_subject *subject)
{
    uint64_t smallest = UINT64_MAX;

    for (size_t i = 0; i < trials->known_count; i++)
        if (is_of(&trials->known[i], subject) && !trials->known[i].failed)
            smallest = mt_min_u64(smallest, trials->known[i].from_bytes);
    return smallest;
}
