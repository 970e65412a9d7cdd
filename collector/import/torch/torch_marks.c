/* Facts that a snapshot has only indirectly: which phase marks belong together, which segment frees
 * come from an explicit empty_cache, and to which pool an address belonged. */
#include <stdlib.h>
#include <string.h>

#include "ascii.h"
#include "sorted.h"
#include "torch.h"

/* Open STARTs with the same name form a chain, innermost first: `open` has its head for each name,
 * `outer` the rest. */
struct matcher {
    struct mt_map open;
    uint32_t *outer;
};

static enum mt_status match_one(struct matcher *matcher, uint32_t index, uint32_t name, bool end,
                                bool *matched)
{
    uint32_t innermost = mt_map_take(&matcher->open, name);

    if (!end) {
        matcher->outer[index] = innermost;
        *matched = true;
        return mt_map_set(&matcher->open, name, index);
    }
    *matched = innermost != MT_MAP_NONE;
    if (*matched && matcher->outer[innermost] != MT_MAP_NONE)
        return mt_map_set(&matcher->open, name, matcher->outer[innermost]);
    return MT_OK;
}

static enum mt_status matcher_init(struct matcher *matcher, size_t count)
{
    memset(matcher, 0, sizeof *matcher);
    if (count >= MT_MAP_NONE)
        return MT_ERR_UNSUPPORTED;
    matcher->outer = malloc((count + 1) * sizeof *matcher->outer);
    return matcher->outer ? MT_OK : MT_ERR_MEMORY;
}

static void matcher_release(struct matcher *matcher)
{
    free(matcher->outer);
    mt_map_release(&matcher->open);
}

enum mt_status mt_torch_match_phases(struct mt_torch_annotation *annotations, size_t count,
                                     size_t *unmatched)
{
    struct matcher matcher;
    enum mt_status status = matcher_init(&matcher, count);

    *unmatched = 0;
    for (size_t i = 0; i < count && status == MT_OK; i++) {
        status = match_one(&matcher, (uint32_t)i, annotations[i].name, annotations[i].end,
                           &annotations[i].matched);
        *unmatched += !annotations[i].matched;
    }
    matcher_release(&matcher);
    return status;
}

static size_t count_user_defined(const struct mt_torch *torch, uint32_t device)
{
    const struct mt_torch_device *d = &torch->devices[device];
    size_t count = 0;

    for (size_t i = 0; i < d->count; i++)
        count += torch->records.entries[d->first + i].kind == MT_TORCH_USER_DEFINED;
    return count;
}

/* Reads the only frame of a user_defined entry: its file is the name of the phase, its function is
 * START or END. Returns false if there is no such frame. */
static bool read_phase_frame(const struct mt_symbols *symbols, uint32_t stack, uint32_t *name,
                             bool *end)
{
    for (; stack != MT_NO_ID; stack = symbols->stacks[stack].parent) {
        const struct mt_frame *frame = &symbols->frames[symbols->stacks[stack].frame];
        const char *function = mt_symbols_text(symbols, frame->function);
        *name = frame->file;
        *end = strcmp(function, "END") == 0;
        if (*end || strcmp(function, "START") == 0)
            return true;
    }
    return false;
}

static enum mt_status convert_user_defined(struct mt_torch *torch, struct matcher *matcher,
                                           const struct mt_torch_device *device, bool chosen,
                                           size_t *unmatched)
{
    enum mt_status status = MT_OK;
    uint32_t index = 0, name;
    bool end;

    for (size_t i = 0; i < device->count && status == MT_OK; i++) {
        struct mt_torch_entry *entry = &torch->records.entries[device->first + i];
        bool matched = false;

        if (entry->kind != MT_TORCH_USER_DEFINED)
            continue;
        entry->kind = MT_TORCH_IGNORED;
        if (!chosen || !read_phase_frame(&torch->source.symbols, entry->stack, &name, &end))
            continue;
        status = match_one(matcher, index++, name, end, &matched);
        *unmatched += !matched;
        entry->addr = name;
        entry->kind = matched ? (end ? MT_EVENT_PHASE_POP : MT_EVENT_PHASE_PUSH) : entry->kind;
    }
    return status;
}

enum mt_status mt_torch_inline_phases(struct mt_torch *torch, size_t *unmatched)
{
    size_t most = 0;
    uint32_t chosen = 0;
    struct matcher matcher;

    *unmatched = 0;
    for (uint32_t device = 0; device < torch->device_count; device++) {
        size_t count = count_user_defined(torch, device);
        if (count > most) {
            most = count;
            chosen = device;
        }
    }
    if (!most)
        return MT_OK;
    enum mt_status status = matcher_init(&matcher, most);
    for (uint32_t device = 0; device < torch->device_count && status == MT_OK; device++)
        status = convert_user_defined(torch, &matcher, &torch->devices[device],
                                      device == chosen && !torch->annotation_count, unmatched);
    matcher_release(&matcher);
    return status;
}

