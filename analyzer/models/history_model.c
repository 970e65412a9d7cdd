/* Between two instants only differences are kept (history.h). A new maximum settles the later
 * changes, and so does each event of a window. A finished column writes the settled changes, and
 * the later ones are the state at the start of the next column. Every change is moved at most
 * twice, so an event costs O(1). */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "grow.h"
#include "history.h"
#include "phase.h"
#include "process_memory.h"
#include "util.h"

/* Sums for each group of a history during construction. */

struct history_delta {
    int64_t bytes, blocks;
};

struct history_tally {
    int64_t told_bytes;           /* at the instant of the last finished column */
    struct history_delta settled; /* from there to the fullest instant of this column so far */
    struct history_delta later;   /* since that instant */
    bool in_settled, in_later;    /* listed below */
};

struct history_list {
    uint32_t *groups;
    uint32_t count;
    size_t capacity;
};

/* Zeroed memory has no groups. */
struct history_sums {
    struct history_tally *tallies; /* by group */
    size_t capacity;
    struct history_list settled, later; /* groups with any */
};

static void list_add(struct history_list *list, uint32_t group)
{
    mt_grow_to(&list->groups, &list->capacity, list->count + (size_t)1, sizeof *list->groups);
    list->groups[list->count++] = group;
}

static void add_delta(struct history_delta *sum, struct history_delta delta)
{
    sum->bytes += delta.bytes;
    sum->blocks += delta.blocks;
}

/* Adds to the later changes. */
static void history_sums_add(struct history_sums *sums, uint32_t group, struct history_delta delta)
{
    struct history_tally *tally = &sums->tallies[group];

    add_delta(&tally->later, delta);
    if (tally->in_later)
        return;
    tally->in_later = true;
    list_add(&sums->later, group);
}

/* The fullest instant is now: settles the later changes. */
static void history_sums_settle(struct history_sums *sums)
{
    for (uint32_t i = 0; i < sums->later.count; i++) {
        struct history_tally *tally = &sums->tallies[sums->later.groups[i]];

        add_delta(&tally->settled, tally->later);
        tally->later = (struct history_delta){0, 0};
        tally->in_later = false;
        if (!tally->in_settled)
            list_add(&sums->settled, sums->later.groups[i]);
        tally->in_settled = true;
    }
    sums->later.count = 0;
}

/* Gives the groups new numbers: group i of `old_count` becomes into[i], below `new_count`. Adds up
 * the groups that get one number. */
static void history_sums_renumber(struct history_sums *sums, const uint32_t *into,
                                  uint32_t old_count, uint32_t new_count)
{
    struct history_tally *fresh = mt_memory_zeroed(sums->capacity + 1, sizeof *fresh);

    sums->settled.count = sums->later.count = 0;
    for (uint32_t i = 0; i < old_count; i++) {
        const struct history_tally *old = &sums->tallies[i];
        struct history_tally *tally = &fresh[into[i]];

        tally->told_bytes += old->told_bytes;
        add_delta(&tally->settled, old->settled);
        add_delta(&tally->later, old->later);
        tally->in_settled |= old->in_settled;
        tally->in_later |= old->in_later;
    }
    free(sums->tallies);
    sums->tallies = fresh;
    for (uint32_t i = 0; i < new_count; i++) {
        if (fresh[i].in_settled)
            list_add(&sums->settled, i);
        if (fresh[i].in_later)
            list_add(&sums->later, i);
    }
}

static void history_sums_release(struct history_sums *sums)
{
    free(sums->tallies);
    free(sums->settled.groups);
    free(sums->later.groups);
    memset(sums, 0, sizeof *sums);
}

/* During construction; beyond this, small groups are merged. */
#define MAX_GROUPS  16384u
#define MAX_CHANGES (1u << 19)

/* The event whose state is not known yet. */
struct pending {
    uint32_t group;
    struct history_delta delta;
};

/* Where a column of equal time, or of equally many events, starts. */
struct start {
    uint64_t t_ns, event;
};

