/* The policy `planned`: the method of STAlloc (arXiv 2507.16274), in outline. The repeated step of
 * the program was planned before the run (step_plan.h). Its requests come from one arena, each from
 * its own place, unless that place is in use. All others, and those whose place is in use, come
 * from PyTorch's caching allocator, which has the rest of the device. */
#include "policy.h"

#include "check.h"
#include "process_memory.h"
#include "sorted.h"
#include "util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Handles of blocks in the arena: this bit, and the entry of the plan. */
#define IN_ARENA (UINT32_C(1) << 31)

struct arena_block {
    uint64_t requested_bytes;
    bool pending;
};

struct mt_policy {
    struct mt_device_model *device;
    struct mt_device_model rest_device; /* the device without the arena */
    struct mt_policy *rest;             /* PyTorch's */
    const struct mt_device_plan *plan;  /* NULL = nothing is planned */
    bool is_refused;                    /* the arena is larger than the device */
    uint64_t base;                      /* of the arena */
    uint32_t *live;                     /* entries with a block, ascending by offset */
    uint32_t live_count;
    struct arena_block *blocks; /* by entry */
    struct mt_counters own;     /* counters of the arena */
    struct mt_counters seen;    /* counters of the rest at the last sum */
    struct mt_counters all;
};

/* The arena did not change while the rest worked, so a new peak of the rest plus the arena's
 * current level is a peak of both. */
static void join(struct mt_level *all, const struct mt_level *own, const struct mt_level *rest,
                 const struct mt_level *seen)
{
    if (rest->peak > seen->peak)
        all->peak = mt_max_u64(all->peak, rest->peak + own->now);
    all->now = own->now + rest->now;
    all->peak = mt_max_u64(all->peak, all->now);
    MT_ASSERT(own->now <= own->peak && rest->now <= rest->peak);
}

static void add_up(struct mt_policy *self, const struct mt_counters *rest)
{
    const struct mt_counters *own = &self->own, *seen = &self->seen;
    struct mt_counters *all = &self->all;

    join(&all->requested, &own->requested, &rest->requested, &seen->requested);
    join(&all->allocated, &own->allocated, &rest->allocated, &seen->allocated);
    join(&all->active, &own->active, &rest->active, &seen->active);
    join(&all->reserved, &own->reserved, &rest->reserved, &seen->reserved);
    join(&all->inactive_split, &own->inactive_split, &rest->inactive_split, &seen->inactive_split);
    join(&all->segments, &own->segments, &rest->segments, &seen->segments);
    all->allocations = own->allocations + rest->allocations;
    all->frees = own->frees + rest->frees;
    all->device_allocs = own->device_allocs + rest->device_allocs;
    all->device_frees = own->device_frees + rest->device_frees;
    all->retries = own->retries + rest->retries;
    all->ooms = own->ooms + rest->ooms;
    self->seen = *rest;
}

/* After every call of the rest: repeats its device operations on the real device. */
static enum mt_status settle(struct mt_policy *self, enum mt_status status)
{
    for (size_t i = 0; i < self->rest_device.op_count; i++) {
        const struct mt_device_op *op = &self->rest_device.ops[i];
        add_up(self, &op->after);
        mt_device_log(self->device, op->kind, op->addr, op->size_bytes, op->stream, &self->all);
    }
    add_up(self, mt_policy_pytorch.counters(self->rest));
    self->device->address_ties = self->rest_device.address_ties;
    self->rest_device.bases = NULL; /* lent */
    mt_device_clear(&self->rest_device);
    return status;
}

/* Passes on the trace's information about released private pools (pytorch_pools.c). */
static void lend_bases(struct mt_policy *self)
{
    self->rest_device.bases = self->device->bases;
    self->rest_device.base_count = self->device->base_count;
}

static void destroy(struct mt_policy *self)
{
    if (self->rest)
        mt_policy_pytorch.destroy(self->rest);
    mt_device_release(&self->rest_device);
    free(self->live);
    free(self->blocks);
    free(self);
}

/* Takes the arena, which exists from the start. */
static void take_arena(struct mt_policy *self)
{
    const struct mt_device_plan *plan = self->device->plan;
    uint64_t limit = self->device->limit_bytes;

    if (!plan || !plan->planned_count)
        return;
    self->plan = plan;
    self->live = mt_memory_zeroed(plan->entry_count, sizeof *self->live);
    self->blocks = mt_memory_zeroed(plan->entry_count, sizeof *self->blocks);
    self->is_refused = limit && plan->share.arena_bytes > limit;
    if (self->is_refused)
        return;
    mt_device_base(self->device, MT_EVENT_SEGMENT_ALLOC, plan->share.arena_bytes, 0, 0,
                   &self->base);
    mt_level_add(&self->own.reserved, plan->share.arena_bytes);
    mt_level_add(&self->own.segments, 1);
    self->own.device_allocs++;
}

