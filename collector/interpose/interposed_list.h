/* INTERPOSED(name, since, arguments): entry points of libcuda that libmemtrace-cuda.so interposes.
 * `since`: the first version of the driver's interface for which cuGetProcAddress returns this
 * version of the function (UINT32_MAX: recognize it by its address only). `arguments`: one
 * character for each argument, its size in bytes (8 or 4), or s for a stream. If the stream is
 * being captured, the call adds a node to a graph. The file is included once for each use, so it
 * has no guard. */
// clang-format off

/* Linear device memory, host memory, arrays */
INTERPOSED(cuMemAlloc_v2, 0, "88")
INTERPOSED(cuMemAllocPitch_v2, 0, "88884")
INTERPOSED(cuMemAllocManaged, 0, "884")
INTERPOSED(cuMemFree_v2, 0, "8")
INTERPOSED(cuMemAllocHost_v2, 0, "88")
INTERPOSED(cuMemHostAlloc, 0, "884")
INTERPOSED(cuMemFreeHost, 0, "8")
INTERPOSED(cuMemHostRegister_v2, 6050, "884")
INTERPOSED(cuMemHostRegister, 0, "884")
INTERPOSED(cuMemHostUnregister, 0, "8")
INTERPOSED(cuArrayCreate_v2, 0, "88")
INTERPOSED(cuArray3DCreate_v2, 0, "88")
INTERPOSED(cuArrayDestroy, 0, "8")
INTERPOSED(cuMipmappedArrayCreate, 0, "884")
INTERPOSED(cuMipmappedArrayDestroy, 0, "8")

/* Stream-ordered memory and pools */
INTERPOSED(cuMemAllocAsync, 0, "88s")
INTERPOSED(cuMemAllocAsync_ptsz, 0, "88s")
INTERPOSED(cuMemAllocFromPoolAsync, 0, "888s")
INTERPOSED(cuMemAllocFromPoolAsync_ptsz, 0, "888s")
INTERPOSED(cuMemFreeAsync, 0, "88")
INTERPOSED(cuMemFreeAsync_ptsz, 0, "88")
INTERPOSED(cuMemPoolCreate, 0, "88")
INTERPOSED(cuMemPoolDestroy, 0, "8")
INTERPOSED(cuDeviceGetDefaultMemPool, 0, "84")
INTERPOSED(cuDeviceGetMemPool, 0, "84")
INTERPOSED(cuDeviceSetMemPool, 0, "48")
INTERPOSED(cuMemGetDefaultMemPool, 0, "884")
INTERPOSED(cuMemGetMemPool, 0, "884")
INTERPOSED(cuMemSetMemPool, 0, "848")
INTERPOSED(cuMemPoolImportFromShareableHandle, 0, "8848")
INTERPOSED(cuMemPoolImportPointer, 0, "888")

/* Physical memory, address ranges, mappings */
INTERPOSED(cuMemAddressReserve, 0, "88888")
INTERPOSED(cuMemAddressFree, 0, "88")
INTERPOSED(cuMemCreate, 0, "8888")
INTERPOSED(cuMemRelease, 0, "8")
INTERPOSED(cuMemRetainAllocationHandle, 0, "88")
INTERPOSED(cuMemMap, 0, "88888")
INTERPOSED(cuMemUnmap, 0, "88")
INTERPOSED(cuMemImportFromShareableHandle, 0, "884")

/* Memory of other processes and interfaces. Calls that open an IPC handle pass a structure by
 * value, so they are not here but in interposer_calls.c */
INTERPOSED(cuIpcCloseMemHandle, 0, "8")
INTERPOSED(cuExternalMemoryGetMappedBuffer, 0, "888")
INTERPOSED(cuExternalMemoryGetMappedMipmappedArray, 0, "888")

/* Memory nodes of graphs */
INTERPOSED(cuGraphAddMemAllocNode, 0, "88888")
INTERPOSED(cuGraphAddMemFreeNode, 0, "88888")
INTERPOSED(cuGraphAddNode, 0, "88888")
INTERPOSED(cuGraphAddNode_v2, 12030, "888888")
INTERPOSED(cuGraphAddNode_v3, UINT32_MAX, "888888")

/* Contexts and devices */
INTERPOSED(cuCtxCreate_v2, 0, "844")
INTERPOSED(cuCtxCreate_v3, 11040, "88444")
INTERPOSED(cuCtxCreate_v4, 12050, "8844")
INTERPOSED(cuCtxDestroy_v2, 0, "8")
INTERPOSED(cuDevicePrimaryCtxRetain, 0, "84")
INTERPOSED(cuDevicePrimaryCtxReset_v2, 0, "4")
INTERPOSED(cuDevicePrimaryCtxRelease_v2, 0, "4")
INTERPOSED(cuGreenCtxCreate, 0, "8844")
INTERPOSED(cuCtxFromGreenCtx, 0, "88")
INTERPOSED(cuDeviceTotalMem_v2, 0, "84")
INTERPOSED(cuDeviceGetName, 0, "844")