struct mt_history_builder {
    struct mt_history *history; /* its arrays are added at the end */
    struct start starts[MT_HISTORY_COLUMNS];
    uint32_t next_start; /* the first one that has not passed */
    struct mt_history_window windows[4];
    uint32_t window_count;
    uint32_t next_cut;                 /* the first one that has not passed */
    struct mt_history_column *columns; /* the last one is being filled */
    uint32_t column_count;
    size_t column_capacity;
    struct mt_history_groups groups;
    struct history_sums sums; /* of the groups */
    struct mt_strings words;
    uint32_t *blocks; /* number of a block -> group, MT_MAP_NONE = none */
    size_t block_capacity;
    struct pending pending[8];
    unsigned pending_count;
    struct mt_history_change *changes;
    uint32_t change_count;
    size_t change_capacity;
    struct mt_history_column now;
    bool begun;
    uint64_t small_bytes; /* groups with less were merged */
};

const char *mt_history_word(struct mt_history_builder *builder, const char *text)
{
    uint32_t id, known = builder->words.count;
    size_t length = strlen(text);

    mt_strings_put(&builder->words, text, length, &id);
    if (id == known) /* the arena outlives the builder */
        builder->words.texts[id] = mt_arena_text(builder->history->arena, text, length);
    return builder->words.texts[id];
}

static void take_pending(struct mt_history_builder *builder)
{
    for (unsigned i = 0; i < builder->pending_count; i++)
        history_sums_add(&builder->sums, builder->pending[i].group, builder->pending[i].delta);
    builder->pending_count = 0;
}

static void renumber_blocks(struct mt_history_builder *builder, const uint32_t *into)
{
    for (uint32_t i = 0; i < builder->block_capacity; i++)
        if (builder->blocks[i] != MT_MAP_NONE)
            builder->blocks[i] = into[builder->blocks[i]];
    for (unsigned i = 0; i < builder->pending_count; i++)
        builder->pending[i].group = into[builder->pending[i].group];
}

static void merge_small(struct mt_history_builder *builder)
{
    struct mt_history *history = builder->history;
    uint32_t *into = NULL, old_count = builder->groups.count;

    builder->small_bytes = builder->small_bytes ? builder->small_bytes * 2 : 512;
    mt_history_groups_merge(&builder->groups, history->symbols, builder->small_bytes, &into);
    history_sums_renumber(&builder->sums, into, old_count, builder->groups.count);
    renumber_blocks(builder, into);
    mt_history_renumber(builder->columns, builder->column_count, builder->changes,
                        &builder->change_count, into, builder->groups.count);
    free(into);
}

/* A group that was seen only once does not count as small yet. */
static void note_most(struct mt_history_builder *builder)
{
    for (uint32_t i = 0; i < builder->groups.count; i++) {
        const struct history_tally *tally = &builder->sums.tallies[i];
        int64_t now = tally->told_bytes + tally->settled.bytes + tally->later.bytes;
        struct mt_history_group *group = &builder->groups.list[i];

        if (now > 0)
            group->most_bytes = mt_max_u64(group->most_bytes, (uint64_t)now);
    }
}

static void make_room(struct mt_history_builder *builder)
{
    if (builder->groups.count < MAX_GROUPS && builder->change_count < MAX_CHANGES)
        return;
    note_most(builder);
    while ((builder->groups.count > MAX_GROUPS / 2 || builder->change_count > MAX_CHANGES / 2) &&
           builder->small_bytes <= UINT64_MAX / 2)
        merge_small(builder);
}

static void tell_change(struct mt_history_builder *builder, uint32_t group,
                        struct history_delta delta)
{
    mt_grow_to(&builder->changes, &builder->change_capacity, builder->change_count + (size_t)1,
               sizeof *builder->changes);
    builder->changes[builder->change_count++] =
        (struct mt_history_change){group, delta.bytes, delta.blocks};
}

