/* One pass. Phases open and close at their own events. Between them every ALLOC and FREE compares
 * its stack with the open one, closes the frames that are not shared, opens the rest, and adds its
 * bytes to the innermost cell. */
#include <stdlib.h>
#include <string.h>

#include "analysis.h"
#include "arena.h"
#include "flamechart_model.h"
#include "model_feed.h"
#include "report.h"
#include "sorted.h"
#include "status.h"
#include "timeline_model.h"
#include "util.h"
#include "work_kinds.h"

/* Nested intervals of time as they open and close, with the changes of memory in each. Narrow ones
 * are merged with their neighbors, so their number depends only on the resolution.
 *
 * A wide cell is written when it closes. A narrow one waits with the surrounding cell: the next
 * narrow neighbor joins it, until the two are wide, or a wide neighbor or a gap follows. Cells that
 * wait inside a narrow cell move with it. So merged cells of two corresponding rows differ by at
 * most a few bins at their edges, and the number of cells is always O(bins * rows). */

/* Rows of cells; an inner cell is in a larger row than the surrounding one. */
#define MT_NEST_ROWS 31 /* <= 32: rows are bits of a mask */

struct open_cell {
    struct mt_cell cell;
    /* By row: narrow cells inside this one that wait for more of their kind. Deeper ones are inside
     * the shallower ones. */
    struct mt_cell *waiting;
    uint32_t waiting_rows; /* bit r: a cell waits in row r */
};

enum { CHUNK_CELLS = 256 };

struct mt_cell_chunk {
    struct mt_cell_chunk *next;
    uint32_t count;
    struct mt_cell cells[CHUNK_CELLS];
};

struct cell_nest {
    struct mt_arena *arena;
    uint64_t bin_ns, bin_events;             /* narrow: below both */
    struct open_cell open[MT_NEST_ROWS + 1]; /* [0] surrounds all and is not a cell */
    uint32_t open_count;                     /* without [0] */
    struct mt_cell_chunk *chunks;
    uint32_t cell_count;
};

static void cell_nest_init(struct cell_nest *nest, struct mt_arena *arena, uint64_t bin_ns,
                           uint64_t bin_events)
{
    struct mt_cell *waiting =
        mt_arena_array(arena, (size_t)(MT_NEST_ROWS + 1) * MT_NEST_ROWS, sizeof *waiting);

    memset(nest, 0, sizeof *nest);
    nest->arena = arena;
    nest->bin_ns = bin_ns;
    nest->bin_events = bin_events;
    for (size_t i = 0; i <= MT_NEST_ROWS; i++)
        nest->open[i].waiting = waiting + i * MT_NEST_ROWS;
}

static void emit(struct cell_nest *nest, const struct mt_cell *cell)
{
    struct mt_cell_chunk *chunk = nest->chunks;

    if (!chunk || chunk->count == CHUNK_CELLS) {
        chunk = mt_arena_alloc(nest->arena, sizeof *chunk);
        chunk->next = nest->chunks;
        nest->chunks = chunk;
    }
    chunk->cells[chunk->count++] = *cell;
    nest->cell_count++;
}

static uint32_t lowest_row(uint32_t rows)
{
    return (uint32_t)__builtin_ctz(rows);
}

/* Writes the cells that wait in the open cell at `depth`. Cells that wait further out precede them
 * and must not grow across them, so they go first. */
static void flush(struct cell_nest *nest, uint32_t depth)
{
    for (uint32_t i = 0; i <= depth; i++) {
        struct open_cell *open = &nest->open[i];

        for (; open->waiting_rows; open->waiting_rows &= open->waiting_rows - 1)
            emit(nest, &open->waiting[lowest_row(open->waiting_rows)]);
    }
}

static bool is_narrow(const struct cell_nest *nest, const struct mt_cell *from,
                      const struct mt_cell *to)
{
    return to->end_t_ns - from->begin_t_ns < nest->bin_ns &&
           to->end_event - from->begin_event < nest->bin_events;
}

static bool is_gap(const struct cell_nest *nest, const struct mt_cell *left,
                   const struct mt_cell *right)
{
    return right->begin_t_ns - left->end_t_ns >= nest->bin_ns ||
           right->begin_event - left->end_event >= nest->bin_events;
}

