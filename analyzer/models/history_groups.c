#include "grow.h"
#include "history.h"
#include "process_memory.h"
#include "sorted.h"
#include "util.h"

#include <stdlib.h>
#include <string.h>

static bool is_same(const struct mt_history_group *a, const struct mt_history_group *b)
{
    if (a->detail != b->detail || a->role != b->role)
        return false;
    if (a->detail == MT_HISTORY_BY_ROLE)
        return true;
    if (a->stream != b->stream || a->pool != b->pool || a->tag != b->tag)
        return false;
    if (a->site != b->site || a->phase != b->phase || a->is_initial != b->is_initial ||
        a->is_backward != b->is_backward)
        return false;
    if (a->detail == MT_HISTORY_BY_SITE)
        return true;
    return a->stack == b->stack && a->block_bytes == b->block_bytes;
}

static uint64_t hash(const struct mt_history_group *group)
{
    uint64_t hash = mt_hash_u64((uint64_t)group->detail << 8 | (uint64_t)group->role);

    if (group->detail == MT_HISTORY_BY_ROLE)
        return hash;
    hash = mt_hash_u64(hash ^ (uintptr_t)group->site);
    hash = mt_hash_u64(hash ^ (uintptr_t)group->stream);
    hash = mt_hash_u64(mt_hash_u64(hash ^ (uintptr_t)group->pool) ^ (uintptr_t)group->tag);
    hash = mt_hash_u64(hash ^ (uintptr_t)group->phase ^ (group->is_initial ? 1u : 0u));
    if (group->detail == MT_HISTORY_BY_SITE)
        return hash;
    return mt_hash_u64(mt_hash_u64(hash ^ group->stack) ^ group->block_bytes);
}

static void append(struct mt_history_groups *groups, const struct mt_history_group *like)
{
    mt_grow_to(&groups->list, &groups->capacity, groups->count + (size_t)1, sizeof *groups->list);
    groups->list[groups->count++] = *like;
}

/* Sets *index, or *key to the first free one. */
static bool look_up(const struct mt_history_groups *groups, const struct mt_history_group *like,
                    uint32_t *index, uint64_t *key)
{
    for (*key = hash(like);; ++*key) {
        *index = mt_map_get(&groups->ids, *key);
        if (*index == MT_MAP_NONE)
            return false;
        if (is_same(&groups->list[*index], like))
            return true;
    }
}

void mt_history_groups_find(struct mt_history_groups *groups, const struct mt_history_group *like,
                            uint32_t *index)
{
    uint32_t *recent =
        &groups->recent[(like->stack + like->block_bytes / 512) % MT_ARRAY_LEN(groups->recent)];
    uint64_t key;

    *index = *recent;
    if (*recent < groups->count && is_same(&groups->list[*recent], like))
        return;
    if (look_up(groups, like, index, &key)) {
        *recent = *index;
        return;
    }
    *recent = *index = groups->count;
    append(groups, like);
    groups->list[*index].most_bytes = 0;
    mt_map_put(&groups->ids, key, *index);
}

void mt_history_groups_release(struct mt_history_groups *groups)
{
    free(groups->list);
    mt_map_release(&groups->ids);
    memset(groups, 0, sizeof *groups);
}

/* The common caller of both stacks. */
static uint32_t common_stack(const struct mt_symbols *symbols, uint32_t a, uint32_t b)
{
    while (a != b) {
        if (a >= symbols->stack_count || b >= symbols->stack_count)
            return MT_NO_ID;
        if (symbols->stacks[a].depth >= symbols->stacks[b].depth)
            a = symbols->stacks[a].parent;
        else
            b = symbols->stacks[b].parent;
    }
    return a;
}

/* The same group, one degree coarser. */
static struct mt_history_group coarser(const struct mt_history_group *group)
{
    struct mt_history_group next = *group;

    next.block_bytes = 0;
    if (group->detail == MT_HISTORY_BY_SIZE) {
        next.detail = MT_HISTORY_BY_STACK;
    } else if (group->detail == MT_HISTORY_BY_STACK) {
        next.detail = MT_HISTORY_BY_SITE;
    } else {
        next.detail = MT_HISTORY_BY_ROLE;
        next.site = next.stream = next.pool = next.tag = "";
        next.phase = NULL;
        next.is_initial = next.is_backward = false;
    }
    return next;
}

static void merge_one(struct mt_history_groups *groups, const struct mt_symbols *symbols,
                      uint32_t *into, uint32_t index)
{
    struct mt_history_group like = coarser(&groups->list[index]);
    uint32_t found, count = groups->count;

    mt_history_groups_find(groups, &like, &found);
    if (groups->count > count)
        into[found] = found;
    while (into[found] != found)
        found = into[found];
    struct mt_history_group *parent = &groups->list[found];
    parent->stack = common_stack(symbols, parent->stack, like.stack);
    parent->most_bytes += groups->list[index].most_bytes;
    into[index] = found;
}

