/* The simulated device: its memory, and the addresses of segments. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "counters.h"
#include "device_model.h"
#include "event.h"
#include "grow.h"
#include "sorted.h"
#include "util.h"

enum { ADDRESS_RULES = MT_ADDRESSES_RANDOM + 1 };

/* Recorded addresses are above this (0x7f0000000000 on Linux), so the two never collide. */
static const uint64_t TOP = UINT64_C(1) << 46;
static const uint64_t MAX_REQUEST = UINT64_C(1) << 45;
static const uint64_t REGION_BYTES = 32 * MT_MIB;
static const uint64_t PAGE_BYTES = 2 * MT_MIB;

static const uint64_t NOWHERE = 0;

struct mt_base_order mt_base_order_at(uint32_t index)
{
    struct mt_base_order order = {(enum mt_address_rule)mt_min_u64(index, MT_ADDRESSES_RANDOM), 0};

    if (order.rule == MT_ADDRESSES_RANDOM)
        order.seed = index - MT_ADDRESSES_RANDOM + 1;
    return order;
}

const char *mt_address_rule_name(enum mt_address_rule rule)
{
    static const char *const names[] = {"driver", "upwards", "downwards", "random"};
    _Static_assert(sizeof names / sizeof *names == ADDRESS_RULES, "one entry for each");

    return (unsigned)rule < ADDRESS_RULES ? names[rule] : "?";
}

void mt_address_space_init(struct mt_address_space *space, struct mt_base_order order)
{
    memset(space, 0, sizeof *space);
    space->order = order;
    space->random = order.seed;
    mt_address_space_end_at(space, TOP);
}

void mt_address_space_release(struct mt_address_space *space)
{
    free(space->pieces);
    memset(space, 0, sizeof *space);
}

void mt_address_space_end_at(struct mt_address_space *space, uint64_t top)
{
    MT_ASSERT(space->count == 0 && top % PAGE_BYTES == 0 && top <= TOP);
    MT_ASSERT(top >= 2 * REGION_BYTES);
    space->top = top;
    space->cursor = space->order.rule == MT_ADDRESSES_DOWNWARDS ? top : REGION_BYTES;
}

/* Index of the first piece at or above `base`. */
static size_t piece_at(const struct mt_address_space *space, uint64_t base)
{
    size_t low = 0;

    MT_BISECT(low, space->count, middle, space->pieces[middle].base < base);
    return low;
}

/* The gap below piece `at`; if at == count, the gap below the end of the space. */
static uint64_t gap_begin(const struct mt_address_space *space, size_t at)
{
    return at > 0 ? space->pieces[at - 1].end : REGION_BYTES;
}

static uint64_t gap_end(const struct mt_address_space *space, size_t at)
{
    return at < space->count ? space->pieces[at].base : space->top;
}

static void insert(struct mt_address_space *space, size_t at, struct mt_address_piece piece)
{
    MT_ASSERT(space->count < space->capacity && piece.base < piece.end);
    memmove(&space->pieces[at + 1], &space->pieces[at],
            (space->count - at) * sizeof *space->pieces);
    space->pieces[at] = piece;
    space->count++;
}

static void drop(struct mt_address_space *space, size_t at)
{
    space->count--;
    memmove(&space->pieces[at], &space->pieces[at + 1],
            (space->count - at) * sizeof *space->pieces);
}

/* The smallest hole of the newest region that has one; the lowest among equal holes. */
static struct mt_address_piece *best_hole(struct mt_address_space *space, uint64_t size)
{
    struct mt_address_piece *best = NULL;

    if (size > space->hole_bound)
        return NULL;
    for (size_t i = 0; i < space->count; i++) {
        struct mt_address_piece *piece = &space->pieces[i];

        if (piece->taken || piece->end - piece->base < size)
            continue;
        if (!best || piece->region > best->region ||
            (piece->region == best->region && piece->end - piece->base < best->end - best->base))
            best = piece;
    }
    if (!best)
        space->hole_bound = size - 1;
    return best;
}

