/* Blocks get their words here: sites of those with a shape, and the largest groups of blocks alive
 * at the peak. */
#include "analysis.h"
#include "model_ops.h"
#include "model_window.h"

#include "attributed.h"
#include "block_words.h"
#include "blocks_model.h"
#include "process_memory.h"
#include "util.h"

#include <stdlib.h>

/* The event with the largest allocated level in the window. */
static uint64_t peak_event(const struct mt_analysis *analysis, uint32_t slot,
                           const struct mt_model_window *window)
{
    struct mt_survey_device *device = &analysis->survey.devices[slot];

    if (window->phase != MT_NO_PHASE && (uint32_t)window->phase < device->use_capacity)
        return device->uses[window->phase].peak_allocated_event;
    return mt_highs_since(&device->high[MT_HIGH_ALLOCATED], 0)->event;
}

static uint64_t snapshot_event(const struct mt_analysis *analysis, uint32_t slot)
{
    struct mt_model_window window = mt_model_window(analysis, slot);

    return peak_event(analysis, slot, &window);
}

static enum mt_status begin(struct mt_analysis *analysis, uint32_t slot, struct mt_model_feed *feed)
{
    struct mt_model_window window = mt_model_window(analysis, slot);
    uint32_t bins = mt_model_bins(analysis);
    struct mt_blocks_builder *builder = NULL;

    mt_blocks_builder_new(&analysis->report->arena, &window, peak_event(analysis, slot, &window),
                          bins, &builder);
    *feed = (struct mt_model_feed){
        .builder = builder, .on_end = mt_blocks_builder_end, .on_state = mt_blocks_builder_state};
    return MT_OK;
}

static int by_origin_and_size(const void *a, const void *b)
{
    const struct mt_attributed *x = a, *y = b;
    int order = mt_attributed_by_source(a, b);

    if (order)
        return order;
    return (x->block_bytes < y->block_bytes) - (x->block_bytes > y->block_bytes);
}

static int by_group_bytes(const void *a, const void *b)
{
    int order = mt_attributed_by_size(a, b);

    return order ? order : by_origin_and_size(a, b);
}

static size_t merge_groups(struct mt_attributed *rows, size_t count)
{
    size_t kept = 0;

    qsort(rows, count, sizeof *rows, by_origin_and_size);
    for (size_t i = 0; i < count; i++) {
        if (kept && by_origin_and_size(&rows[kept - 1], &rows[i]) == 0)
            mt_attributed_absorb(&rows[kept - 1], &rows[i]);
        else
            rows[kept++] = rows[i];
    }
    qsort(rows, kept, sizeof *rows, by_group_bytes);
    return kept;
}

static void fill_groups(const struct mt_attribution *attribution,
                        const struct mt_snapshot *snapshot, struct mt_blocks *blocks)
{
    struct mt_attributed *rows =
        mt_memory_zeroed((size_t)snapshot->holding_count + 1, sizeof *rows);
    size_t count;

    for (uint32_t i = 0; i < snapshot->holding_count; i++)
        rows[i] = mt_attributed_of(attribution, &snapshot->holdings[i]);
    count = merge_groups(rows, snapshot->holding_count);
    blocks->groups_in_all = (uint32_t)count;
    blocks->group_count = (uint32_t)mt_min_u64(count, MT_BLOCKS_GROUPS);
    for (uint32_t i = 0; i < blocks->group_count; i++) {
        struct mt_holding holding = {.stack = rows[i].stack,
                                     .tied = rows[i].tied,
                                     .tie = rows[i].tie,
                                     .phase = rows[i].birth,
                                     .role = rows[i].role,
                                     .first_birth_event =
                                         rows[i].initial ? 0 : attribution->first_event};
        struct mt_block_words words;

        mt_block_words_find(attribution, &holding, &words);
        blocks->groups[i] = (struct mt_block_group){.site = words.site,
                                                    .head = words.head,
                                                    .role = rows[i].role,
                                                    .block_bytes = rows[i].block_bytes,
                                                    .blocks = (uint64_t)rows[i].blocks,
                                                    .bytes = (uint64_t)rows[i].bytes};
    }
    free(rows);
}

static const struct mt_snapshot *snapshot_at(const struct mt_holders *holders, uint64_t event,
                                             uint16_t device)
{
    for (uint32_t i = 0; i < holders->snapshot_count; i++)
        if (holders->snapshots[i].event == event && holders->snapshots[i].device == device)
            return &holders->snapshots[i];
    return NULL;
}

static enum mt_status finish(struct mt_analysis *analysis, void *builder,
                             struct mt_device_report *out)
{
    const struct mt_attribution *attribution = &analysis->attribution;
    struct mt_blocks *blocks = mt_blocks_builder_finish(builder);
    const struct mt_snapshot *snapshot;

    out->blocks = blocks;
    mt_block_words_name(attribution, blocks->time.blocks, blocks->time.block_count);
    mt_block_words_name(attribution, blocks->event.blocks, blocks->event.block_count);
    mt_block_words_name(attribution, blocks->around.blocks, blocks->around.block_count);
    snapshot = snapshot_at(&analysis->holders, blocks->peak_event, out->device);
    if (snapshot)
        fill_groups(attribution, snapshot, blocks);
    return MT_OK;
}

const struct mt_model_ops mt_model_blocks = {
    .begin = begin, .finish = finish, .snapshot_event = snapshot_event};
