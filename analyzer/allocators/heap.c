#include "heap.h"
#include "policy_options.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "event.h"
#include "grow.h"
#include "process_memory.h"
#include "util.h"

static const uint64_t MAX_HEAP = (uint64_t)1 << 60;
static const uint64_t FIRST_OWN_ADDR = (uint64_t)1 << 40;
static const uint64_t LAST_OWN_ADDR = (uint64_t)1 << 62;
static const uint64_t PAGE = 2 * MT_MIB;

void mt_heap_init(struct mt_heap *heap, struct mt_device_model *device)
{
    memset(heap, 0, sizeof *heap);
    heap->device = device;
    heap->limit_bytes = device->limit_bytes;
    device->only_compares = true;
    heap->next_addr = FIRST_OWN_ADDR;
}

void mt_heap_limit(struct mt_heap *heap, uint64_t limit_bytes)
{
    if (limit_bytes && (!heap->limit_bytes || limit_bytes < heap->limit_bytes))
        heap->limit_bytes = limit_bytes;
}

void mt_heap_release(struct mt_heap *heap)
{
    for (uint32_t i = 0; i < heap->free_list_count; i++)
        mt_free_set_release(&heap->free_lists[i].free);
    free(heap->free_lists);
    mt_block_store_release(&heap->store);
    memset(heap, 0, sizeof *heap);
}

void mt_heap_free_list(struct mt_heap *heap, uint64_t name, uint32_t *free_list)
{
    for (uint32_t i = 0; i < heap->free_list_count; i++)
        if (heap->free_lists[i].name == name) {
            *free_list = i;
            return;
        }
    mt_grow_to(&heap->free_lists, &heap->free_list_capacity, (size_t)heap->free_list_count + 1,
               sizeof *heap->free_lists);
    memset(&heap->free_lists[heap->free_list_count], 0, sizeof *heap->free_lists);
    heap->free_lists[heap->free_list_count].name = name;
    *free_list = heap->free_list_count++;
}

bool mt_heap_exceeds(const struct mt_heap *heap, uint64_t size_bytes)
{
    const uint64_t limit = heap->limit_bytes ? heap->limit_bytes : MAX_HEAP;
    const uint64_t sum_bytes = heap->counters.reserved.now + size_bytes;

    return size_bytes > MT_HEAP_MAX_SEGMENT || mt_device_refuses(heap->device, sum_bytes) ||
           sum_bytes > limit;
}

static void base_addr(struct mt_heap *heap, uint64_t size_bytes, uint32_t stream, uint64_t *addr)
{
    const struct mt_device_model *device = heap->device;

    if (!heap->own_addresses || (heap->is_of_run && device->use_bases && device->base_count)) {
        mt_device_base(heap->device, MT_EVENT_SEGMENT_ALLOC, size_bytes, 0, stream, addr);
        return;
    }
    if (heap->next_addr > LAST_OWN_ADDR)
        heap->next_addr = FIRST_OWN_ADDR;
    *addr = mt_round_up(heap->next_addr, (uint64_t)1 << (mt_log2_floor(2 * size_bytes - 1)));
    heap->next_addr = *addr + mt_round_up(size_bytes, PAGE);
}

void mt_heap_place(struct mt_heap *heap, uint64_t size_bytes, uint32_t stream, uint32_t free_list,
                   uint32_t *block)
{
    struct mt_block fresh = {0};

    MT_ASSERT(size_bytes > 0 && size_bytes <= MT_HEAP_MAX_SEGMENT);
    base_addr(heap, size_bytes, stream, &fresh.addr);
    fresh.size_bytes = size_bytes;
    fresh.stream = stream;
    fresh.reservation = free_list;
    fresh.state = MT_BLOCK_FREE;
    mt_block_new(&heap->store, &fresh, block);
}

enum mt_status mt_heap_grow(struct mt_heap *heap, uint64_t size_bytes, uint32_t stream,
                            uint32_t free_list, uint32_t *block)
{
    if (mt_heap_exceeds(heap, size_bytes)) {
        heap->device->refusals++;
        return MT_ERR_DEVICE_OOM;
    }
    mt_heap_place(heap, size_bytes, stream, free_list, block);
    mt_level_add(&heap->counters.segments, 1);
    mt_level_add(&heap->counters.reserved, size_bytes);
    heap->counters.device_allocs++;
    MT_ASSERT(!heap->limit_bytes || heap->counters.reserved.now <= heap->limit_bytes);
    mt_device_log(heap->device, MT_EVENT_SEGMENT_ALLOC, heap->store.blocks[*block].addr, size_bytes,
                  stream, &heap->counters);
    return MT_OK;
}