/* Adds a narrow cell to what waits in its row of `around`. */
static void join(struct open_cell *around, const struct mt_cell *cell)
{
    struct mt_cell *into = &around->waiting[cell->row];

    if (!(around->waiting_rows >> cell->row & 1)) {
        *into = *cell;
        around->waiting_rows |= 1u << cell->row;
        return;
    }
    if (into->kind != cell->kind || into->frame != cell->frame)
        into->frame = MT_NO_ID;
    if (into->kind != cell->kind)
        into->kind = MT_CELL_FRAME;
    into->merged += cell->merged;
    into->end_t_ns = cell->end_t_ns;
    into->end_event = cell->end_event;
    into->net_bytes += cell->net_bytes;
    into->peak_allocated = mt_max_u64(into->peak_allocated, cell->peak_allocated);
}

/* The narrow cell that was closed last, and the cells waiting in it, now wait in the surrounding
 * one. */
static void wait_in(struct cell_nest *nest, struct open_cell *around, struct open_cell *inner)
{
    const struct mt_cell *waiting = &around->waiting[inner->cell.row];

    if (around->waiting_rows >> inner->cell.row & 1 && is_gap(nest, waiting, &inner->cell))
        flush(nest, nest->open_count);
    join(around, &inner->cell);
    for (; inner->waiting_rows; inner->waiting_rows &= inner->waiting_rows - 1)
        join(around, &inner->waiting[lowest_row(inner->waiting_rows)]);
    if (!is_narrow(nest, waiting, waiting))
        flush(nest, nest->open_count);
}

/* Opens a cell inside the innermost open one: kind, row, phase, frame, begin_* and peak_allocated
 * (the level at its start) as given. */
static void cell_nest_open(struct cell_nest *nest, const struct mt_cell *cell)
{
    struct open_cell *open = &nest->open[++nest->open_count];

    open->cell = *cell;
    open->cell.merged = 1;
    open->cell.net_bytes = 0;
}

/* Records a change of memory in the innermost cell. O(1). */
static void cell_nest_change(struct cell_nest *nest, int64_t delta, uint64_t allocated_after)
{
    struct mt_cell *cell = &nest->open[nest->open_count].cell;

    cell->net_bytes += delta;
    cell->peak_allocated = mt_max_u64(cell->peak_allocated, allocated_after);
}

/* Closes the innermost cell. */
static void cell_nest_close(struct cell_nest *nest, uint64_t t_ns, uint64_t event)
{
    struct open_cell *inner = &nest->open[nest->open_count--];
    struct open_cell *around = &nest->open[nest->open_count];
    struct mt_cell *cell = &inner->cell;

    cell->end_t_ns = t_ns;
    cell->end_event = event;
    around->cell.net_bytes += cell->net_bytes;
    around->cell.peak_allocated = mt_max_u64(around->cell.peak_allocated, cell->peak_allocated);
    if (is_narrow(nest, cell, cell)) {
        wait_in(nest, around, inner);
        return;
    }
    flush(nest, nest->open_count);
    emit(nest, cell);
    flush(nest, nest->open_count + 1);
}

MT_DEFINE_ORDER(compare_cells, struct mt_cell,
                MT_ASCENDING(row) || MT_ASCENDING(begin_event) || MT_ASCENDING(end_event) ||
                    MT_ASCENDING(begin_t_ns))

/* All cells by row, then start; none may be open. */
static void cell_nest_finish(struct cell_nest *nest, struct mt_cell **cells, uint32_t *count)
{
    uint32_t filled = 0;

    flush(nest, 0);
    *cells = mt_arena_array(nest->arena, nest->cell_count, sizeof **cells);
    for (struct mt_cell_chunk *chunk = nest->chunks; chunk; chunk = chunk->next) {
        memcpy(*cells + filled, chunk->cells, chunk->count * sizeof **cells);
        filled += chunk->count;
    }
    if (filled)
        qsort(*cells, filled, sizeof **cells, compare_cells);
    *count = filled;
}

enum { PHASE_ROWS = 6, DEFAULT_BINS = 2048, MAX_BINS = 8192, NOT_SHOWN = -1 };

_Static_assert(PHASE_ROWS + 1 + MT_NAMED_FRAMES_DEPTH <= MT_NEST_ROWS, "every row has a place");

/* Common function and file of a row of call stacks. */
struct common_row {
    uint32_t function, file;
    bool seen, varies;
};

