#include "live_blocks.h"

#include "process_memory.h"
#include "sorted.h"
#include "util.h"

#include <stdlib.h>

/* Foreign formats may reuse an address on several devices. */
static uint64_t key_of(const struct mt_event *event)
{
    return event->addr ^ event->device * UINT64_C(0x9E3779B97F4A7C15);
}

static uint32_t take_slot(struct mt_live_blocks *holders)
{
    uint32_t index;

    if (holders->block_free) {
        index = holders->block_free - 1;
        holders->block_free = holders->blocks[index].block;
        return index;
    }
    if (holders->block_count == holders->block_capacity) {
        uint32_t capacity = holders->block_capacity ? holders->block_capacity * 2 : 1024;

        if (capacity < holders->block_capacity)
            mt_memory_end();
        holders->blocks =
            mt_memory_resize(holders->blocks, (size_t)capacity * sizeof *holders->blocks);
        holders->block_capacity = capacity;
    }
    return holders->block_count++;
}

static void give_slot(struct mt_live_blocks *holders, uint32_t index)
{
    holders->blocks[index].state = MT_LIFE_UNUSED;
    holders->blocks[index].block = holders->block_free;
    holders->block_free = index + 1;
}

static void add_life(struct mt_live_blocks_device *device, const struct mt_block_life *block,
                     uint64_t end_event)
{
    const bool stays = end_event == UINT64_MAX; /* so it outlives the last step */

    if (mt_lives_outlived(&device->lives, stays ? 0 : block->birth_event, end_event))
        mt_lives_add(&device->lives, &(struct mt_life){.addr = block->addr,
                                                       .birth_event = block->birth_event,
                                                       .end_event = end_event,
                                                       .bytes = block->block_bytes,
                                                       .requested_bytes = block->requested_bytes,
                                                       .stack = block->stack,
                                                       .stream = block->stream,
                                                       .heap = block->heap,
                                                       .pool = block->pool,
                                                       .role = block->role});
}

static void leave_allocated(struct mt_live_blocks *holders, struct mt_live_blocks_device *device,
                            uint32_t index, const struct mt_event *event)
{
    struct mt_block_life *block = &holders->blocks[index];

    if (block->state != MT_LIFE_LIVE)
        return;
    device->now.allocated -= block->block_bytes;
    device->role_bytes[block->role] -= block->block_bytes;
    block->state = MT_LIFE_WAITING;
    block->end = (struct mt_block_end){event->t_ns, event->seq};
    if (device->idle.open_count)
        mt_idle_leave(&device->idle, block);
    add_life(device, block, event->seq);
    if (device->models.wants_lives)
        mt_model_feeds_end(&device->models, block, block->end);
}

/* Whether its stack identifies the code. If Python stacks are recorded, a stack of only native
 * frames is that of a worker thread, and counts as none. */
static void finds_code(struct mt_live_blocks *holders, uint32_t stack, bool *found)
{
    *found = false;
    if (stack == MT_NO_ID)
        return;
    if (stack >= holders->sites.stack_count)
        mt_site_table_update(&holders->sites, holders->symbols);
    *found = !holders->sites.has_python || mt_site_table_has_python(&holders->sites, stack);
}

/* Links the block to its owner, or registers it as a possible owner. Blocks that are alive at the
 * start have no owner. */
static void tie(struct mt_live_blocks *holders, uint32_t index, bool initial)
{
    struct mt_block_life *block = &holders->blocks[index];
    const struct mt_stack_kinds *kinds = &holders->survey->roles.stacks;
    struct mt_tie_facts facts = {.requested_bytes = block->requested_bytes,
                                 .stack = block->stack,
                                 .device = block->device,
                                 .role = (enum mt_role)block->role,
                                 .moved = mt_stack_kind(kinds, block->stack) & MT_STACK_MOVES};
    enum mt_tie found = MT_TIE_NONE;
    bool has_code;

    finds_code(holders, block->stack, &has_code);
    block->tied = block->tied_to = MT_NO_ID;
    if (initial && !has_code)
        block->tie = MT_TIE_BEFORE;
    if (!holders->has_stacks || block->tie)
        return;
    if (has_code) {
        mt_ties_anchor(&holders->ties, index, &facts);
        return;
    }
    mt_ties_find(&holders->ties, index, &facts, &found, &block->tied);
    if (found == MT_TIE_PHASE && block->phase == MT_NO_PHASE)
        found = MT_TIE_NONE;
    block->tie = (uint8_t)found;
    block->tied_to = mt_ties_of(&holders->ties, index);
}

