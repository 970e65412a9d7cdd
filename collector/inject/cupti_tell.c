/* See cupti_tell.h. */
#include "cupti_tell.h"

#include "collect.h"
#include "cupti_contexts.h"

/* The changes of a freeing call, so that they can be undone if it fails. */
struct change {
    struct mt_live_block block;
    int references, mappings; /* subtracted from those of the block */
    bool gone;                /* the block's end was reported */
};

enum { MAX_CHANGES = 4 };

/* The current call of the thread; calls do not nest. */
static __thread struct {
    struct change changes[MAX_CHANGES];
    unsigned count;
    bool unknown;
} doing;

static _Atomic uint64_t unknown_frees;

uint64_t mt_cupti_unknown_frees(void)
{
    return unknown_frees;
}

void mt_cupti_begin_call(void)
{
    doing.count = 0;
    doing.unknown = false;
}

static struct mt_raw_event event_of(const struct mt_live_block *block, uint64_t stream)
{
    return (struct mt_raw_event){.addr = block->addr,
                                 .size_bytes = block->size_bytes,
                                 .stream = stream,
                                 .id = block->pool,
                                 .heap = block->heap,
                                 .device = block->device};
}

static void emit_free(const struct mt_live_block *block, uint64_t stream)
{
    struct mt_raw_event event = event_of(block, stream);
    event.kind = MT_EVENT_FREE_REQUESTED;
    mt_collect_stacks(&event);
    mt_collect_emit(&event);
    event.kind = MT_EVENT_FREE_COMPLETED;
    mt_collect_emit(&event);
}

static void emit_alloc(const struct mt_live_block *block, uint64_t stream)
{
    struct mt_raw_event event = event_of(block, stream);
    event.kind = MT_EVENT_ALLOC;
    event.aux_bytes = block->handle;
    mt_collect_stacks(&event);
    mt_collect_emit(&event);
}

static void begin_life(const struct mt_live_block *block, uint64_t stream)
{
    struct mt_live_block replaced = {.space = MT_LIVE_NONE};
    (void)mt_live_put(block, &replaced);
    if (replaced.space)
        emit_free(&replaced, 0);
    emit_alloc(block, stream);
}

void mt_cupti_tell_alloc(const struct mt_cupti_call *call, const struct mt_live_block *block,
                         uint64_t stream)
{
    struct mt_live_block placed = *block;
    if (placed.device == MT_CU_UNKNOWN_DEVICE)
        placed.device = mt_cupti_device_of(call->context);
    begin_life(&placed, stream);
}

void mt_cupti_tell_failed(const struct mt_cupti_call *call, enum mt_raw_heap heap, size_t bytes)
{
    struct mt_raw_event event = {.kind = MT_EVENT_ALLOC_FAILED,
                                 .size_bytes = bytes,
                                 .heap = (uint8_t)heap,
                                 .device = mt_cupti_device_of(call->context)};
    mt_collect_stacks(&event);
    mt_collect_emit(&event);
}

static void remember(const struct change *change)
{
    if (doing.count < MAX_CHANGES)
        doing.changes[doing.count++] = *change;
}

bool mt_cupti_free(enum mt_live_space space, uint64_t addr, uint64_t stream)
{
    struct change change = {.gone = true};
    if (!mt_live_take(space, addr, &change.block)) {
        doing.unknown = addr != 0;
        return false;
    }
    emit_free(&change.block, stream);
    remember(&change);
    return true;
}

void mt_cupti_let_go(uint64_t handle, int references, int mappings)
{
    struct change change = {.references = references, .mappings = mappings};
    enum mt_live_outcome outcome =
        mt_live_count(MT_LIVE_PHYSICAL, handle, -references, -mappings, &change.block);
    if (outcome == MT_LIVE_UNKNOWN)
        return; /* a multicast object, or memory from before the recording */
    change.gone = outcome == MT_LIVE_GONE;
    if (change.gone)
        emit_free(&change.block, 0);
    remember(&change);
}

static void take_back(const struct change *change)
{
    struct mt_live_block block = change->block;
    if (!change->gone) {
        (void)mt_live_count((enum mt_live_space)block.space, block.addr, change->references,
                            change->mappings, &block);
        return;
    }
    block.references += (uint32_t)change->references;
    block.mappings += (uint32_t)change->mappings;
    begin_life(&block, 0);
}

void mt_cupti_exit_free(const struct mt_cupti_call *call)
{
    if (call->result == 0 && doing.unknown)
        unknown_frees++;
    while (call->result != 0 && doing.count)
        take_back(&doing.changes[--doing.count]);
    doing.count = 0;
}

static void tell_gone(void *user, const struct mt_live_block *block)
{
    (void)user;
    emit_free(block, 0);
}

void mt_cupti_free_all_of(uint64_t context)
{
    mt_live_take_of_context(context, tell_gone, NULL);
}