struct mt_flamechart_builder {
    struct mt_arena *arena;
    struct mt_flamechart_window window;
    const struct mt_phase *phases;
    const struct mt_symbols *symbols;
    uint32_t phase_count;
    int8_t *phase_rows; /* NOT_SHOWN: omitted */
    struct mt_flamechart *chart;

    struct mt_named_frames named;
    struct cell_nest nest;
    struct mt_level_curve time_curve, event_curve;
    struct common_row common[MT_NAMED_FRAMES_DEPTH];

    uint32_t next_phase;             /* not opened yet */
    int32_t open_phases[PHASE_ROWS]; /* outermost first */
    uint64_t open_ends[PHASE_ROWS];  /* last event of each */
    uint32_t open_phase_count;
    uint32_t path[MT_NAMED_FRAMES_DEPTH]; /* open frames, root first */
    uint32_t path_count;
    bool in_no_stack;       /* open: one cell without stack */
    bool frees_have_stacks; /* somewhere in the trace */
    bool started;

    uint64_t clock_ns; /* time of the last change */
    uint64_t allocated;
};

static bool in_window(const struct mt_flamechart_window *window, const struct mt_phase *phase)
{
    return phase->begin_event <= window->end_event && phase->end_event >= window->begin_event;
}

/* Whether a phase only surrounds the window. The window's own phase is shown, and the step around
 * it is not. */
static bool surrounds(const struct mt_flamechart_window *window, const struct mt_phase *phase)
{
    if (phase == window->zoom)
        return false;
    return (window->zoom || !phase->is_step) && phase->begin_event <= window->begin_event &&
           phase->end_event >= window->end_event;
}

/* Rows belong to one thread: that of the first step, otherwise that of the longest phase. */
static uint16_t thread_of_rows(const struct mt_flamechart_window *window,
                               const struct mt_phase *phases, uint32_t count)
{
    uint64_t longest = 0;
    uint16_t thread = 0;

    if (window->zoom)
        return window->zoom->thread;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t length = phases[i].end_t_ns - phases[i].begin_t_ns;

        if (phases[i].is_plumbing || !in_window(window, &phases[i]))
            continue;
        if (phases[i].is_step)
            return phases[i].thread;
        if (length >= longest) {
            longest = length;
            thread = phases[i].thread;
        }
    }
    return thread;
}

/* Row 0 is for steps; other phases begin in row 1, or below the surrounding one. */
static int row_below(int around, const struct mt_phase *phase)
{
    if (around != NOT_SHOWN)
        return around + 1;
    return phase->is_step ? 0 : 1;
}

static void assign_phase_rows(struct mt_flamechart_builder *builder)
{
    const struct mt_flamechart_window *window = &builder->window;
    uint16_t thread = thread_of_rows(window, builder->phases, builder->phase_count);
    int8_t *around; /* row of the innermost shown phase, possibly itself */

    builder->phase_rows = mt_arena_array(builder->arena, builder->phase_count, sizeof(int8_t));
    around = mt_arena_array(builder->arena, builder->phase_count, sizeof(int8_t));
    builder->chart->frame_row = 2;
    for (uint32_t i = 0; i < builder->phase_count; i++) {
        const struct mt_phase *phase = &builder->phases[i];
        bool has_parent = phase->parent >= 0 && (uint32_t)phase->parent < i;
        int parent_row = has_parent ? around[phase->parent] : NOT_SHOWN;
        int row = row_below(parent_row, phase);
        bool shown = phase->thread == thread && !phase->is_plumbing && in_window(window, phase) &&
                     !surrounds(window, phase) && row < PHASE_ROWS;

        builder->phase_rows[i] = (int8_t)(shown ? row : NOT_SHOWN);
        around[i] = (int8_t)(shown ? row : parent_row);
        if (shown && (uint32_t)row + 2 > builder->chart->frame_row)
            builder->chart->frame_row = (uint32_t)row + 2;
    }
}