enum mt_status mt_heap_grow_or_flush(struct mt_heap *heap, uint64_t size_bytes, uint32_t stream,
                                     uint32_t free_list, uint32_t *block)
{
    enum mt_status status = mt_heap_grow(heap, size_bytes, stream, free_list, block);

    if (status != MT_ERR_DEVICE_OOM)
        return status;
    heap->counters.retries++;
    mt_heap_drop_idle(heap);
    return mt_heap_grow(heap, size_bytes, stream, free_list, block);
}

void mt_heap_drop(struct mt_heap *heap, uint32_t id)
{
    struct mt_block block = heap->store.blocks[id];

    MT_ASSERT(block.state == MT_BLOCK_FREE && !mt_block_is_split(&block));
    MT_ASSERT(heap->counters.segments.now > 0);
    mt_block_drop(&heap->store, id);
    mt_level_sub(&heap->counters.segments, 1);
    mt_level_sub(&heap->counters.reserved, block.size_bytes);
    heap->counters.device_frees++;
    mt_device_log(heap->device, MT_EVENT_SEGMENT_FREE, block.addr, block.size_bytes, block.stream,
                  &heap->counters);
}

/* Whether this is the first block of a segment that is wholly free. */
static bool starts_idle_segment(const struct mt_heap *heap, uint32_t id)
{
    const struct mt_block *blocks = heap->store.blocks;

    if (blocks[id].state != MT_BLOCK_FREE || blocks[id].previous != MT_NO_BLOCK)
        return false;
    while (id != MT_NO_BLOCK && blocks[id].state == MT_BLOCK_FREE)
        id = blocks[id].next;
    return id == MT_NO_BLOCK;
}

void mt_heap_drop_idle(struct mt_heap *heap)
{
    uint32_t next;

    for (uint32_t id = 0; id < heap->store.count; id++) {
        if (!starts_idle_segment(heap, id))
            continue;
        mt_heap_take(heap, id);
        while ((next = heap->store.blocks[id].next) != MT_NO_BLOCK) {
            mt_heap_take(heap, next);
            mt_block_merge(&heap->store, id, next);
        }
        mt_heap_drop(heap, id);
    }
}

static struct mt_heap_key key_of(const struct mt_heap *heap, const struct mt_block *block)
{
    struct mt_heap_key best_fit = {block->size_bytes, block->addr};

    return heap->key ? heap->key(block) : best_fit;
}

static struct mt_free_entry entry_of(struct mt_heap_key key, uint32_t id)
{
    return (struct mt_free_entry){.size_bytes = key.major, .addr = key.minor, .block = id};
}

void mt_heap_put(struct mt_heap *heap, uint32_t id)
{
    struct mt_block *block = &heap->store.blocks[id];

    block->gc_base = ++heap->puts;
    struct mt_heap_key key = key_of(heap, block);
    MT_ASSERT(block->state == MT_BLOCK_FREE && block->reservation < heap->free_list_count);
    mt_free_set_insert(&heap->free_lists[block->reservation].free, entry_of(key, id));
}

void mt_heap_take(struct mt_heap *heap, uint32_t id)
{
    const struct mt_block *block = &heap->store.blocks[id];
    struct mt_heap_key key = key_of(heap, block);

    bool was_filed =
        mt_free_set_remove(&heap->free_lists[block->reservation].free, entry_of(key, id));

    (void)was_filed;
    MT_ASSERT(was_filed);
}

uint32_t mt_heap_take_first(struct mt_heap *heap, uint32_t free_list, uint64_t major)
{
    struct mt_free_set *set = &heap->free_lists[free_list].free;
    struct mt_free_cursor at = mt_free_set_find(set, major, 0);

    if (!at.entry)
        return MT_NO_BLOCK;
    uint32_t id = at.entry->block;
    MT_ASSERT(at.entry->size_bytes >= major);
    MT_ASSERT(heap->store.blocks[id].state == MT_BLOCK_FREE);
    MT_ASSERT(heap->store.blocks[id].reservation == free_list);
    struct mt_free_cursor twin = mt_free_set_next(set, at);
    if (!heap->key && twin.entry)
        heap->device->address_ties += twin.entry->size_bytes == at.entry->size_bytes;
    mt_free_set_erase(set, at);
    return id;
}

