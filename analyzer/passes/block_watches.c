/* What the pass `blocks` also collects: blocks of segments at an instant, memory that is idle
 * through a phase, blocks that outlive their step. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "block_watches.h"
#include "event.h"
#include "grow.h"
#include "holding.h"
#include "process_memory.h"
#include "report.h"
#include "report_query.h"
#include "sorted.h"
#include "survey.h"
#include "util.h"

/* Index of the first segment that begins above `addr`. */
static uint32_t first_above(const struct mt_pins *pins, uint64_t addr)
{
    return (uint32_t)mt_sorted_count_to(pins->segments, pins->segment_count, sizeof *pins->segments,
                                        addr);
}

static bool is_counted(const struct mt_pins *pins, const struct mt_event *event)
{
    if (event->seq > pins->event || event->addr + event->size_bytes < event->addr)
        return false;
    if (pins->all)
        return mt_event_is_segment(event);
    return !event->pool &&
           (event->kind == MT_EVENT_SEGMENT_ALLOC || event->kind == MT_EVENT_SEGMENT_FREE);
}

static void insert(struct mt_pins *pins, uint32_t at, const struct mt_pin_segment *segment)
{
    mt_grow_to(&pins->segments, &pins->segment_capacity, (size_t)pins->segment_count + 1,
               sizeof *pins->segments);
    struct mt_pin_segment *segments = pins->segments;
    memmove(segments + at + 1, segments + at, (pins->segment_count++ - at) * sizeof *segments);
    segments[at] = *segment;
}

static void take_out(struct mt_pins *pins, uint32_t at)
{
    memmove(pins->segments + at, pins->segments + at + 1,
            (--pins->segment_count - at) * sizeof *pins->segments);
}

/* Removes a range. What is left of a segment on both sides stays. */
static void unmap(struct mt_pins *pins, uint64_t base, uint64_t end)
{
    uint32_t at = first_above(pins, base);

    at -= at > 0;
    while (at < pins->segment_count && pins->segments[at].base < end) {
        struct mt_pin_segment left = pins->segments[at], right = left;
        const uint64_t last = left.base + left.bytes;

        if (last <= base) {
            at++;
            continue;
        }
        take_out(pins, at);
        left.bytes = left.free_bytes = mt_sub_or_0_u64(base, left.base);
        right.bytes = right.free_bytes = mt_sub_or_0_u64(last, end);
        right.base = end;
        if (left.bytes)
            insert(pins, at++, &left);
        if (right.bytes)
            insert(pins, at++, &right);
    }
}

void mt_pins_segment(struct mt_pins *pins, const struct mt_event *event)
{
    const struct mt_pin_segment segment = {.base = event->addr,
                                           .bytes = event->size_bytes,
                                           .free_bytes = event->size_bytes,
                                           .served_bytes = event->aux_bytes,
                                           .stream = event->stream,
                                           .pool = event->pool};
    uint32_t at = first_above(pins, event->addr);

    if (!is_counted(pins, event))
        return;
    if (event->kind == MT_EVENT_SEGMENT_ALLOC || event->kind == MT_EVENT_SEGMENT_MAP)
        insert(pins, at, &segment);
    else if (event->kind == MT_EVENT_SEGMENT_UNMAP)
        unmap(pins, event->addr, event->addr + event->size_bytes);
    else if (at && pins->segments[at - 1].base == event->addr)
        take_out(pins, at - 1);
}

void mt_pins_add(struct mt_pins *pins, uint64_t addr, uint64_t bytes, uint32_t stack)
{
    mt_grow_to(&pins->blocks, &pins->block_capacity, (size_t)pins->block_count + 1,
               sizeof *pins->blocks);
    pins->blocks[pins->block_count++] = (struct mt_pin_block){addr, bytes, stack, 0};
}

MT_DEFINE_ORDER(by_address, struct mt_pin_block, MT_ASCENDING(addr))