void mt_flamechart_builder_new(struct mt_arena *arena, const struct mt_flamechart_window *window,
                               const struct mt_phase *phases, uint32_t phase_count,
                               const struct mt_symbols *symbols, struct mt_flamechart_builder **out)
{
    struct mt_flamechart_builder *builder = mt_arena_alloc(arena, sizeof *builder);
    uint32_t bins = window->bins ? window->bins : DEFAULT_BINS;

    bins = bins < MAX_BINS ? bins : MAX_BINS;
    builder->arena = arena;
    builder->chart = mt_arena_alloc(arena, sizeof *builder->chart);
    builder->window = *window;
    builder->phases = phases;
    builder->phase_count = phase_count;
    builder->symbols = symbols;
    builder->clock_ns = window->begin_t_ns;
    mt_named_frames_init(&builder->named, arena, symbols);
    assign_phase_rows(builder);
    cell_nest_init(&builder->nest, arena, (window->end_t_ns - window->begin_t_ns) / bins,
                   (window->end_event - window->begin_event) / bins);
    mt_level_curve_init(&builder->time_curve, arena, window->begin_t_ns, window->end_t_ns, bins);
    mt_level_curve_init(&builder->event_curve, arena, window->begin_event, window->end_event, bins);
    *out = builder;
}

/* Time never runs backwards, even in damaged phases, and stays in the window. */
static uint64_t advance(struct mt_flamechart_builder *builder, uint64_t t_ns)
{
    t_ns = mt_min_u64(t_ns, builder->window.end_t_ns);
    builder->clock_ns = mt_max_u64(builder->clock_ns, t_ns);
    return builder->clock_ns;
}

static void close_frames(struct mt_flamechart_builder *builder, uint32_t keep, uint64_t t_ns,
                         uint64_t event)
{
    if (builder->in_no_stack) {
        builder->in_no_stack = false;
        cell_nest_close(&builder->nest, t_ns, event);
    }
    for (; builder->path_count > keep; builder->path_count--)
        cell_nest_close(&builder->nest, t_ns, event);
}

static void close_phase(struct mt_flamechart_builder *builder)
{
    const struct mt_phase *phase =
        &builder->phases[builder->open_phases[builder->open_phase_count - 1]];
    uint64_t event = builder->open_ends[builder->open_phase_count - 1];
    uint64_t t_ns = advance(builder, phase->end_t_ns);

    close_frames(builder, 0, t_ns, event);
    builder->open_phase_count--;
    cell_nest_close(&builder->nest, t_ns, event);
}

static void open_phase(struct mt_flamechart_builder *builder, uint32_t index)
{
    const struct mt_phase *phase = &builder->phases[index];
    struct mt_cell cell = {.kind = phase->is_step ? MT_CELL_STEP : MT_CELL_PHASE,
                           .row = (uint32_t)builder->phase_rows[index],
                           .phase = (int32_t)index,
                           .frame = MT_NO_ID,
                           .peak_allocated = builder->allocated};
    uint64_t end = mt_min_u64(phase->end_event, builder->window.end_event);

    if (builder->open_phase_count)
        end = mt_min_u64(end, builder->open_ends[builder->open_phase_count - 1]);
    cell.begin_event = mt_max_u64(phase->begin_event, builder->window.begin_event);
    cell.begin_t_ns = advance(builder, phase->begin_t_ns);
    close_frames(builder, 0, cell.begin_t_ns, cell.begin_event);
    builder->open_phases[builder->open_phase_count] = (int32_t)index;
    builder->open_ends[builder->open_phase_count++] = mt_max_u64(end, cell.begin_event);
    cell_nest_open(&builder->nest, &cell);
}

static void on_state(void *builder, const struct mt_model_state *state)
{
    const struct mt_event *event = state->event;
    uint64_t allocated = state->now->allocated;

    if (event->kind != MT_EVENT_ALLOC && event->kind != MT_EVENT_FREE_REQUESTED)
        return;
    mt_flamechart_builder_add(builder, event, state->phase,
                              (int64_t)(allocated - state->allocated_before), allocated);
}

static enum mt_status begin(struct mt_analysis *analysis, uint32_t slot, struct mt_model_feed *feed)
{
    struct mt_model_window part = mt_model_window(analysis, slot);
    const struct mt_phase *zoom =
        part.phase == MT_NO_PHASE || analysis->report->phases[part.phase].is_step
            ? NULL
            : &analysis->report->phases[part.phase];
    struct mt_flamechart_window window = {
        part.begin_t_ns,         part.end_t_ns, part.begin_event, part.end_event, part.step,
        mt_model_bins(analysis), zoom};
    struct mt_flamechart_builder *builder = NULL;

