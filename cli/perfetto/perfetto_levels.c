#include "perfetto_levels.h"

#include <stdlib.h>
#include <string.h>

#include "analysis.h"
#include "grow.h"
#include "map.h"
#include "model_feed.h"
#include "util.h"

struct builder {
    struct mt_perfetto_device *made;
    struct mt_arena *arena;
    uint64_t events; /* of the device, that will come */
    bool has_begun;  /* an event that is not initial state was seen */
    const struct mt_retry_marks *retries;
    uint32_t *retry_stacks, next_retry;
    uint64_t release_width, releases; /* calls in a full mark; calls so far */
    struct mt_map live_ids;           /* of stack and tie: index in `live` */
    struct mt_holding *live;
    size_t live_capacity;
};

static void levels_of(const struct mt_model_state *state, uint64_t levels[MT_PERFETTO_SERIES])
{
    levels[MT_PERFETTO_REQUESTED] = state->now->requested;
    levels[MT_PERFETTO_ALLOCATED] = state->now->allocated;
    levels[MT_PERFETTO_ACTIVE] = state->now->active;
    levels[MT_PERFETTO_RESERVED] = state->now->reserved;
    memcpy(levels + MT_PERFETTO_ROLES, state->role_bytes, MT_ROLE_COUNT * sizeof *levels);
}

/* The column of the next event, which may be new. */
static struct mt_perfetto_column *enter_column(struct builder *builder, bool *is_new)
{
    struct mt_perfetto_device *made = builder->made;
    const uint64_t most = mt_min_u64(builder->events, MT_PERFETTO_COLUMNS);
    const uint64_t at = made->events * most / builder->events;

    if (!made->columns)
        made->columns = mt_arena_array(builder->arena, most, sizeof *made->columns);
    *is_new = at >= made->column_count && made->column_count < most;
    made->column_count += *is_new;
    return &made->columns[made->column_count - 1];
}

static void add_levels(struct builder *builder, const struct mt_event *event,
                       const uint64_t levels[MT_PERFETTO_SERIES])
{
    const struct mt_perfetto_instant now = {event->t_ns, event->seq};
    bool is_new;
    struct mt_perfetto_column *column = enter_column(builder, &is_new);

    if (is_new || levels[MT_PERFETTO_ALLOCATED] > column->largest[MT_PERFETTO_ALLOCATED])
        memcpy(column->full, levels, sizeof column->full);
    for (int i = 0; i < MT_PERFETTO_SERIES; i++) {
        builder->made->is_used[i] |= levels[i] > 0;
        if (!is_new && levels[i] <= column->largest[i])
            continue;
        column->largest[i] = levels[i];
        column->largest_at[i] = now;
    }
    memcpy(column->last, levels, sizeof column->last);
    column->last_at = now;
    builder->made->events++;
}

static void note_retry(struct builder *builder, const struct mt_event *event)
{
    while (builder->next_retry < builder->retries->count &&
           builder->retries->marks[builder->next_retry].event <= event->seq) {
        if (builder->retries->marks[builder->next_retry].event == event->seq)
            builder->retry_stacks[builder->next_retry] = event->stack;
        builder->next_retry++;
    }
}

static void on_state(void *context, const struct mt_model_state *state)
{
    struct builder *builder = context;
    uint64_t levels[MT_PERFETTO_SERIES];

    levels_of(state, levels);
    if (state->event->flags & MT_EVENT_INITIAL) {
        if (builder->has_begun)
            return;
        memcpy(builder->made->starts, levels, sizeof levels);
        for (int i = 0; i < MT_PERFETTO_SERIES; i++)
            builder->made->is_used[i] = levels[i] > 0;
        return;
    }
    builder->has_begun = true;
    add_levels(builder, state->event, levels);
    note_retry(builder, state->event);
}

/* Joins marks in pairs, so that there is room for as many more. */
static void join_releases(struct builder *builder)
{
    struct mt_perfetto_device *made = builder->made;

    for (uint32_t i = 0; i + 1 < made->release_count; i += 2) {
        made->releases[i / 2] = made->releases[i];
        made->releases[i / 2].calls += made->releases[i + 1].calls;
    }
    made->release_count /= 2;
    builder->release_width *= 2;
}

