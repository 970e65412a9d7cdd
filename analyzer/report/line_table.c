/* One row for each device and frame: a frame is a line of a function. */
#include "line_table.h"

#include "grow.h"
#include "process_memory.h"
#include "replay.h"
#include "sorted.h"
#include "util.h"
#include "work_kinds.h"

#include <stdlib.h>
#include <string.h>

struct line_rows {
    struct mt_line_use *rows; /* by frame */
    uint32_t capacity;
    struct mt_bytes before; /* the last event */
    uint64_t events;
    struct mt_line_device sums;
};

/* Computed once for each stack, because an event walks its whole stack. */
struct walk {
    uint32_t outer; /* the next stack outside of this one that is another line; MT_NO_ID */
    uint32_t root;
};

struct reading {
    struct mt_source *source;
    struct line_rows devices[MT_MAX_DEVICES];
    struct walk *walks; /* by stack */
    size_t walk_capacity;
    uint32_t walk_count;
    struct mt_stack_kinds kinds;
    struct mt_site_table sites;
    bool has_frees;
    uint32_t waiting; /* the last stack that called backward on its thread; MT_NO_ID */
};

static bool is_line(const struct reading *reading, uint32_t frame)
{
    enum mt_origin origin = mt_site_table_origin(&reading->sites, frame);

    return origin != MT_ORIGIN_NATIVE && origin != MT_ORIGIN_ENGINE &&
           reading->source->symbols.frames[frame].line;
}

static bool is_line_of_stack(const struct reading *reading, uint32_t stack)
{
    const struct mt_symbols *symbols = &reading->source->symbols;
    uint32_t frame = symbols->stacks[stack].frame;

    return frame < symbols->frame_count && is_line(reading, frame);
}

/* A frame that follows itself is one line: a recursive function. */
static void update_walks(struct reading *reading)
{
    const struct mt_symbols *symbols = &reading->source->symbols;

    mt_grow_to(&reading->walks, &reading->walk_capacity, symbols->stack_count,
               sizeof *reading->walks);
    for (; reading->walk_count < symbols->stack_count; reading->walk_count++) {
        uint32_t stack = reading->walk_count, outer = symbols->stacks[stack].parent;
        struct walk walk = {MT_NO_ID, stack};

        if (outer < stack) {
            walk = reading->walks[outer];
            if (symbols->stacks[outer].frame != symbols->stacks[stack].frame &&
                is_line_of_stack(reading, outer))
                walk.outer = outer;
        }
        reading->walks[stack] = walk;
    }
}

static const struct mt_frame *root_of(const struct reading *reading, uint32_t stack)
{
    const struct mt_symbols *symbols = &reading->source->symbols;

    return &symbols->frames[symbols->stacks[reading->walks[stack].root].frame];
}

/* Whether both begin in one function and so may belong to one thread. */
static bool same_root(const struct reading *reading, uint32_t stack, uint32_t other)
{
    const struct mt_frame *a = root_of(reading, stack), *b = root_of(reading, other);

    return a->function == b->function && a->file == b->file;
}

/* Returns the stack that waits for `stack`, a thread of the autograd engine; MT_NO_ID if it is not
 * such a thread. */
static uint32_t waits_for(struct reading *reading, uint32_t stack)
{
    const struct mt_symbols *symbols = &reading->source->symbols;
    bool has_stack = stack < symbols->stack_count;

    if (!has_stack ||
        (reading->waiting != MT_NO_ID && !same_root(reading, stack, reading->waiting)))
        return reading->waiting;
    reading->waiting =
        (mt_stack_kind(&reading->kinds, stack) & MT_STACK_KIND_MASK) == MT_PHASE_BACKWARD
            ? stack
            : MT_NO_ID;
    return MT_NO_ID;
}

static void raise(uint64_t *most, uint64_t value)
{
    *most = mt_max_u64(*most, value);
}

static void raise_all(struct mt_bytes *most, const struct mt_bytes *now)
{
    raise(&most->requested, now->requested);
    raise(&most->allocated, now->allocated);
    raise(&most->active, now->active);
    raise(&most->reserved, now->reserved);
}

struct charge {
    struct mt_bytes now;
    uint64_t block_bytes; /* allocated */
    bool by_engine;
};

/* How a line takes part in a stack. */
struct part {
    bool is_own, is_site;
};

/* Returns false if the line was charged already: a recursive function. */
static bool charge_line(struct line_rows *rows, uint32_t frame, const struct charge *charge,
                        struct part part)
{
    struct mt_line_use *line = &rows->rows[frame];

