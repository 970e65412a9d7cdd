#include "step_plan.h"

#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "buffers.h"
#include "check.h"
#include "grow.h"
#include "inferred_phases.h"
#include "map.h"
#include "monotonic_clock.h"
#include "optimal.h"
#include "phases.h"
#include "process_memory.h"
#include "sorted.h"
#include "util.h"

enum {
    ROUNDING = 512,
    WINDOW = 4 /* places examined for a request: a step may skip some */
};

struct request {
    uint64_t seq, end_seq; /* of the event that made it free; UINT64_MAX = none */
    uint64_t bytes;
    uint32_t stream;
    uint16_t device;
    bool is_private;
};

/* Events [begin, end). */
struct step {
    uint64_t begin, end;
    size_t first, last; /* of its requests in the device's list: [first, last) */
    uint64_t hash, bytes;
};

struct planner {
    struct mt_source *source;
    struct mt_step_plan *plan;
    struct mt_error *error;
    struct request *requests;
    size_t request_count, request_capacity;
    struct mt_map live; /* address and device -> request */
    struct mt_phases phases;
    struct mt_arena arena;
    struct step *steps;
    size_t step_count;
    size_t *list; /* requests of one device and stream, default pool */
    size_t list_count;
};

static uint64_t key_of(const struct mt_event *event)
{
    return event->addr ^ event->device * UINT64_C(0x9E3779B97F4A7C15);
}

static void end_request(struct planner *planner, const struct mt_event *event)
{
    uint32_t request = mt_map_take(&planner->live, key_of(event));

    if (request != MT_MAP_NONE)
        planner->requests[request].end_seq = event->seq;
}

static void add_request(struct planner *planner, const struct mt_event *event)
{
    end_request(planner, event); /* its free was lost */
    if (planner->request_count >= MT_MAP_NONE - 1 || event->size_bytes > UINT64_MAX / 2)
        return;
    mt_grow_to(&planner->requests, &planner->request_capacity, planner->request_count + 1,
               sizeof *planner->requests);
    planner->requests[planner->request_count] = (struct request){
        .seq = event->seq,
        .end_seq = UINT64_MAX,
        .bytes = mt_round_up(mt_max_u64(event->size_bytes, 1), ROUNDING),
        .stream = event->stream,
        .device = event->device,
        .is_private = event->pool != 0,
    };
    mt_map_put(&planner->live, key_of(event), (uint32_t)planner->request_count++);
}

static void look_at(struct planner *planner, const struct mt_event *event)
{
    bool completes = planner->source->header.has_free_completed;
    int32_t phase;

    switch (event->kind) {
    case MT_EVENT_PHASE_PUSH: mt_phases_push(&planner->phases, event, &phase); return;
    case MT_EVENT_PHASE_POP: mt_phases_pop(&planner->phases, event); return;
    case MT_EVENT_ALLOC:
        if (!(event->flags & MT_EVENT_INITIAL || event->device >= MT_PLAN_DEVICES))
            add_request(planner, event);
        return;
    case MT_EVENT_FREE_REQUESTED:
        if (!completes)
            end_request(planner, event);
        return;
    case MT_EVENT_FREE_COMPLETED: end_request(planner, event); return;
    default: return;
    }
}

static enum mt_status read_source(struct planner *planner)
{
    uint64_t last_t_ns = 0, last_seq = 0;
    struct mt_event_batch batch;
    enum mt_status status;

    while ((status = mt_source_next(planner->source, &batch, planner->error)) == MT_OK)
        for (size_t i = 0; i < batch.count; i++) {
            look_at(planner, &batch.events[i]);
            last_t_ns = batch.events[i].t_ns;
            last_seq = batch.events[i].seq;
        }
    if (status != MT_END)
        return status;
    mt_phases_finish(&planner->phases, last_t_ns, last_seq);
    return mt_source_rewind(planner->source, planner->error);
}

