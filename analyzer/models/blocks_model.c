/* Three sets read the same stream, each with its own window and axis. */
#include <stdlib.h>
#include <string.h>

#include "analysis.h"
#include "arena.h"
#include "attributed.h"
#include "blocks_model.h"
#include "holding.h"
#include "model_feed.h"
#include "process_memory.h"
#include "sorted.h"
#include "timeline_model.h"
#include "util.h"

struct block_words {
    const char *site, *head; /* with the user's place, and without */
    const char *operation;   /* the operation; NULL if the site names it */
};

/* Fills *words. The texts are in the attribution's arena. */
static void block_words_find(const struct mt_attribution *attribution,
                             const struct mt_holding *holding, struct block_words *words)
{
    struct mt_attributed row = mt_attributed_of(attribution, holding);

    words->site = mt_attributed_site(attribution, &row);
    words->operation = mt_attributed_operation(attribution, &row);
    words->head = words->site ? mt_arena_text(attribution->arena, words->site,
                                              mt_site_label_head(words->site))
                              : NULL;
}

void mt_block_words_name(const struct mt_attribution *attribution, struct mt_block_shape *blocks,
                         uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct mt_block_shape *block = &blocks[i];
        struct mt_holding holding = mt_holding_of(&block->life);
        struct block_words words;

        block_words_find(attribution, &holding, &words);
        block->site = words.site;
        block->head = words.head;
        block->operation = words.operation;
    }
}

struct set_builder {
    struct mt_block_set set;
    struct mt_level_curve curve;
    struct mt_kept_blocks kept;
    uint64_t lived; /* blocks alive at some time of the window */
    bool by_event, started;
};

struct mt_blocks_builder {
    struct mt_arena *arena;
    struct mt_blocks *blocks;
    struct set_builder sets[3]; /* time, event, around */
    uint64_t allocated;         /* after the last event */
    uint64_t roles[MT_ROLE_COUNT];
    bool started;
};

static void set_init(struct set_builder *builder, struct mt_arena *arena,
                     const struct mt_model_window *window, bool by_event, uint32_t bins)
{
    builder->set.begin_t_ns = window->begin_t_ns;
    builder->set.end_t_ns = mt_max_u64(window->begin_t_ns, window->end_t_ns);
    builder->set.begin_event = window->begin_event;
    builder->set.end_event = mt_max_u64(window->begin_event, window->end_event);
    builder->by_event = by_event;
    builder->set.levels = mt_arena_array(arena, (size_t)bins + 1, sizeof *builder->set.levels);
    mt_kept_blocks_init(&builder->kept, arena, MT_MAX_KEPT_BLOCKS);
    if (by_event)
        mt_level_curve_init(&builder->curve, arena, builder->set.begin_event,
                            builder->set.end_event, bins);
    else
        mt_level_curve_init(&builder->curve, arena, builder->set.begin_t_ns, builder->set.end_t_ns,
                            bins);
}

/* The event with the largest allocated level in the window. */
static uint64_t peak_event(const struct mt_analysis *analysis, uint32_t slot,
                           const struct mt_model_window *window)
{
    struct mt_survey_device *device = &analysis->survey.devices[slot];

    if (window->phase != MT_NO_PHASE)
        return device->uses[window->phase].peak_allocated_event;
    return mt_peak_windows_since(&device->high[MT_HIGH_ALLOCATED], 0)->event;
}

void mt_blocks_builder_new(struct mt_arena *arena, const struct mt_model_window *window,
                           uint64_t peak_event, uint32_t bins, struct mt_blocks_builder **out)
{
    struct mt_blocks_builder *builder = mt_arena_alloc(arena, sizeof *builder);
    struct mt_blocks *blocks = mt_arena_alloc(arena, sizeof *blocks);
    struct mt_model_window around = *window;

    bins = bins < 1 ? 1 : bins > 8192 ? 8192 : bins;
    peak_event = mt_min_u64(mt_max_u64(peak_event, window->begin_event), window->end_event);
    if (peak_event - window->begin_event > MT_BLOCKS_AROUND)
        around.begin_event = peak_event - MT_BLOCKS_AROUND;
    if (window->end_event > peak_event && window->end_event - peak_event > MT_BLOCKS_AROUND)
        around.end_event = peak_event + MT_BLOCKS_AROUND;
    builder->arena = arena;
    builder->blocks = blocks;
    blocks->step = window->step;
    blocks->phase = window->phase;
    set_init(&builder->sets[0], arena, window, false, bins);
    set_init(&builder->sets[1], arena, window, true, bins);
    set_init(&builder->sets[2], arena, &around, true, 2 * MT_BLOCKS_AROUND + 1);
    *out = builder;
}