static uint64_t take_hole(struct mt_address_space *space, struct mt_address_piece *hole,
                          uint64_t size)
{
    struct mt_address_piece rest = *hole;

    rest.base += size;
    hole->end = rest.base;
    hole->taken = true;
    if (rest.base < rest.end)
        insert(space, (size_t)(hole - space->pieces) + 1, rest);
    return rest.base - size;
}

/* The highest gap that is larger than the region; below all regions any space suffices. */
static uint64_t region_base(struct mt_address_space *space, uint64_t region)
{
    for (size_t at = space->gap_bound > region ? space->count : 0; at > 0; at--)
        if (gap_end(space, at) - gap_begin(space, at) > region)
            return gap_end(space, at) - region;
    space->gap_bound = mt_min_u64(space->gap_bound, region);
    return gap_end(space, 0) - REGION_BYTES >= region ? gap_end(space, 0) - region : NOWHERE;
}

/* The highest place that ends at or below `limit`. */
static uint64_t place_below(const struct mt_address_space *space, uint64_t limit, uint64_t size)
{
    for (size_t at = piece_at(space, limit) + 1; at-- > 0;) {
        uint64_t end = mt_min_u64(limit, gap_end(space, at)), begin = gap_begin(space, at);

        if (end >= begin && end - begin >= size)
            return end - size;
    }
    return NOWHERE;
}

/* The lowest place at or above `limit`. */
static uint64_t place_above(const struct mt_address_space *space, uint64_t limit, uint64_t size)
{
    for (size_t at = piece_at(space, limit); at <= space->count; at++) {
        uint64_t end = gap_end(space, at), begin = mt_max_u64(limit, gap_begin(space, at));

        if (end >= begin && end - begin >= size)
            return begin;
    }
    return NOWHERE;
}

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t next_random(struct mt_address_space *space)
{
    uint64_t mixed = space->random += UINT64_C(0x9E3779B97F4A7C15);

    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94D049BB133111EB);
    return mixed ^ (mixed >> 31);
}

static uint64_t place_upwards(struct mt_address_space *space, uint64_t size)
{
    uint64_t base = place_above(space, space->cursor, size);

    if (base == NOWHERE)
        base = place_above(space, REGION_BYTES, size);
    if (base != NOWHERE)
        space->cursor = base + size;
    return base;
}

static uint64_t place_downwards(struct mt_address_space *space, uint64_t size)
{
    uint64_t base = place_below(space, space->cursor, size);

    if (base == NOWHERE)
        base = place_below(space, space->top, size);
    if (base != NOWHERE)
        space->cursor = base;
    return base;
}

static uint64_t place_at_random(struct mt_address_space *space, uint64_t size)
{
    uint64_t pages = space->top / PAGE_BYTES;
    uint64_t base = place_below(space, (1 + next_random(space) % pages) * PAGE_BYTES, size);

    return base != NOWHERE ? base : place_above(space, REGION_BYTES, size);
}

static uint64_t new_region(struct mt_address_space *space, uint64_t size, uint64_t region)
{
    switch (space->order.rule) {
    case MT_ADDRESSES_UPWARDS: return place_upwards(space, size);
    case MT_ADDRESSES_DOWNWARDS: return place_downwards(space, size);
    case MT_ADDRESSES_RANDOM: return place_at_random(space, size);
    case MT_ADDRESSES_DRIVER: break;
    }
    return region_base(space, region);
}

/* If there is no room: an address inside existing pieces at which none begins. It is not recorded,
 * so later requests may get it again. */
static uint64_t place_twice(const struct mt_address_space *space, uint64_t region)
{
    uint64_t base = space->top - mt_min_u64(region, space->top - REGION_BYTES);
    size_t at = piece_at(space, base);

    while (at < space->count && space->pieces[at].base == base) {
        base += PAGE_BYTES;
        at++;
    }
    return base;
}

/* Updates the bound with the gap between piece `at` and the previous one; below all regions there
 * is no bound. */