/* Steps that are not inside another one. */
static void collect_steps(struct planner *planner)
{
    const struct mt_phases *phases = &planner->phases;
    uint64_t end = 0;

    planner->steps = mt_memory_zeroed((size_t)phases->count + 1, sizeof *planner->steps);
    for (uint32_t i = 0; i < phases->count; i++) {
        const struct mt_phase *phase = &phases->phases[i];
        if (!phase->is_step || phase->begin_event < end || phase->end_event <= phase->begin_event)
            continue;
        planner->steps[planner->step_count++] =
            (struct step){.begin = phase->begin_event, .end = phase->end_event};
        end = phase->end_event;
    }
}

/* The stream that requests most bytes from the default pool of a device. */
static uint32_t main_stream(const struct planner *planner, uint16_t device)
{
    uint32_t best = 0, count = planner->source->symbols.stream_count;
    uint64_t *bytes = mt_memory_zeroed((size_t)count + 1, sizeof *bytes);

    for (size_t i = 0; i < planner->request_count; i++) {
        const struct request *request = &planner->requests[i];
        if (request->device == device && !request->is_private && request->stream < count)
            bytes[request->stream] += request->bytes;
    }
    for (size_t i = 0; i < count; i++)
        best = bytes[i] > bytes[best] ? (uint32_t)i : best;
    free(bytes);
    return best;
}

static void list_requests(struct planner *planner, uint16_t device)
{
    uint32_t stream = main_stream(planner, device);
    size_t at = 0;

    planner->list_count = 0;
    for (size_t i = 0; i < planner->request_count; i++) {
        const struct request *request = &planner->requests[i];
        if (request->device == device && !request->is_private && request->stream == stream)
            planner->list[planner->list_count++] = i;
    }
    for (size_t i = 0; i < planner->step_count; i++) {
        struct step *step = &planner->steps[i];
        step->hash = step->bytes = 0;
        while (at < planner->list_count && planner->requests[planner->list[at]].seq < step->begin)
            at++;
        step->first = at;
        for (; at < planner->list_count && planner->requests[planner->list[at]].seq < step->end;
             at++) {
            step->bytes += planner->requests[planner->list[at]].bytes;
            step->hash = mt_hash_u64(step->hash ^ planner->requests[planner->list[at]].bytes);
        }
        step->last = at;
        MT_ASSERT(step->first <= step->last && step->last <= planner->list_count);
    }
}

MT_DEFINE_POINTER_ORDER(by_hash, struct step, MT_ASCENDING(hash) || MT_ASCENDING(begin))

/* The last of the equal steps that together request most; NULL if no two are equal. */
static void repeating_step(const struct planner *planner, const struct step **repeating)
{
    const struct step **sorted = mt_memory_zeroed(planner->step_count + 1, sizeof *sorted);
    size_t begin = 0;
    uint64_t most = 0;

    *repeating = NULL;
    for (size_t i = 0; i < planner->step_count; i++)
        sorted[i] = &planner->steps[i];
    qsort(sorted, planner->step_count, sizeof *sorted, by_hash);
    for (size_t i = 0; i < planner->step_count; i++) {
        if (sorted[begin]->hash != sorted[i]->hash)
            begin = i;
        uint64_t count = i + 1 - begin;
        if (count < 2 || !sorted[i]->bytes || sorted[i]->bytes * count <= most)
            continue;
        most = sorted[i]->bytes * count;
        *repeating = sorted[i];
    }
    free(sorted);
}