static void add_level(struct set_builder *builder, uint64_t t_ns, uint64_t event, uint64_t level,
                      const uint64_t *roles)
{
    struct mt_level_curve *curve = &builder->curve;
    uint32_t bins = curve->count;

    t_ns = mt_min_u64(mt_max_u64(t_ns, builder->set.begin_t_ns), builder->set.end_t_ns);
    uint64_t before = bins ? curve->bins[bins - 1].max : 0;
    mt_level_curve_add(curve, builder->by_event ? event : t_ns, t_ns, event, level);
    struct mt_role_levels *levels = &builder->set.levels[curve->count - 1];
    if (curve->count > bins || level > before)
        memcpy(levels->max, roles, sizeof levels->max);
    memcpy(levels->last, roles, sizeof levels->last);
}

/* A device before and after an event. */
struct levels {
    uint64_t before, after;
    const uint64_t *roles_before, *roles_after;
};

static void set_state(struct set_builder *builder, const struct mt_event *event,
                      const struct levels *levels)
{
    if (event->seq < builder->set.begin_event || event->seq > builder->set.end_event)
        return;
    if (!builder->started && event->seq > builder->set.begin_event)
        add_level(builder, builder->set.begin_t_ns, builder->set.begin_event, levels->before,
                  levels->roles_before);
    builder->started = true;
    add_level(builder, event->t_ns, event->seq, levels->after, levels->roles_after);
}

static void note_peak(struct mt_blocks_builder *builder, uint64_t level, uint64_t t_ns,
                      uint64_t event)
{
    struct mt_blocks *blocks = builder->blocks;

    if (builder->started && level <= blocks->peak_allocated)
        return;
    builder->started = true;
    blocks->peak_allocated = level;
    blocks->peak_t_ns = t_ns;
    blocks->peak_event = event;
}

void mt_blocks_builder_state(void *context, const struct mt_model_state *state)
{
    struct mt_blocks_builder *builder = context;
    const struct mt_event *event = state->event;
    const struct mt_block_set *whole = &builder->sets[0].set;
    const struct levels levels = {builder->allocated, state->now->allocated, builder->roles,
                                  state->role_bytes};
    uint64_t before = builder->allocated;

    if (event->seq > whole->end_event)
        return;
    builder->allocated = state->now->allocated;
    if (event->seq < whole->begin_event) {
        memcpy(builder->roles, state->role_bytes, sizeof builder->roles);
        return;
    }
    if (!builder->started && event->seq > whole->begin_event)
        note_peak(builder, before, whole->begin_t_ns, whole->begin_event);
    note_peak(builder, builder->allocated, event->t_ns, event->seq);
    builder->blocks->events++;
    for (size_t i = 0; i < MT_ARRAY_LEN(builder->sets); i++)
        set_state(&builder->sets[i], event, &levels);
    memcpy(builder->roles, state->role_bytes, sizeof builder->roles);
}

static enum mt_status begin(struct mt_analysis *analysis, uint32_t slot, struct mt_model_feed *feed)
{
    struct mt_model_window window = mt_model_window(analysis, slot);
    uint32_t bins = mt_model_bins(analysis);
    struct mt_blocks_builder *builder = NULL;

    mt_blocks_builder_new(&analysis->report->arena, &window, peak_event(analysis, slot, &window),
                          bins, &builder);
    *feed = (struct mt_model_feed){.builder = builder,
                                   .on_end = mt_blocks_builder_end,
                                   .on_state = mt_blocks_builder_state,
                                   .is_alone = true};
    return MT_OK;
}