    if (line->last_event == rows->events)
        return false;
    if (!line->last_event || line->last_event + 1 != rows->events)
        raise_all(&line->peak, &rows->before);
    line->frame = frame;
    line->last_event = rows->events;
    line->allocations += charge->block_bytes != 0;
    line->allocated_bytes += charge->block_bytes;
    line->engine_bytes += charge->by_engine ? charge->block_bytes : 0;
    line->own_bytes += part.is_own ? charge->block_bytes : 0;
    line->site_bytes += part.is_site ? charge->block_bytes : 0;
    line->growth_bytes += (int64_t)(charge->now.active - rows->before.active);
    raise_all(&line->peak, &charge->now);
    line->after = charge->now;
    return true;
}

/* Returns whether any line was charged. */
static bool charge_stack(const struct reading *reading, struct line_rows *rows, uint32_t stack,
                         const struct charge *charge)
{
    const struct mt_symbols *symbols = &reading->source->symbols;
    uint32_t site = mt_site_table_site(&reading->sites, stack);
    bool charged = false, has_user = false;

    for (; stack < symbols->stack_count; stack = reading->walks[stack].outer) {
        uint32_t frame = symbols->stacks[stack].frame;

        if (is_line_of_stack(reading, stack)) {
            bool is_user = mt_site_table_origin(&reading->sites, frame) == MT_ORIGIN_USER;
            struct part part = {is_user ? !has_user : !charged, frame == site};

            charged |= charge_line(rows, frame, charge, part);
            has_user |= is_user;
        }
    }
    return charged;
}

static void make_room(struct line_rows *rows, uint32_t frame_count)
{
    size_t wanted = (size_t)frame_count + frame_count / 2 + 16;
    struct mt_line_use *bigger;

    if (frame_count <= rows->capacity)
        return;
    bigger = mt_memory_resize(rows->rows, wanted * sizeof *bigger);
    memset(bigger + rows->capacity, 0, (wanted - rows->capacity) * sizeof *bigger);
    rows->rows = bigger;
    rows->capacity = (uint32_t)wanted;
}

static enum mt_status on_event(void *context, const struct mt_event *event,
                               const struct mt_replay_view *view)
{
    struct reading *reading = context;
    const struct mt_symbols *symbols = &reading->source->symbols;
    struct charge charge = {0};

    if (!mt_event_is_memory(event) || event->device >= MT_MAX_DEVICES || !view->counters)
        return MT_OK;
    struct line_rows *rows = &reading->devices[event->device];
    charge.now = mt_counters_bytes(view->counters);
    if (event->flags & MT_EVENT_INITIAL) {
        rows->before = charge.now;
        return MT_OK;
    }
    mt_stack_kinds_update(&reading->kinds, symbols);
    mt_site_table_update(&reading->sites, symbols);
    update_walks(reading);
    make_room(rows, symbols->frame_count);
    rows->events++;
    reading->has_frees |= event->kind == MT_EVENT_FREE_REQUESTED && event->stack != MT_NO_ID;
    charge.block_bytes = event->kind == MT_EVENT_ALLOC ? view->block_bytes : 0;
    uint32_t waiting = waits_for(reading, event->stack);
    bool charged = charge_stack(reading, rows, event->stack, &charge);
    charge.by_engine = true;
    charged |= charge_stack(reading, rows, waiting, &charge);
    rows->sums.allocations += charge.block_bytes != 0;
    rows->sums.allocated_bytes += charge.block_bytes;
    rows->sums.unseen_allocations += charge.block_bytes && !charged;
    rows->sums.unseen_bytes += charged ? 0 : charge.block_bytes;
    rows->before = charge.now;
    return MT_OK;
}

static enum mt_status on_restart(void *context)
{
    struct reading *reading = context;

    for (uint32_t i = 0; i < MT_MAX_DEVICES; i++) {
        free(reading->devices[i].rows);
        reading->devices[i] = (struct line_rows){0};
    }
    reading->waiting = MT_NO_ID;
    reading->has_frees = false;
    return MT_OK;
}

struct sorted_line {
    uint32_t file, function, line;
    struct mt_line_use use;
};

MT_DEFINE_ORDER(line_order, struct sorted_line,
                MT_ASCENDING(file) || MT_ASCENDING(function) || MT_ASCENDING(line))
MT_DEFINE_ORDER(own_order, struct mt_line_function,
                MT_DESCENDING(own_bytes) || MT_ASCENDING(file) || MT_ASCENDING(function))
MT_DEFINE_ORDER(function_order, struct mt_line_function,
                MT_DESCENDING(site_bytes) || MT_THEN(own_order))

