/* The policy `pytorch`: PyTorch's native caching allocator, rule by rule (source read: PyTorch
 * 2.11, c10/cuda/CUDACachingAllocator.cpp). Verified with captures that have the allocator's own
 * counters: see docs/evidence/accuracy.md. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "policy.h"
#include "process_memory.h"
#include "pytorch_pools.h"
#include "util.h"

/* No real program requests more; keeps sums of sizes far from overflow for any trace. */
static const uint64_t MAX_REQUEST = (uint64_t)1 << 48;

struct mt_policy {
    struct mt_pytorch pytorch;
};

static void destroy(struct mt_policy *policy)
{
    struct mt_pytorch *self = &policy->pytorch;

    for (uint32_t i = 0; i < self->pool_count; i++) {
        for (uint32_t free_list = 0; free_list < self->pools[i].free_list_count; free_list++) {
            mt_free_set_release(&self->pools[i].free_lists[free_list].free);
            mt_free_set_release(&self->pools[i].free_lists[free_list].unmapped);
        }
        free(self->pools[i].free_lists);
    }
    free(self->pools);
    free(self->scratch);
    mt_block_store_release(&self->store);
    free(policy);
}

static void spell(const struct mt_pytorch_config *config, char *spelling, size_t size)
{
    static const char name[] = "pytorch";

    if (size < sizeof name + 1)
        return;
    memcpy(spelling, name, sizeof name);
    mt_pytorch_config_spell(config, spelling + sizeof name, size - sizeof name);
    if (spelling[sizeof name])
        spelling[sizeof name - 1] = ':';
}

static enum mt_status create(const struct mt_policy_setup *setup, struct mt_policy **policy,
                             struct mt_error *error)
{
    struct mt_policy *self = mt_memory_zeroed(1, sizeof *self);
    struct mt_device_model *device = setup->device;

    self->pytorch.device = device;
    self->pytorch.symbols = setup->symbols;
    self->pytorch.order = mt_pytorch_free_order(setup->header);
    enum mt_status status =
        setup->options ? mt_pytorch_config_parse(setup->options, &self->pytorch.config, error)
                       : mt_pytorch_config_recorded(setup->header, &self->pytorch.config, error);
    if (status == MT_OK && self->pytorch.config.async_backend)
        status = mt_fail(error, MT_ERR_UNSUPPORTED, MT_NO_OFFSET,
                         "backend:cudaMallocAsync is not the caching allocator");
    if (status != MT_OK) {
        destroy(self);
        return status;
    }
    spell(&self->pytorch.config, setup->spelling, setup->spelling_size);
    if (self->pytorch.config.memory_fraction < 1 && device->total_memory_bytes &&
        !device->limit_bytes)
        device->limit_bytes =
            (uint64_t)(self->pytorch.config.memory_fraction * (double)device->total_memory_bytes);
    device->only_compares = self->pytorch.config.gc_threshold <= 0;
    device->any_order = self->pytorch.config.expandable_segments;
    *policy = self;
    return MT_OK;
}

static struct mt_pytorch_search search_for(const struct mt_pytorch *self,
                                           const struct mt_policy_request *request)
{
    struct mt_pytorch_search search = {0};

    search.requested_bytes = request->size_bytes;
    search.size_bytes = mt_pytorch_round_size(&self->config, request->size_bytes);
    search.segment_bytes = mt_pytorch_segment_size(&self->config, search.size_bytes);
    search.stream = request->stream;
    search.pool = 2u * request->pool + (search.size_bytes <= MT_PYTORCH_SMALL_LIMIT);
    search.expandable = self->config.expandable_segments;
    search.is_private = request->pool != 0;
    MT_ASSERT(search.size_bytes >= search.requested_bytes && search.size_bytes > 0);
    MT_ASSERT(search.segment_bytes >= search.size_bytes);
    return search;
}

/* The size that a free block can reach by mapping the space after it. */
static uint64_t expandable_bytes(const struct mt_pytorch *self, const struct mt_block *block)
{
    if (block->next == MT_NO_BLOCK)
        return block->size_bytes;
    const struct mt_block *next = &self->store.blocks[block->next];
    return block->size_bytes + (next->state == MT_BLOCK_UNMAPPED ? next->size_bytes : 0);
}

/* Best fit counts a block at the growing end with its maximum size, so that holes inside are filled
 * first. Looks one element ahead at a time. */