static void drop(struct mt_live_blocks *holders, struct mt_live_blocks_device *device,
                 uint32_t index, const struct mt_event *event)
{
    struct mt_block_life *block = &holders->blocks[index];

    leave_allocated(holders, device, index, event);
    if (device->models.wants_lives)
        mt_model_feeds_gone(&device->models, block, (struct mt_block_end){event->t_ns, event->seq});
    device->now.active -= block->block_bytes;
    device->now.requested -= block->requested_bytes; /* PyTorch counts it as requested until here */
    mt_ties_free(&holders->ties, index);
    give_slot(holders, index);
}

static void on_alloc(struct mt_live_blocks *holders, struct mt_live_blocks_device *device,
                     const struct mt_event *event, int32_t phase)
{
    struct mt_block_life *block;
    uint64_t block_bytes;
    uint32_t index, old;
    uint8_t code;

    if (!mt_alloc_log_next(&holders->survey->log, &block_bytes, &code) || !device)
        return; /* the log has those of every device */
    old = mt_alloc_log_ends_old(event, block_bytes) ? mt_map_take(&holders->slots, key_of(event))
                                                    : MT_MAP_NONE;
    if (old != MT_MAP_NONE)
        drop(holders, device, old, event);
    if (!block_bytes)
        return;
    struct mt_alloc_answer *role = mt_alloc_memo_at(holders->roles, event, code);
    if (!role->answer)
        role->answer =
            1 + mt_role_resolve(&holders->survey->roles, code, event->stack, event->size_bytes);
    index = take_slot(holders);
    mt_map_put(&holders->slots, key_of(event), index);
    block = &holders->blocks[index];
    *block = (struct mt_block_life){.addr = event->addr,
                                    .requested_bytes = event->size_bytes,
                                    .block_bytes = block_bytes,
                                    .birth_t_ns = event->t_ns,
                                    .birth_event = event->seq,
                                    .end = {0, UINT64_MAX},
                                    .block = index,
                                    .stack = event->stack,
                                    .stream = event->stream,
                                    .tag = event->name,
                                    .pool = event->pool,
                                    .initial = event->flags & MT_EVENT_INITIAL,
                                    .phase = phase,
                                    .device = event->device,
                                    .heap = event->heap,
                                    .role = (uint8_t)(role->answer - 1),
                                    .role_recorded = mt_role_code_is_recorded(code),
                                    .state = MT_LIFE_LIVE};
    device->now.allocated += block_bytes;
    device->now.active += block_bytes;
    device->now.requested += event->size_bytes;
    device->role_bytes[block->role] += block_bytes;
    tie(holders, index, block->initial);
    if (device->models.wants_lives)
        mt_model_feeds_birth(&device->models, block);
}

static void on_free(struct mt_live_blocks *holders, struct mt_live_blocks_device *device,
                    const struct mt_event *event)
{
    const bool stays = event->kind == MT_EVENT_FREE_REQUESTED && !holders->completes_at_request;
    const uint32_t index = stays ? mt_map_find(&holders->slots, key_of(event))
                                 : mt_map_take(&holders->slots, key_of(event));

    if (index != MT_MAP_NONE && stays)
        leave_allocated(holders, device, index, event);
    else if (index != MT_MAP_NONE)
        drop(holders, device, index, event);
}

/* Then by whether the role is recorded. */
MT_DEFINE_ORDER(by_role, struct mt_holding,
                MT_ASCENDING(role) || MT_ASCENDING(role_recorded) || MT_ASCENDING(tag))
