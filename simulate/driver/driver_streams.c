/* Streams, events, and their work, which takes no time: copies, launches, modules. An access to an
 * address without memory makes the context unusable, as on a device. */
#include <stdlib.h>

#include "simulated_driver.h"

/* Graphs of memory nodes, built by the program or by stream capture. An allocation node gets its
 * address when it is added. The address has memory from a launch of the graph until the graph or
 * the program frees it. */

struct CUgraphNode_st {
    CUgraphNodeType type;
    uint64_t addr;
    struct CUgraphNode_st *next;
};

struct CUgraph_st {
    CUcontext context;
    struct CUgraphNode_st *first, **last;
};

struct CUgraphExec_st {
    CUgraph graph;
};

static CUresult create_graph(CUgraph *graph)
{
    CUresult result = sd_initialized();
    if (result)
        return result;
    *graph = calloc(1, sizeof **graph);
    if (!*graph)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*graph)->context = sd_current_or_null();
    (*graph)->last = &(*graph)->first;
    return CUDA_SUCCESS;
}

SD_EXPORT CUresult cuGraphCreate(CUgraph *phGraph, unsigned int flags)
{
    (void)flags;
    return create_graph(phGraph);
}

static CUresult place_node(uint64_t bytes, uint64_t *addr)
{
    CUcontext context;
    CUresult result = sd_current(&context);
    if (result)
        return result;
    struct sd_block block = {
        .bytes = bytes, .kind = SD_GRAPHED, .device = context->device, .context = context};
    sd_lock();
    result = sd_place(&block, addr);
    sd_unlock();
    return result;
}

CUresult sd_add_memory_node(CUgraph graph, CUgraphNodeType type, uint64_t bytes, uint64_t *addr,
                            CUgraphNode *node)
{
    CUresult result = CUDA_SUCCESS;
    if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        result = place_node(bytes, addr);
    *node = result ? NULL : calloc(1, sizeof **node);
    if (!*node)
        return result ? result : CUDA_ERROR_OUT_OF_MEMORY;
    **node = (struct CUgraphNode_st){type, *addr, NULL};
    *graph->last = *node;
    graph->last = &(*node)->next;
    return CUDA_SUCCESS;
}

/* CUPTI reports nodes that the program adds, not those that it captures. */
static CUresult add_node(CUgraph graph, CUgraphNodeType type, uint64_t bytes, uint64_t *addr,
                         CUgraphNode *node)
{
    CUresult result = sd_add_memory_node(graph, type, bytes, addr, node);
    if (result)
        return result;
    struct sd_graph_data data = {.graph = graph, .node = *node, .node_type = type};
    sd_tell(SD_GRAPHNODE_CREATED, graph->context, NULL, &data);
    return CUDA_SUCCESS;
}

static CUresult add_alloc(CUgraphNode *node, CUgraph graph, CUDA_MEM_ALLOC_NODE_PARAMS *wanted)
{
    uint64_t addr = 0;
    CUresult result = add_node(graph, CU_GRAPH_NODE_TYPE_MEM_ALLOC, wanted->bytesize, &addr, node);
    if (!result)
        wanted->dptr = addr;
    return result;
}

SD_ENTRY5(cuGraphAddMemAllocNode, CUgraphNode *, phGraphNode, CUgraph, hGraph, const CUgraphNode *,
          dependencies, size_t, numDependencies, CUDA_MEM_ALLOC_NODE_PARAMS *, nodeParams,
          add_alloc(phGraphNode, hGraph, nodeParams))

static CUresult add_free(CUgraphNode *node, CUgraph graph, CUdeviceptr addr)
{
    uint64_t freed = addr;
    return add_node(graph, CU_GRAPH_NODE_TYPE_MEM_FREE, 0, &freed, node);
}

SD_ENTRY5(cuGraphAddMemFreeNode, CUgraphNode *, phGraphNode, CUgraph, hGraph, const CUgraphNode *,
          dependencies, size_t, numDependencies, CUdeviceptr, dptr,
          add_free(phGraphNode, hGraph, dptr))

