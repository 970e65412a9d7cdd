/* Decoders of driver calls: the table of calls, what each takes or returns, and the events that
 * they cause. They cover device and host memory, arrays, memory of others, physical memory and
 * mappings. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "collect.h"
#include "cupti_abi.h"
#include "cupti_calls.h"
#include "cupti_contexts.h"
#include "cupti_decoders.h"
#include "cupti_live.h"
#include "tape.h"
#include "util.h"

/* The changes of a freeing call, so that they can be undone if it fails. */
struct change {
    struct mt_cupti_live_block block;
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

static struct mt_raw_event event_of(const struct mt_cupti_live_block *block, uint64_t stream)
{
    return (struct mt_raw_event){.addr = block->addr,
                                 .size_bytes = block->size_bytes,
                                 .stream = stream,
                                 .id = block->pool,
                                 .heap = block->heap,
                                 .device = block->device};
}

static void emit_free(const struct mt_cupti_live_block *block, uint64_t stream)
{
    struct mt_raw_event event = event_of(block, stream);
    event.kind = MT_EVENT_FREE_REQUESTED;
    mt_collect_stacks(&event);
    mt_collect_emit(&event);
    event.kind = MT_EVENT_FREE_COMPLETED;
    mt_collect_emit(&event);
}

static void emit_alloc(const struct mt_cupti_live_block *block, uint64_t stream)
{
    struct mt_raw_event event = event_of(block, stream);
    event.kind = MT_EVENT_ALLOC;
    event.aux_bytes = block->handle;
    mt_collect_stacks(&event);
    mt_collect_emit(&event);
}

static void begin_life(const struct mt_cupti_live_block *block, uint64_t stream)
{
    struct mt_cupti_live_block replaced = {.space = MT_LIVE_NONE};
    (void)mt_cupti_live_put(block, &replaced);
    if (replaced.space)
        emit_free(&replaced, 0);
    emit_alloc(block, stream);
}

void mt_cupti_record_alloc(const struct mt_cupti_call *call,
                           const struct mt_cupti_live_block *block, uint64_t stream)
{
    struct mt_cupti_live_block placed = *block;
    if (placed.device == MT_CU_UNKNOWN_DEVICE)
        placed.device = mt_cupti_device_of(call->context);
    begin_life(&placed, stream);
}

void mt_cupti_record_failed(const struct mt_cupti_call *call, enum mt_raw_heap heap, size_t bytes)
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

bool mt_cupti_free(enum mt_cupti_live_space space, uint64_t addr, uint64_t stream)
{
    struct change change = {.gone = true};
    if (!mt_cupti_live_take(space, addr, &change.block)) {
        doing.unknown = addr != 0;
        return false;
    }
    emit_free(&change.block, stream);
    remember(&change);
    return true;
}

/* Subtracts references and mappings from physical memory. Records its end when none is left. */
static void let_go(uint64_t handle, int references, int mappings)
{
    struct change change = {.references = references, .mappings = mappings};
    enum mt_cupti_live_outcome outcome =
        mt_cupti_live_count(MT_LIVE_PHYSICAL, handle, -references, -mappings, &change.block);
    if (outcome == MT_LIVE_UNKNOWN)
        return; /* a multicast object, or memory from before the recording */
    change.gone = outcome == MT_LIVE_GONE;
    if (change.gone)
        emit_free(&change.block, 0);
    remember(&change);
}

static void take_back(const struct change *change)
{
    struct mt_cupti_live_block block = change->block;
    if (!change->gone) {
        (void)mt_cupti_live_count((enum mt_cupti_live_space)block.space, block.addr,
                                  change->references, change->mappings, &block);
        return;
    }
    block.references += (uint32_t)change->references;
    block.mappings += (uint32_t)change->mappings;
    begin_life(&block, 0);
}

/* The EXIT decoder of every call that frees. */
static void exit_free(const struct mt_cupti_call *call)
{
    if (call->result == 0 && doing.unknown)
        unknown_frees++;
    while (call->result != 0 && doing.count)
        take_back(&doing.changes[--doing.count]);
    doing.count = 0;
}

static void tell_gone(void *user, const struct mt_cupti_live_block *block)
{
    (void)user;
    emit_free(block, 0);
}

void mt_cupti_free_all_of(uint64_t context)
{
    mt_cupti_live_take_of_context(context, tell_gone, NULL);
}

/* Bytes of the texels of an array. Tiling, padding and alignment are unpublished details of the
 * driver, so this is a lower bound. */

/* Bits of one channel of one texel. */
static uint64_t channel_bits(uint32_t format)
{
    switch (format) {
    case 0x01: /* unsigned and signed 8 bits */
    case 0x08: return 8;
    case 0x02: /* ... 16 bits, half */
    case 0x09:
    case 0x10: return 16;
    case 0x03: /* ... 32 bits, float */
    case 0x0a:
    case 0x20: return 32;
    default: return 0;
    }
}

/* Bits of one texel of formats that name their channels; 8 if the layout is unknown. */
static uint64_t texel_bits(uint32_t format)
{
    switch (format) {
    case 0xc0: /* normalized: 8 bits x 1, 2, 4 */
    case 0xc6: return 8;
    case 0xc1:
    case 0xc7:
    case 0xc3: /* 16 bits x 1, 2, 4 */
    case 0xc9: return 16;
    case 0xc2:
    case 0xc8:
    case 0xc4:
    case 0xca:
    case 0x50: return 32; /* 10, 10, 10, 2 */
    case 0xc5:
    case 0xcb: return 64;
    case 0x91: /* block compressed: BC1 and BC4 have 4 bits per texel, others 8 */
    case 0x92:
    case 0x97:
    case 0x98: return 4;
    default: return 8;
    }
}

static bool is_block_compressed(uint32_t format)
{
    return format >= 0x91 && format <= 0x9e;
}

static uint64_t at_least_one(uint64_t count)
{
    return count ? count : 1;
}

static uint64_t saturating_product(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX / 16 : product;
}

static uint64_t level_bytes(const uint64_t extent[3], uint64_t bits)
{
    uint64_t texels = saturating_product(saturating_product(extent[0], extent[1]), extent[2]);
    return saturating_product(texels, bits) / 8;
}

uint64_t mt_cupti_array_bytes(const struct mt_cu_array3d_descriptor *array, uint32_t levels)
{
    if (!array || !array->Width)
        return 0;
    uint64_t bits = saturating_product(channel_bits(array->Format), array->NumChannels), bytes = 0;
    if (!bits)
        bits = texel_bits(array->Format);
    uint64_t extent[3] = {array->Width, at_least_one(array->Height), at_least_one(array->Depth)};
    bool layered = array->Flags & MT_CU_ARRAY_LAYERED;
    for (uint32_t level = 0; level < levels && level < 32; level++) {
        uint64_t whole[3] = {extent[0], extent[1], extent[2]};
        for (int i = 0; is_block_compressed(array->Format) && i < 2; i++)
            whole[i] = (whole[i] + 3) / 4 * 4;
        bytes += level_bytes(whole, bits);
        for (int i = 0; i < (layered ? 2 : 3); i++)
            extent[i] = at_least_one(extent[i] / 2);
    }
    return bytes;
}

/* Decoders of device memory, host memory and arrays. */

/* Reports a new block of the current context, or a failed allocation. */
static void tell(const struct mt_cupti_call *call, enum mt_cupti_live_space space,
                 enum mt_raw_heap heap, const uint64_t *addr, size_t bytes)
{
    if (call->result || !addr) {
        mt_cupti_record_failed(call, heap, bytes);
        return;
    }
    struct mt_cupti_live_block block = {.addr = *addr,
                                        .size_bytes = bytes,
                                        .context = call->context,
                                        .space = (uint8_t)space,
                                        .heap = (uint8_t)heap,
                                        .device = MT_CU_UNKNOWN_DEVICE};
    mt_cupti_record_alloc(call, &block, 0);
}

static void exit_alloc(const struct mt_cupti_call *call)
{
    const struct mt_cu_alloc *params = call->params;
    tell(call, MT_LIVE_DEVICE, MT_RAW_DRIVER, params->dptr, params->bytesize);
}

static void exit_managed(const struct mt_cupti_call *call)
{
    const struct mt_cu_alloc *params = call->params;
    tell(call, MT_LIVE_DEVICE, MT_RAW_MANAGED, params->dptr, params->bytesize);
}

static void exit_pitch(const struct mt_cupti_call *call)
{
    const struct mt_cu_pitch *params = call->params;
    bool known = call->result == 0 && params->pPitch;
    size_t row = known ? *params->pPitch : params->WidthInBytes, bytes;
    if (__builtin_mul_overflow(row, params->Height, &bytes))
        bytes = SIZE_MAX;
    tell(call, MT_LIVE_DEVICE, MT_RAW_DRIVER, params->dptr, bytes);
}

static void enter_free(const struct mt_cupti_call *call)
{
    (void)mt_cupti_free(MT_LIVE_DEVICE, ((const struct mt_cu_handle *)call->params)->value, 0);
}

static void exit_host_alloc(const struct mt_cupti_call *call)
{
    const struct mt_cu_alloc *params = call->params;
    tell(call, MT_LIVE_HOST, MT_RAW_HOST, params->dptr, params->bytesize);
}

static void exit_register(const struct mt_cupti_call *call)
{
    const struct mt_cu_register *params = call->params;
    tell(call, MT_LIVE_HOST, MT_RAW_HOST, &params->p, params->bytesize);
}

static void enter_host_free(const struct mt_cupti_call *call)
{
    (void)mt_cupti_free(MT_LIVE_HOST, ((const struct mt_cu_handle *)call->params)->value, 0);
}

static void exit_array(const struct mt_cupti_call *call)
{
    const struct mt_cu_array_create *params = call->params;
    const struct mt_cu_array_descriptor *flat = params->pAllocateArray;
    struct mt_cu_array3d_descriptor deep = {0};
    if (flat)
        deep = (struct mt_cu_array3d_descriptor){.Width = flat->Width,
                                                 .Height = flat->Height,
                                                 .Format = flat->Format,
                                                 .NumChannels = flat->NumChannels};
    tell(call, MT_LIVE_ARRAY, MT_RAW_ARRAY, params->pHandle, mt_cupti_array_bytes(&deep, 1));
}

static void exit_array3d(const struct mt_cupti_call *call)
{
    const struct mt_cu_array_create *params = call->params;
    tell(call, MT_LIVE_ARRAY, MT_RAW_ARRAY, params->pHandle,
         mt_cupti_array_bytes(params->pAllocateArray, 1));
}

static void exit_mipmapped(const struct mt_cupti_call *call)
{
    const struct mt_cu_mipmapped_create *params = call->params;
    tell(call, MT_LIVE_MIPMAPPED, MT_RAW_ARRAY, params->pHandle,
         mt_cupti_array_bytes(params->pMipmappedArrayDesc, params->numMipmapLevels));
}

static void enter_array_free(const struct mt_cupti_call *call)
{
    (void)mt_cupti_free(MT_LIVE_ARRAY, ((const struct mt_cu_handle *)call->params)->value, 0);
}

static void enter_mipmapped_free(const struct mt_cupti_call *call)
{
    (void)mt_cupti_free(MT_LIVE_MIPMAPPED, ((const struct mt_cu_handle *)call->params)->value, 0);
}

/* Decoders of memory that belongs to other processes or to graphics interfaces, and of memory nodes
 * of graphs. */

/* Opening the same handle again returns the same address and adds a reference. */
static void exit_ipc_open(const struct mt_cupti_call *call)
{
    const struct mt_cu_import *params = call->params;
    struct mt_cupti_live_block known;
    if (call->result || !params->out)
        return;
    if (mt_cupti_live_find(MT_LIVE_DEVICE, *params->out, &known) && known.heap == MT_RAW_IMPORTED) {
        (void)mt_cupti_live_count(MT_LIVE_DEVICE, *params->out, 1, 0, &known);
        return;
    }
    struct mt_cupti_live_block block = {.addr = *params->out,
                                        .context = call->context,
                                        .references = 1,
                                        .space = MT_LIVE_DEVICE,
                                        .heap = MT_RAW_IMPORTED,
                                        .device = MT_CU_UNKNOWN_DEVICE};
    mt_cupti_record_alloc(call, &block, 0);
}

static void enter_ipc_close(const struct mt_cupti_call *call)
{
    uint64_t addr = ((const struct mt_cu_handle *)call->params)->value;
    struct mt_cupti_live_block known;
    if (mt_cupti_live_find(MT_LIVE_DEVICE, addr, &known) && known.references > 1)
        (void)mt_cupti_live_count(MT_LIVE_DEVICE, addr, -1, 0, &known);
    else
        (void)mt_cupti_free(MT_LIVE_DEVICE, addr, 0);
}

static void tell_external(const struct mt_cupti_call *call, enum mt_cupti_live_space space,
                          uint64_t addr, uint64_t bytes)
{
    struct mt_cupti_live_block block = {.addr = addr,
                                        .size_bytes = bytes,
                                        .context = call->context,
                                        .space = (uint8_t)space,
                                        .heap = MT_RAW_IMPORTED,
                                        .device = MT_CU_UNKNOWN_DEVICE};
    mt_cupti_record_alloc(call, &block, 0);
}

static void exit_external_buffer(const struct mt_cupti_call *call)
{
    const struct mt_cu_external_buffer *params = call->params;
    if (call->result == 0 && params->devPtr && params->bufferDesc)
        tell_external(call, MT_LIVE_DEVICE, *params->devPtr, params->bufferDesc->size);
}

static void exit_external_mipmapped(const struct mt_cupti_call *call)
{
    const struct mt_cu_external_mipmapped *params = call->params;
    const struct mt_cu_mipmapped_desc *desc = params->mipmapDesc;
    if (call->result == 0 && params->mipmap && desc)
        tell_external(call, MT_LIVE_MIPMAPPED, *params->mipmap,
                      mt_cupti_array_bytes(&desc->arrayDesc, desc->numLevels));
}

/* ---- graphs: the memory of a node counts from its creation; launches are not observed ---- */

static void tell_node(const struct mt_cupti_call *call, const struct mt_cu_mem_alloc_node *node)
{
    if (call->result || !node) {
        mt_cupti_record_failed(call, MT_RAW_GRAPH, node ? node->bytesize : 0);
        return;
    }
    const struct mt_cu_location *location = &node->poolProps.location;
    bool on_device = location->type == MT_CU_LOCATION_DEVICE && location->id >= 0 &&
                     location->id < (int)MT_CU_UNKNOWN_DEVICE;
    struct mt_cupti_live_block block = {.addr = node->dptr,
                                        .size_bytes = node->bytesize,
                                        .context = call->context,
                                        .space = MT_LIVE_DEVICE,
                                        .heap = MT_RAW_GRAPH,
                                        .device = on_device ? (uint8_t)location->id
                                                            : (uint8_t)MT_CU_UNKNOWN_DEVICE};
    mt_cupti_record_alloc(call, &block, 0);
}

static void exit_graph_alloc(const struct mt_cupti_call *call)
{
    tell_node(call, ((const struct mt_cu_graph_alloc *)call->params)->nodeParams);
}

static void exit_graph_free(const struct mt_cupti_call *call)
{
    if (call->result == 0)
        (void)mt_cupti_free(MT_LIVE_DEVICE, ((const struct mt_cu_graph_free *)call->params)->dptr,
                            0);
}

static void tell_any_node(const struct mt_cupti_call *call, const struct mt_cu_node_params *node)
{
    if (!node)
        return;
    if (node->type == MT_CU_NODE_MEM_ALLOC)
        tell_node(call, &node->alloc);
    else if (node->type == MT_CU_NODE_MEM_FREE && call->result == 0)
        (void)mt_cupti_free(MT_LIVE_DEVICE, node->free_dptr, 0);
}

static void exit_graph_node(const struct mt_cupti_call *call)
{
    tell_any_node(call, ((const struct mt_cu_graph_node *)call->params)->nodeParams);
}

static void exit_graph_node_v2(const struct mt_cupti_call *call)
{
    tell_any_node(call, ((const struct mt_cu_graph_node_v2 *)call->params)->nodeParams);
}

/* Decoders of physical memory, address ranges and mappings. Physical memory is alive while a handle
 * to it or a mapping of it exists. */

static void exit_reserve(const struct mt_cupti_call *call)
{
    const struct mt_cu_alloc *params = call->params;
    if (call->result || !params->dptr) {
        mt_cupti_record_failed(call, MT_RAW_RESERVED, params->bytesize);
        return;
    }
    struct mt_cupti_live_block block = {.addr = *params->dptr,
                                        .size_bytes = params->bytesize,
                                        .space = MT_LIVE_RESERVED,
                                        .heap = MT_RAW_RESERVED,
                                        .device = MT_CU_UNKNOWN_DEVICE};
    mt_cupti_record_alloc(call, &block, 0);
}

static void enter_address_free(const struct mt_cupti_call *call)
{
    (void)mt_cupti_free(MT_LIVE_RESERVED, ((const struct mt_cu_range *)call->params)->ptr, 0);
}

static bool is_on_host(const struct mt_cu_allocation_prop *prop)
{
    return prop && prop->location.type > MT_CU_LOCATION_DEVICE;
}

static uint8_t device_of(const struct mt_cu_allocation_prop *prop)
{
    bool known = prop && prop->location.type == MT_CU_LOCATION_DEVICE && prop->location.id >= 0 &&
                 prop->location.id < (int)MT_CU_UNKNOWN_DEVICE;
    return known ? (uint8_t)prop->location.id : MT_CU_UNKNOWN_DEVICE;
}

static void exit_create(const struct mt_cupti_call *call)
{
    const struct mt_cu_create *params = call->params;
    enum mt_raw_heap heap = is_on_host(params->prop) ? MT_RAW_HOST : MT_RAW_VIRTUAL;
    if (call->result || !params->handle) {
        mt_cupti_record_failed(call, heap, params->size);
        return;
    }
    struct mt_cupti_live_block block = {.addr = *params->handle,
                                        .size_bytes = params->size,
                                        .references = 1,
                                        .space = MT_LIVE_PHYSICAL,
                                        .heap = (uint8_t)heap,
                                        .device = device_of(params->prop)};
    mt_cupti_record_alloc(call, &block, 0);
}

/* Memory of another process, of which only a handle is known, or memory of this process under a
 * known handle. */
static void exit_import(const struct mt_cupti_call *call)
{
    const struct mt_cu_import *params = call->params;
    struct mt_cupti_live_block known;
    if (call->result || !params->out)
        return;
    if (mt_cupti_live_count(MT_LIVE_PHYSICAL, *params->out, 1, 0, &known) != MT_LIVE_UNKNOWN)
        return;
    struct mt_cupti_live_block block = {.addr = *params->out,
                                        .references = 1,
                                        .space = MT_LIVE_PHYSICAL,
                                        .heap = MT_RAW_IMPORTED,
                                        .device = MT_CU_UNKNOWN_DEVICE};
    mt_cupti_record_alloc(call, &block, 0);
}

static void exit_retain(const struct mt_cupti_call *call)
{
    const struct mt_cu_retain *params = call->params;
    struct mt_cupti_live_block known;
    if (call->result == 0 && params->handle)
        (void)mt_cupti_live_count(MT_LIVE_PHYSICAL, *params->handle, 1, 0, &known);
}

static void enter_release(const struct mt_cupti_call *call)
{
    let_go(((const struct mt_cu_handle *)call->params)->value, 1, 0);
}

static void exit_map(const struct mt_cupti_call *call)
{
    const struct mt_cu_map *params = call->params;
    struct mt_cupti_live_block physical = {.device = MT_CU_UNKNOWN_DEVICE};
    if (call->result) {
        mt_cupti_record_failed(call, MT_RAW_MAPPED, params->size);
        return;
    }
    (void)mt_cupti_live_count(MT_LIVE_PHYSICAL, params->handle, 0, 1, &physical);
    struct mt_cupti_live_block block = {.addr = params->ptr,
                                        .size_bytes = params->size,
                                        .handle = params->handle,
                                        .space = MT_LIVE_MAPPED,
                                        .heap = MT_RAW_MAPPED,
                                        .device = physical.device};
    mt_cupti_record_alloc(call, &block, 0);
}

/* One call may end several adjacent mappings. */
static void enter_unmap(const struct mt_cupti_call *call)
{
    const struct mt_cu_range *params = call->params;
    uint64_t addr = params->ptr, left = params->size;
    struct mt_cupti_live_block mapping;
    while (left && mt_cupti_live_find(MT_LIVE_MAPPED, addr, &mapping)) {
        (void)mt_cupti_free(MT_LIVE_MAPPED, addr, 0);
        let_go(mapping.handle, 0, 1);
        if (mapping.size_bytes == 0 || mapping.size_bytes >= left)
            break;
        addr += mapping.size_bytes;
        left -= mapping.size_bytes;
    }
}

/* The numbers come from CUPTI and only grow. The names are compared at run time before a call is
 * watched. The names of runtime functions end with these. */

// clang-format off
const struct mt_cupti_entry mt_cupti_entries[] = {
    /* Linear device memory. Functions without _v2 have 32-bit sizes and are not used by
     * programs. */
    {243, "cuMemAlloc_v2", NULL, exit_alloc},
    {244, "cuMemAllocPitch_v2", NULL, exit_pitch},
    {371, "cuMemAllocManaged", NULL, exit_managed},
    {245, "cuMemFree_v2", enter_free, exit_free},
    /* Host memory */
    {294, "cuMemAllocHost_v2", NULL, exit_host_alloc},
    {39, "cuMemHostAlloc", NULL, exit_host_alloc},
    {38, "cuMemFreeHost", enter_host_free, exit_free},
    {379, "cuMemHostRegister_v2", NULL, exit_register},
    {301, "cuMemHostRegister", NULL, exit_register},
    {302, "cuMemHostUnregister", enter_host_free, exit_free},
    /* Arrays */
    {272, "cuArrayCreate_v2", NULL, exit_array},
    {274, "cuArray3DCreate_v2", NULL, exit_array3d},
    {89, "cuArrayDestroy", enter_array_free, exit_free},
    {347, "cuMipmappedArrayCreate", NULL, exit_mipmapped},
    {349, "cuMipmappedArrayDestroy", enter_mipmapped_free, exit_free},
    /* Stream-ordered memory and pools */
    {598, "cuMemAllocAsync", NULL, mt_cupti_exit_alloc_async},
    {599, "cuMemAllocAsync_ptsz", NULL, mt_cupti_exit_alloc_async},
    {611, "cuMemAllocFromPoolAsync", NULL, mt_cupti_exit_alloc_pool},
    {612, "cuMemAllocFromPoolAsync_ptsz", NULL, mt_cupti_exit_alloc_pool},
    {600, "cuMemFreeAsync", mt_cupti_enter_free_async, exit_free},
    {601, "cuMemFreeAsync_ptsz", mt_cupti_enter_free_async, exit_free},
    {607, "cuMemPoolCreate", NULL, mt_cupti_exit_pool_create},
    {608, "cuMemPoolDestroy", NULL, mt_cupti_exit_pool_destroy},
    {606, "cuDeviceGetDefaultMemPool", NULL, mt_cupti_exit_pool_default},
    {610, "cuDeviceGetMemPool", NULL, mt_cupti_exit_pool_get},
    {609, "cuDeviceSetMemPool", NULL, mt_cupti_exit_pool_set},
    {801, "cuMemGetDefaultMemPool", NULL, mt_cupti_exit_pool_default_at},
    {802, "cuMemGetMemPool", NULL, mt_cupti_exit_pool_get_at},
    {803, "cuMemSetMemPool", NULL, mt_cupti_exit_pool_set_at},
    {614, "cuMemPoolImportFromShareableHandle", NULL, mt_cupti_exit_pool_import},
    {616, "cuMemPoolImportPointer", NULL, mt_cupti_exit_pointer_import},
    /* Physical memory, address ranges, mappings */
    {547, "cuMemAddressReserve", NULL, exit_reserve},
    {548, "cuMemAddressFree", enter_address_free, exit_free},
    {549, "cuMemCreate", NULL, exit_create},
    {550, "cuMemRelease", enter_release, exit_free},
    {565, "cuMemRetainAllocationHandle", NULL, exit_retain},
    {551, "cuMemMap", NULL, exit_map},
    {552, "cuMemUnmap", enter_unmap, exit_free},
    {555, "cuMemImportFromShareableHandle", NULL, exit_import},
    /* Memory of other processes and interfaces */
    {329, "cuIpcOpenMemHandle", NULL, exit_ipc_open},
    {567, "cuIpcOpenMemHandle_v2", NULL, exit_ipc_open},
    {330, "cuIpcCloseMemHandle", enter_ipc_close, exit_free},
    {486, "cuExternalMemoryGetMappedBuffer", NULL, exit_external_buffer},
    {487, "cuExternalMemoryGetMappedMipmappedArray", NULL, exit_external_mipmapped},
    /* Memory nodes of graphs */
    {638, "cuGraphAddMemAllocNode", NULL, exit_graph_alloc},
    {639, "cuGraphAddMemFreeNode", NULL, exit_graph_free},
    {712, "cuGraphAddNode", NULL, exit_graph_node},
    {723, "cuGraphAddNode_v2", NULL, exit_graph_node_v2},
    {863, "cuGraphAddNode_v3", NULL, exit_graph_node_v2},
    /* Contexts: their devices */
    {235, "cuCtxCreate_v2", mt_cupti_enter_context_v2, mt_cupti_exit_context},
    {645, "cuCtxCreate_v3", mt_cupti_enter_context_v3, mt_cupti_exit_context},
    {757, "cuCtxCreate_v4", mt_cupti_enter_context_v4, mt_cupti_exit_context},
    {386, "cuDevicePrimaryCtxRetain", mt_cupti_enter_context_retain, mt_cupti_exit_context},
    {743, "cuGreenCtxCreate", mt_cupti_enter_green, mt_cupti_exit_context},
    {753, "cuCtxFromGreenCtx", NULL, mt_cupti_exit_green_context},
    /* Properties of devices that the program requests */
    {259, "cuDeviceTotalMem_v2", NULL, mt_cupti_exit_device_total},
    {5, "cuDeviceGetName", NULL, mt_cupti_exit_device_name},
};
// clang-format on

const size_t mt_cupti_entry_count = MT_ARRAY_LEN(mt_cupti_entries);

static bool has(const char *name, const char *word)
{
    return strstr(name, word) != NULL;
}

bool mt_cupti_name_is_of_memory(const char *name)
{
    if (has(name, "Memcpy") || has(name, "Memset") || has(name, "Get"))
        return false;
    return has(name, "Mem") || has(name, "Alloc") || has(name, "Array") || has(name, "Pool");
}
