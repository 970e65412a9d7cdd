/* Expandable segments: one reservation of address space per pool and stream,
 * larger than the GPU, into which memory is mapped in chunks from the low end:
 *
 *     [ allocated | free | unmapped .................................. ]
 *
 * A request may use a free block at the growing end and map only the rest. */
#include "pytorch_pools.h"

#include "check.h"
#include "util.h"

/* Size of a reservation if the GPU's size is not recorded: more than any GPU has. */
static const uint64_t ASSUMED_TOTAL_MEMORY = 512 * MT_GIB;

static uint64_t chunk_bytes(const struct mt_pytorch *policy, uint32_t pool)
{
    return policy->pools[pool].is_small ? MT_PYTORCH_SMALL_SEGMENT
                                        : policy->config.large_segment_bytes;
}

static bool is_reusable(const struct mt_block *block)
{
    return block->state == MT_BLOCK_FREE || block->state == MT_BLOCK_UNMAPPED;
}

/* Whether size_bytes of contiguous free or unmapped space begin here. */
static bool has_room(const struct mt_pytorch *policy, uint32_t id, uint64_t size_bytes)
{
    uint64_t found = 0;

    while (found < size_bytes && id != MT_NO_BLOCK && is_reusable(&policy->store.blocks[id])) {
        found += policy->store.blocks[id].size_bytes;
        id = policy->store.blocks[id].next;
    }
    return found >= size_bytes;
}

static void reserve(struct mt_pytorch *policy, const struct mt_pytorch_search *search,
                    uint32_t *block)
{
    uint64_t total = policy->device->total_memory_bytes ? policy->device->total_memory_bytes
                                                        : ASSUMED_TOTAL_MEMORY;
    uint64_t chunk = chunk_bytes(policy, search->pool);
    uint64_t va = mt_round_up(mt_max_u64(total + total / 8, search->size_bytes), chunk);
    struct mt_block fresh = {0};

    mt_device_base(policy->device, MT_EVENT_SEGMENT_MAP, search->size_bytes, va, search->stream,
                   &fresh.addr);
    fresh.size_bytes = va;
    fresh.stream = search->stream;
    fresh.pool = (uint16_t)search->pool;
    fresh.reservation = policy->reservation_count++;
    fresh.age = mt_pytorch_segment_age(policy);
    fresh.state = MT_BLOCK_UNMAPPED;
    fresh.expandable = true;
    MT_ASSERT(va % chunk == 0 && va >= search->size_bytes);
    mt_block_new(&policy->store, &fresh, block);
    mt_pytorch_insert(policy, *block);
}

/* First position, in address order of the unmapped blocks, where the request fits; includes a free
 * block right below an unmapped one. */
static void find_space(struct mt_pytorch *policy, const struct mt_pytorch_search *search,
                       uint32_t *block)
{
    struct mt_pytorch_free_list *free_list =
        mt_pytorch_free_list(policy, search->pool, search->stream);
    struct mt_free_cursor at;

    for (at = mt_free_set_find(&free_list->unmapped, 0, 0); at.entry;
         at = mt_free_set_next(&free_list->unmapped, at)) {
        uint32_t id = at.entry->block, below = policy->store.blocks[id].previous;
        if (below != MT_NO_BLOCK && is_reusable(&policy->store.blocks[below]))
            id = below;
        if (has_room(policy, id, search->size_bytes)) {
            *block = id;
            return;
        }
    }
    reserve(policy, search, block);
}

/* Maps the first size_bytes of an unmapped block, in whole chunks. The block becomes free and
 * absorbs free neighbors; *id still refers to it afterwards. */
static void map(struct mt_pytorch *policy, uint32_t id, uint64_t size_bytes)
{
    uint64_t bytes = mt_round_up(size_bytes, chunk_bytes(policy, policy->store.blocks[id].pool));
    uint64_t addr = policy->store.blocks[id].addr;
    struct mt_block *block;

    MT_ASSERT(policy->store.blocks[id].state == MT_BLOCK_UNMAPPED && size_bytes > 0);
    MT_ASSERT(size_bytes <= policy->store.blocks[id].size_bytes);
    mt_pytorch_remove(policy, id);
    if (bytes < policy->store.blocks[id].size_bytes) {
        uint32_t rest;
        mt_block_split(&policy->store, id, bytes, &rest);
        mt_pytorch_note_split(policy, rest);
        mt_pytorch_insert(policy, rest);
    }
    block = &policy->store.blocks[id];
    block->state = MT_BLOCK_FREE;
    bytes = block->size_bytes;
    mt_pytorch_try_merge(policy, id, block->previous);
    mt_pytorch_try_merge(policy, id, block->next);
    mt_pytorch_insert(policy, id);
    mt_level_add(&policy->counters.reserved, bytes);
    policy->counters.device_allocs++;
    mt_device_log(policy->device, MT_EVENT_SEGMENT_MAP, addr, bytes, block->stream,
                  &policy->counters);
}