/* Addresses for the buffers. Only the policy checks them: it places blocks only in free space. */
static void place(const struct mt_buffers *buffers, struct mt_device_plan *plan,
                  const uint32_t *entry_of)
{
    struct mt_instance instance = {0};
    uint64_t *addresses = mt_memory_new((buffers->count + 1) * sizeof *addresses);
    struct mt_improver improver = {0};
    struct mt_draft draft = {0};

    mt_instance_build(buffers, &instance);
    mt_improver_init(&improver, &instance, &draft, addresses);
    mt_improver_construct(&improver, instance.bound, MT_NO_DEADLINE);
    for (size_t i = 0; i < buffers->count; i++) {
        plan->entries[entry_of[i]].offset = addresses[i];
        MT_ASSERT(entry_of[i] < plan->entry_count);
        MT_ASSERT(addresses[i] + plan->entries[entry_of[i]].bytes <= improver.height);
    }
    MT_ASSERT(instance.bound <= improver.height);
    plan->planned_count = (uint32_t)buffers->count;
    plan->share.arena_bytes = improver.height;
    plan->share.bound_bytes = instance.bound;
    mt_improver_release(&improver);
    mt_draft_release(&draft);
    free(addresses);
    mt_instance_release(&instance);
}

/* Number of requests of its step before the block is free again; 0 = it outlives the step. */
static uint32_t end_place(const struct planner *planner, const struct step *step,
                          const struct request *request)
{
    size_t low = step->first;

    MT_ASSERT(request->seq >= step->begin && request->seq < step->end);
    if (request->end_seq >= step->end)
        return 0;
    MT_BISECT(low, step->last, middle,
              planner->requests[planner->list[middle]].seq < request->end_seq);
    return (uint32_t)(low - step->first);
}

/* Each place must be free for as long as in any of the equal steps: ends[] of the planned one grow,
 * or become 0. */
static void heed_step(const struct planner *planner, const struct step *step,
                      const struct mt_device_plan *plan, uint32_t *ends)
{
    for (uint32_t i = 0; i < plan->entry_count; i++) {
        const struct request *request = &planner->requests[planner->list[step->first + i]];
        uint32_t end = end_place(planner, step, request);
        ends[i] = ends[i] && end ? (end > ends[i] ? end : ends[i]) : 0;
    }
}

static bool is_equal(const struct planner *planner, const struct step *a, const struct step *b)
{
    if (a->hash != b->hash || a->last - a->first != b->last - b->first)
        return false;
    for (size_t i = 0; i < a->last - a->first; i++)
        if (planner->requests[planner->list[a->first + i]].bytes !=
            planner->requests[planner->list[b->first + i]].bytes)
            return false;
    return true;
}

static enum mt_status plan_entries(const struct planner *planner, struct mt_device_plan *plan,
                                   const uint32_t *ends, uint32_t *entry_of)
{
    struct mt_buffers buffers = {0};
    enum mt_status status = MT_OK;

    for (uint32_t i = 0; status == MT_OK && i < plan->entry_count; i++) {
        const struct mt_buffer buffer = {2 * (uint64_t)i + 1, 2 * (uint64_t)ends[i],
                                         plan->entries[i].bytes};
        if (!ends[i])
            continue;
        entry_of[buffers.count] = i;
        status = mt_buffers_add(&buffers, &buffer, planner->error);
    }
    if (status == MT_OK && buffers.count)
        place(&buffers, plan, entry_of);
    mt_buffers_release(&buffers);
    return status;
}

static enum mt_status plan_step(const struct planner *planner, const struct step *step,
                                struct mt_device_plan *plan)
{
    size_t count = step->last - step->first;
    uint32_t *entry_of = mt_memory_zeroed(count + 1, sizeof *entry_of);
    uint32_t *ends = mt_memory_new((count + 1) * sizeof *ends);

    plan->entries = mt_memory_zeroed(count + 1, sizeof *plan->entries);
    plan->entry_count = (uint32_t)count;
    plan->share.equal_steps = 0;
    for (size_t i = 0; i < count; i++) {
        const struct request *request = &planner->requests[planner->list[step->first + i]];
        plan->entries[i] = (struct mt_plan_entry){request->bytes, MT_NOT_PLANNED};
        ends[i] = 1; /* grows */
    }
    for (size_t i = 0; i < planner->step_count; i++) {
        if (!is_equal(planner, &planner->steps[i], step))
            continue;
        heed_step(planner, &planner->steps[i], plan, ends);
        plan->share.equal_steps++;
    }
    enum mt_status status = plan_entries(planner, plan, ends, entry_of);
    free(entry_of);
    free(ends);
    return status;
}

