#include "pool_ledger.h"

#include <stdlib.h>
#include <string.h>

#include "grow.h"
#include "util.h"

void mt_pool_ledger_release(struct mt_pool_ledger *ledger)
{
    free(ledger->rows);
    memset(ledger, 0, sizeof *ledger);
}

/* Returns the row of a pool, created if missing. */
static struct mt_pool_row *row_of(struct mt_pool_ledger *ledger, uint16_t pool)
{
    while (ledger->row_count <= pool) {
        mt_grow_to(&ledger->rows, &ledger->row_capacity, (size_t)ledger->row_count + 1,
                   sizeof *ledger->rows);
        ledger->rows[ledger->row_count++] = (struct mt_pool_row){.first_stack = MT_NO_ID};
    }
    return &ledger->rows[pool];
}

void mt_pool_ledger_alloc(struct mt_pool_ledger *ledger, const struct mt_event *event,
                          const struct mt_replay_view *view)
{
    struct mt_pool_row *row = row_of(ledger, view->pool);

    if (!row->allocations) {
        row->first_event = event->seq;
        row->first_t_ns = event->t_ns;
    }
    if (row->first_stack == MT_NO_ID)
        row->first_stack = event->stack;
    row->is_used = true;
    row->allocations++;
    mt_level_add(&row->allocated, view->block_bytes);
}

/* A damaged trace may free more than was allocated. */
static void sub(struct mt_level *level, uint64_t bytes)
{
    mt_level_sub(level, mt_min_u64(level->now, bytes));
}

void mt_pool_ledger_free(struct mt_pool_ledger *ledger, const struct mt_replay_view *view)
{
    if (view->pool < ledger->row_count)
        sub(&ledger->rows[view->pool].allocated, view->block_bytes);
}

void mt_pool_ledger_segment(struct mt_pool_ledger *ledger, const struct mt_event *event,
                            const struct mt_replay_view *view)
{
    struct mt_pool_row *row = row_of(ledger, view->pool);

    row->is_used = true;
    if (event->kind == MT_EVENT_SEGMENT_FREE || event->kind == MT_EVENT_SEGMENT_UNMAP)
        sub(&row->reserved, event->size_bytes);
    else if (event->size_bytes <= UINT64_MAX - row->reserved.now)
        mt_level_add(&row->reserved, event->size_bytes);
    row->segments += event->kind == MT_EVENT_SEGMENT_ALLOC;
    row->segments -= event->kind == MT_EVENT_SEGMENT_FREE && row->segments;
}