enum mt_status mt_pytorch_expand(struct mt_pytorch *policy, const struct mt_pytorch_search *search,
                                 uint32_t *block)
{
    uint64_t size;

    find_space(policy, search, block);
    size = policy->store.blocks[*block].size_bytes;
    if (policy->store.blocks[*block].state == MT_BLOCK_UNMAPPED)
        map(policy, *block, mt_min_u64(size, search->size_bytes));
    while (policy->store.blocks[*block].size_bytes < search->size_bytes) {
        uint32_t next = policy->store.blocks[*block].next;
        uint64_t missing = search->size_bytes - policy->store.blocks[*block].size_bytes;
        if (next == MT_NO_BLOCK || policy->store.blocks[next].state != MT_BLOCK_UNMAPPED)
            return MT_ERR_DEVICE_OOM;
        map(policy, next, mt_min_u64(missing, policy->store.blocks[next].size_bytes));
        *block = next; /* it absorbed the previous block */
    }
    MT_ASSERT(policy->store.blocks[*block].state == MT_BLOCK_FREE);
    MT_ASSERT(policy->store.blocks[*block].size_bytes >= search->size_bytes);
    mt_pytorch_remove(policy, *block);
    return MT_OK;
}

/* Cuts a free piece off the low end of `*id` and files it; *id is then the rest. */
static void keep_low(struct mt_pytorch *policy, uint32_t *id, uint64_t bytes)
{
    uint32_t rest;

    mt_block_split(&policy->store, *id, bytes, &rest);
    mt_pytorch_note_split(policy, *id);
    mt_pytorch_insert(policy, *id);
    *id = rest;
}

/* Drops a reservation without mapped memory. */
static void drop_if_empty(struct mt_pytorch *policy, uint32_t id)
{
    if (!mt_block_is_split(&policy->store.blocks[id])) {
        mt_pytorch_remove(policy, id);
        mt_block_drop(&policy->store, id);
    }
}

/* Lowest address of the reservation that contains `id`. */
static uint64_t reservation_base(const struct mt_pytorch *policy, uint32_t id)
{
    while (policy->store.blocks[id].previous != MT_NO_BLOCK)
        id = policy->store.blocks[id].previous;
    return policy->store.blocks[id].addr;
}

void mt_pytorch_unmap(struct mt_pytorch *policy, uint32_t id)
{
    struct mt_block *block = &policy->store.blocks[id];
    uint64_t base = reservation_base(policy, id), chunk = chunk_bytes(policy, block->pool);
    uint64_t begin = base + mt_round_up(block->addr - base, chunk);
    uint64_t end = base + mt_round_down(block->addr + block->size_bytes - base, chunk);
    uint32_t stream = block->stream;

    MT_ASSERT(block->expandable && block->state == MT_BLOCK_FREE);
    if (begin >= end)
        return;
    MT_ASSERT(begin >= block->addr && end <= block->addr + block->size_bytes);
    mt_pytorch_remove(policy, id);
    if (begin > block->addr)
        keep_low(policy, &id, begin - block->addr);
    block = &policy->store.blocks[id];
    if (block->addr + block->size_bytes > end) {
        uint32_t high;
        mt_block_split(&policy->store, id, end - begin, &high);
        mt_pytorch_note_split(policy, high);
        mt_pytorch_insert(policy, high);
    }
    block = &policy->store.blocks[id];
    MT_ASSERT(block->addr == begin && block->size_bytes == end - begin);
    block->state = MT_BLOCK_UNMAPPED;
    mt_pytorch_try_merge(policy, id, block->previous);
    mt_pytorch_try_merge(policy, id, block->next);
    mt_pytorch_insert(policy, id);
    mt_level_sub(&policy->counters.reserved, end - begin);
    policy->counters.device_frees++;
    mt_device_log(policy->device, MT_EVENT_SEGMENT_UNMAP, begin, end - begin, stream,
                  &policy->counters);
    drop_if_empty(policy, id);
}