static struct mt_free_cursor prefer_holes(const struct mt_pytorch *self,
                                          const struct mt_free_set *set, struct mt_free_cursor at)
{
    for (;;) {
        const struct mt_block *block = &self->store.blocks[at.entry->block];
        struct mt_free_cursor next = mt_free_set_next(set, at);
        if (!block->expandable || !next.entry ||
            expandable_bytes(self, &self->store.blocks[next.entry->block]) >=
                expandable_bytes(self, block))
            return at;
        at = next;
    }
}

/* Position of the free block for a request; its entry is NULL if none. */
static struct mt_free_cursor find_free(const struct mt_pytorch *self,
                                       const struct mt_pytorch_free_list *free_list,
                                       const struct mt_pytorch_search *search)
{
    const struct mt_free_set *set = &free_list->free;
    struct mt_free_cursor at = mt_free_set_find(set, search->size_bytes, 0);
    struct mt_free_cursor none = {0, 0, NULL};
    uint64_t max_split = self->config.max_split_bytes;

    if (!at.entry)
        return none;
    if (self->store.blocks[at.entry->block].expandable) {
        if (search->expandable)
            at = prefer_holes(self, set, at);
        while (!search->expandable && at.entry && self->store.blocks[at.entry->block].expandable)
            at = mt_free_set_next(set, at);
        if (!at.entry)
            return none;
    }
    if (search->size_bytes < max_split && at.entry->size_bytes >= max_split)
        return none;
    if (search->size_bytes >= max_split &&
        at.entry->size_bytes >= search->size_bytes + self->config.max_non_split_rounding_bytes)
        return none;
    MT_ASSERT(at.entry->size_bytes >= search->size_bytes);
    MT_ASSERT(self->store.blocks[at.entry->block].state == MT_BLOCK_FREE);
    MT_ASSERT(self->store.blocks[at.entry->block].pool == search->pool);
    MT_ASSERT(self->store.blocks[at.entry->block].stream == search->stream);
    return at;
}

/* Whether there is another free block of the same size and age. If so, only the address broke the
 * tie. Within one segment that order is the same in every run if ages count. Segments do not
 * overlap, so the last of these blocks shows whether all are in one. */
static bool has_twin(const struct mt_pytorch *self, const struct mt_free_set *set,
                     struct mt_free_cursor at)
{
    const struct mt_block *blocks = self->store.blocks;
    struct mt_free_cursor last;

    if (self->order == MT_FREE_LOWEST) {
        last = mt_free_set_next(set, at);
        return last.entry && last.entry->size_bytes == at.entry->size_bytes;
    }
    last = mt_free_set_last_like(set, *at.entry);
    MT_ASSERT(last.entry);
    return blocks[last.entry->block].reservation != blocks[at.entry->block].reservation;
}

static bool garbage_is_collected(const struct mt_pytorch *self)
{
    return self->device->limit_bytes && self->config.gc_threshold > 0;
}

/* Sets *block, or MT_NO_BLOCK if nothing fits. Does not remove it from its free list. */
static void take_free(struct mt_pytorch *self, struct mt_pytorch_search *search, uint32_t *block)
{
    struct mt_pytorch_free_list *free_list =
        mt_pytorch_free_list(self, search->pool, search->stream);

    if (garbage_is_collected(self))
        self->pools[search->pool].gc_clock++;
    search->found = find_free(self, free_list, search);
    *block = search->found.entry ? search->found.entry->block : MT_NO_BLOCK;
    if (search->found.entry)
        self->device->address_ties += has_twin(self, &free_list->free, search->found);
}

static bool exceeds_limit(const struct mt_pytorch *self, const struct mt_pytorch_search *search)
{
    struct mt_device_model *device = self->device;
    uint64_t tested = mt_pytorch_total(self) + search->segment_bytes;

    device->most_tested_bytes = mt_max_u64(device->most_tested_bytes, tested);
    return mt_device_refuses(device, tested) || tested > MT_MAX_TOTAL_BYTES;
}