MT_DEFINE_ORDER(by_tie, struct mt_holding, MT_ASCENDING(tie) || MT_ASCENDING(tied))
MT_DEFINE_ORDER(by_group, struct mt_holding,
                MT_ASCENDING(block_bytes) || MT_ASCENDING(stack) || MT_ASCENDING(phase) ||
                    MT_THEN(by_role) || MT_THEN(by_tie) || MT_ASCENDING(first_birth_event))
MT_DEFINE_ORDER(by_bytes, struct mt_holding,
                MT_DESCENDING(bytes) || MT_ASCENDING(stack) || MT_ASCENDING(phase) ||
                    MT_THEN(by_role) || MT_THEN(by_tie) || MT_ASCENDING(block_bytes))

static bool same_group(const struct mt_holding *a, const struct mt_holding *b)
{
    return a->block_bytes == b->block_bytes && a->stack == b->stack && a->phase == b->phase &&
           by_role(a, b) == 0 && by_tie(a, b) == 0;
}

static void count_waiting(struct mt_snapshot *snapshot, const struct mt_block_life *block)
{
    snapshot->waiting_blocks++;
    snapshot->waiting_bytes += block->block_bytes;
    snapshot->waiting_requested_bytes += block->requested_bytes;
}

/* Copies the live blocks of a device, one row each, into scratch. */
static size_t gather(struct mt_live_blocks *holders, struct mt_snapshot *snapshot)
{
    size_t count = 0;

    if (holders->block_count > holders->scratch_capacity) {
        struct mt_holding *bigger =
            mt_memory_resize(holders->scratch, (size_t)holders->block_capacity * sizeof *bigger);

        holders->scratch = bigger;
        holders->scratch_capacity = holders->block_capacity;
    }
    for (uint32_t i = 0; i < holders->block_count; i++) {
        const struct mt_block_life *block = &holders->blocks[i];

        if (block->state == MT_LIFE_WAITING && block->device == snapshot->device)
            count_waiting(snapshot, block);
        if (block->state != MT_LIFE_LIVE || block->device != snapshot->device)
            continue;
        if (block->pool)
            snapshot->pool_role_bytes[block->role] += block->block_bytes;
        holders->scratch[count++] = mt_holding_of(block);
    }
    return count;
}

/* Merges rows of the same group; returns the number of remaining rows. */
static size_t merge(struct mt_holding *rows, size_t count)
{
    size_t kept = 0;

    qsort(rows, count, sizeof *rows, by_group);
    for (size_t i = 0; i < count; i++) {
        if (kept && same_group(&rows[kept - 1], &rows[i])) {
            rows[kept - 1].blocks++;
            rows[kept - 1].bytes += rows[i].bytes;
            rows[kept - 1].requested_bytes += rows[i].requested_bytes;
        } else {
            rows[kept++] = rows[i];
        }
    }
    qsort(rows, kept, sizeof *rows, by_bytes);
    return kept;
}

/* Fills the pins at that event, if requested. */
static void take_pins(struct mt_live_blocks *holders, const struct mt_snapshot *snapshot)
{
    uint32_t slot = holders->survey->device_slot[snapshot->device];
    struct mt_pins *pins = slot ? &holders->devices[slot - 1].pins : NULL;

    if (!pins || !pins->wanted || pins->event != snapshot->event)
        return;
    for (uint32_t i = 0; i < holders->block_count; i++) {
        const struct mt_block_life *block = &holders->blocks[i];

        if (block->state != MT_LIFE_UNUSED && block->device == snapshot->device)
            mt_pins_add(pins, block->addr, block->block_bytes, block->stack);
    }
    mt_pins_settle(pins);
}

