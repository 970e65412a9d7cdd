/* The rows of the table at the selected instant, and the stacks of a row. */
#include <stdlib.h>
#include <string.h>

#include "foreign_text.h"
#include "history.h"
#include "map.h"
#include "site.h"
#include "sorted.h"
#include "units.h"
#include "util.h"
#include "view_parts.h"

enum { MAX_STACKS = 200 };

/* The row of a group's blocks, without their sums. */
static struct mt_view_row row_of(const struct mt_view *view, const struct mt_history_group *group)
{
    return (struct mt_view_row){
        .site = view->by == MT_BY_SITE ? group->site : "",
        .phase = view->by != MT_BY_ROLE && group->phase ? group->phase : "",
        .several_phases = view->by != MT_BY_ROLE && !group->phase,
        .role = view->by == MT_BY_PHASE ? MT_ROLE_OTHER : group->role,
    };
}

MT_DEFINE_ORDER(by_key, struct mt_view_row,
                MT_BY_TEXT(site) || MT_BY_TEXT(phase) || MT_ASCENDING(several_phases) ||
                    MT_ASCENDING(role))
MT_DEFINE_ORDER(by_bytes, struct mt_view_row, MT_DESCENDING(bytes) || MT_THEN(by_key))

static void merge_rows(struct mt_view *view)
{
    uint32_t count = 0;

    qsort(view->rows, view->row_count, sizeof *view->rows, by_key);
    for (uint32_t i = 0; i < view->row_count; i++) {
        if (!count || by_key(&view->rows[i], &view->rows[count - 1]) != 0) {
            view->rows[count++] = view->rows[i];
            continue;
        }
        view->rows[count - 1].bytes += view->rows[i].bytes;
        view->rows[count - 1].blocks += view->rows[i].blocks;
    }
    view->row_count = count;
    qsort(view->rows, count, sizeof *view->rows, by_bytes);
}

void mt_view_fill_rows(struct mt_view *view)
{
    const struct mt_history *history = view->device->history;
    const struct mt_history_column *last = &history->columns[view->selected];
    uint32_t change_count = last->first_change + last->change_count;

    memset(view->sums, 0, history->group_count * sizeof *view->sums);
    for (uint32_t i = 0; i < change_count; i++) {
        view->sums[history->changes[i].group].bytes += history->changes[i].bytes;
        view->sums[history->changes[i].group].blocks += history->changes[i].blocks;
    }
    view->row_count = 0;
    for (uint32_t i = 0; i < history->group_count; i++) {
        struct mt_view_row row = row_of(view, &history->groups[i]);

        row.bytes = (uint64_t)view->sums[i].bytes;
        row.blocks = (uint64_t)view->sums[i].blocks;
        if (row.blocks)
            view->rows[view->row_count++] = row;
    }
    merge_rows(view);
}

static void add_stack(struct mt_buf *out, struct mt_arena *arena, const struct mt_report *report,
                      const struct mt_history_group *group)
{
    const struct mt_symbols *symbols = report->symbols;

    if (group->stack == MT_NO_ID)
        mt_buf_printf(out, "    %s\n",
                      group->detail > MT_HISTORY_BY_STACK ? "several stacks"
                      : group->is_initial                 ? "allocated before recording started"
                      : group->is_backward                ? "autograd engine"
                                                          : "no stack recorded");
    else if (group->detail > MT_HISTORY_BY_STACK)
        mt_buf_add_text(out, "    several stacks, which have in common:\n");
    for (uint32_t id = group->stack; id != MT_NO_ID; id = symbols->stacks[id].parent) {
        mt_buf_add_text(out, "    ");
        mt_buf_add_printable_text(out, mt_frame_label(arena, symbols, symbols->stacks[id].frame));
        mt_buf_add_char(out, '\n');
    }
}

/* Blocks with one stack. */
struct stack_sum {
    uint32_t group; /* one of them */
    uint64_t bytes, blocks;
};

MT_DEFINE_ORDER(by_sum, struct stack_sum, MT_DESCENDING(bytes) || MT_ASCENDING(group))

/* Adds a group to the sum of its stack. */
static void add_sum(struct stack_sum *sums, uint32_t *count, struct mt_map *of_stack,
                    const struct mt_view *view, uint32_t group)
{
    const struct mt_history_group *one = &view->device->history->groups[group];
    uint64_t detail = mt_max_u64(one->detail, MT_HISTORY_BY_STACK); /* sizes do not matter */
    uint64_t key = (uint64_t)one->stack << 8 | detail << 2 | (one->is_initial ? 2u : 0u) |
                   (one->is_backward ? 1u : 0u);
    uint32_t at = mt_map_get(of_stack, key);

    if (at == MT_MAP_NONE) {
        at = (*count)++;
        mt_map_put(of_stack, key, at);
        sums[at] = (struct stack_sum){.group = group};
    }
    sums[at].bytes += (uint64_t)view->sums[group].bytes;
    sums[at].blocks += (uint64_t)view->sums[group].blocks;
}

void mt_view_fill_stacks(struct mt_view *view)
{
    const struct mt_history *history = view->device->history;
    const struct mt_view_row *row = &view->rows[view->row];
    struct mt_arena arena = {0};
    struct stack_sum *sums = mt_arena_array(&arena, (size_t)history->group_count + 1, sizeof *sums);
    struct mt_map of_stack = {0};
    uint32_t count = 0;
    char bytes[MT_UNITS_TEXT], blocks[MT_UNITS_TEXT];

    for (uint32_t i = 0; i < history->group_count; i++) {
        struct mt_view_row other = row_of(view, &history->groups[i]);

        if (view->sums[i].blocks && by_key(row, &other) == 0)
            add_sum(sums, &count, &of_stack, view, i);
    }
    qsort(sums, count, sizeof *sums, by_sum);
    mt_buf_reset(&view->lines);
    for (uint32_t i = 0; i < count && i < MAX_STACKS; i++) {
        mt_buf_printf(&view->lines, "%s, %s\n", mt_format_bytes(bytes, sums[i].bytes),
                      mt_format_counted(blocks, sums[i].blocks, "block"));
        add_stack(&view->lines, &arena, view->report, &history->groups[sums[i].group]);
    }
    if (count > MAX_STACKS)
        mt_buf_printf(&view->lines, "and %s\n",
                      mt_format_counted(blocks, count - MAX_STACKS, "more stack"));
    mt_map_release(&of_stack);
    mt_arena_release(&arena);
}