static bool same_function(const struct sorted_line *a, const struct sorted_line *b)
{
    return a->file == b->file && a->function == b->function;
}

/* Sorts the lines with activity by file, function and line. */
static uint32_t sort_lines(const struct reading *reading, const struct line_rows *rows,
                           struct sorted_line *sorted)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < rows->capacity; i++) {
        if (!rows->rows[i].last_event)
            continue;
        const struct mt_frame *frame = &reading->source->symbols.frames[i];
        sorted[count++] =
            (struct sorted_line){frame->file, frame->function, frame->line, rows->rows[i]};
    }
    qsort(sorted, count, sizeof *sorted, line_order);
    return count;
}

static void add_line(const struct reading *reading, struct mt_line_device *device,
                     struct mt_line_use *line, const struct sorted_line *sorted, bool begins)
{
    struct mt_line_function *function;

    if (begins) {
        function = &device->functions[device->function_count++];
        function->function = sorted->function;
        function->file = sorted->file;
        function->origin = mt_site_table_origin(&reading->sites, sorted->use.frame);
        function->lines = line;
    }
    function = &device->functions[device->function_count - 1];
    function->line_count++;
    function->own_bytes += sorted->use.own_bytes;
    function->site_bytes += sorted->use.site_bytes;
    *line = sorted->use;
}

static void fill_device(const struct reading *reading, const struct line_rows *rows,
                        struct mt_arena *arena, struct mt_line_device *device)
{
    struct sorted_line *sorted = mt_memory_zeroed((size_t)rows->capacity + 1, sizeof *sorted);
    struct mt_line_use *lines;
    uint32_t count = sort_lines(reading, rows, sorted);

    lines = mt_arena_array(arena, (size_t)count + 1, sizeof *lines);
    device->functions = mt_arena_array(arena, (size_t)count + 1, sizeof *device->functions);
    for (uint32_t i = 0; i < count && device->functions; i++)
        add_line(reading, device, &lines[i], &sorted[i],
                 i == 0 || !same_function(&sorted[i - 1], &sorted[i]));
    free(sorted);
    qsort(device->functions, device->function_count, sizeof *device->functions, function_order);
}

static void fill(const struct reading *reading, struct mt_line_table *table)
{
    table->devices = mt_arena_array(&table->arena, MT_MAX_DEVICES, sizeof *table->devices);
    for (uint32_t i = 0; i < MT_MAX_DEVICES; i++) {
        const struct line_rows *rows = &reading->devices[i];
        struct mt_line_device *device = &table->devices[table->device_count];

        if (!rows->events)
            continue;
        *device = rows->sums;
        device->device = (uint16_t)i;
        fill_device(reading, rows, &table->arena, device);
        table->has_lines |= device->function_count != 0;
        table->device_count++;
    }
}

static enum mt_status read_into(struct reading *reading, struct mt_line_table *table,
                                struct mt_replay_summary *summary, struct mt_error *error)
{
    const struct mt_replay_options options = {0};
    const struct mt_replay_observer observer = {reading, on_event, on_restart};
    char difference[240];
    enum mt_status status =
        mt_replay_as_run(reading->source, &options, &observer, summary, difference, error);

    if (status)
        return status;
    memcpy(table->policy, summary->policy, sizeof table->policy);
    table->has_frees = reading->has_frees;
    table->sizes_are_exact = mt_replay_is_exact(summary);
    fill(reading, table);
    return MT_OK;
}

enum mt_status mt_line_table_read(struct mt_source *source, struct mt_line_table *table,
                                  struct mt_error *error)
{
    struct reading *reading = mt_memory_zeroed(1, sizeof *reading);
    struct mt_replay_summary *summary = mt_memory_zeroed(1, sizeof *summary);

    memset(table, 0, sizeof *table);
    reading->source = source;
    reading->waiting = MT_NO_ID;
    enum mt_status status = read_into(reading, table, summary, error);
    (void)on_restart(reading);
    mt_stack_kinds_release(&reading->kinds);
    mt_site_table_release(&reading->sites);
    free(reading->walks);
    free(reading);
    free(summary);
    return status;
}

void mt_line_table_sort_by_own(struct mt_line_table *table)
{
    for (uint32_t i = 0; i < table->device_count; i++) {
        struct mt_line_device *device = &table->devices[i];

        qsort(device->functions, device->function_count, sizeof *device->functions, own_order);
    }
}

void mt_line_table_release(struct mt_line_table *table)
{
    mt_arena_release(&table->arena);
    memset(table, 0, sizeof *table);
}