/* New memory from the driver; MT_ERR_DEVICE_OOM beyond the limit. */
static enum mt_status take_new(struct mt_pytorch *self, const struct mt_pytorch_search *search,
                               bool is_retry, uint32_t *block)
{
    struct mt_block fresh = {0};

    self->counters.retries += is_retry;
    if (exceeds_limit(self, search)) {
        self->device->refusals++;
        return MT_ERR_DEVICE_OOM;
    }
    if (search->expandable)
        return mt_pytorch_expand(self, search, block);
    mt_device_base(self->device, MT_EVENT_SEGMENT_ALLOC, search->segment_bytes, 0, search->stream,
                   &fresh.addr);
    fresh.size_bytes = search->segment_bytes;
    fresh.stream = search->stream;
    fresh.pool = (uint16_t)search->pool;
    fresh.reservation = self->reservation_count++;
    fresh.age = mt_pytorch_segment_age(self);
    fresh.state = MT_BLOCK_FREE;
    mt_block_new(&self->store, &fresh, block);
    mt_level_add(&self->counters.segments, 1);
    mt_level_add(&self->counters.reserved, fresh.size_bytes);
    self->counters.device_allocs++;
    mt_device_log(self->device, MT_EVENT_SEGMENT_ALLOC, fresh.addr, fresh.size_bytes, fresh.stream,
                  &self->counters);
    return MT_OK;
}

/* Everything that the allocator tries after a miss, in its order. */
static enum mt_status take_after_miss(struct mt_pytorch *self,
                                      const struct mt_pytorch_search *search, uint32_t *block)
{
    enum mt_status status = MT_OK;
    bool released;

    if (garbage_is_collected(self))
        mt_pytorch_collect_garbage(self);
    status = take_new(self, search, false, block);
    if (status != MT_ERR_DEVICE_OOM)
        return status;
    mt_pytorch_release_available(self, search, &released);
    if (released)
        status = take_new(self, search, false, block);
    if (status != MT_ERR_DEVICE_OOM || search->is_private)
        return status;
    status = MT_OK;
    if (self->device->complete_waiting)
        status = self->device->complete_waiting(self->device->lane);
    if (status == MT_OK)
        mt_pytorch_release_cached(self);
    return status == MT_OK ? take_new(self, search, true, block) : status;
}

/* Removes the found block, if any, from its set, and files the rest that was split off, if any. */
static void settle(struct mt_pytorch *self, const struct mt_pytorch_search *search, uint32_t rest)
{
    if (!search->found.entry) {
        if (rest != MT_NO_BLOCK)
            mt_pytorch_insert(self, rest);
        return;
    }
    struct mt_pytorch_free_list *free_list =
        mt_pytorch_free_list(self, search->pool, search->stream);
    if (rest != MT_NO_BLOCK) {
        struct mt_block *block = &self->store.blocks[rest];
        block->gc_base = self->pools[search->pool].gc_clock;
        mt_free_set_move(&free_list->free, search->found, mt_pytorch_free_entry(self, rest));
        return;
    }
    MT_ASSERT(search->found.entry->block < self->store.count);
    mt_free_set_erase(&free_list->free, search->found);
}

/* Allocates the low end of a block that is in no set, except as search->found. */
static void hand_out(struct mt_pytorch *self, const struct mt_pytorch_search *search, uint32_t id)
{
    bool was_split = mt_block_is_split(&self->store.blocks[id]);
    uint32_t rest = MT_NO_BLOCK;
    uint64_t remaining = 0;

    MT_ASSERT(self->store.blocks[id].state == MT_BLOCK_FREE);
    MT_ASSERT(self->store.blocks[id].size_bytes >= search->size_bytes);
    if (mt_pytorch_should_split(&self->config, self->store.blocks[id].size_bytes,
                                search->size_bytes, search->expandable)) {
        mt_block_split(&self->store, id, search->size_bytes, &rest);
        mt_pytorch_note_split(self, id);
        remaining = self->store.blocks[rest].size_bytes;
    }
    settle(self, search, rest);
    struct mt_block *block = &self->store.blocks[id];
    block->state = MT_BLOCK_ALLOCATED;
    block->requested_bytes = search->requested_bytes;
    MT_ASSERT(rest == MT_NO_BLOCK || block->size_bytes == search->size_bytes);
    MT_ASSERT(rest == MT_NO_BLOCK || block->next == rest);
    mt_block_store_count_alloc(&self->counters, block, remaining, was_split);
}

/* Whether throw_on_cudamalloc_oom rejects a request that needs new memory and that no limit
 * refuses. PyTorch does not flush before, and counts it in num_oom_rejections only (seen in 2.15).
 */
static bool is_rejected(const struct mt_pytorch *self, const struct mt_pytorch_search *search)
{
    uint64_t tested = mt_pytorch_total(self) + search->segment_bytes;

    return self->config.throws_on_oom && self->device->total_memory_bytes &&
           tested > self->device->total_memory_bytes && !mt_device_refuses(self->device, tested);
}