static void tell_settled(struct mt_history_builder *builder)
{
    for (uint32_t i = 0; i < builder->sums.settled.count; i++) {
        uint32_t index = builder->sums.settled.groups[i];
        struct history_tally *tally = &builder->sums.tallies[index];
        struct mt_history_group *group = &builder->groups.list[index];

        tally->told_bytes += tally->settled.bytes;
        if (tally->told_bytes > 0)
            group->most_bytes = mt_max_u64(group->most_bytes, (uint64_t)tally->told_bytes);
        if (tally->settled.bytes || tally->settled.blocks)
            tell_change(builder, index, tally->settled);
        tally->settled = (struct history_delta){0, 0};
        tally->in_settled = false;
    }
    builder->sums.settled.count = 0;
}

/* Opens a column that starts before an event: its start state is one of its instants. */
static void open_column(struct mt_history_builder *builder, struct start start)
{
    struct mt_history_column opened = builder->now;

    mt_grow_to(&builder->columns, &builder->column_capacity, builder->column_count + (size_t)1,
               sizeof *builder->columns);
    opened.is_exact = opened.is_cut = false;
    opened.begin_t_ns = start.t_ns;
    opened.begin_event = start.event;
    opened.first_change = builder->change_count;
    builder->columns[builder->column_count++] = opened;
    history_sums_settle(&builder->sums);
}

static void close_column(struct mt_history_builder *builder)
{
    struct mt_history_column *column = &builder->columns[builder->column_count - 1];

    column->first_change = builder->change_count;
    tell_settled(builder);
    column->change_count = builder->change_count - column->first_change;
    make_room(builder);
}

static bool is_in_window(const struct mt_history_builder *builder, uint64_t event)
{
    for (uint32_t i = 0; i < builder->window_count; i++)
        if (event >= builder->windows[i].first && event <= builder->windows[i].last)
            return true;
    return false;
}

/* Makes the state now the instant of a column. */
static void cut(struct mt_history_builder *builder)
{
    if (builder->columns[builder->column_count - 1].event != builder->now.event) {
        close_column(builder);
        open_column(builder, (struct start){builder->now.t_ns, builder->now.event + 1});
    }
    builder->columns[builder->column_count - 1].is_cut = true;
}

/* Returns true if there is a cut between the previous event and this one. */
static bool pass_cuts(struct mt_history_builder *builder, uint64_t event)
{
    const struct mt_history *history = builder->history;
    const uint32_t before = builder->next_cut;

    while (builder->next_cut < history->cut_count && history->cuts[builder->next_cut] < event)
        builder->next_cut++;
    if (builder->next_cut == before)
        return false;
    cut(builder);
    return true;
}

/* The last start that has passed when the event happens; false: none since the last call. */
static bool pass_starts(struct mt_history_builder *builder, uint64_t t_ns, uint64_t event,
                        struct start *first, struct start *last)
{
    const uint32_t before = builder->next_start;

    while (builder->next_start < MT_HISTORY_COLUMNS) {
        const struct start *next = &builder->starts[builder->next_start];

        if (builder->history->by_event ? event < next->event : t_ns < next->t_ns)
            break;
        builder->next_start++;
    }
    if (builder->next_start == before)
        return false;
    *first = builder->starts[before];
    *last = builder->starts[builder->next_start - 1];
    return true;
}

/* Opens the column of an event. Starts that pass without events share one column; between two
 * events of a window they have none. The state before the first event keeps its own column, so that
 * blocks in it are no changes of the run; nothing precedes event 0. */
static void advance(struct mt_history_builder *builder, uint64_t t_ns, uint64_t event,
                    bool is_first)
{
    struct start here = {t_ns, event}, first = here, last = here;
    bool is_exact = is_in_window(builder, event), was_exact = builder->now.is_exact;
    bool is_cut = pass_cuts(builder, event);

    /* changes of the events before a window are not those of its first event */
    if (is_exact && !was_exact && !is_first)
        cut(builder);
    bool passed = pass_starts(builder, t_ns, event, &first, &last) && !(is_exact && was_exact);
    if (passed && !builder->history->by_event)
        first.event = last.event = event;
    if (passed && builder->history->by_event)
        first.t_ns = last.t_ns = t_ns;
    if (passed && memcmp(&first, &last, sizeof first) != 0) {
        close_column(builder);
        open_column(builder, first);
    }
    if ((is_exact || was_exact || passed || is_cut || is_first) && event > 0) {
        close_column(builder);
        open_column(builder, is_exact || !passed ? here : last);
    }
    builder->now.is_exact = is_exact;
}