/* Creates the rest from the same setup as the policy. */
static enum mt_status create_rest(struct mt_policy *self, struct mt_policy_setup setup,
                                  struct mt_error *error)
{
    uint64_t arena;
    const struct mt_device_model *device = self->device;
    uint64_t limit = device->limit_bytes;

    if (limit)
        limit = mt_max_u64(limit - mt_min_u64(limit, self->own.reserved.now), 1);
    mt_device_init(&self->rest_device, limit, device->total_memory_bytes, false);
    mt_device_order_addresses(&self->rest_device, device->space.order);
    /* A space with the same order gives the arena the same place, so the two never overlap. */
    if (self->own.reserved.now) {
        mt_address_space_take(&self->rest_device.space, self->own.reserved.now, &arena);
        MT_ASSERT(arena == self->base || device->use_bases);
    }
    self->rest_device.complete_waiting = device->complete_waiting;
    self->rest_device.lane = device->lane;
    setup.device = &self->rest_device;
    return mt_policy_pytorch.create(&setup, &self->rest, error);
}

static enum mt_status create(const struct mt_policy_setup *setup, struct mt_policy **policy,
                             struct mt_error *error)
{
    struct mt_policy *self = mt_memory_zeroed(1, sizeof *self);
    struct mt_policy_setup rest_setup = *setup;
    char rest[160] = "";

    self->device = setup->device;
    rest_setup.spelling = rest;
    rest_setup.spelling_size = sizeof rest;
    take_arena(self);
    enum mt_status status = create_rest(self, rest_setup, error);
    if (status != MT_OK) {
        destroy(self);
        return status;
    }
    snprintf(setup->spelling, setup->spelling_size, "planned%s",
             strchr(rest, ':') ? strchr(rest, ':') : "");
    *policy = self;
    return settle(self, MT_OK);
}

/* Number of the first live entry at or above an offset. */
static uint32_t first_from(const struct mt_policy *self, uint64_t offset)
{
    uint32_t low = 0;

    MT_BISECT(low, self->live_count, middle,
              self->plan->entries[self->live[middle]].offset < offset);
    return low;
}

static bool is_place_free(const struct mt_policy *self, const struct mt_plan_entry *entry,
                          uint32_t at)
{
    const struct mt_plan_entry *entries = self->plan->entries;

    if (at < self->live_count && entries[self->live[at]].offset < entry->offset + entry->bytes)
        return false;
    const struct mt_plan_entry *below = at ? &entries[self->live[at - 1]] : NULL;
    return !below || below->offset + below->bytes <= entry->offset;
}

static bool is_planned(const struct mt_policy *self, const struct mt_policy_request *request)
{
    uint32_t planned = self->device->planned;

    return self->plan && planned && planned <= self->plan->entry_count &&
           self->plan->entries[planned - 1].offset != MT_NOT_PLANNED &&
           self->plan->entries[planned - 1].bytes >= request->size_bytes;
}

/* Returns false if the place is in use. */
static bool place(struct mt_policy *self, const struct mt_policy_request *request,
                  struct mt_policy_block *out)
{
    uint32_t id = self->device->planned - 1;
    const struct mt_plan_entry *entry = &self->plan->entries[id];
    uint32_t at = first_from(self, entry->offset);

    MT_ASSERT(entry->offset + entry->bytes <= self->plan->share.arena_bytes);
    MT_ASSERT(self->live_count <= self->plan->entry_count);
    if (!is_place_free(self, entry, at)) {
        self->device->plan_misses++;
        return false;
    }
    memmove(self->live + at + 1, self->live + at, (self->live_count - at) * sizeof *self->live);
    self->live[at] = id;
    self->live_count++;
    self->blocks[id] = (struct arena_block){request->size_bytes, false};
    self->own.allocations++;
    mt_level_add(&self->own.allocated, entry->bytes);
    mt_level_add(&self->own.active, entry->bytes);
    mt_level_add(&self->own.requested, request->size_bytes);
    *out = (struct mt_policy_block){IN_ARENA | id, self->base + entry->offset, entry->bytes};
    self->device->plan_hits++;
    return true;
}