/* A block of an expandable segment may be in several mapped ranges. */
static void occupy(struct mt_pins *pins, const struct mt_pin_block *block)
{
    const uint64_t end = block->addr + block->bytes;
    uint32_t at = first_above(pins, block->addr);

    for (at -= at > 0; at < pins->segment_count && pins->segments[at].base < end; at++) {
        struct mt_pin_segment *segment = &pins->segments[at];
        uint64_t from = mt_max_u64(block->addr, segment->base);
        uint64_t to = mt_min_u64(end, segment->base + segment->bytes);

        segment->free_bytes -= mt_min_u64(segment->free_bytes, mt_sub_or_0_u64(to, from));
    }
}

/* Drops blocks outside of ordinary segments, and segments without a block. */
static void keep_ordinary(struct mt_pins *pins)
{
    uint32_t at, kept = 0, kept_segments = 0, last = UINT32_MAX;

    if (pins->block_count)
        qsort(pins->blocks, pins->block_count, sizeof *pins->blocks, by_address);
    for (uint32_t i = 0; i < pins->block_count; i++) {
        struct mt_pin_block block = pins->blocks[i];
        at = first_above(pins, block.addr);
        struct mt_pin_segment *segment = at ? &pins->segments[at - 1] : NULL;
        if (!segment || block.addr - segment->base >= segment->bytes ||
            block.bytes > segment->free_bytes)
            continue;
        segment->free_bytes -= block.bytes;
        block.segment = at - 1;
        pins->blocks[kept++] = block;
    }
    pins->block_count = kept;
    /* blocks are sorted by address, and so are their segments */
    for (uint32_t i = 0; i < kept; i++) {
        at = pins->blocks[i].segment;
        if (at != last)
            pins->segments[kept_segments++] = pins->segments[at];
        last = at;
        pins->blocks[i].segment = kept_segments - 1;
    }
    pins->segment_count = kept_segments;
    pins->stranded_bytes = 0;
    for (uint32_t i = 0; i < kept_segments; i++)
        pins->stranded_bytes += pins->segments[i].free_bytes;
}

void mt_pins_settle(struct mt_pins *pins)
{
    if (!pins->all)
        keep_ordinary(pins);
    else
        for (uint32_t i = 0; i < pins->block_count; i++)
            occupy(pins, &pins->blocks[i]);
}

void mt_pins_release(struct mt_pins *pins)
{
    free(pins->blocks);
    free(pins->segments);
    memset(pins, 0, sizeof *pins);
}

#define KIND(kind) (1u << (kind))

bool mt_role_is_idle_in(enum mt_role role, enum mt_phase_kind kind)
{
    static const uint32_t idle[MT_ROLE_COUNT] = {
        [MT_ROLE_OPTIMIZER_STATE] = KIND(MT_PHASE_DATA) | KIND(MT_PHASE_FORWARD) |
                                    KIND(MT_PHASE_LOSS) | KIND(MT_PHASE_BACKWARD) |
                                    KIND(MT_PHASE_ZERO_GRAD),
        [MT_ROLE_GRADIENTS] = KIND(MT_PHASE_DATA) | KIND(MT_PHASE_FORWARD) | KIND(MT_PHASE_LOSS),
        [MT_ROLE_ACTIVATIONS] =
            KIND(MT_PHASE_DATA) | KIND(MT_PHASE_ZERO_GRAD) | KIND(MT_PHASE_OPTIMIZER),
    };

    return (idle[role] & KIND(kind)) != 0;
}

/* Whether it is idle in all nested phases. */
static bool is_idle_in(enum mt_role role, uint32_t kinds)
{
    for (int kind = MT_PHASE_UNKNOWN; kind <= MT_PHASE_OPTIMIZER; kind++)
        if ((kinds & KIND(kind)) && !mt_role_is_idle_in(role, (enum mt_phase_kind)kind))
            return false;
    return true;
}

static uint64_t movable_bytes(const struct mt_idle_phase *phase, enum mt_role role)
{
    if (is_idle_in(role, phase->kinds))
        return phase->bytes[role];
    if (role == MT_ROLE_ACTIVATIONS && phase->kinds == KIND(MT_PHASE_LOSS))
        return phase->bytes[role] - phase->output_bytes;
    return 0;
}