/* Groups that were not merged get the numbers 0, 1, ...; the others get the number of their new
 * group. */
static void renumber(const struct mt_history_groups *groups, uint32_t *into, uint32_t *numbers)
{
    uint32_t next = 0;

    for (uint32_t i = 0; i < groups->count; i++)
        if (into[i] == i)
            numbers[i] = next++;
    for (uint32_t i = 0; i < groups->count; i++) {
        uint32_t end = i;

        while (into[end] != end)
            end = into[end];
        numbers[i] = numbers[end];
    }
}

static void rebuild(struct mt_history_groups *groups, const uint32_t *into)
{
    struct mt_history_groups kept = {0};
    uint32_t index;

    for (uint32_t i = 0; i < groups->count; i++) {
        if (into[i] != i)
            continue;
        mt_history_groups_find(&kept, &groups->list[i], &index);
        kept.list[index].most_bytes = groups->list[i].most_bytes;
    }
    mt_history_groups_release(groups);
    *groups = kept;
}

void mt_history_groups_merge(struct mt_history_groups *groups, const struct mt_symbols *symbols,
                             uint64_t small_bytes, uint32_t **numbers)
{
    /* A group makes at most one for each coarser degree. */
    size_t most = 4 * (size_t)groups->count + 1;
    uint32_t *into = mt_memory_new(most * sizeof *into);

    *numbers = mt_memory_new(most * sizeof **numbers);
    for (uint32_t i = 0; i < groups->count; i++)
        into[i] = i;
    /* Coarser groups are appended, and then also examined. */
    for (uint32_t i = 0; i < groups->count; i++)
        if (groups->list[i].detail != MT_HISTORY_BY_ROLE && into[i] == i &&
            groups->list[i].most_bytes < small_bytes)
            merge_one(groups, symbols, into, i);
    renumber(groups, into, *numbers);
    rebuild(groups, into);
    free(into);
}

struct sums {
    int64_t *bytes, *blocks;
    uint32_t *touched;
    bool *is_touched;
    uint32_t touched_count;
};

/* Sums the changes of a column. */
static void add_up(struct sums *sums, const struct mt_history_change *changes, uint32_t count,
                   const uint32_t *into)
{
    sums->touched_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t group = into[changes[i].group];

        if (!sums->is_touched[group])
            sums->touched[sums->touched_count++] = group;
        sums->is_touched[group] = true;
        sums->bytes[group] += changes[i].bytes;
        sums->blocks[group] += changes[i].blocks;
    }
    if (sums->touched_count)
        qsort(sums->touched, sums->touched_count, sizeof *sums->touched, mt_ascending_u32);
}

/* Writes the sums that are not 0, and clears them. */
static uint32_t tell(struct sums *sums, struct mt_history_change *changes)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < sums->touched_count; i++) {
        uint32_t group = sums->touched[i];

        if (sums->bytes[group] || sums->blocks[group])
            changes[count++] =
                (struct mt_history_change){group, sums->bytes[group], sums->blocks[group]};
        sums->bytes[group] = sums->blocks[group] = 0;
        sums->is_touched[group] = false;
    }
    return count;
}

void mt_history_renumber(struct mt_history_column *columns, uint32_t column_count,
                         struct mt_history_change *changes, uint32_t *change_count,
                         const uint32_t *into, uint32_t group_count)
{
    size_t room = (size_t)group_count + 1;
    struct sums sums = {mt_memory_zeroed(room, sizeof *sums.bytes),
                        mt_memory_zeroed(room, sizeof *sums.blocks),
                        mt_memory_zeroed(room, sizeof *sums.touched),
                        mt_memory_zeroed(room, sizeof *sums.is_touched), 0};
    uint32_t kept = 0;

    for (uint32_t i = 0; i < column_count; i++) {
        struct mt_history_column *column = &columns[i];

        add_up(&sums, &changes[column->first_change], column->change_count, into);
        column->first_change = kept;
        column->change_count = tell(&sums, &changes[kept]);
        kept += column->change_count;
    }
    *change_count = kept;
    free(sums.bytes);
    free(sums.blocks);
    free(sums.touched);
    free(sums.is_touched);
}

static void reduce_once(struct mt_history *history, struct mt_history_groups *groups)
{
    uint32_t *into = NULL;

    history->small_bytes = history->small_bytes ? history->small_bytes * 2 : 512;
    mt_history_groups_merge(groups, history->symbols, history->small_bytes, &into);
    mt_history_renumber(history->columns, history->column_count, history->changes,
                        &history->change_count, into, groups->count);
    free(into);
}

