/* See nvtx_parts.h: NVTX's memory extension, with which any pool can report its operations. On heap
 * MT_RAW_USER a heap of the program is a segment (and a pool: its address), and a region is a
 * block. The table has what the program reported: one live region per address, the last one
 * replaces earlier ones, and a heap that is unregistered or reset ends its regions.
 *
 * A lock keeps table and events in the same order. Only the collector is called while it is
 * held. */
#include "nvtx_parts.h"

#include <errno.h>

#include "collect.h"
#include "grow.h"
#include "lock.h"
#include "map.h"

mt_nvtx_next_slot mt_nvtx_next_memory[NVTX_MEMORY_SLOT_COUNT];

#define DECLARE_MEMORY(number, name, result, parameters)                                           \
    typedef result(*name##_fn) parameters;                                                         \
    static name##_fn next_##name(void)                                                             \
    {                                                                                              \
        return (name##_fn)atomic_load_explicit(&mt_nvtx_next_memory[number],                       \
                                               memory_order_relaxed);                              \
    }
NVTX_MEMORY_SLOTS(DECLARE_MEMORY)

/* A heap or a region. */
struct range {
    uint64_t address, size_bytes;
    uint64_t heap; /* for a region: the heap's address, 0 = the whole process */
};

struct ranges {
    struct range *items;
    size_t count, capacity;
    struct mt_map by_address; /* index in items */
};

static struct {
    pthread_mutex_t lock;
    struct mt_signals before; /* of the thread that holds the lock */
    struct ranges heaps, regions;
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct range *ranges_find(const struct ranges *ranges, uint64_t address)
{
    uint32_t index = mt_map_get(&ranges->by_address, address);

    return index == MT_MAP_NONE ? NULL : &ranges->items[index];
}

static bool ranges_add(struct ranges *ranges, struct range range)
{
    if (ranges->count >= MT_MAP_NONE ||
        (ranges->count == ranges->capacity &&
         mt_grow(&ranges->items, &ranges->capacity, ranges->count + 1, sizeof *ranges->items)) ||
        mt_map_set(&ranges->by_address, range.address, (uint32_t)ranges->count))
        return false;
    ranges->items[ranges->count++] = range;
    return true;
}

/* Removes a range and moves the last one to its place. */
static bool ranges_take(struct ranges *ranges, uint64_t address, struct range *range)
{
    uint32_t index = mt_map_take(&ranges->by_address, address);

    if (index == MT_MAP_NONE)
        return false;
    *range = ranges->items[index];
    ranges->items[index] = ranges->items[--ranges->count];
    if (index == ranges->count)
        return true;
    return mt_map_set(&ranges->by_address, ranges->items[index].address, index) == MT_OK;
}

static struct mt_raw_event event_of(uint8_t kind, const struct range *range, uint64_t heap)
{
    return (struct mt_raw_event){.kind = kind,
                                 .heap = MT_RAW_USER,
                                 .device = UINT8_MAX,
                                 .addr = range->address,
                                 .size_bytes = range->size_bytes,
                                 .id = mt_collect_pool(heap, 0)};
}

static void emit_segment(uint8_t kind, const struct range *heap)
{
    struct mt_raw_event event = event_of(kind, heap, heap->address);

    mt_collect_emit(&event);
}

static void emit_alloc(const struct range *region, const struct mt_raw_event *stacks)
{
    struct mt_raw_event event = event_of(MT_EVENT_ALLOC, region, region->heap);

    event.aux_bytes = region->size_bytes; /* the block has the requested size */
    event.python_stack = stacks->python_stack;
    event.native_stack = stacks->native_stack;
    mt_collect_emit(&event);
}

static void emit_free(const struct range *region)
{
    struct mt_raw_event event = event_of(MT_EVENT_FREE_REQUESTED, region, region->heap);

    mt_collect_emit(&event);
    event.kind = MT_EVENT_FREE_COMPLETED;
    mt_collect_emit(&event);
}

static void end_region(uint64_t address)
{
    struct range old;

    if (ranges_take(&memory.regions, address, &old))
        emit_free(&old);
}

static void begin_region(struct range region, const struct mt_raw_event *stacks)
{
    end_region(region.address);
    if (region.size_bytes && ranges_add(&memory.regions, region))
        emit_alloc(&region, stacks);
}

/* Iterates from the end: a removed range is replaced by one that was already visited. */
static void end_regions_of(uint64_t heap)
{
    for (size_t i = memory.regions.count; i-- > 0;)
        if (memory.regions.items[i].heap == heap)
            end_region(memory.regions.items[i].address);
}

static void end_heap(uint64_t address)
{
    struct range old;

    end_regions_of(address);
    if (ranges_take(&memory.heaps, address, &old))
        emit_segment(MT_EVENT_SEGMENT_FREE, &old);
}

static void begin_heap(struct range heap)
{
    end_heap(heap.address);
    if (heap.address && heap.size_bytes && ranges_add(&memory.heaps, heap))
        emit_segment(MT_EVENT_SEGMENT_ALLOC, &heap);
}

static bool begin(void)
{
    if (!mt_collect_enter())
        return false;
    memory.before = mt_lock(&memory.lock);
    return true;
}

static void end(void)
{
    mt_unlock(&memory.lock, memory.before);
    mt_collect_leave();
}

/* Collects stacks without the lock. */
static bool begin_with_stacks(struct mt_raw_event *stacks)
{
    *stacks = (struct mt_raw_event){.kind = MT_EVENT_ALLOC, .heap = MT_RAW_USER};
    if (!mt_collect_enter())
        return false;
    mt_collect_stacks(stacks);
    memory.before = mt_lock(&memory.lock);
    return true;
}

/* Every structure begins with two numbers: the extension and the size in bytes. */
static bool is_ours(const void *structure, size_t size)
{
    const uint16_t *head = structure;

    return head && head[0] == NVTX_MEMORY_COMPATIBILITY && head[1] >= size;
}

static const void *element(const void *elements, size_t element_size, size_t index)
{
    return (const char *)elements + element_size * index;
}

static uint64_t heap_range(const struct nvtx_heap *heap, struct range *range)
{
    if (!is_ours(heap, offsetof(struct nvtx_heap, category)) ||
        heap->type != NVTX_MEMORY_IS_VIRTUAL || !heap->range ||
        heap->range_size < sizeof *heap->range)
        return 0;
    *range =
        (struct range){.address = (uintptr_t)heap->range->address, .size_bytes = heap->range->size};
    return range->address;
}

static struct range region_of(const struct nvtx_virtual_range *element, uint64_t heap)
{
    return (struct range){
        .address = (uintptr_t)element->address, .size_bytes = element->size, .heap = heap};
}

static void *on_heap_register(void *domain, const struct nvtx_heap *heap)
{
    struct range range;
    uint64_t address = heap_range(heap, &range);
    int saved = errno;

    if (address && begin()) {
        begin_heap(range);
        end();
    }
    errno = saved;
    if (next_heap_register())
        return next_heap_register()(mt_nvtx_next_handle(domain), heap);
    return (void *)(uintptr_t)address;
}

static void on_heap_unregister(void *domain, void *heap)
{
    int saved = errno;

    if (heap && begin()) {
        end_heap((uintptr_t)heap);
        end();
    }
    errno = saved;
    if (next_heap_unregister())
        next_heap_unregister()(mt_nvtx_next_handle(domain), heap);
}

static void on_heap_reset(void *domain, void *heap)
{
    int saved = errno;

    if (begin()) {
        end_regions_of((uintptr_t)heap);
        end();
    }
    errno = saved;
    if (next_heap_reset())
        next_heap_reset()(mt_nvtx_next_handle(domain), heap);
}

static void add_regions(const struct nvtx_regions *regions)
{
    struct mt_raw_event stacks;

    if (!is_ours(regions, sizeof *regions) || regions->type != NVTX_MEMORY_IS_VIRTUAL ||
        regions->element_size < sizeof(struct nvtx_virtual_range) || !regions->elements ||
        !begin_with_stacks(&stacks))
        return;
    for (size_t i = 0; i < regions->count; i++)
        begin_region(region_of(element(regions->elements, regions->element_size, i),
                               (uintptr_t)regions->heap),
                     &stacks);
    end();
}

/* If an address identifies a region, its handle is that address. */
static void hand_out(const struct nvtx_regions *regions)
{
    if (!is_ours(regions, sizeof *regions) || regions->type != NVTX_MEMORY_IS_VIRTUAL ||
        regions->element_size < sizeof(struct nvtx_virtual_range) || !regions->elements ||
        !regions->handles_out)
        return;
    for (size_t i = 0; i < regions->count; i++) {
        const struct nvtx_virtual_range *range =
            element(regions->elements, regions->element_size, i);
        regions->handles_out[i] = (void *)(uintptr_t)range->address;
    }
}

static void on_regions_register(void *domain, const struct nvtx_regions *regions)
{
    int saved = errno;

    add_regions(regions);
    errno = saved;
    if (next_regions_register())
        next_regions_register()(mt_nvtx_next_handle(domain), regions);
    else
        hand_out(regions);
}

static void resize_regions(const struct nvtx_regions_resized *regions)
{
    struct mt_raw_event stacks;

    if (!is_ours(regions, sizeof *regions) || regions->type != NVTX_MEMORY_IS_VIRTUAL ||
        regions->element_size < sizeof(struct nvtx_virtual_range) || !regions->elements ||
        !begin_with_stacks(&stacks))
        return;
    for (size_t i = 0; i < regions->count; i++) {
        const struct nvtx_virtual_range *range =
            element(regions->elements, regions->element_size, i);
        const struct range *old = ranges_find(&memory.regions, (uintptr_t)range->address);
        if (old)
            begin_region(region_of(range, old->heap), &stacks);
    }
    end();
}

static void on_regions_resize(void *domain, const struct nvtx_regions_resized *regions)
{
    int saved = errno;

    resize_regions(regions);
    errno = saved;
    if (next_regions_resize())
        next_regions_resize()(mt_nvtx_next_handle(domain), regions);
}

static void remove_regions(const struct nvtx_region_refs *refs)
{
    if (!is_ours(refs, sizeof *refs) || refs->element_size < sizeof(void *) || !refs->elements ||
        (refs->ref_type != NVTX_REGION_BY_POINTER && refs->ref_type != NVTX_REGION_BY_HANDLE) ||
        !begin())
        return;
    for (size_t i = 0; i < refs->count; i++) {
        void *const *ref = element(refs->elements, refs->element_size, i);
        end_region((uintptr_t)*ref);
    }
    end();
}

static void on_regions_unregister(void *domain, const struct nvtx_region_refs *refs)
{
    int saved = errno;

    remove_regions(refs);
    errno = saved;
    if (next_regions_unregister())
        next_regions_unregister()(mt_nvtx_next_handle(domain), refs);
}

/* A block cannot be named later, so the name is recorded as a mark with its address. */
static void name_region(uint32_t domain, const struct nvtx_region_name *named)
{
    const struct range *region = ranges_find(&memory.regions, (uintptr_t)named->region);
    const struct nvtx_attributes attributes = {.size = sizeof attributes,
                                               .category = named->category,
                                               .message_type = (int32_t)named->name_type,
                                               .message = named->name};
    struct mt_raw_event event;

    if (!region)
        return;
    event = event_of(MT_EVENT_MARK, region, 0);
    event.id = mt_nvtx_name(domain, &attributes);
    if (event.id)
        mt_collect_emit(&event);
}

static void name_regions(uint32_t domain, const struct nvtx_region_names *names)
{
    if (!is_ours(names, offsetof(struct nvtx_region_names, reserved_too)) ||
        names->element_size < sizeof(struct nvtx_region_name) || !names->elements || !begin())
        return;
    for (size_t i = 0; i < names->count; i++)
        name_region(domain, element(names->elements, names->element_size, i));
    end();
}

static void on_regions_name(void *domain, const struct nvtx_region_names *names)
{
    int saved = errno;

    name_regions(mt_nvtx_domain(domain), names);
    errno = saved;
    if (next_regions_name())
        next_regions_name()(mt_nvtx_next_handle(domain), names);
}

#define SLOT(number, name, result, parameters) [number] = (nvtx_function)on_##name,
const nvtx_function mt_nvtx_memory_slots[NVTX_MEMORY_SLOT_COUNT] = {NVTX_MEMORY_SLOTS(SLOT)};

/* The table and its contents belong to the parent. Without the lock they may be half changed, so
 * they are abandoned. */
void mt_nvtx_memory_forked(void)
{
    static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    static const struct ranges empty;

    memory.lock = unlocked;
    memory.heaps = memory.regions = empty;
}