static bool has_name(const struct mt_phases *phases, int32_t phase, const char *name)
{
    return strcmp(phases->phases[phase].name, name) == 0;
}

/* Slot for a phase: that of its name, otherwise a free one, otherwise that of the lowest. */
static uint32_t place_for(const struct mt_idle_watch *watch, const struct mt_phases *phases,
                          const struct mt_phase_use *uses, const char *name)
{
    uint32_t lowest = 0;

    for (uint32_t i = 0; i < watch->count; i++) {
        if (has_name(phases, watch->phases[i].phase, name))
            return i;
        if (uses[watch->phases[i].phase].peak.allocated <
            uses[watch->phases[lowest].phase].peak.allocated)
            lowest = i;
    }
    return watch->count < MT_IDLE_PHASES ? watch->count : lowest;
}

static uint32_t kinds_within(const struct mt_phases *phases, int32_t phase)
{
    uint32_t kinds = KIND(phases->facts[phase].kind);

    for (uint32_t i = (uint32_t)phase + 1;
         i < phases->count && phases->phases[i].begin_event <= phases->phases[phase].end_event; i++)
        kinds |= KIND(phases->facts[i].kind);
    return kinds;
}

static void sort(struct mt_idle_watch *watch)
{
    uint32_t at;

    for (uint32_t i = 1; i < watch->count; i++) {
        const struct mt_idle_phase moved = watch->phases[i];
        for (at = i; at > 0 && watch->phases[at - 1].phase > moved.phase; at--)
            watch->phases[at] = watch->phases[at - 1];
        watch->phases[at] = moved;
    }
}

void mt_idle_choose(struct mt_idle_watch *watch, const struct mt_survey *survey,
                    const struct mt_survey_device *device, const bool *is_main)
{
    const struct mt_phases *phases = &survey->phases;
    const struct mt_phase_use *uses = device->uses;

    for (uint32_t i = 0; i < phases->count; i++) {
        if (!is_main[i] || phases->phases[i].end_event < device->first_event)
            continue;
        uint32_t at = place_for(watch, phases, uses, phases->phases[i].name);
        if (at < watch->count &&
            uses[i].peak.allocated <= uses[watch->phases[at].phase].peak.allocated)
            continue;
        watch->count += at == watch->count;
        watch->phases[at] = (struct mt_idle_phase){.phase = (int32_t)i};
    }
    sort(watch);
    for (uint32_t i = 0; i < watch->count; i++) {
        struct mt_idle_phase *phase = &watch->phases[i];
        phase->eve = mt_phase_last_event_before(&phases->phases[phase->phase]);
        phase->kinds = kinds_within(phases, phase->phase);
    }
}

static struct mt_idle_phase *find(struct mt_idle_watch *watch, int32_t phase)
{
    for (uint32_t i = 0; i < watch->count; i++)
        if (watch->phases[i].phase == phase)
            return &watch->phases[i];
    return NULL;
}

static bool is_live_activation(const struct mt_block_life *block, uint16_t device)
{
    return mt_block_is_live(block, device) && block->role == MT_ROLE_ACTIVATIONS;
}

/* Outputs of the model's last line: the newest activation, and all with its stack. */
static void note_outputs(const struct mt_block_life *blocks, size_t count, uint16_t device,
                         struct mt_idle_phase *phase)
{
    const struct mt_block_life *newest = NULL;

    for (size_t i = 0; i < count; i++)
        if (is_live_activation(&blocks[i], device) &&
            (!newest || blocks[i].birth_event > newest->birth_event))
            newest = &blocks[i];
    for (size_t i = 0; newest && i < count; i++)
        if (is_live_activation(&blocks[i], device) && blocks[i].stack == newest->stack)
            phase->output_bytes += blocks[i].block_bytes;
    phase->output_stack = newest ? newest->stack : MT_NO_ID;
}