void mt_history_reduce(struct mt_history *history, uint32_t most_groups, uint32_t most_changes)
{
    struct mt_history_groups groups = {0};
    uint32_t index;

    if (history->group_count <= most_groups && history->change_count <= most_changes)
        return;
    for (uint32_t i = 0; i < history->group_count; i++) {
        mt_history_groups_find(&groups, &history->groups[i], &index);
        groups.list[index].most_bytes = history->groups[i].most_bytes;
    }
    while ((groups.count > most_groups || history->change_count > most_changes) &&
           history->small_bytes <= UINT64_MAX / 2)
        reduce_once(history, &groups);
    history->group_count = groups.count;
    for (uint32_t i = 0; i < groups.count; i++)
        history->groups[i] = groups.list[i];
    mt_history_groups_release(&groups);
}

void mt_history_group_blocks(const struct mt_history *history, uint32_t count, uint32_t *numbers)
{
    struct mt_history_groups groups = {0};

    uint32_t index;
    uint64_t key;

    for (uint32_t i = 0; i < history->group_count; i++)
        mt_history_groups_find(&groups, &history->groups[i], &index);
    for (uint32_t i = 0; i < count; i++) {
        struct mt_history_group like = history->blocks[i].group;

        while (!look_up(&groups, &like, &numbers[i], &key) && like.detail != MT_HISTORY_BY_ROLE)
            like = coarser(&like);
    }
    mt_history_groups_release(&groups);
}

enum { MERGED_EVENTS = 16 };

/* Columns that become one. */
struct merged {
    struct mt_history_column column; /* with the fullest instant so far */
    uint32_t count, end_change;      /* the end of the changes up to that instant */
};

static void merge_column(struct merged *merged, const struct mt_history_column *column)
{
    const uint64_t begin_t_ns = merged->column.begin_t_ns, begin = merged->column.begin_event;

    if (merged->count++ && column->bytes.allocated <= merged->column.bytes.allocated)
        return;
    merged->column = *column;
    merged->end_change = column->first_change + column->change_count;
    if (merged->count == 1)
        return;
    merged->column.begin_t_ns = begin_t_ns;
    merged->column.begin_event = begin;
}

/* Changes behind the fullest instant belong to the next column, which is then not exact. */
static void put_merged(struct mt_history *history, struct merged *merged, uint32_t *told)
{
    struct mt_history_column *column = &history->columns[history->column_count++];

    *column = merged->column;
    column->is_exact &= merged->count == 1 && column->first_change == *told;
    column->first_change = *told;
    column->change_count = merged->end_change - *told;
    *told = merged->end_change;
    merged->count = 0;
}

static uint32_t fullest_column(const struct mt_history *history)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < history->column_count; i++)
        if (history->columns[i].bytes.allocated > history->columns[best].bytes.allocated)
            best = i;
    return best;
}

void mt_history_shorten(struct mt_history *history, uint32_t most)
{
    const uint32_t peak = fullest_column(history), count = history->column_count;
    const uint32_t before = (uint32_t)((uint64_t)most * 2 / 3);
    const uint32_t first = peak > before ? peak - before : 0;
    uint32_t *same = mt_memory_new(((size_t)history->group_count + 1) * sizeof *same), told = 0;
    struct merged merged = {.count = 0};

    history->column_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct mt_history_column column = history->columns[i];
        bool is_far = column.is_exact && !column.is_cut && (i < first || i - first >= most);

        if (merged.count && (!is_far || merged.count == MERGED_EVENTS))
            put_merged(history, &merged, &told);
        merge_column(&merged, &column);
        if (!is_far)
            put_merged(history, &merged, &told);
    }
    if (merged.count)
        put_merged(history, &merged, &told);
    for (uint32_t i = 0; i < history->group_count; i++)
        same[i] = i;
    mt_history_renumber(history->columns, history->column_count, history->changes,
                        &history->change_count, same, history->group_count);
    free(same);
}

int64_t mt_history_cut_column(const struct mt_history *history, uint64_t event)
{
    uint32_t first = 0, behind = history->column_count;

    if (!history->cut_count ||
        !bsearch(&event, history->cuts, history->cut_count, sizeof event, mt_ascending_u64))
        return MT_HISTORY_NO_CUT;
    while (first < behind) {
        uint32_t middle = first + (behind - first) / 2;

        if (history->columns[middle].event <= event)
            first = middle + 1;
        else
            behind = middle;
    }
    while (behind && !history->columns[behind - 1].is_cut)
        behind--;
    return (int64_t)behind - 1;
}