static CUresult add_any(CUgraphNode *node, CUgraph graph, CUgraphNodeParams *wanted)
{
    if (wanted->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        return add_alloc(node, graph, (CUDA_MEM_ALLOC_NODE_PARAMS *)(void *)&wanted->alloc);
    if (wanted->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
        return add_free(node, graph, wanted->free.dptr);
    uint64_t none = 0;
    return add_node(graph, wanted->type, 0, &none, node);
}

SD_ENTRY6(cuGraphAddNode_v2, CUgraphNode *, phGraphNode, CUgraph, hGraph, const CUgraphNode *,
          dependencies, const CUgraphEdgeData *, dependencyData, size_t, numDependencies,
          CUgraphNodeParams *, nodeParams, add_any(phGraphNode, hGraph, nodeParams))

static CUresult begin_capture(CUstream stream)
{
    if ((uintptr_t)stream <= 2 || stream->capture)
        return CUDA_ERROR_INVALID_VALUE;
    return create_graph(&stream->capture);
}

static CUresult end_capture(CUstream stream, CUgraph *graph)
{
    if ((uintptr_t)stream <= 2 || !stream->capture)
        return CUDA_ERROR_INVALID_VALUE;
    *graph = stream->capture;
    stream->capture = NULL;
    return CUDA_SUCCESS;
}

SD_ENTRY2(cuStreamBeginCapture_v2, CUstream, hStream, CUstreamCaptureMode, mode,
          begin_capture(hStream))

SD_ENTRY2(cuStreamEndCapture, CUstream, hStream, CUgraph *, phGraph, end_capture(hStream, phGraph))

SD_EXPORT CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
    bool capturing = (uintptr_t)hStream > 2 && hStream->capture;
    *captureStatus = capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

static CUresult instantiate(CUgraphExec *exec, CUgraph graph)
{
    *exec = calloc(1, sizeof **exec);
    if (!*exec)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*exec)->graph = graph;
    struct sd_graph_data data = {.graph = graph, .exec = *exec};
    sd_tell(SD_GRAPHEXEC_CREATED, graph->context, NULL, &data);
    return CUDA_SUCCESS;
}

SD_ENTRY3(cuGraphInstantiateWithFlags, CUgraphExec *, phGraphExec, CUgraph, hGraph,
          unsigned long long, flags, instantiate(phGraphExec, hGraph))

/* Maps memory to the addresses of the nodes in order, and releases what the graph frees. */
static CUresult launch(CUgraphExec exec)
{
    CUresult result = CUDA_SUCCESS;
    sd_lock();
    for (struct CUgraphNode_st *node = exec->graph->first; node && !result; node = node->next) {
        struct sd_block *block = sd_find(node->addr, SD_GRAPHED);
        if (!block)
            continue;
        if (node->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
            sd_unback(block);
        else
            result = block->paged ? CUDA_ERROR_INVALID_VALUE : sd_back(block);
    }
    sd_unlock();
    return result;
}

SD_ENTRY2(cuGraphLaunch, CUgraphExec, hGraphExec, CUstream, hStream, launch(hGraphExec))

static CUresult destroy_exec(CUgraphExec exec)
{
    struct sd_graph_data data = {.graph = exec->graph, .exec = exec};
    sd_tell(SD_GRAPHEXEC_DESTROY_STARTING, exec->graph->context, NULL, &data);
    free(exec);
    return CUDA_SUCCESS;
}

SD_ENTRY1(cuGraphExecDestroy, CUgraphExec, hGraphExec, destroy_exec(hGraphExec))

static CUresult destroy_graph(CUgraph graph)
{
    for (struct CUgraphNode_st *node = graph->first, *next; node; node = next) {
        next = node->next;
        free(node);
    }
    free(graph);
    return CUDA_SUCCESS;
}

SD_ENTRY1(cuGraphDestroy, CUgraph, hGraph, destroy_graph(hGraph))

SD_ENTRY1(cuDeviceGraphMemTrim, CUdevice, device,
          sd_is_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE)

static CUresult create_stream(CUstream *stream)
{
    CUcontext context;
    CUresult result = sd_current(&context);
    if (result)
        return result;
    *stream = calloc(1, sizeof **stream);
    if (!*stream)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*stream)->context = context;
    sd_tell(SD_STREAM_CREATED, context, *stream, NULL);
    return CUDA_SUCCESS;
}

SD_ENTRY2(cuStreamCreate, CUstream *, phStream, unsigned int, Flags, create_stream(phStream))

SD_ENTRY3(cuStreamCreateWithPriority, CUstream *, phStream, unsigned int, flags, int, priority,
          create_stream(phStream))

static CUresult destroy_stream(CUstream stream)
{
    CUresult result = sd_initialized();
    if (result || !stream)
        return result ? result : CUDA_ERROR_INVALID_HANDLE;
    sd_tell(SD_STREAM_DESTROY_STARTING, stream->context, stream, NULL);
    free(stream);
    return CUDA_SUCCESS;
}

SD_ENTRY1(cuStreamDestroy_v2, CUstream, hStream, destroy_stream(hStream))

SD_EXPORT CUresult cuStreamSynchronize(CUstream hStream)
{
    CUcontext context;
    (void)hStream;
    return sd_current(&context);
}

SD_EXPORT CUresult cuStreamQuery(CUstream hStream)
{
    return cuStreamSynchronize(hStream);
}

struct CUevent_st {
    int unused;
};

SD_EXPORT CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
    (void)Flags;
    *phEvent = calloc(1, sizeof **phEvent);
    return *phEvent ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SD_EXPORT CUresult cuEventDestroy_v2(CUevent hEvent)
{
    free(hEvent);
    return CUDA_SUCCESS;
}

SD_EXPORT CUresult cuEventRecord(CUevent hEvent, CUstream hStream)
{
    (void)hEvent;
    return cuStreamSynchronize(hStream);
}

SD_EXPORT CUresult cuEventSynchronize(CUevent hEvent)
{
    (void)hEvent;
    return CUDA_SUCCESS;
}

SD_EXPORT CUresult cuEventQuery(CUevent hEvent)
{
    return cuEventSynchronize(hEvent);
}

SD_EXPORT CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
    (void)hEvent;
    (void)Flags;
    return cuStreamSynchronize(hStream);
}