/* torch.cuda.empty_cache in torch/cuda/memory.py, below C++ frames if those were also recorded. */
static bool is_in_empty_cache(const struct mt_symbols *symbols, uint32_t stack)
{
    for (; stack != MT_NO_ID; stack = symbols->stacks[stack].parent) {
        const struct mt_frame *frame = &symbols->frames[symbols->stacks[stack].frame];
        if (strcmp(mt_symbols_text(symbols, frame->function), "empty_cache") == 0)
            return mt_ends_with(mt_symbols_text(symbols, frame->file), "memory.py");
    }
    return false;
}

static bool gives_back(const struct mt_torch_entry *entry)
{
    return entry->kind == MT_EVENT_SEGMENT_FREE || entry->kind == MT_EVENT_SEGMENT_UNMAP;
}

static bool is_memory(const struct mt_torch_entry *entry)
{
    return entry->kind >= MT_EVENT_ALLOC && entry->kind <= MT_EVENT_OOM;
}

/* Returns whether the next memory entry is, or may be, the allocation that made room for itself.
 * Segments are only allocated for a block. */
static bool is_part_of_alloc(const struct mt_torch_entry *entry)
{
    return entry->kind != MT_EVENT_FREE_REQUESTED && entry->kind != MT_EVENT_FREE_COMPLETED;
}

static void find_empty_cache(struct mt_torch *torch, const struct mt_torch_device *device)
{
    struct mt_torch_entry *entries = torch->records.entries + device->first;
    size_t i = 0, end;

    while (i < device->count) {
        if (!gives_back(&entries[i])) {
            i++;
            continue;
        }
        for (end = i + 1; end < device->count; end++)
            if (is_memory(&entries[end]) && !gives_back(&entries[end]))
                break;
        if (end == device->count || !is_part_of_alloc(&entries[end]) ||
            is_in_empty_cache(&torch->source.symbols, entries[i].stack))
            entries[i].flags |= MT_TORCH_EMPTY_CACHE;
        i = end;
    }
}

void mt_torch_find_empty_cache(struct mt_torch *torch)
{
    for (uint32_t device = 0; device < torch->device_count; device++)
        if (torch->devices[device].count)
            find_empty_cache(torch, &torch->devices[device]);
}

/* A segment of a private pool that exists at the end: its addresses belong to the pool since entry
 * `since` of its device. */
struct pool_range {
    uint64_t addr, size_bytes; /* addr first: sorted.h */
    size_t since;
    uint32_t stream;
    uint16_t pool;
    bool expandable;
};

static struct pool_range *find_range(struct pool_range *ranges, size_t count, uint64_t addr)
{
    size_t above = mt_sorted_count_to(ranges, count, sizeof *ranges, addr);

    if (!above || addr - ranges[above - 1].addr >= ranges[above - 1].size_bytes)
        return NULL;
    return &ranges[above - 1];
}

/* The driver reuses addresses: a segment that exists at the end is the last one at its place.
 * Ranges of expandable segments grow by maps, so their history begins after the last ordinary
 * segment at the same place. */
static void find_since(struct mt_torch *torch, const struct mt_torch_device *device,
                       struct pool_range *ranges, size_t count)
{
    const struct mt_torch_entry *entries = torch->records.entries + device->first;

    for (size_t i = 0; i < device->count; i++) {
        bool made = entries[i].kind == MT_EVENT_SEGMENT_ALLOC;

        if (!made && entries[i].kind != MT_EVENT_SEGMENT_FREE)
            continue;
        struct pool_range *range = find_range(ranges, count, entries[i].addr);
        if (range)
            range->since = made && !range->expandable ? i : i + 1;
    }
}

static void apply_pools(struct mt_torch *torch, const struct mt_torch_device *device,
                        struct pool_range *ranges, size_t count)
{
    struct mt_torch_entry *entries = torch->records.entries + device->first;

    for (size_t i = 0; i < device->count; i++) {
        if (!is_memory(&entries[i]) || entries[i].kind == MT_EVENT_OOM ||
            (entries[i].flags & MT_TORCH_HAS_POOL))
            continue;
        struct pool_range *range = find_range(ranges, count, entries[i].addr);
        if (range && i >= range->since)
            entries[i].pool = range->pool;
    }
}

static size_t private_ranges(const struct mt_torch *torch, const struct mt_torch_device *device,
                             struct pool_range *ranges)
{
    size_t count = 0;

    for (size_t i = 0; i < device->segment_count; i++) {
        const struct mt_torch_segment *segment = &torch->segments[device->first_segment + i];
        if (segment->pool)
            ranges[count++] =
                (struct pool_range){segment->addr,   segment->size_bytes, 0,
                                    segment->stream, segment->pool,       segment->expandable};
    }
    return count;
}

enum mt_status mt_torch_route_pools(struct mt_torch *torch)
{
    struct pool_range *ranges = malloc((torch->segment_count + 1) * sizeof *ranges);

    if (!ranges)
        return MT_ERR_MEMORY;
    for (uint32_t device = 0; device < torch->device_count; device++) {
        const struct mt_torch_device *d = &torch->devices[device];
        size_t count = private_ranges(torch, d, ranges);
        if (!count || !d->count)
            continue;
        find_since(torch, d, ranges, count);
        apply_pools(torch, d, ranges, count);
    }
    free(ranges);
    return MT_OK;
}
