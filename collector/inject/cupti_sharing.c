/* Decoders of memory that belongs to other processes or to graphics interfaces, and of memory nodes
 * of graphs. */
#include "collect.h"
#include "cupti_abi.h"
#include "cupti_array_bytes.h"
#include "cupti_contexts.h"
#include "cupti_tell.h"

/* Opening the same handle again returns the same address and adds a reference. */
void mt_cupti_exit_ipc_open(const struct mt_cupti_call *call)
{
    const struct mt_cu_import *params = call->params;
    struct mt_live_block known;
    if (call->result || !params->out)
        return;
    if (mt_live_find(MT_LIVE_DEVICE, *params->out, &known) && known.heap == MT_RAW_IMPORTED) {
        (void)mt_live_count(MT_LIVE_DEVICE, *params->out, 1, 0, &known);
        return;
    }
    struct mt_live_block block = {.addr = *params->out,
                                  .context = call->context,
                                  .references = 1,
                                  .space = MT_LIVE_DEVICE,
                                  .heap = MT_RAW_IMPORTED,
                                  .device = MT_CU_UNKNOWN_DEVICE};
    mt_cupti_tell_alloc(call, &block, 0);
}

void mt_cupti_enter_ipc_close(const struct mt_cupti_call *call)
{
    uint64_t addr = ((const struct mt_cu_handle *)call->params)->value;
    struct mt_live_block known;
    if (mt_live_find(MT_LIVE_DEVICE, addr, &known) && known.references > 1)
        (void)mt_live_count(MT_LIVE_DEVICE, addr, -1, 0, &known);
    else
        (void)mt_cupti_free(MT_LIVE_DEVICE, addr, 0);
}

static void tell_external(const struct mt_cupti_call *call, enum mt_live_space space, uint64_t addr,
                          uint64_t bytes)
{
    struct mt_live_block block = {.addr = addr,
                                  .size_bytes = bytes,
                                  .context = call->context,
                                  .space = (uint8_t)space,
                                  .heap = MT_RAW_IMPORTED,
                                  .device = MT_CU_UNKNOWN_DEVICE};
    mt_cupti_tell_alloc(call, &block, 0);
}

void mt_cupti_exit_external_buffer(const struct mt_cupti_call *call)
{
    const struct mt_cu_external_buffer *params = call->params;
    if (call->result == 0 && params->devPtr && params->bufferDesc)
        tell_external(call, MT_LIVE_DEVICE, *params->devPtr, params->bufferDesc->size);
}

void mt_cupti_exit_external_mipmapped(const struct mt_cupti_call *call)
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
        mt_cupti_tell_failed(call, MT_RAW_GRAPH, node ? node->bytesize : 0);
        return;
    }
    const struct mt_cu_location *location = &node->poolProps.location;
    bool on_device = location->type == MT_CU_LOCATION_DEVICE && location->id >= 0 &&
                     location->id < (int)MT_CU_UNKNOWN_DEVICE;
    struct mt_live_block block = {.addr = node->dptr,
                                  .size_bytes = node->bytesize,
                                  .context = call->context,
                                  .space = MT_LIVE_DEVICE,
                                  .heap = MT_RAW_GRAPH,
                                  .device = on_device ? (uint8_t)location->id
                                                      : (uint8_t)MT_CU_UNKNOWN_DEVICE};
    mt_cupti_tell_alloc(call, &block, 0);
}

void mt_cupti_exit_graph_alloc(const struct mt_cupti_call *call)
{
    tell_node(call, ((const struct mt_cu_graph_alloc *)call->params)->nodeParams);
}

void mt_cupti_exit_graph_free(const struct mt_cupti_call *call)
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

void mt_cupti_exit_graph_node(const struct mt_cupti_call *call)
{
    tell_any_node(call, ((const struct mt_cu_graph_node *)call->params)->nodeParams);
}

void mt_cupti_exit_graph_node_v2(const struct mt_cupti_call *call)
{
    tell_any_node(call, ((const struct mt_cu_graph_node_v2 *)call->params)->nodeParams);
}