static CUresult set_bytes(CUdeviceptr addr)
{
    CUcontext context;
    CUresult result = sd_current(&context);
    if (result)
        return result;
    sd_lock();
    if (!sd_find_around(addr))
        context->sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
    sd_unlock();
    return context->sticky;
}

SD_ENTRY3(cuMemsetD8_v2, CUdeviceptr, dstDevice, unsigned char, uc, size_t, N, set_bytes(dstDevice))

struct CUmod_st {
    int unused;
};

static CUresult load_module(CUmodule *module)
{
    CUcontext context;
    CUresult result = sd_current(&context);
    if (result)
        return result;
    *module = calloc(1, sizeof **module);
    if (!*module)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct {
        uint32_t id;
        size_t bytes;
        const char *code;
    } descriptor = {1, 4096, "stand-in"};
    sd_tell(SD_MODULE_LOADED, context, NULL, &descriptor);
    return CUDA_SUCCESS;
}

SD_ENTRY2(cuModuleLoadData, CUmodule *, module, const void *, image, load_module(module))

SD_EXPORT CUresult cuModuleUnload(CUmodule hmod)
{
    free(hmod);
    return CUDA_SUCCESS;
}

SD_EXPORT CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
    (void)name;
    *hfunc = (CUfunction)(void *)hmod;
    return CUDA_SUCCESS;
}

/* The runtime counts launches; some libraries have only the driver. */
__attribute__((weak)) void sim_stream_work(CUstream stream);

static CUresult launch_kernel(CUstream stream)
{
    CUcontext context;
    CUresult result = sd_current(&context);
    if (!result && sim_stream_work)
        sim_stream_work(stream);
    return result;
}

SD_EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                  unsigned int gridDimZ, unsigned int blockDimX,
                                  unsigned int blockDimY, unsigned int blockDimZ,
                                  unsigned int sharedMemBytes, CUstream hStream,
                                  void **kernelParams, void **extra)
{
    struct {
        CUfunction f;
        unsigned int grid[3], block[3], shared_bytes;
        CUstream hStream;
        void **kernelParams, **extra;
    } params = {f,
                {gridDimX, gridDimY, gridDimZ},
                {blockDimX, blockDimY, blockDimZ},
                sharedMemBytes,
                hStream,
                kernelParams,
                extra};
    SD_CALL(cuLaunchKernel, params, launch_kernel(hStream));
}