void mt_heap_hand_out(struct mt_heap *heap, uint32_t id, uint64_t size_bytes,
                      uint64_t requested_bytes, struct mt_policy_block *out)
{
    uint32_t rest;

    MT_ASSERT(heap->store.blocks[id].state == MT_BLOCK_FREE);
    MT_ASSERT(heap->store.blocks[id].size_bytes >= size_bytes && size_bytes >= requested_bytes);
    if (heap->store.blocks[id].size_bytes > size_bytes) {
        mt_block_split(&heap->store, id, size_bytes, &rest);
        mt_heap_put(heap, rest);
    }
    struct mt_block *block = &heap->store.blocks[id];
    block->state = MT_BLOCK_ALLOCATED;
    block->requested_bytes = requested_bytes;
    heap->counters.allocations++;
    mt_level_add(&heap->counters.allocated, block->size_bytes);
    mt_level_add(&heap->counters.active, block->size_bytes);
    mt_level_add(&heap->counters.requested, requested_bytes);
    MT_ASSERT(block->size_bytes == size_bytes);
    MT_ASSERT(heap->counters.active.now <= heap->counters.reserved.now);
    *out = (struct mt_policy_block){id, block->addr, block->size_bytes};
}

void mt_heap_complete(struct mt_heap *heap, uint32_t id)
{
    struct mt_block *block = &heap->store.blocks[id];

    MT_ASSERT(block->state == MT_BLOCK_PENDING);
    mt_level_sub(&heap->counters.active, block->size_bytes);
    mt_level_sub(&heap->counters.requested, block->requested_bytes);
    block->state = MT_BLOCK_FREE;
    block->requested_bytes = 0;
}

static void merge_one(struct mt_heap *heap, uint32_t id, uint32_t other)
{
    const struct mt_block *blocks = heap->store.blocks;

    if (other == MT_NO_BLOCK || blocks[other].state != MT_BLOCK_FREE ||
        blocks[other].reservation != blocks[id].reservation)
        return;
    MT_ASSERT(blocks[id].state == MT_BLOCK_FREE);
    mt_heap_take(heap, other);
    mt_block_merge(&heap->store, id, other);
}

void mt_heap_merge(struct mt_heap *heap, uint32_t id)
{
    merge_one(heap, id, heap->store.blocks[id].next);
    merge_one(heap, id, heap->store.blocks[id].previous);
}

static struct mt_heap *heap_of(struct mt_policy *policy)
{
    return (struct mt_heap *)(void *)policy;
}

/* Sets up a heap with the rules of its policy, before the options are known. */
static void set_up(struct mt_heap *heap, const struct mt_heap_rules *rules,
                   struct mt_device_model *device)
{
    uint32_t free_list;

    mt_heap_init(heap, device);
    heap->key = rules->key;
    heap->own_addresses = rules->own_addresses;
    heap->may_touch = rules->may_touch;
    heap->find = rules->find;
    if (rules->has_one_free_list)
        mt_heap_free_list(heap, 0, &free_list);
}

enum mt_status mt_heap_create(const struct mt_policy_ops *ops, const struct mt_policy_setup *setup,
                              struct mt_policy **policy, struct mt_error *error)
{
    const struct mt_heap_rules *rules = ops->heap;
    uint64_t values[MT_HEAP_MAX_OPTIONS];

    MT_ASSERT(rules->option_count <= MT_HEAP_MAX_OPTIONS);
    const char *options =
        setup->options ? setup->options : mt_policy_recorded_options(setup->header, ops->name);
    enum mt_status status =
        mt_policy_options_parse(options, rules->options, rules->option_count, values, error);
    if (status != MT_OK)
        return status;
    struct mt_policy *self = mt_memory_zeroed(1, rules->size_bytes);
    set_up(heap_of(self), rules, setup->device);
    heap_of(self)->is_of_run = mt_policy_recorded_options(setup->header, ops->name) != NULL;
    if (rules->init)
        status = rules->init(self, values, error);
    if (status != MT_OK) {
        ops->destroy(self);
        return status;
    }
    mt_policy_options_spell(ops->name, rules->options, values, rules->option_count, setup->spelling,
                            setup->spelling_size);
    *policy = self;
    return MT_OK;
}

void mt_heap_op_destroy(struct mt_policy *policy)
{
    mt_heap_release(heap_of(policy));
    free(policy);
}

enum mt_status mt_heap_op_alloc(struct mt_policy *policy, const struct mt_policy_request *request,
                                struct mt_policy_block *out)
{
    struct mt_heap *heap = heap_of(policy);
    struct mt_heap_share share = {MT_NO_BLOCK, MT_NO_BLOCK, 0};
    enum mt_status status = MT_ERR_DEVICE_OOM;