static void show_block(const struct mt_pytorch *self, uint32_t id, struct mt_policy_block *out)
{
    out->handle = id;
    out->addr = self->store.blocks[id].addr;
    out->size_bytes = self->store.blocks[id].size_bytes;
}

static enum mt_status alloc(struct mt_policy *policy, const struct mt_policy_request *request,
                            struct mt_policy_block *out)
{
    struct mt_pytorch *self = &policy->pytorch;
    uint32_t id;

    if (request->size_bytes > MAX_REQUEST) {
        self->counters.ooms++;
        return MT_ERR_DEVICE_OOM;
    }
    struct mt_pytorch_search search = search_for(self, request);
    take_free(self, &search, &id);
    if (id == MT_NO_BLOCK && is_rejected(self, &search))
        return MT_ERR_DEVICE_OOM;
    enum mt_status status = id == MT_NO_BLOCK ? take_after_miss(self, &search, &id) : MT_OK;
    self->counters.ooms += status == MT_ERR_DEVICE_OOM;
    if (status != MT_OK)
        return status;
    hand_out(self, &search, id);
    show_block(self, id, out);
    return MT_OK;
}

/* Allocates at the low end of the free block that begins at the request's address. */
static enum mt_status place_by_rules(struct mt_pytorch *self,
                                     const struct mt_policy_request *request, uint32_t *id)
{
    struct mt_policy_request whole = *request;

    if (request->size_bytes > MAX_REQUEST)
        return MT_ERR_FORMAT;
    struct mt_pytorch_search search = search_for(self, request);
    whole.block_bytes = search.size_bytes;
    enum mt_status status = mt_pytorch_find_place(self, &whole, id);
    if (status != MT_OK)
        return status;
    if (self->store.blocks[*id].addr != request->addr ||
        self->store.blocks[*id].pool != search.pool)
        return MT_ERR_FORMAT;
    mt_pytorch_remove(self, *id);
    hand_out(self, &search, *id);
    return MT_OK;
}

static enum mt_status place(struct mt_policy *policy, const struct mt_policy_request *request,
                            struct mt_policy_block *out)
{
    uint32_t id;

    policy->pytorch.device->any_order = false;
    enum mt_status status = request->block_bytes ? mt_pytorch_place(&policy->pytorch, request, &id)
                                                 : place_by_rules(&policy->pytorch, request, &id);

    if (status == MT_OK)
        show_block(&policy->pytorch, id, out);
    return status;
}

static bool is_idle_segment(struct mt_policy *policy, const struct mt_policy_request *request)
{
    return mt_pytorch_is_idle_segment(&policy->pytorch, request);
}

static bool would_release(struct mt_policy *policy, const struct mt_policy_request *request)
{
    struct mt_pytorch *self = &policy->pytorch;

    if (request->size_bytes > MAX_REQUEST)
        return true;
    struct mt_pytorch_search search = search_for(self, request);
    if (find_free(self, mt_pytorch_free_list(self, search.pool, search.stream), &search).entry)
        return false;
    if (exceeds_limit(self, &search) &&
        (!search.is_private || self->config.max_split_bytes != MT_PYTORCH_UNLIMITED))
        return true;
    return garbage_is_collected(self) &&
           mt_pytorch_total(self) >
               (uint64_t)(self->config.gc_threshold * (double)self->device->limit_bytes);
}

static enum mt_status free_requested(struct mt_policy *policy, uint32_t handle)
{
    struct mt_pytorch *self = &policy->pytorch;
    struct mt_block *block = &self->store.blocks[handle];

    MT_ASSERT(handle < self->store.count && block->state == MT_BLOCK_ALLOCATED);
    block->state = MT_BLOCK_PENDING;
    mt_block_store_count_free_requested(&self->counters, block);
    return MT_OK;
}

static enum mt_status free_completed(struct mt_policy *policy, uint32_t handle)
{
    struct mt_pytorch *self = &policy->pytorch;
    struct mt_block *block = &self->store.blocks[handle];
    uint64_t size = block->size_bytes, merged;

    MT_ASSERT(handle < self->store.count && block->state == MT_BLOCK_PENDING);
    MT_ASSERT(!self->restoring);
    block->state = MT_BLOCK_FREE;
    mt_pytorch_file_freed(self, handle, &merged);
    mt_block_store_count_free_completed(&self->counters, size, block->requested_bytes, merged,
                                        block);
    return MT_OK;
}

static enum mt_status empty_cache(struct mt_policy *policy)
{
    mt_pytorch_release_cached(&policy->pytorch);
    return MT_OK;
}