static void take_snapshot(struct mt_live_blocks *holders, struct mt_snapshot *snapshot)
{
    size_t count = gather(holders, snapshot);

    take_pins(holders, snapshot);
    count = count ? merge(holders->scratch, count) : 0;
    snapshot->holdings = mt_arena_array(holders->arena, count + 1, sizeof *snapshot->holdings);
    for (size_t i = 0; i < count; i++) {
        snapshot->holdings[i] = holders->scratch[i];
        snapshot->bytes += holders->scratch[i].bytes;
    }
    snapshot->holding_count = (uint32_t)count;
}

static void take_due(struct mt_live_blocks *holders, uint64_t next_seq)
{
    while (holders->next_event < next_seq) {
        take_snapshot(holders, &holders->snapshots[holders->next_snapshot]);
        holders->next_snapshot++;
        holders->next_event = holders->next_snapshot < holders->snapshot_count
                                  ? holders->snapshots[holders->next_snapshot].event
                                  : UINT64_MAX;
    }
}

static inline void follow_reserved(struct mt_live_blocks *holders, uint64_t event)
{
    struct mt_alloc_log *log = &holders->survey->log;

    while (log->next_change_event <= event) {
        uint32_t slot = holders->survey->device_slot[log->next_change_device];

        holders->devices[slot - 1].now.reserved += (uint64_t)log->next_change;
        mt_alloc_log_next_change(log);
    }
}

/* The device of an event, or NULL if it is not followed. */
static struct mt_live_blocks_device *device_of(struct mt_live_blocks *holders,
                                               const struct mt_event *event)
{
    uint32_t slot = event->device < MT_ARRAY_LEN(holders->survey->device_slot)
                        ? holders->survey->device_slot[event->device]
                        : 0;

    return slot ? &holders->devices[slot - 1] : NULL;
}

static void tell_no_end(struct mt_live_blocks *holders, uint32_t index)
{
    const struct mt_block_life *block = &holders->blocks[index];
    const struct mt_block_end never = {UINT64_MAX, UINT64_MAX};
    struct mt_live_blocks_device *device =
        &holders->devices[holders->survey->device_slot[block->device] - 1];

    if (block->state == MT_LIFE_LIVE)
        add_life(device, block, UINT64_MAX);
    if (!device->models.wants_lives)
        return;
    if (block->state == MT_LIFE_LIVE)
        mt_model_feeds_end(&device->models, block, never);
    mt_model_feeds_gone(&device->models, block, never);
}

/* Passes on the blocks that exist at the end, without an end, and those that still wait. */
static void tell_rest(struct mt_live_blocks *holders)
{
    for (uint32_t i = 0; i < holders->block_count; i++)
        if (holders->blocks[i].state != MT_LIFE_UNUSED)
            tell_no_end(holders, i);
}

static void on_memory(struct mt_live_blocks *holders, const struct mt_event *event)
{
    struct mt_live_blocks_device *device = device_of(holders, event);
    int32_t phase = mt_phases_current(&holders->survey->phases, event->thread);
    const uint64_t before = device ? device->now.allocated : 0;

    follow_reserved(holders, event->seq);
    if (event->kind == MT_EVENT_ALLOC)
        on_alloc(holders, device, event, phase);
    if (!device)
        return;
    if (event->kind == MT_EVENT_FREE_REQUESTED || event->kind == MT_EVENT_FREE_COMPLETED)
        on_free(holders, device, event);
    else if (device->pins.wanted && event->kind != MT_EVENT_ALLOC)
        mt_pins_segment(&device->pins, event);
    if (device->models.wants_events)
        mt_model_feeds_state(&device->models, &(struct mt_model_state){event, phase, &device->now,
                                                                       device->role_bytes, before});
}

static void on_empty_cache(struct mt_live_blocks *holders, const struct mt_event *event)
{
    const struct mt_live_blocks_device *device = device_of(holders, event);

    if (device)
        mt_model_feeds_empty_cache(&device->models, event);
}

static void begin_idle(struct mt_live_blocks *holders, int32_t phase)
{
    for (uint32_t i = 0; i < holders->survey->device_count; i++) {
        struct mt_live_blocks_device *device = &holders->devices[i];

        mt_idle_begin(&device->idle, phase, device->device, device->role_bytes, holders->blocks,
                      holders->block_count);
    }
}