/* Time at which this much of the busy time has passed. */
static uint64_t time_at(const struct mt_timeline *axis, uint64_t busy_ns)
{
    for (uint32_t i = 0; i < axis->span_count; i++) {
        uint64_t length = axis->spans[i].end_t_ns - axis->spans[i].begin_t_ns;

        if (busy_ns < length || i + 1 == axis->span_count)
            return axis->spans[i].begin_t_ns + mt_min_u64(busy_ns, length);
        busy_ns -= length;
    }
    return 0;
}

/* i/columns of the whole. */
static uint64_t part(uint64_t whole, uint32_t i)
{
    return whole / MT_HISTORY_COLUMNS * i + whole % MT_HISTORY_COLUMNS * i / MT_HISTORY_COLUMNS;
}

static void make_starts(struct mt_history_builder *builder)
{
    const struct mt_timeline *axis = &builder->history->axis;

    for (uint32_t i = 0; i < MT_HISTORY_COLUMNS; i++) {
        builder->starts[i].t_ns = time_at(axis, part(axis->busy_ns, i));
        builder->starts[i].event =
            axis->first_event + part(axis->last_event - axis->first_event + 1, i);
    }
}

void mt_history_builder_new(struct mt_arena *arena, const struct mt_symbols *symbols,
                            const struct mt_timeline *axis, bool by_event,
                            const struct mt_bytes *start, struct mt_history_builder **made)
{
    struct mt_history_builder *builder = mt_memory_zeroed(1, sizeof *builder);

    *made = builder;
    builder->history = mt_arena_alloc(arena, sizeof *builder->history);
    builder->history->arena = arena;
    builder->history->symbols = symbols;
    builder->history->axis = *axis;
    builder->history->by_event = by_event;
    make_starts(builder);
    builder->now.bytes = *start;
    builder->now.bytes.allocated = 0; /* until its blocks are passed in */
    builder->now.event = axis->first_event ? axis->first_event - 1 : 0;
    builder->now.t_ns = axis->span_count ? axis->spans[0].begin_t_ns : 0;
    builder->now.phase = MT_NO_PHASE;
}

void mt_history_builder_release(struct mt_history_builder *builder)
{
    if (!builder)
        return;
    mt_history_groups_release(&builder->groups);
    mt_strings_release(&builder->words);
    free(builder->blocks);
    history_sums_release(&builder->sums);
    free(builder->changes);
    free(builder->columns);
    free(builder);
}

void mt_history_set_cuts(struct mt_history_builder *builder, uint64_t *events, uint32_t count)
{
    builder->history->cuts = events;
    builder->history->cut_count = count;
}

void mt_history_add_window(struct mt_history_builder *builder,
                           const struct mt_history_window *window)
{
    MT_ASSERT(builder->window_count < MT_ARRAY_LEN(builder->windows));
    builder->windows[builder->window_count++] = *window;
}

static void room_for_block(struct mt_history_builder *builder, uint32_t block)
{
    const size_t old = builder->block_capacity;

    mt_grow_to(&builder->blocks, &builder->block_capacity, block + (size_t)1,
               sizeof *builder->blocks);
    for (size_t i = old; i < builder->block_capacity; i++)
        builder->blocks[i] = MT_MAP_NONE;
}

/* Until its state is known, an event may belong to a column that is not open yet. The state at the
 * start of the trace precedes all columns. */
static void note(struct mt_history_builder *builder, uint32_t group, struct history_delta delta,
                 bool at_start)
{
    if (at_start) {
        builder->now.bytes.allocated += (uint64_t)delta.bytes;
        history_sums_add(&builder->sums, group, delta);
        return;
    }
    if (builder->pending_count == MT_ARRAY_LEN(builder->pending))
        take_pending(builder);
    builder->pending[builder->pending_count++] = (struct pending){group, delta};
}

