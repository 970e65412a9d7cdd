/* Live blocks of an instant in the requested groups. */
#include "live_rows.h"

#include "process_memory.h"
#include "units.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_STACK_TEXT = 400 };

/* Blocks without a stack are distinguished like sites. */
static int by_stack(const void *a, const void *b)
{
    const struct mt_attributed *x = a, *y = b;

    if (x->stack != y->stack)
        return x->stack < y->stack ? -1 : 1;
    return x->stack == MT_NO_ID ? mt_attributed_by_source(a, b) : 0;
}

static int by_role(const void *a, const void *b)
{
    const struct mt_attributed *x = a, *y = b;

    return (x->role > y->role) - (x->role < y->role);
}

static int by_birth(const void *a, const void *b)
{
    const struct mt_attributed *x = a, *y = b;

    return (x->birth > y->birth) - (x->birth < y->birth);
}

static int by_block_size(const void *a, const void *b)
{
    const struct mt_attributed *x = a, *y = b;

    return (x->block_bytes > y->block_bytes) - (x->block_bytes < y->block_bytes);
}

/* Each group takes its words from its largest holding. */
static size_t merge_live(struct mt_attributed *rows, size_t count,
                         int (*order)(const void *, const void *))
{
    size_t kept = 0;

    qsort(rows, count, sizeof *rows, order);
    for (size_t i = 0; i < count; i++) {
        struct mt_attributed *group = kept ? &rows[kept - 1] : NULL, row = rows[i];

        if (!group || order(group, &row) != 0) {
            rows[kept++] = row;
            continue;
        }
        if (row.largest > group->largest) {
            row = *group;
            *group = rows[i];
        }
        mt_attributed_absorb(group, &row);
    }
    return kept;
}

static int by_live_size(const void *a, const void *b)
{
    const struct mt_attributed *x = a, *y = b;
    int order = mt_attributed_by_size(a, b);

    if (!order)
        order = by_birth(a, b);
    if (!order)
        order = (x->block_bytes > y->block_bytes) - (x->block_bytes < y->block_bytes);
    return order;
}

static int (*const orders[MT_GROUP_BY_COUNT])(const void *, const void *) = {
    [MT_BY_SITE] = mt_attributed_by_source,
    [MT_BY_STACK] = by_stack,
    [MT_BY_ROLE] = by_role,
    [MT_BY_PHASE] = by_birth,
    [MT_BY_SIZE] = by_block_size,
    [MT_BY_MODULE] = mt_attributed_by_source};

/* "cross_entropy functional.py:3504 < train train.py:77 < main train.py:120"; the inner part of
 * very deep ones. */
static const char *stack_label(const struct mt_attribution *attribution,
                               const struct mt_attributed *row)
{
    const struct mt_symbols *symbols = attribution->symbols;
    uint32_t stack = row->stack;
    const char *label = NULL;

    for (; stack < symbols->stack_count; stack = symbols->stacks[stack].parent) {
        uint32_t frame = symbols->stacks[stack].frame;
        const char *name;

        if (mt_site_table_is_plumbing(&attribution->sites, frame))
            continue;
        if (label && strlen(label) > MAX_STACK_TEXT)
            return mt_arena_printf(attribution->arena, "%s < …", label);
        name = mt_frame_label(attribution->arena, symbols, frame);
        if (label)
            name = mt_arena_printf(attribution->arena, "%s < %s", label, name);
        label = name;
    }
    return label ? label : mt_attributed_site(attribution, row);
}

static const char *live_label(const struct mt_attribution *attribution,
                              const struct mt_attributed *row, enum mt_group_by by)
{
    char text[MT_UNITS_TEXT];

    switch (by) {
    case MT_BY_SITE: return mt_attributed_site(attribution, row);
    case MT_BY_STACK: return stack_label(attribution, row);
    case MT_BY_ROLE: return mt_role_name(row->role);
    case MT_BY_MODULE:
    case MT_BY_PHASE: break;
    case MT_BY_SIZE:
        return mt_arena_printf(attribution->arena, "%s B", mt_format_count(text, row->block_bytes));
    }
    if (row->birth != MT_NO_PHASE)
        return attribution->phases->phases[row->birth].path;
    return row->initial ? "before the trace starts" : "no phase";
}

static void fill_live(const struct mt_attribution *attribution, const struct mt_attributed *row,
                      enum mt_group_by by, struct mt_live_row *out)
{
    *out = (struct mt_live_row){.label = live_label(attribution, row, by),
                                .site = mt_attributed_site(attribution, row),
                                .operation = mt_attributed_operation(attribution, row),
                                .stack = row->stack,
                                .tied = row->tied,
                                .tie = row->tie,
                                .phase = row->several_phases ? NULL : row->phase,
                                .step = row->several_phases ? MT_NO_STEP : row->step,
                                .role = row->role,
                                .several_roles = row->several_roles,
                                .block_bytes = row->block_bytes,
                                .bytes = (uint64_t)row->bytes,
                                .requested_bytes = row->requested_bytes,
                                .blocks = (uint64_t)row->blocks};
}

void mt_attribute_live(struct mt_attribution *attribution, const struct mt_snapshot *snapshot,
                       enum mt_group_by by, uint32_t most, struct mt_answer *answer)
{
    size_t count = snapshot->holding_count;
    struct mt_attributed *rows = mt_memory_zeroed(count + 1, sizeof *rows);

    for (size_t i = 0; i < count; i++)
        rows[i] = mt_attributed_of(attribution, &snapshot->holdings[i]);
    count = merge_live(rows, count, orders[by]);
    qsort(rows, count, sizeof *rows, by_live_size);
    answer->told_count = (uint32_t)(most ? mt_attributed_worth(rows, count, most) : count);
    answer->row_count = (uint32_t)count;
    answer->rows = mt_arena_array(attribution->arena, count + 1, sizeof *answer->rows);
    for (size_t i = 0; i < count; i++)
        fill_live(attribution, &rows[i], by, &answer->rows[i]);
    free(rows);
}