static void note_gap(struct mt_address_space *space, size_t at)
{
    if (at > 0)
        space->gap_bound = mt_max_u64(space->gap_bound, gap_end(space, at) - gap_begin(space, at));
}

void mt_address_space_take(struct mt_address_space *space, uint64_t size_bytes, uint64_t *base)
{
    bool is_driver = space->order.rule == MT_ADDRESSES_DRIVER;
    uint64_t size = mt_round_up(mt_min_u64(size_bytes, MAX_REQUEST), PAGE_BYTES);
    uint64_t region = is_driver ? mt_round_up(size, REGION_BYTES) : size;

    MT_ASSERT(size > 0);
    mt_grow_to(&space->pieces, &space->capacity, space->count + 2, sizeof *space->pieces);
    struct mt_address_piece *hole = is_driver ? best_hole(space, size) : NULL;
    if (hole) {
        *base = take_hole(space, hole, size);
        return;
    }
    *base = new_region(space, size, region);
    if (*base == NOWHERE) {
        *base = place_twice(space, region);
        return;
    }
    size_t at = piece_at(space, *base);
    space->regions++;
    insert(space, at, (struct mt_address_piece){*base, *base + size, space->regions, true});
    if (size < region)
        space->hole_bound = mt_max_u64(space->hole_bound, region - size);
    if (size < region)
        insert(space, at + 1,
               (struct mt_address_piece){*base + size, *base + region, space->regions, false});
    note_gap(space, at);
    note_gap(space, at + (size < region ? 2 : 1));
}

/* Whether piece `at` is a hole of this region. */
static bool is_hole_of(const struct mt_address_space *space, size_t at, uint64_t region)
{
    return at < space->count && space->pieces[at].region == region && !space->pieces[at].taken;
}

static bool is_of(const struct mt_address_space *space, size_t at, uint64_t region)
{
    return at < space->count && space->pieces[at].region == region;
}

void mt_address_space_give(struct mt_address_space *space, uint64_t base)
{
    size_t at = piece_at(space, base);

    if (at == space->count || space->pieces[at].base != base || !space->pieces[at].taken)
        return;
    uint64_t region = space->pieces[at].region;
    space->pieces[at].taken = false;
    if (is_hole_of(space, at + 1, region)) {
        space->pieces[at].end = space->pieces[at + 1].end;
        drop(space, at + 1);
    }
    if (at > 0 && is_hole_of(space, at - 1, region)) {
        space->pieces[at - 1].end = space->pieces[at].end;
        drop(space, at--);
    }
    space->hole_bound =
        mt_max_u64(space->hole_bound, space->pieces[at].end - space->pieces[at].base);
    if (is_of(space, at + 1, region) || (at > 0 && is_of(space, at - 1, region)))
        return;
    drop(space, at);
    note_gap(space, at);
}

bool mt_address_space_is_sound(const struct mt_address_space *space, const char **why)
{
    for (size_t i = 0; i < space->count; i++) {
        const struct mt_address_piece *piece = &space->pieces[i], *last = i ? piece - 1 : NULL;
        bool inner = last && last->region == piece->region;

        MT_SOUND(why, piece->base < piece->end && piece->end <= space->top);
        MT_SOUND(why, !last || gap_end(space, i) - gap_begin(space, i) <= space->gap_bound);
        MT_SOUND(why, piece->base % PAGE_BYTES == 0 && piece->end % PAGE_BYTES == 0);
        MT_SOUND(why, !last || last->end <= piece->base);
        MT_SOUND(why, !inner || (last->end == piece->base && (last->taken || piece->taken)));
        MT_SOUND(why, piece->taken || piece->end - piece->base <= space->hole_bound);
        MT_SOUND(why, piece->taken || inner || is_of(space, i + 1, piece->region));
    }
    return true;
}

void mt_device_init(struct mt_device_model *device, uint64_t limit_bytes,
                    uint64_t total_memory_bytes, bool use_bases)
{
    memset(device, 0, sizeof *device);
    device->limit_bytes = limit_bytes;
    device->total_memory_bytes = total_memory_bytes;
    device->use_bases = use_bases;
    device->least_refused_bytes = UINT64_MAX;
    mt_address_space_init(&device->space, (struct mt_base_order){MT_ADDRESSES_DRIVER, 0});
}