static void restore_segment(struct mt_policy *policy, const struct mt_event *segment)
{
    mt_pytorch_restore_segment(&policy->pytorch, segment);
}

static enum mt_status restore_block(struct mt_policy *policy, const struct mt_event *event,
                                    struct mt_policy_block *out)
{
    uint32_t id;
    enum mt_status status = mt_pytorch_restore_block(&policy->pytorch, event, &id);

    if (status == MT_OK)
        show_block(&policy->pytorch, id, out);
    return status;
}

/* PyTorch returns segments without blocks before it fails, so under a limit below the memory that
 * was reserved at the start, none of them is left. The second comparison bounds the limits that
 * give the same replay. */
static enum mt_status restored(struct mt_policy *policy)
{
    struct mt_pytorch *self = &policy->pytorch;

    self->device->any_order = false;
    mt_pytorch_restored(self);
    if (!mt_device_refuses(self->device, self->counters.reserved.now))
        return MT_OK;
    mt_pytorch_release_cached(self);
    mt_device_clear(self->device);
    mt_counters_restart(&self->counters);
    (void)mt_device_refuses(self->device, self->counters.reserved.now);
    return MT_OK;
}

static const struct mt_counters *counters(const struct mt_policy *policy)
{
    return &policy->pytorch.counters;
}

static const char *own_doubt(const struct mt_policy *policy)
{
    return policy->pytorch.config.unknown[0]
               ? "the run had an allocator option that this version does not know"
               : NULL;
}

static void copy_pool(struct mt_pytorch_pool *copy, const struct mt_pytorch_pool *pool)
{
    *copy = *pool;
    copy->free_lists =
        mt_array_copy(pool->free_lists, pool->free_list_count, sizeof *pool->free_lists);
    copy->free_list_capacity = pool->free_list_count;
    for (uint32_t i = 0; i < pool->free_list_count; i++) {
        mt_free_set_copy(&copy->free_lists[i].free, &pool->free_lists[i].free);
        mt_free_set_copy(&copy->free_lists[i].unmapped, &pool->free_lists[i].unmapped);
    }
}

static struct mt_policy *copy(const struct mt_policy *policy, struct mt_device_model *device)
{
    const struct mt_pytorch *from = &policy->pytorch;
    struct mt_policy *copied = mt_array_copy(policy, 1, sizeof *policy);
    struct mt_pytorch *self = &copied->pytorch;

    self->device = device;
    mt_block_store_copy(&self->store, &from->store);
    self->pools = mt_array_copy(from->pools, from->pool_count, sizeof *from->pools);
    for (uint32_t i = 0; i < from->pool_count; i++)
        copy_pool(&self->pools[i], &from->pools[i]);
    self->scratch = NULL;
    self->scratch_count = self->scratch_capacity = 0;
    return copied;
}

static uint64_t most_tested(struct mt_policy *policy, const struct mt_policy_request *request,
                            uint8_t first, uint64_t limit_bytes)
{
    const bool flushes = first == MT_EVENT_EMPTY_CACHE || first == MT_EVENT_SEGMENT_FREE ||
                         first == MT_EVENT_SEGMENT_UNMAP;
    struct mt_pytorch *self = &policy->pytorch;

    if (request->size_bytes > MAX_REQUEST || !self->device->only_compares)
        return UINT64_MAX;
    struct mt_pytorch_search search = search_for(self, request);
    uint64_t sum = mt_pytorch_total(self) + search.segment_bytes;
    if (sum <= mt_min_u64(limit_bytes, MT_MAX_TOTAL_BYTES))
        return 0;
    if (first == MT_EVENT_EMPTY_CACHE ||
        find_free(self, mt_pytorch_free_list(self, search.pool, search.stream), &search).entry)
        sum = flushes ? sum - mt_pytorch_releasable(self) : 0;
    return sum > MT_MAX_TOTAL_BYTES ? UINT64_MAX : sum;
}

