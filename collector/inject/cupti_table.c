/* See cupti_calls.h. The numbers come from CUPTI and only grow. The names are compared at run time
 * before a call is watched. The names of runtime functions end with these. */
#include "cupti_calls.h"

#include <string.h>

#include "util.h"

// clang-format off
const struct mt_cupti_entry mt_cupti_entries[] = {
    /* Linear device memory. Functions without _v2 have 32-bit sizes and are not used by
     * programs. */
    {243, "cuMemAlloc_v2", NULL, mt_cupti_exit_alloc},
    {244, "cuMemAllocPitch_v2", NULL, mt_cupti_exit_pitch},
    {371, "cuMemAllocManaged", NULL, mt_cupti_exit_managed},
    {245, "cuMemFree_v2", mt_cupti_enter_free, mt_cupti_exit_free},
    /* Host memory */
    {294, "cuMemAllocHost_v2", NULL, mt_cupti_exit_host_alloc},
    {39, "cuMemHostAlloc", NULL, mt_cupti_exit_host_alloc},
    {38, "cuMemFreeHost", mt_cupti_enter_host_free, mt_cupti_exit_free},
    {379, "cuMemHostRegister_v2", NULL, mt_cupti_exit_register},
    {301, "cuMemHostRegister", NULL, mt_cupti_exit_register},
    {302, "cuMemHostUnregister", mt_cupti_enter_host_free, mt_cupti_exit_free},
    /* Arrays */
    {272, "cuArrayCreate_v2", NULL, mt_cupti_exit_array},
    {274, "cuArray3DCreate_v2", NULL, mt_cupti_exit_array3d},
    {89, "cuArrayDestroy", mt_cupti_enter_array_free, mt_cupti_exit_free},
    {347, "cuMipmappedArrayCreate", NULL, mt_cupti_exit_mipmapped},
    {349, "cuMipmappedArrayDestroy", mt_cupti_enter_mipmapped_free, mt_cupti_exit_free},
    /* Stream-ordered memory and pools */
    {598, "cuMemAllocAsync", NULL, mt_cupti_exit_alloc_async},
    {599, "cuMemAllocAsync_ptsz", NULL, mt_cupti_exit_alloc_async},
    {611, "cuMemAllocFromPoolAsync", NULL, mt_cupti_exit_alloc_pool},
    {612, "cuMemAllocFromPoolAsync_ptsz", NULL, mt_cupti_exit_alloc_pool},
    {600, "cuMemFreeAsync", mt_cupti_enter_free_async, mt_cupti_exit_free},
    {601, "cuMemFreeAsync_ptsz", mt_cupti_enter_free_async, mt_cupti_exit_free},
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
    {547, "cuMemAddressReserve", NULL, mt_cupti_exit_reserve},
    {548, "cuMemAddressFree", mt_cupti_enter_address_free, mt_cupti_exit_free},
    {549, "cuMemCreate", NULL, mt_cupti_exit_create},
    {550, "cuMemRelease", mt_cupti_enter_release, mt_cupti_exit_free},
    {565, "cuMemRetainAllocationHandle", NULL, mt_cupti_exit_retain},
    {551, "cuMemMap", NULL, mt_cupti_exit_map},
    {552, "cuMemUnmap", mt_cupti_enter_unmap, mt_cupti_exit_free},
    {555, "cuMemImportFromShareableHandle", NULL, mt_cupti_exit_import},
    /* Memory of other processes and interfaces */
    {329, "cuIpcOpenMemHandle", NULL, mt_cupti_exit_ipc_open},
    {567, "cuIpcOpenMemHandle_v2", NULL, mt_cupti_exit_ipc_open},
    {330, "cuIpcCloseMemHandle", mt_cupti_enter_ipc_close, mt_cupti_exit_free},
    {486, "cuExternalMemoryGetMappedBuffer", NULL, mt_cupti_exit_external_buffer},
    {487, "cuExternalMemoryGetMappedMipmappedArray", NULL, mt_cupti_exit_external_mipmapped},
    /* Memory nodes of graphs */
    {638, "cuGraphAddMemAllocNode", NULL, mt_cupti_exit_graph_alloc},
    {639, "cuGraphAddMemFreeNode", NULL, mt_cupti_exit_graph_free},
    {712, "cuGraphAddNode", NULL, mt_cupti_exit_graph_node},
    {723, "cuGraphAddNode_v2", NULL, mt_cupti_exit_graph_node_v2},
    {863, "cuGraphAddNode_v3", NULL, mt_cupti_exit_graph_node_v2},
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
