#include <stdlib.h>

#include "analysis.h"
#include "grow.h"
#include "holding.h"
#include "model_feed.h"
#include "module_identity.h"
#include "module_table.h"
#include "process_memory.h"
#include "sorted.h"

enum { MT_MODULE_KINDS = MT_MODULE_UNKNOWN + 1 };

struct builder {
    const struct mt_analysis *analysis;
    struct mt_model_feeds *feeds; /* of its device */
    struct mt_model_feed *feed;   /* its own */
    struct mt_forward_logs logs;
    struct mt_module_block *blocks; /* by life's block */
    size_t capacity;
    uint64_t event;      /* of the instant */
    bool is_past;        /* `blocks` has the state at the instant */
    uint32_t calls_seen; /* when this many calls of a model have ended, all is known */
};

/* The call around the instant must end, and there must be one. */
static void freeze(struct builder *builder)
{
    builder->is_past = true;
    builder->calls_seen = builder->logs.closed + (builder->logs.open || !builder->logs.closed);
}

/* The part of the run that the program named. */
static int32_t owner_of(const struct builder *builder, int32_t phase)
{
    const struct mt_phases *phases = &builder->analysis->survey.phases;

    if (phase == MT_NO_PHASE || phases->phases[phase].source > MT_PHASE_SCOPES)
        return MT_NO_PHASE;
    return phases->facts[phase].owner;
}

static struct mt_module_block *block_at(struct builder *builder, uint32_t index)
{
    return index < builder->capacity && builder->blocks[index].is_live ? &builder->blocks[index]
                                                                       : NULL;
}

/* A gradient has its parameter; a block of backward takes the place of its block of forward. */
static void tie(struct builder *builder, struct mt_module_block *block,
                const struct mt_block_life *life)
{
    struct mt_module_block *of = block_at(builder, life->tied_to);

    block->parameter = MT_NO_ID;
    if (!of)
        return;
    if (life->tie == MT_TIE_FORWARD && of->place.log != MT_NO_ID) {
        block->place = of->place;
        mt_forward_logs_enter(&builder->logs, block->place);
    } else if (life->role == MT_ROLE_GRADIENTS && of->role == MT_ROLE_PARAMETERS) {
        block->parameter = life->tied_to;
        block->parameter_birth = of->birth_event;
        if (!of->has_gradient)
            of->gradient_event = life->birth_event;
        of->has_gradient = true;
    }
}

static void hear_call(struct builder *builder, const struct mt_block_life *life,
                      struct mt_forward_position *place)
{
    const struct mt_symbols *symbols = &builder->analysis->source->symbols;

    if (builder->logs.tree.count < symbols->stack_count)
        mt_forward_logs_update(&builder->logs, symbols);
    mt_forward_logs_add(&builder->logs,
                        &(struct mt_forward_birth){.event = life->birth_event,
                                                   .stack = life->stack,
                                                   .phase = life->phase,
                                                   .owner = owner_of(builder, life->phase)},
                        place);
}

static void hear_after(struct builder *builder, const struct mt_block_life *life)
{
    struct mt_forward_position place;

    if (builder->logs.closed < builder->calls_seen) {
        hear_call(builder, life, &place);
        mt_forward_logs_leave(&builder->logs, place);
        return;
    }
    builder->feed->on_birth = NULL;
    builder->feed->on_end = NULL;
    mt_model_feeds_update(builder->feeds);
}

static void on_birth(void *context, const struct mt_block_life *life)
{
    struct builder *builder = context;
    struct mt_module_block block = {
        .birth_event = life->birth_event,
        .requested_bytes = life->requested_bytes,
        .block_bytes = life->block_bytes,
        .stack = mt_stack_of_site((enum mt_tie)life->tie, life->tied, life->stack),
        .role = life->role,
        .is_live = true,
        .is_initial = life->initial};

    if (!builder->is_past && life->birth_event > builder->event)
        freeze(builder);
    if (builder->is_past) {
        hear_after(builder, life);
        return;
    }
    hear_call(builder, life, &block.place);
    mt_grow_zeroed_to(&builder->blocks, &builder->capacity, (size_t)life->block + 1,
                      sizeof *builder->blocks);
    tie(builder, &block, life);
    builder->blocks[life->block] = block;
}