static enum mt_status alloc(struct mt_policy *self, const struct mt_policy_request *request,
                            struct mt_policy_block *out)
{
    enum mt_status status = MT_OK;

    if (is_planned(self, request) && self->is_refused) {
        self->own.ooms++;
        self->device->refusals++;
        status = MT_ERR_DEVICE_OOM;
    } else if (!is_planned(self, request) || !place(self, request, out)) {
        lend_bases(self);
        status = mt_policy_pytorch.alloc(self->rest, request, out);
        self->device->refusals += self->rest_device.refusals;
        self->rest_device.refusals = 0;
    }
    return settle(self, status);
}

static enum mt_status free_requested(struct mt_policy *self, uint32_t handle)
{
    enum mt_status status = MT_OK;

    if (handle & IN_ARENA) {
        MT_ASSERT((handle & ~IN_ARENA) < self->plan->entry_count);
        MT_ASSERT(!self->blocks[handle & ~IN_ARENA].pending);
        self->blocks[handle & ~IN_ARENA].pending = true;
        self->own.frees++;
        mt_level_sub(&self->own.allocated, self->plan->entries[handle & ~IN_ARENA].bytes);
    } else {
        status = mt_policy_pytorch.free_requested(self->rest, handle);
    }
    return settle(self, status);
}

static enum mt_status free_completed(struct mt_policy *self, uint32_t handle)
{
    uint32_t id = handle & ~IN_ARENA;
    enum mt_status status = MT_OK;

    if (handle & IN_ARENA) {
        const struct mt_plan_entry *entry = &self->plan->entries[id];
        uint32_t at = first_from(self, entry->offset);
        MT_ASSERT(at < self->live_count && self->live[at] == id);
        memmove(self->live + at, self->live + at + 1,
                (--self->live_count - at) * sizeof *self->live);
        mt_level_sub(&self->own.active, entry->bytes);
        mt_level_sub(&self->own.requested, self->blocks[id].requested_bytes);
    } else {
        status = mt_policy_pytorch.free_completed(self->rest, handle);
    }
    return settle(self, status);
}

static enum mt_status empty_cache(struct mt_policy *self)
{
    lend_bases(self);
    enum mt_status status = mt_policy_pytorch.empty_cache(self->rest);
    return settle(self, status);
}

static void restore_segment(struct mt_policy *self, const struct mt_event *segment)
{
    mt_policy_pytorch.restore_segment(self->rest, segment);
}

static enum mt_status restore_block(struct mt_policy *self, const struct mt_event *event,
                                    struct mt_policy_block *out)
{
    return mt_policy_pytorch.restore_block(self->rest, event, out);
}

static enum mt_status restored(struct mt_policy *self)
{
    enum mt_status status = mt_policy_pytorch.restored(self->rest);

    memset(&self->all, 0, sizeof self->all);
    memset(&self->seen, 0, sizeof self->seen);
    return settle(self, status);
}

static const struct mt_counters *counters(const struct mt_policy *self)
{
    return &self->all;
}

/* Checks that live blocks of the arena are disjoint, inside it, and match the counters. */
static bool is_sound(const struct mt_policy *self, const char **why)
{
    uint64_t end = 0, active = 0, allocated = 0;

    for (uint32_t i = 0; i < self->live_count; i++) {
        const struct mt_plan_entry *entry = &self->plan->entries[self->live[i]];
        MT_SOUND(why, entry->offset >= end);
        MT_SOUND(why, entry->offset + entry->bytes <= self->plan->share.arena_bytes);
        end = entry->offset + entry->bytes;
        active += entry->bytes;
        allocated += self->blocks[self->live[i]].pending ? 0 : entry->bytes;
    }
    MT_SOUND(why, active == self->own.active.now);
    MT_SOUND(why, allocated == self->own.allocated.now);
    MT_SOUND(why,
             self->all.active.now == active + mt_policy_pytorch.counters(self->rest)->active.now);
    return mt_policy_pytorch.is_sound(self->rest, why);
}

const struct mt_policy_ops mt_policy_planned = {
    .name = "planned",
    .summary = "the repeated step planned offline in one arena, the rest cached as in PyTorch",
    .doubt = "no real allocator was compared; this one knows the plan from the start, but a real "
             "one must observe a run first",
    .create = create,
    .destroy = destroy,
    .alloc = alloc,
    .free_requested = free_requested,
    .free_completed = free_completed,
    .empty_cache = empty_cache,
    .restore_segment = restore_segment,
    .restore_block = restore_block,
    .restored = restored,
    .counters = counters,
    .is_sound = is_sound,
};