void mt_device_order_addresses(struct mt_device_model *device, struct mt_base_order order)
{
    MT_ASSERT(device->space.count == 0);
    mt_address_space_init(&device->space, order);
}

void mt_device_release(struct mt_device_model *device)
{
    free(device->ops);
    free(device->bases);
    mt_address_space_release(&device->space);
    memset(device, 0, sizeof *device);
}

void mt_device_clear(struct mt_device_model *device)
{
    device->op_count = 0;
    device->base_count = 0;
}

void mt_device_base(struct mt_device_model *device, uint8_t kind, uint64_t size_bytes,
                    uint64_t va_bytes, uint32_t stream, uint64_t *addr)
{
    MT_ASSERT(kind == MT_EVENT_SEGMENT_ALLOC || kind == MT_EVENT_SEGMENT_MAP);
    MT_ASSERT(kind == MT_EVENT_SEGMENT_ALLOC ? size_bytes > 0 : va_bytes >= size_bytes);
    for (size_t i = 0; device->use_bases && i < device->base_count; i++) {
        struct mt_device_base *base = &device->bases[i];
        if (base->used || base->kind != kind || base->stream != stream)
            continue;
        if (kind == MT_EVENT_SEGMENT_ALLOC && base->size_bytes != size_bytes)
            continue;
        base->used = true;
        *addr = base->addr;
        return;
    }
    if (device->use_bases && !device->bases_missing)
        device->certain_ties = device->address_ties;
    device->bases_missing++;
    mt_address_space_take(&device->space, kind == MT_EVENT_SEGMENT_MAP ? va_bytes : size_bytes,
                          addr);
}

uint64_t mt_device_open_ties(const struct mt_device_model *device)
{
    MT_ASSERT(device->certain_ties <= device->address_ties);
    if (device->use_bases && !device->bases_missing)
        return 0;
    return device->address_ties - device->certain_ties;
}

void mt_device_log(struct mt_device_model *device, uint8_t kind, uint64_t addr, uint64_t size_bytes,
                   uint32_t stream, const struct mt_counters *after)
{
    mt_grow_to(&device->ops, &device->op_capacity, device->op_count + 1, sizeof *device->ops);
    MT_ASSERT(kind >= MT_EVENT_SEGMENT_ALLOC && kind <= MT_EVENT_SEGMENT_UNMAP && size_bytes > 0);
    MT_ASSERT(after->reserved.now <= after->reserved.peak);
    if (kind == MT_EVENT_SEGMENT_FREE)
        mt_address_space_give(&device->space, addr);
    device->ops[device->op_count++] = (struct mt_device_op){kind, stream, addr, size_bytes, *after};
}

void mt_device_offer_base(struct mt_device_model *device, const struct mt_event *event,
                          uint16_t pool)
{
    mt_grow_to(&device->bases, &device->base_capacity, device->base_count + 1,
               sizeof *device->bases);
    device->bases[device->base_count++] = (struct mt_device_base){
        event->kind, false, pool, event->stream, event->addr, event->size_bytes};
}

bool mt_device_is_sound(const struct mt_device_model *device, const char **why)
{
    if (!mt_address_space_is_sound(&device->space, why))
        return false;
    MT_SOUND(why, device->certain_ties <= device->address_ties);
    for (size_t i = 0; i < device->op_count; i++) {
        const struct mt_device_op *op = &device->ops[i];
        MT_SOUND(why, op->kind >= MT_EVENT_SEGMENT_ALLOC && op->kind <= MT_EVENT_SEGMENT_UNMAP);
        MT_SOUND(why, op->size_bytes > 0);
        MT_SOUND(why, !i || op[-1].after.device_allocs + op[-1].after.device_frees <
                                op->after.device_allocs + op->after.device_frees);
    }
    return true;
}