static void on_empty_cache(void *context, const struct mt_event *event)
{
    struct builder *builder = context;
    struct mt_perfetto_device *made = builder->made;

    if (!made->releases)
        made->releases =
            mt_arena_array(builder->arena, MT_PERFETTO_COLUMNS, sizeof *made->releases);
    if (builder->releases++ % builder->release_width) {
        made->releases[made->release_count - 1].calls++;
        return;
    }
    if (made->release_count == MT_PERFETTO_COLUMNS)
        join_releases(builder);
    made->releases[made->release_count++] =
        (struct mt_perfetto_release){event->t_ns, event->seq, 1, event->stack};
}

/* What decides the frames of a block in the trace: a stack and what its block is, or for a block
 * without one the phase and whether it is older than the recording. */
static uint64_t key_of(const struct mt_block_life *life, const struct mt_holding *block)
{
    const uint32_t stack = mt_stack_of_site(block->tie, block->tied, block->stack);
    const uint64_t tie = (uint64_t)block->tie << 36;

    if (stack != MT_NO_ID)
        return tie | (uint64_t)(block->stack != MT_NO_ID) << 33 |
               (uint64_t)(block->tied != MT_NO_ID) << 32 | stack;
    return tie | (uint64_t)life->initial << 35 | UINT64_C(1) << 34 | (uint32_t)block->phase;
}

static void on_gone(void *context, const struct mt_block_life *life, struct mt_block_end end,
                    struct mt_block_end completed)
{
    struct builder *builder = context;
    const struct mt_holding block = mt_holding_of(life);

    (void)completed;
    if (end.event != UINT64_MAX)
        return;
    uint32_t id = mt_map_get(&builder->live_ids, key_of(life, &block));
    if (id == MT_MAP_NONE) {
        id = builder->made->live_count++;
        mt_grow_to(&builder->live, &builder->live_capacity, (size_t)id + 1, sizeof *builder->live);
        builder->live[id] = block;
        mt_map_put(&builder->live_ids, key_of(life, &block), id);
        return;
    }
    builder->live[id].blocks++;
    builder->live[id].bytes += block.bytes;
    builder->live[id].requested_bytes += block.requested_bytes;
}

static void release(void *context)
{
    struct builder *builder = context;

    if (!builder)
        return;
    mt_map_release(&builder->live_ids);
    free(builder->live);
    free(builder);
}

static enum mt_status begin(struct mt_analysis *analysis, uint32_t slot, struct mt_model_feed *feed)
{
    struct mt_perfetto_levels *levels = analysis->options->listener_context;
    const struct mt_survey_device *device = &analysis->survey.devices[slot];
    struct builder *builder = mt_memory_zeroed(1, sizeof *builder);

    builder->arena = &levels->arena;
    builder->made = mt_arena_alloc(builder->arena, sizeof *builder->made);
    builder->made->device = device->device;
    builder->events = mt_max_u64(device->events, 1);
    builder->release_width = 1;
    builder->retries = &device->retries;
    builder->retry_stacks = mt_arena_array(builder->arena, (size_t)device->retries.count + 1,
                                           sizeof *builder->retry_stacks);
    for (uint32_t i = 0; i < device->retries.count; i++)
        builder->retry_stacks[i] = MT_NO_ID;
    builder->made->retry_stacks = builder->retry_stacks;
    levels->devices[levels->device_count++] = builder->made;
    *feed = (struct mt_model_feed){.builder = builder,
                                   .on_gone = on_gone,
                                   .on_state = on_state,
                                   .on_empty_cache = on_empty_cache,
                                   .release = release};
    return MT_OK;
}

static enum mt_status finish(struct mt_analysis *analysis, void *context,
                             struct mt_device_report *out)
{
    struct builder *builder = context;
    struct mt_perfetto_device *made = builder->made;
    struct mt_holding *live =
        mt_arena_array(builder->arena, (size_t)made->live_count + 1, sizeof *live);

    (void)analysis;
    (void)out;
    if (made->live_count)
        memcpy(live, builder->live, made->live_count * sizeof *live);
    made->live = live;
    return MT_OK;
}

static const struct mt_model_ops listener = {.begin = begin, .finish = finish};

void mt_perfetto_attach(struct mt_perfetto_levels *levels, struct mt_analyze_options *options)
{
    options->listener = &listener;
    options->listener_context = levels;
}

void mt_perfetto_levels_release(struct mt_perfetto_levels *levels)
{
    mt_arena_release(&levels->arena);
}