    mt_flamechart_builder_new(&analysis->report->arena, &window, analysis->report->phases,
                              analysis->report->phase_count, &analysis->source->symbols, &builder);
    *feed = (struct mt_model_feed){.builder = builder, .on_state = on_state};
    return MT_OK;
}

/* The next shown phase, and its first event in the window. */
static bool next_begin(struct mt_flamechart_builder *builder, uint64_t *begin)
{
    while (builder->next_phase < builder->phase_count &&
           builder->phase_rows[builder->next_phase] == NOT_SHOWN)
        builder->next_phase++;
    if (builder->next_phase == builder->phase_count)
        return false;
    *begin =
        mt_max_u64(builder->phases[builder->next_phase].begin_event, builder->window.begin_event);
    return true;
}

/* Damaged input may have siblings that overlap: the later one ends the other. */
static bool is_beside_top(const struct mt_flamechart_builder *builder, uint32_t phase)
{
    int32_t top = builder->open_phases[builder->open_phase_count - 1];

    return builder->phase_rows[phase] <= builder->phase_rows[top];
}

/* Opens and closes the phases between the last event and this one. */
static void pass_phases(struct mt_flamechart_builder *builder, uint64_t event)
{
    while (!false) {
        uint64_t begin = UINT64_MAX, end = UINT64_MAX;
        bool opens = next_begin(builder, &begin) && begin <= event;

        if (builder->open_phase_count)
            end = builder->open_ends[builder->open_phase_count - 1];
        if ((end < event && end <= begin) ||
            (opens && builder->open_phase_count && is_beside_top(builder, builder->next_phase)))
            close_phase(builder);
        else if (opens)
            open_phase(builder, builder->next_phase++);
        else
            break;
    }
}

static void note_common(struct mt_flamechart_builder *builder, uint32_t depth, uint32_t frame_id)
{
    struct common_row *common = &builder->common[depth];

    if (common->varies || frame_id >= builder->symbols->frame_count)
        return;
    const struct mt_frame *frame = &builder->symbols->frames[frame_id];
    if (!common->seen) {
        common->seen = true;
        common->function = frame->function;
        common->file = frame->file;
    }
    common->varies = common->function != frame->function || common->file != frame->file;
}

static int32_t phase_of_cell(const struct mt_flamechart_builder *builder, int32_t phase)
{
    return phase >= 0 && (uint32_t)phase < builder->phase_count ? phase : MT_NO_PHASE;
}

static void enter_no_stack(struct mt_flamechart_builder *builder, const struct mt_event *event,
                           int32_t phase, uint64_t t_ns)
{
    struct mt_cell cell = {.kind = MT_CELL_NO_STACK,
                           .row = builder->chart->frame_row - 1,
                           .phase = phase_of_cell(builder, phase),
                           .frame = MT_NO_ID,
                           .begin_t_ns = t_ns,
                           .begin_event = event->seq};

    if (builder->in_no_stack)
        return;
    close_frames(builder, 0, t_ns, event->seq);
    builder->in_no_stack = true;
    cell_nest_open(&builder->nest, &cell);
}

static void enter_stack(struct mt_flamechart_builder *builder, const struct mt_event *event,
                        int32_t phase, uint64_t t_ns)
{
    uint32_t frames[MT_NAMED_FRAMES_DEPTH], count, shared = 0;

    mt_named_frames_get(&builder->named, event->stack, frames, &count);
    while (shared < count && shared < builder->path_count &&
           frames[shared] == builder->path[shared])
        shared++;
    if ((shared < builder->path_count || builder->in_no_stack))
        close_frames(builder, shared, t_ns, event->seq);
    for (; shared < count; shared++) {
        struct mt_cell cell = {.kind = MT_CELL_FRAME,
                               .row = builder->chart->frame_row + shared,
                               .phase = phase_of_cell(builder, phase),
                               .frame = frames[shared],
                               .begin_t_ns = t_ns,
                               .begin_event = event->seq};

        note_common(builder, shared, frames[shared]);
        builder->path[builder->path_count++] = frames[shared];
        cell_nest_open(&builder->nest, &cell);
    }
}

/* If frees have no stacks, one between two calls belongs to the earlier call. */
static void enter(struct mt_flamechart_builder *builder, const struct mt_event *event,
                  int32_t phase, uint64_t t_ns)
{
    if (event->stack < builder->symbols->stack_count) {
        enter_stack(builder, event, phase, t_ns);
        return;
    }
    if (event->kind == MT_EVENT_ALLOC || builder->frees_have_stacks) {
        enter_no_stack(builder, event, phase, t_ns);
        return;
    }
}