/* Length of the overlap of [begin, end) and [low, high]; at least 1, since the block existed. */
static uint64_t shared_length(uint64_t begin, uint64_t end, uint64_t low, uint64_t high)
{
    begin = mt_max_u64(begin, low);
    end = mt_min_u64(end, high);
    return end > begin ? end - begin : 1;
}

static void set_end(struct set_builder *builder, const struct mt_block_life *life,
                    struct mt_block_end end)
{
    const struct mt_block_set *set = &builder->set;

    if (life->birth_event > set->end_event || end.event <= set->begin_event)
        return;
    builder->lived++;
    uint64_t length =
        builder->by_event
            ? shared_length(life->birth_event, end.event, set->begin_event, set->end_event)
            : shared_length(life->birth_t_ns, end.t_ns, set->begin_t_ns, set->end_t_ns);
    mt_kept_blocks_add(&builder->kept, life, end, (double)life->block_bytes * (double)length);
}

void mt_blocks_builder_end(void *context, const struct mt_block_life *life, struct mt_block_end end)
{
    struct mt_blocks_builder *builder = context;

    for (size_t i = 0; i < MT_ARRAY_LEN(builder->sets); i++)
        set_end(&builder->sets[i], life, end);
}

static void set_finish(struct mt_blocks_builder *blocks, struct set_builder *builder,
                       struct mt_block_set *out)
{
    if (!builder->started)
        add_level(builder, builder->set.begin_t_ns, builder->set.begin_event, blocks->allocated,
                  blocks->roles);
    *out = builder->set;
    out->bins = builder->curve.bins;
    out->bin_count = builder->curve.count;
    out->block_count = builder->kept.count;
    out->others = builder->lived - builder->kept.count;
    out->blocks = mt_kept_blocks_list(&builder->kept, blocks->arena);
}

struct mt_blocks *mt_blocks_builder_finish(struct mt_blocks_builder *builder)
{
    struct mt_blocks *blocks = builder->blocks;
    const struct mt_block_set *whole = &builder->sets[0].set;

    if (!builder->started)
        note_peak(builder, builder->allocated, whole->begin_t_ns, whole->begin_event);
    set_finish(builder, &builder->sets[0], &blocks->time);
    set_finish(builder, &builder->sets[1], &blocks->event);
    set_finish(builder, &builder->sets[2], &blocks->around);
    return blocks;
}

/* Blocks get their words here: sites of those with a shape, and the largest groups of blocks alive
 * at the peak. */

static uint64_t snapshot_event(const struct mt_analysis *analysis, uint32_t slot)
{
    struct mt_model_window window = mt_model_window(analysis, slot);

    return peak_event(analysis, slot, &window);
}

MT_DEFINE_ORDER(by_origin_and_size, struct mt_attributed,
                MT_THEN(mt_attributed_by_source) || MT_DESCENDING(block_bytes))
MT_DEFINE_ORDER(by_group_bytes, struct mt_attributed,
                MT_THEN(mt_attributed_by_size) || MT_THEN(by_origin_and_size))

static size_t merge_groups(struct mt_attributed *rows, size_t count)
{
    size_t kept = 0;

    qsort(rows, count, sizeof *rows, by_origin_and_size);
    for (size_t i = 0; i < count; i++)
        if (kept && by_origin_and_size(&rows[kept - 1], &rows[i]) == 0)
            mt_attributed_absorb(&rows[kept - 1], &rows[i]);
        else
            rows[kept++] = rows[i];
    qsort(rows, kept, sizeof *rows, by_group_bytes);
    return kept;
}

static void fill_groups(const struct mt_attribution *attribution,
                        const struct mt_snapshot *snapshot, struct mt_blocks *blocks)
{
    struct mt_attributed *rows =
        mt_memory_zeroed((size_t)snapshot->holding_count + 1, sizeof *rows);

    for (uint32_t i = 0; i < snapshot->holding_count; i++)
        rows[i] = mt_attributed_of(attribution, &snapshot->holdings[i]);
    size_t count = merge_groups(rows, snapshot->holding_count);
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
        struct block_words words;

        block_words_find(attribution, &holding, &words);
        blocks->groups[i] = (struct mt_block_group){.site = words.site,
                                                    .head = words.head,
                                                    .role = rows[i].role,
                                                    .block_bytes = rows[i].block_bytes,
                                                    .blocks = (uint64_t)rows[i].blocks,
                                                    .bytes = (uint64_t)rows[i].bytes};
    }
    free(rows);
}