static void end_idle(struct mt_live_blocks *holders, int32_t phase)
{
    for (uint32_t i = 0; i < holders->survey->device_count; i++)
        mt_idle_end(&holders->devices[i].idle, phase);
}

static void on_push(struct mt_live_blocks *holders, const struct mt_event *event)
{
    int32_t phase;

    mt_phases_push(&holders->survey->phases, event, &phase);
    if (phase != MT_NO_PHASE)
        begin_idle(holders, phase);
}

static void on_pop(struct mt_live_blocks *holders, const struct mt_event *event)
{
    const struct mt_phases *phases = &holders->survey->phases;

    mt_phases_pop(&holders->survey->phases, event);
    for (uint32_t i = 0; i < phases->ended_count; i++)
        end_idle(holders, phases->ended[i]);
}

void mt_live_blocks_event(struct mt_live_blocks *holders, const struct mt_event *event)
{
    if (holders->next_event < event->seq)
        take_due(holders, event->seq);
    if (mt_event_is_memory(event)) {
        on_memory(holders, event);
        return;
    }
    if (event->kind == MT_EVENT_PHASE_PUSH) {
        on_push(holders, event);
        return;
    }
    if (event->kind == MT_EVENT_PHASE_POP)
        on_pop(holders, event);
    else if (event->kind == MT_EVENT_EMPTY_CACHE)
        on_empty_cache(holders, event);
}

void mt_live_blocks_begin(struct mt_live_blocks *holders, const struct mt_source *source)
{
    uint32_t count = holders->survey->device_count;

    holders->has_stacks = holders->survey->roles.has_stacks;
    holders->symbols = &source->symbols;
    holders->roles = mt_memory_zeroed(1, sizeof *holders->roles);
    holders->completes_at_request = !source->header.has_free_completed;
    mt_phases_rewind(&holders->survey->phases);
    mt_alloc_log_rewind(&holders->survey->log);
    holders->next_event = holders->snapshot_count ? holders->snapshots[0].event : UINT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        holders->devices[i].device = holders->survey->devices[i].device;
        mt_model_feeds_relay(&holders->devices[i].models, &holders->relay, holders->arena);
    }
}

bool mt_live_blocks_are_known(const struct mt_live_blocks *holders)
{
    bool known = holders->next_event == UINT64_MAX; /* the last snapshot is taken */

    for (uint32_t i = 0; i < holders->survey->device_count && known; i++) {
        const struct mt_live_blocks_device *device = &holders->devices[i];

        known = !device->models.wants_events && device->idle.ended_count == device->idle.count &&
                (!device->lives.step_count || device->lives.too_many);
    }
    return known;
}

void mt_live_blocks_finish(struct mt_live_blocks *holders)
{
    take_due(holders, UINT64_MAX);
    tell_rest(holders);
    mt_relay_finish(&holders->relay);
}

uint64_t mt_live_blocks_bytes(const struct mt_live_blocks *holders)
{
    return holders->block_capacity * sizeof *holders->blocks + mt_map_bytes(&holders->slots) +
           mt_map_bytes(&holders->ties.newest) +
           holders->ties.capacity * sizeof *holders->ties.blocks +
           holders->scratch_capacity * sizeof *holders->scratch;
}

void mt_live_blocks_release(struct mt_live_blocks *holders)
{
    mt_relay_finish(&holders->relay);
    mt_map_release(&holders->slots);
    mt_ties_release(&holders->ties);
    mt_site_table_release(&holders->sites);
    free(holders->roles);
    free(holders->blocks);
    free(holders->scratch);
    for (uint32_t i = 0; holders->devices && i < holders->survey->device_count; i++) {
        mt_model_feeds_release(&holders->devices[i].models);
        mt_lives_release(&holders->devices[i].lives);
        mt_pins_release(&holders->devices[i].pins);
    }
    free(holders->devices);
}