void mt_history_birth(struct mt_history_builder *builder, uint32_t block,
                      const struct mt_history_group *group, uint64_t bytes, bool at_start)
{
    struct mt_history_group like;
    uint32_t index;

    /* After a merge of groups, new sizes of small blocks would not end. */
    if (group->detail == MT_HISTORY_BY_SIZE && group->block_bytes < builder->small_bytes) {
        like = *group;
        like.detail = MT_HISTORY_BY_STACK;
        like.block_bytes = 0;
        group = &like;
    }
    mt_history_groups_find(&builder->groups, group, &index);
    mt_grow_zeroed_to(&builder->sums.tallies, &builder->sums.capacity, builder->groups.count,
                      sizeof *builder->sums.tallies);
    room_for_block(builder, block);
    builder->blocks[block] = index;
    note(builder, index, (struct history_delta){(int64_t)bytes, 1}, at_start);
    make_room(builder);
}

void mt_history_death(struct mt_history_builder *builder, uint32_t block, uint64_t bytes,
                      bool at_start)
{
    uint32_t group = block < builder->block_capacity ? builder->blocks[block] : MT_MAP_NONE;

    if (group == MT_MAP_NONE)
        return;
    builder->blocks[block] = MT_MAP_NONE;
    note(builder, group, (struct history_delta){-(int64_t)bytes, -1}, at_start);
}

/* Opens the first column. It begins with the axis. */
static void begin(struct mt_history_builder *builder)
{
    builder->begun = true;
    open_column(builder, builder->starts[0]);
    builder->next_start = 1;
}

void mt_history_state(struct mt_history_builder *builder, uint64_t t_ns, uint64_t event,
                      int32_t phase, const struct mt_bytes *bytes)
{
    const bool is_first = !builder->begun;

    if (is_first)
        begin(builder);
    advance(builder, t_ns, event, is_first);
    take_pending(builder);
    builder->now.t_ns = t_ns;
    builder->now.event = event;
    builder->now.phase = phase;
    builder->now.bytes = *bytes;
    struct mt_history_column *column = &builder->columns[builder->column_count - 1];
    column->is_exact = builder->now.is_exact;
    if (!column->is_exact && bytes->allocated <= column->bytes.allocated)
        return;
    column->t_ns = t_ns;
    column->event = event;
    column->phase = phase;
    column->bytes = *bytes;
    history_sums_settle(&builder->sums);
}

void mt_history_finish(struct mt_history_builder *builder, struct mt_history **history)
{
    struct mt_history *made = builder->history;
    uint32_t *same;

    if (!builder->begun) {
        take_pending(builder);
        begin(builder);
    }
    if (builder->next_cut < made->cut_count)
        cut(builder);
    close_column(builder);
    made->column_count = builder->column_count;
    made->columns = mt_arena_array(made->arena, made->column_count, sizeof *made->columns);
    memcpy(made->columns, builder->columns, made->column_count * sizeof *made->columns);
    made->groups =
        mt_arena_array(made->arena, (size_t)builder->groups.count + 1, sizeof *made->groups);
    made->changes =
        mt_arena_array(made->arena, (size_t)builder->change_count + 1, sizeof *made->changes);
    same = mt_memory_zeroed((size_t)builder->groups.count + 1, sizeof *same);
    made->group_count = builder->groups.count;
    made->change_count = builder->change_count;
    made->small_bytes = builder->small_bytes;
    for (uint32_t i = 0; i < made->group_count; i++) {
        made->groups[i] = builder->groups.list[i];
        same[i] = i;
    }
    if (made->change_count)
        memcpy(made->changes, builder->changes, made->change_count * sizeof *made->changes);
    /* Changes are in order of appearance; from here they are sorted by group. */
    mt_history_renumber(made->columns, made->column_count, made->changes, &made->change_count, same,
                        made->group_count);
    free(same);
    *history = made;
}