static void on_end(void *context, const struct mt_block_life *life, struct mt_block_end end)
{
    struct builder *builder = context;

    if (!builder->is_past && end.event > builder->event)
        freeze(builder);
    struct mt_module_block *block = builder->is_past ? NULL : block_at(builder, life->block);
    if (!block)
        return;
    mt_forward_logs_leave(&builder->logs, block->place);
    block->is_live = false;
}

static void release(void *context)
{
    struct builder *builder = context;

    if (!builder)
        return;
    mt_forward_logs_release(&builder->logs);
    free(builder->blocks);
    free(builder);
}

static enum mt_status begin(struct mt_analysis *analysis, uint32_t slot, struct mt_model_feed *feed)
{
    const struct mt_answer *answer = analysis->answers ? &analysis->answers[slot] : NULL;
    struct builder *builder;

    if (answer && answer->missing)
        return MT_OK;
    builder = mt_memory_zeroed(1, sizeof *builder);
    *feed = (struct mt_model_feed){
        .builder = builder, .on_birth = on_birth, .on_end = on_end, .release = release};
    builder->analysis = analysis;
    builder->feeds = &analysis->holders.devices[slot].models;
    builder->feed = feed;
    builder->event = answer ? answer->instant.event : analysis->instants[slot].instants[0].event;
    return MT_OK;
}

static enum mt_status finish(struct mt_analysis *analysis, void *context,
                             struct mt_device_report *out)
{
    struct builder *builder = context;
    struct mt_arena *arena = &analysis->report->arena;
    const struct mt_symbols *symbols = &analysis->source->symbols;
    enum mt_status status = MT_OK;

    mt_forward_logs_update(&builder->logs, symbols);
    out->modules = mt_arena_alloc(arena, sizeof *out->modules);
    out->modules->event = builder->event;
    status = mt_forward_logs_settle(&builder->logs, symbols);
    if (status)
        return status;
    mt_modules_make(arena,
                    &(struct mt_module_input){.symbols = symbols,
                                              .phases = &analysis->survey.phases,
                                              .logs = &builder->logs,
                                              .blocks = builder->blocks,
                                              .count = builder->capacity},
                    out->modules);
    return MT_OK;
}

MT_DEFINE_ORDER(by_bytes, struct mt_live_row, MT_DESCENDING(bytes) || MT_ASCENDING(module))

const char *mt_module_kind_name(enum mt_module_kind kind)
{
    static const char *const names[MT_MODULE_KINDS] = {"layer", "module", "outside_layers",
                                                       "outside_model", "not_known"};

    return names[kind];
}

/* Its role is that of most of its bytes. */
static struct mt_live_row live_row(const struct mt_module_row *module)
{
    uint32_t roles = 0, most = 0;

    for (uint32_t role = 0; role < MT_ROLE_COUNT; role++) {
        roles += module->role_bytes[role] > 0;
        if (module->role_bytes[role] > module->role_bytes[most])
            most = role;
    }
    return (struct mt_live_row){.label = module->label,
                                .site = module->path,
                                .stack = MT_NO_ID,
                                .tied = MT_NO_ID,
                                .step = MT_NO_STEP,
                                .role = (enum mt_role)most,
                                .several_roles = roles > 1,
                                .bytes = module->bytes,
                                .requested_bytes = module->requested_bytes,
                                .blocks = module->blocks,
                                .module = module};
}

void mt_modules_answer(const struct mt_modules *modules, struct mt_arena *arena,
                       struct mt_answer *answer)
{
    answer->rows = mt_arena_array(arena, (size_t)modules->row_count + 1, sizeof *answer->rows);
    for (uint32_t i = 0; i < modules->row_count; i++)
        answer->rows[i] = live_row(&modules->rows[i]);
    qsort(answer->rows, modules->row_count, sizeof *answer->rows, by_bytes);
    answer->row_count = answer->told_count = modules->row_count;
}

const struct mt_model_ops mt_model_modules = {.begin = begin, .finish = finish};