    if (request->size_bytes <= MT_HEAP_MAX_REQUEST)
        status = heap->find(policy, request, &share);
    heap->counters.ooms += status == MT_ERR_DEVICE_OOM;
    if (status == MT_OK)
        mt_heap_hand_out(heap, share.block, share.size_bytes, request->size_bytes, out);
    if (status == MT_OK && share.free_list != MT_NO_BLOCK)
        heap->store.blocks[share.block].reservation = share.free_list;
    return status;
}

enum mt_status mt_heap_op_free_requested(struct mt_policy *policy, uint32_t handle)
{
    struct mt_heap *heap = heap_of(policy);
    struct mt_block *block = &heap->store.blocks[handle];

    MT_ASSERT(handle < heap->store.count && block->state == MT_BLOCK_ALLOCATED);
    block->state = MT_BLOCK_PENDING;
    heap->counters.frees++;
    mt_level_sub(&heap->counters.allocated, block->size_bytes);
    return MT_OK;
}

enum mt_status mt_heap_op_free_completed(struct mt_policy *policy, uint32_t handle)
{
    struct mt_heap *heap = heap_of(policy);

    mt_heap_complete(heap, handle);
    mt_heap_merge(heap, handle);
    mt_heap_put(heap, handle);
    return MT_OK;
}

enum mt_status mt_heap_op_free_whole(struct mt_policy *policy, uint32_t handle)
{
    struct mt_heap *heap = heap_of(policy);

    mt_heap_complete(heap, handle);
    if (heap->store.blocks[handle].reservation == MT_NO_BLOCK) {
        mt_heap_drop(heap, handle);
        return MT_OK;
    }
    mt_heap_put(heap, handle);
    return MT_OK;
}

enum mt_status mt_heap_op_keep_cache(struct mt_policy *policy)
{
    (void)policy;
    return MT_OK;
}

enum mt_status mt_heap_op_drop_idle(struct mt_policy *policy)
{
    mt_heap_drop_idle(heap_of(policy));
    return MT_OK;
}

const struct mt_counters *mt_heap_op_counters(const struct mt_policy *policy)
{
    return &((const struct mt_heap *)(const void *)policy)->counters;
}

/* Checks that every entry refers to a free block of that free list under its own key. */
static bool free_lists_are_sound(const struct mt_heap *heap, uint64_t free_blocks, const char **why)
{
    uint64_t filed = 0;

    for (uint32_t free_list = 0; free_list < heap->free_list_count; free_list++) {
        const struct mt_free_set *set = &heap->free_lists[free_list].free;
        struct mt_free_cursor at = mt_free_set_find(set, 0, 0);
        if (!mt_free_set_is_sound(set, why))
            return false;
        for (; at.entry; at = mt_free_set_next(set, at), filed++) {
            MT_SOUND(why, at.entry->block < heap->store.count);
            const struct mt_block *block = &heap->store.blocks[at.entry->block];
            struct mt_heap_key key = key_of(heap, block);
            MT_SOUND(why, block->state == MT_BLOCK_FREE);
            MT_SOUND(why, block->reservation == free_list);
            MT_SOUND(why, key.major == at.entry->size_bytes && key.minor == at.entry->addr);
        }
    }
    MT_SOUND(why, filed == free_blocks);
    return true;
}

bool mt_heap_op_is_sound(const struct mt_policy *policy, const char **why)
{
    const struct mt_heap *heap = (const struct mt_heap *)(const void *)policy;
    const struct mt_counters *counters = &heap->counters;
    uint64_t bytes[MT_BLOCK_PENDING + 1] = {0}, free_blocks = 0;

    if (!mt_block_store_is_sound(&heap->store, heap->may_touch, why))
        return false;
    for (uint32_t id = 0; id < heap->store.count; id++) {
        const struct mt_block *block = &heap->store.blocks[id];
        MT_SOUND(why, block->state <= MT_BLOCK_PENDING);
        bytes[block->state] += block->state == MT_BLOCK_UNUSED ? 0 : block->size_bytes;
        free_blocks += block->state == MT_BLOCK_FREE;
    }
    MT_SOUND(why, bytes[MT_BLOCK_ALLOCATED] == counters->allocated.now);
    MT_SOUND(why, bytes[MT_BLOCK_ALLOCATED] + bytes[MT_BLOCK_PENDING] == counters->active.now);
    MT_SOUND(why, counters->active.now + bytes[MT_BLOCK_FREE] + heap->loose_bytes ==
                      counters->reserved.now);
    MT_SOUND(why, mt_counters_agree(counters));
    MT_SOUND(why, counters->allocations >= counters->frees);
    return free_lists_are_sound(heap, free_blocks, why);
}