static const struct mt_snapshot *snapshot_at(const struct mt_live_blocks *holders, uint64_t event,
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

    out->blocks = blocks;
    mt_block_words_name(attribution, blocks->time.blocks, blocks->time.block_count);
    mt_block_words_name(attribution, blocks->event.blocks, blocks->event.block_count);
    mt_block_words_name(attribution, blocks->around.blocks, blocks->around.block_count);
    const struct mt_snapshot *snapshot =
        snapshot_at(&analysis->holders, blocks->peak_event, out->device);
    if (snapshot)
        fill_groups(attribution, snapshot, blocks);
    return MT_OK;
}

const struct mt_model_ops mt_model_blocks = {
    .begin = begin, .finish = finish, .snapshot_event = snapshot_event};

void mt_kept_blocks_init(struct mt_kept_blocks *kept, struct mt_arena *arena, uint32_t capacity)
{
    *kept = (struct mt_kept_blocks){.capacity = capacity};
    kept->heap = mt_arena_array(arena, capacity, sizeof *kept->heap);
}

/* Whether a block goes before b; b is then the one that is kept. */
static bool is_below(double score, const struct mt_block_life *life, const struct mt_kept_block *b)
{
    if (score < b->score || score > b->score)
        return score < b->score;
    return life->birth_event > b->shape.life.birth_event;
}

static bool is_less(const struct mt_kept_block *a, const struct mt_kept_block *b)
{
    return is_below(a->score, &a->shape.life, b);
}

static void swap(struct mt_kept_block *a, struct mt_kept_block *b)
{
    struct mt_kept_block moved = *a;

    *a = *b;
    *b = moved;
}

static uint32_t sift_up(struct mt_kept_block *heap, uint32_t at)
{
    for (; at && is_less(&heap[at], &heap[(at - 1) / 2]); at = (at - 1) / 2)
        swap(&heap[at], &heap[(at - 1) / 2]);
    return at;
}

static uint32_t sift_down(struct mt_kept_block *heap, uint32_t count)
{
    uint32_t at = 0, child;

    for (; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_less(&heap[child + 1], &heap[child]))
            child++;
        if (!is_less(&heap[child], &heap[at]))
            break;
        swap(&heap[at], &heap[child]);
    }
    return at;
}

struct mt_block_shape *mt_kept_blocks_add(struct mt_kept_blocks *kept,
                                          const struct mt_block_life *life, struct mt_block_end end,
                                          double score)
{
    uint32_t at;

    if (kept->count == kept->capacity && is_below(score, life, &kept->heap[0]))
        return NULL;
    struct mt_kept_block block = {.score = score,
                                  .shape = {.life = *life, .end = end, .place = MT_NO_ID}};
    if (kept->count < kept->capacity) {
        kept->heap[kept->count] = block;
        at = sift_up(kept->heap, kept->count++);
    } else {
        kept->heap[0] = block;
        at = sift_down(kept->heap, kept->count);
    }
    return &kept->heap[at].shape;
}

MT_DEFINE_ORDER(by_birth, struct mt_block_shape,
                MT_ASCENDING(life.birth_event) || MT_DESCENDING(life.block_bytes) ||
                    MT_ASCENDING(life.addr))

struct mt_block_shape *mt_kept_blocks_list(const struct mt_kept_blocks *kept,
                                           struct mt_arena *arena)
{
    struct mt_block_shape *blocks = mt_arena_array(arena, (size_t)kept->count + 1, sizeof *blocks);

    for (uint32_t i = 0; i < kept->count; i++)
        blocks[i] = kept->heap[i].shape;
    qsort(blocks, kept->count, sizeof *blocks, by_birth);
    return blocks;
}