static bool set_is_sound(const struct mt_pytorch *self, uint32_t pool,
                         const struct mt_pytorch_free_list *free_list, enum mt_block_state state,
                         const char **why)
{
    const struct mt_free_set *set =
        state == MT_BLOCK_FREE ? &free_list->free : &free_list->unmapped;
    struct mt_free_cursor at = mt_free_set_find(set, 0, 0);

    if (!mt_free_set_is_sound(set, why))
        return false;
    for (; at.entry; at = mt_free_set_next(set, at)) {
        const struct mt_block *block = &self->store.blocks[at.entry->block];
        MT_SOUND(why, at.entry->block < self->store.count);
        MT_SOUND(why, block->state == state);
        MT_SOUND(why, block->addr == at.entry->addr);
        MT_SOUND(why, at.entry->age == (state == MT_BLOCK_FREE ? block->age : 0));
        MT_SOUND(why, block->age <= self->age_count);
        MT_SOUND(why, at.entry->size_bytes == (state == MT_BLOCK_FREE ? block->size_bytes : 0));
        MT_SOUND(why, block->pool == pool && block->stream == free_list->stream);
    }
    return true;
}

/* Reusable blocks are in exactly one set, under their own key; free lists ascend by stream. */
static bool pools_are_sound(const struct mt_pytorch *self, const char **why)
{
    size_t filed = 0, reusable = 0;

    for (uint32_t id = 0; id < self->store.count; id++)
        reusable += self->store.blocks[id].state == MT_BLOCK_FREE ||
                    self->store.blocks[id].state == MT_BLOCK_UNMAPPED;
    for (uint32_t pool = 0; pool < self->pool_count; pool++) {
        const struct mt_pytorch_pool *of = &self->pools[pool];
        MT_SOUND(why, of->owner == pool / 2 && of->is_small == (pool % 2 == 1));
        for (uint32_t free_list = 0; free_list < of->free_list_count; free_list++) {
            const struct mt_pytorch_free_list *at = &of->free_lists[free_list];
            MT_SOUND(why, !free_list || at[-1].stream_handle <= at->stream_handle);
            if (!set_is_sound(self, pool, at, MT_BLOCK_FREE, why) ||
                !set_is_sound(self, pool, at, MT_BLOCK_UNMAPPED, why))
                return false;
            filed += at->free.count + at->unmapped.count;
        }
    }
    MT_SOUND(why, filed == reusable);
    return true;
}

/* free + used = reserved; the counters match the blocks. */
static bool counters_are_sound(const struct mt_pytorch *self, const char **why)
{
    const struct mt_counters *counters = &self->counters;
    uint64_t held = 0, allocated = 0, active = 0, inactive_split = 0, segments = 0;

    for (uint32_t id = 0; id < self->store.count; id++) {
        const struct mt_block *block = &self->store.blocks[id];
        if (block->state == MT_BLOCK_UNUSED || block->state == MT_BLOCK_UNMAPPED)
            continue;
        held += block->size_bytes;
        allocated += block->state == MT_BLOCK_ALLOCATED ? block->size_bytes : 0;
        active += block->state != MT_BLOCK_FREE ? block->size_bytes : 0;
        segments += !block->expandable && block->previous == MT_NO_BLOCK;
        if (block->state == MT_BLOCK_FREE && !block->expandable && mt_block_is_split(block))
            inactive_split += block->size_bytes;
    }
    MT_SOUND(why, held == counters->reserved.now);
    MT_SOUND(why, allocated == counters->allocated.now);
    MT_SOUND(why, active == counters->active.now);
    MT_SOUND(why, inactive_split == counters->inactive_split.now);
    MT_SOUND(why, segments == counters->segments.now);
    MT_SOUND(why, held <= 2 * MT_MAX_TOTAL_BYTES && mt_counters_agree(counters));
    return true;
}

/* Checks that blocks touch and are merged, that reusable blocks are in the right sets, and that the
 * counters match the blocks. Not while state is being restored. */
static bool pytorch_is_sound(const struct mt_pytorch *self, const char **why)
{
    return mt_block_store_is_sound(&self->store, false, why) && pools_are_sound(self, why) &&
           counters_are_sound(self, why);
}

static bool is_sound(const struct mt_policy *policy, const char **why)
{
    return pytorch_is_sound(&policy->pytorch, why);
}

const struct mt_policy_ops mt_policy_pytorch = {
    .name = "pytorch",
    .summary = "PyTorch's caching allocator, with any of its options",
    .follows_recording = true,
    .create = create,
    .destroy = destroy,
    .alloc = alloc,
    .place = place,
    .is_idle_segment = is_idle_segment,
    .free_requested = free_requested,
    .free_completed = free_completed,
    .empty_cache = empty_cache,
    .would_release = would_release,
    .restore_segment = restore_segment,
    .restore_block = restore_block,
    .restored = restored,
    .copy = copy,
    .most_tested = most_tested,
    .counters = counters,
    .own_doubt = own_doubt,
    .is_sound = is_sound,
};