static void set_entry(struct mt_step_plan *plan, uint64_t seq, uint32_t entry)
{
    if (seq >= plan->count) {
        if (seq == SIZE_MAX)
            mt_memory_end();
        mt_grow_zeroed_to(&plan->of_event, &plan->count, (size_t)seq + 1, sizeof *plan->of_event);
    }
    plan->of_event[seq] = 1 + entry;
}

static void match_step(const struct planner *planner, const struct step *step,
                       const struct mt_device_plan *plan)
{
    uint32_t at = 0, entry;

    for (size_t i = step->first; i < step->last; i++) {
        const struct request *request = &planner->requests[planner->list[i]];
        for (entry = at; entry < plan->entry_count && entry - at < WINDOW; entry++)
            if (plan->entries[entry].bytes == request->bytes)
                break;
        if (entry >= plan->entry_count || entry - at >= WINDOW)
            continue;
        at = entry + 1;
        if (plan->entries[entry].offset != MT_NOT_PLANNED && request->end_seq < step->end)
            set_entry(planner->plan, request->seq, entry);
    }
}

static enum mt_status plan_device(struct planner *planner, uint16_t device)
{
    struct mt_device_plan *plan = &planner->plan->devices[device];
    const struct step *step;

    list_requests(planner, device);
    plan->share.steps = (uint32_t)planner->step_count;
    repeating_step(planner, &step);
    enum mt_status status = MT_OK;
    if (!step)
        return MT_OK;
    for (size_t i = 0; i < planner->request_count; i++) {
        const struct request *request = &planner->requests[i];
        plan->share.requests += request->device == device;
    }
    status = plan_step(planner, step, plan);
    for (size_t i = 0; status == MT_OK && plan->planned_count && i < planner->step_count; i++)
        match_step(planner, &planner->steps[i], plan);
    return status;
}

static enum mt_status plan_all(struct planner *planner)
{
    bool has_plan = false;
    enum mt_status status = MT_OK;

    planner->list = mt_memory_zeroed(planner->request_count + 1, sizeof *planner->list);
    for (uint16_t device = 0; status == MT_OK && device < MT_PLAN_DEVICES; device++) {
        status = plan_device(planner, device);
        has_plan = has_plan || planner->plan->devices[device].planned_count;
    }
    if (status != MT_OK || has_plan)
        return status;
    if (planner->step_count < 2)
        return mt_fail(planner->error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                       "nothing to plan: the trace has no steps that repeat");
    return mt_fail(planner->error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                   "nothing to plan: no two of %zu steps make the same requests",
                   planner->step_count);
}

enum mt_status mt_step_plan_make(struct mt_source *source, struct mt_step_plan *plan,
                                 struct mt_error *error)
{
    struct planner planner = {.source = source, .plan = plan, .error = error};

    memset(plan, 0, sizeof *plan);
    mt_phases_init(&planner.phases, &planner.arena, &source->symbols);
    enum mt_status status = mt_inferred_phases_insert(source, error);
    if (status == MT_OK)
        status = read_source(&planner);
    if (status == MT_OK)
        collect_steps(&planner);
    if (status == MT_OK)
        status = plan_all(&planner);
    free(planner.requests);
    free(planner.steps);
    free(planner.list);
    mt_map_release(&planner.live);
    mt_phases_release(&planner.phases);
    mt_arena_release(&planner.arena);
    if (status != MT_OK)
        mt_step_plan_release(plan);
    return status;
}

void mt_step_plan_release(struct mt_step_plan *plan)
{
    for (size_t i = 0; i < MT_PLAN_DEVICES; i++)
        free(plan->devices[i].entries);
    free(plan->of_event);
    memset(plan, 0, sizeof *plan);
}