void mt_idle_begin(struct mt_idle_watch *watch, int32_t index, uint16_t device,
                   const uint64_t role_bytes[MT_ROLE_COUNT], const struct mt_block_life *blocks,
                   size_t block_count)
{
    struct mt_idle_phase *phase = find(watch, index);

    if (!phase)
        return;
    memcpy(phase->bytes, role_bytes, sizeof phase->bytes);
    if (phase->kinds == KIND(MT_PHASE_LOSS))
        note_outputs(blocks, block_count, device, phase);
    phase->open = true;
    watch->open_count++;
}

void mt_idle_end(struct mt_idle_watch *watch, int32_t index)
{
    struct mt_idle_phase *phase = find(watch, index);

    if (!phase || !phase->open)
        return;
    phase->open = false;
    phase->ended = true;
    watch->open_count--;
    watch->ended_count++;
}

void mt_idle_leave(struct mt_idle_watch *watch, const struct mt_block_life *block)
{
    for (uint32_t i = 0; i < watch->count; i++) {
        struct mt_idle_phase *phase = &watch->phases[i];
        if (!phase->open || block->birth_event > phase->eve)
            continue;
        phase->bytes[block->role] -= block->block_bytes;
        if (phase->output_bytes && block->role == MT_ROLE_ACTIVATIONS &&
            block->stack == phase->output_stack)
            phase->output_bytes -= block->block_bytes;
    }
}

void mt_idle_fill(const struct mt_idle_watch *watch, struct mt_arena *arena, bool saw_backward,
                  struct mt_device_report *device)
{
    device->idle =
        mt_arena_array(arena, (size_t)watch->count * MT_ROLE_COUNT + 1, sizeof *device->idle);
    for (uint32_t i = 0; i < watch->count; i++) {
        const struct mt_idle_phase *phase = &watch->phases[i];
        for (uint32_t role = 0; phase->ended && role < MT_ROLE_COUNT; role++) {
            if (!phase->bytes[role])
                continue;
            device->idle[device->idle_count++] = (struct mt_idle_use){
                .phase = phase->phase,
                .role = (enum mt_role)role,
                .bytes = phase->bytes[role],
                .movable_bytes = saw_backward ? movable_bytes(phase, (enum mt_role)role) : 0};
        }
    }
}

struct mt_life mt_life_of_event(const struct mt_event *event, uint64_t bytes)
{
    return (struct mt_life){.addr = event->addr,
                            .birth_event = event->seq,
                            .bytes = bytes,
                            .requested_bytes = event->size_bytes,
                            .stack = event->stack,
                            .stream = event->stream,
                            .heap = event->heap,
                            .pool = event->pool};
}

void mt_lives_begin(struct mt_lives *lives, const struct mt_report *report,
                    struct mt_step_list steps, uint32_t most)
{
    memset(lives, 0, sizeof *lives);
    lives->most = most;
    lives->begins = mt_memory_zeroed((size_t)steps.count + 1, sizeof *lives->begins);
    for (uint32_t i = 0; i < steps.count; i++)
        lives->begins[lives->step_count++] = mt_step_begin(report, &steps.list[i]);
}

void mt_lives_add(struct mt_lives *lives, const struct mt_life *life)
{
    if (life->birth_event < lives->begins[0] || lives->too_many)
        return;
    lives->too_many = lives->count == lives->most;
    if (lives->too_many) {
        free(lives->lives); /* no finding reads a part of them */
        lives->lives = NULL;
        lives->count = 0;
        lives->capacity = 0;
        return;
    }
    mt_grow_to(&lives->lives, &lives->capacity, (size_t)lives->count + 1, sizeof *lives->lives);
    lives->lives[lives->count++] = *life;
}

uint32_t mt_lives_step(const struct mt_lives *lives, uint64_t event)
{
    size_t begun =
        mt_sorted_count_to(lives->begins, lives->step_count, sizeof *lives->begins, event);

    return event == UINT64_MAX ? lives->step_count : (uint32_t)begun - 1;
}

void mt_lives_release(struct mt_lives *lives)
{
    free(lives->lives);
    free(lives->begins);
    memset(lives, 0, sizeof *lives);
}