static void note_level(struct mt_flamechart_builder *builder, uint64_t t_ns, uint64_t event,
                       uint64_t allocated)
{
    if (allocated > builder->chart->peak_allocated) {
        builder->chart->peak_allocated = allocated;
        builder->chart->peak_t_ns = t_ns;
        builder->chart->peak_event = event;
    }
    mt_level_curve_add(&builder->time_curve, t_ns, t_ns, event, allocated);
    mt_level_curve_add(&builder->event_curve, event, t_ns, event, allocated);
}

static void start(struct mt_flamechart_builder *builder, uint64_t allocated)
{
    builder->started = true;
    builder->allocated = builder->chart->enter_allocated = allocated;
    note_level(builder, builder->window.begin_t_ns, builder->window.begin_event, allocated);
    if (builder->chart->peak_t_ns == 0) {
        builder->chart->peak_t_ns = builder->window.begin_t_ns;
        builder->chart->peak_event = builder->window.begin_event;
    }
}

void mt_flamechart_builder_add(struct mt_flamechart_builder *builder, const struct mt_event *event,
                               int32_t phase, int64_t delta_allocated, uint64_t allocated_after)
{
    if (event->kind == MT_EVENT_FREE_REQUESTED && event->stack != MT_NO_ID)
        builder->frees_have_stacks = true;
    if (event->seq < builder->window.begin_event) {
        builder->allocated = allocated_after;
        return;
    }
    if (event->seq > builder->window.end_event)
        return;
    if (!builder->started)
        start(builder, allocated_after - (uint64_t)delta_allocated);
    pass_phases(builder, event->seq);
    uint64_t t_ns = advance(builder, event->t_ns);
    enter(builder, event, phase, t_ns);
    int64_t change = (int64_t)(allocated_after - builder->allocated);
    builder->allocated = allocated_after;
    builder->chart->events++;
    cell_nest_change(&builder->nest, change, allocated_after);
    note_level(builder, t_ns, event->seq, allocated_after);
}

static void close_all(struct mt_flamechart_builder *builder)
{
    pass_phases(builder, builder->window.end_event);
    while (builder->open_phase_count)
        close_phase(builder);
    close_frames(builder, 0, advance(builder, builder->window.end_t_ns), builder->window.end_event);
}

/* The innermost row of call stacks is always kept. */
static uint32_t common_rows(const struct mt_flamechart_builder *builder)
{
    uint32_t rows = 0;

    while (rows + 1 < MT_NAMED_FRAMES_DEPTH && builder->common[rows + 1].seen &&
           !builder->common[rows].varies)
        rows++;
    return rows;
}

void mt_flamechart_builder_finish(struct mt_flamechart_builder *builder, struct mt_flamechart **out)
{
    struct mt_flamechart *chart = builder->chart;

    if (!builder->started)
        start(builder, builder->allocated);
    close_all(builder);
    cell_nest_finish(&builder->nest, &chart->cells, &chart->cell_count);
    chart->begin_t_ns = builder->window.begin_t_ns;
    chart->end_t_ns = builder->window.end_t_ns;
    chart->begin_event = builder->window.begin_event;
    chart->end_event = builder->window.end_event;
    chart->step = builder->window.step;
    chart->phase =
        builder->window.zoom ? (int32_t)(builder->window.zoom - builder->phases) : MT_NO_PHASE;
    chart->row_count = chart->cell_count ? chart->cells[chart->cell_count - 1].row + 1 : 0;
    chart->common_rows = common_rows(builder);
    chart->curve = builder->time_curve.bins;
    chart->curve_count = builder->time_curve.count;
    chart->event_curve = builder->event_curve.bins;
    chart->event_curve_count = builder->event_curve.count;
    chart->exit_allocated = builder->allocated;
    *out = chart;
}

/* The flame chart, fed by the requests and frees of its window. */

static enum mt_status finish(struct mt_analysis *analysis, void *builder,
                             struct mt_device_report *out)
{
    (void)analysis;
    mt_flamechart_builder_finish(builder, &out->flamechart);
    return MT_OK;
}

const struct mt_model_ops mt_model_flamechart = {.begin = begin, .finish = finish};
