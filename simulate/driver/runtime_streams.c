/* Streams, events, captures and graphs. Nothing runs: a stream only has the capture that it belongs
 * to, and its order relative to other streams and to the host. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "pending_collectives.h"
#include "simulated_runtime.h"
#include "stream_order.h"

struct stream {
    struct stream *next;
    cudaStream_t handle;
    int device;
    int priority;
    uint64_t capture; /* 0: not capturing */
    struct sim_stream_order order;
};

struct CUevent_st {
    uint64_t id;
    uint64_t capture;
    struct sim_event_order order;
};

struct CUgraph_st {
    uint64_t capture;
    size_t node_count;
};

struct CUgraphExec_st {
    size_t node_count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct stream *streams;
static struct stream no_stream;     /* used if there is no memory for a stream */
static struct CUgraph_st *captured; /* the graph that is being captured */
static uint64_t capture_count;
static atomic_int captures_underway;

/* Known handles, and gradually the default ones of each device: 0, which is also 1, and 2. Locked.
 */
static struct stream *find_stream(cudaStream_t handle)
{
    handle = (uintptr_t)handle == 1 ? NULL : handle;
    bool own = (uintptr_t)handle > 2;
    struct stream **at = &streams;
    while (*at != NULL && ((*at)->handle != handle || !(own || (*at)->device == sim_device())))
        at = &(*at)->next;
    struct stream *s = *at;
    if (s != NULL) {
        *at = s->next;
    } else {
        s = calloc(1, sizeof *s);
        if (s == NULL)
            return &no_stream;
        s->handle = handle;
        s->device = sim_device();
    }
    s->next = streams; /* the stream that is used next is often the same */
    streams = s;
    return s;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    if (!sim_enter())
        return cudaPeekAtLastError();
    CUresult result = cuStreamCreateWithPriority(stream, flags, priority);
    if (result == CUDA_SUCCESS) {
        pthread_mutex_lock(&lock);
        struct stream *s = find_stream(*stream);
        s->priority = priority;
        s->capture = 0;
        pthread_mutex_unlock(&lock);
    }
    return sim_result((int)result);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return cudaStreamCreateWithPriority(stream, 0, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    if (!sim_enter())
        return cudaPeekAtLastError();
    pthread_mutex_lock(&lock);
    for (struct stream **at = &streams; *at != NULL; at = &(*at)->next) {
        if ((*at)->handle == stream) {
            struct stream *gone = *at;
            *at = gone->next;
            sim_order_end_stream(&gone->order, gone->device);
            free(gone);
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return sim_result((int)cuStreamDestroy_v2(stream));
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
    pthread_mutex_lock(&lock);
    *priority = find_stream(stream)->priority;
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

uint64_t sim_stream_capture(cudaStream_t stream)
{
    if (atomic_load_explicit(&captures_underway, memory_order_relaxed) == 0)
        return 0;
    pthread_mutex_lock(&lock);
    uint64_t capture = find_stream(stream)->capture;
    pthread_mutex_unlock(&lock);
    return capture;
}

bool sim_stream_capturing(cudaStream_t stream)
{
    return sim_stream_capture(stream) != 0;
}

void sim_stream_join_capture(cudaStream_t stream, uint64_t capture)
{
    pthread_mutex_lock(&lock);
    struct stream *s = find_stream(stream);
    if (captured != NULL && captured->capture == capture && s->capture == 0)
        s->capture = capture;
    pthread_mutex_unlock(&lock);
}

void sim_stream_work(cudaStream_t stream)
{
    sim_count_launch();
    pthread_mutex_lock(&lock);
    struct stream *s = find_stream(stream);
    if (captured != NULL && s->capture == captured->capture)
        captured->node_count++;
    else
        sim_order_launch(&s->order);
    pthread_mutex_unlock(&lock);
}

void sim_finish_stream(cudaStream_t stream)
{
    pthread_mutex_lock(&lock);
    sim_order_finish_stream(&find_stream(stream)->order);
    pthread_mutex_unlock(&lock);
}

void sim_finish_device(void)
{
    pthread_mutex_lock(&lock);
    for (struct stream *s = streams; s != NULL; s = s->next)
        if (s->device == sim_device())
            sim_order_finish_stream(&s->order);
    sim_order_finish_ended(sim_device());
    pthread_mutex_unlock(&lock);
}

cudaError_t cudaDeviceSynchronize(void)
{
    if (!sim_enter())
        return cudaPeekAtLastError();
    sim_finish_device();
    return sim_result((int)cuCtxSynchronize());
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    if (sim_stream_capturing(stream))
        return sim_result(cudaErrorStreamCaptureUnsupported);
    sim_finish_stream(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    if (sim_stream_capturing(stream))
        return sim_result(cudaErrorStreamCaptureUnsupported);
    enum sim_asker asker = sim_asker_at(__builtin_return_address(0));
    pthread_mutex_lock(&lock);
    bool is_pending = sim_order_stream_is_pending(&find_stream(stream)->order, asker);
    pthread_mutex_unlock(&lock);
    return is_pending ? sim_result(cudaErrorNotReady) : cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    (void)flags;
    if (event->capture != 0)
        sim_stream_join_capture(stream, event->capture);
    pthread_mutex_lock(&lock);
    sim_order_wait(&find_stream(stream)->order, &event->order);
    pthread_mutex_unlock(&lock);
    sim_stream_waits(stream, event, event->id);
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data)
{
    sim_stream_work(stream);
    if (!sim_stream_capturing(stream))
        function(data);
    return cudaSuccess;
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *data,
                                  unsigned flags)
{
    (void)flags;
    callback(stream, cudaSuccess, data);
    return cudaSuccess;
}

/* ---- events */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    static atomic_ullong event_count;
    (void)flags;
    if (!sim_enter())
        return cudaPeekAtLastError();
    *event = calloc(1, sizeof **event);
    if (*event == NULL)
        return sim_result(cudaErrorMemoryAllocation);
    (*event)->id = atomic_fetch_add(&event_count, 1) + 1;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    sim_event_is_gone(event);
    free(event);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    event->capture = sim_stream_capture(stream);
    pthread_mutex_lock(&lock);
    sim_order_record(&find_stream(stream)->order, &event->order);
    pthread_mutex_unlock(&lock);
    sim_event_is_recorded(event, stream, event->capture != 0);
    return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
    (void)flags;
    return cudaEventRecord(event, stream);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    if (event->capture != 0)
        return sim_result(cudaErrorCapturedEvent);
    if (sim_is_watchdog())
        return sim_event_is_hidden(event) ? sim_result(cudaErrorNotReady) : cudaSuccess;
    enum sim_asker asker = sim_asker_at(__builtin_return_address(0));
    pthread_mutex_lock(&lock);
    bool is_pending = sim_order_is_pending(&event->order, asker);
    pthread_mutex_unlock(&lock);
    return is_pending ? sim_result(cudaErrorNotReady) : cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    pthread_mutex_lock(&lock);
    sim_order_finish_event(&event->order);
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    (void)start, (void)end;
    *ms = 1; /* never 0, because programs divide by it */
    return cudaSuccess;
}

/* ---- captures and graphs */

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    static _Thread_local enum cudaStreamCaptureMode current = cudaStreamCaptureModeGlobal;
    enum cudaStreamCaptureMode before = current;
    current = *mode;
    *mode = before;
    sim_watchdog_moves_on();
    return cudaSuccess;
}

/* Returns false if another capture is in progress. */
static bool begin_capture(cudaStream_t stream, struct CUgraph_st *graph)
{
    pthread_mutex_lock(&lock);
    bool free_to_go = captured == NULL;
    if (free_to_go) {
        graph->capture = ++capture_count;
        captured = graph;
        find_stream(stream)->capture = graph->capture;
        atomic_fetch_add(&captures_underway, 1);
    }
    pthread_mutex_unlock(&lock);
    return free_to_go;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    (void)mode;
    struct CUgraph_st *graph = calloc(1, sizeof *graph);
    if (graph == NULL)
        return sim_result(cudaErrorMemoryAllocation);
    if (!begin_capture(stream, graph)) {
        free(graph);
        return sim_result(cudaErrorStreamCaptureUnsupported);
    }
    return cudaSuccess;
}

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned flags)
{
    (void)flags;
    *graph = calloc(1, sizeof **graph);
    return *graph != NULL ? cudaSuccess : sim_result(cudaErrorMemoryAllocation);
}

/* Captures into an existing graph, which gets the nodes of the capture. */
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
                                          const cudaGraphNode_t *dependencies,
                                          const cudaGraphEdgeData *edges, size_t count,
                                          enum cudaStreamCaptureMode mode)
{
    (void)dependencies, (void)edges, (void)count, (void)mode;
    return begin_capture(stream, graph) ? cudaSuccess
                                        : sim_result(cudaErrorStreamCaptureUnsupported);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    pthread_mutex_lock(&lock);
    bool capturing = captured != NULL && find_stream(stream)->capture == captured->capture;
    if (capturing) {
        for (struct stream *s = streams; s != NULL; s = s->next)
            s->capture = s->capture == captured->capture ? 0 : s->capture;
        *graph = captured;
        captured = NULL;
        atomic_fetch_sub(&captures_underway, 1);
    }
    pthread_mutex_unlock(&lock);
    return capturing ? cudaSuccess : sim_result(cudaErrorStreamCaptureInvalidated);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    *status =
        sim_stream_capturing(stream) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

/* The two outputs that all versions of the call have. */
static uint64_t capture_info(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                             unsigned long long *id)
{
    uint64_t capture = sim_stream_capture(stream);
    *status = capture != 0 ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    if (id != NULL)
        *id = capture;
    return capture;
}

/* Of CUDA 12. */
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                        unsigned long long *id, cudaGraph_t *graph,
                                        const cudaGraphNode_t **dependencies,
                                        size_t *dependency_count)
{
    capture_info(stream, status, id);
    if (graph != NULL)
        *graph = captured;
    if (dependencies != NULL)
        *dependencies = NULL;
    if (dependency_count != NULL)
        *dependency_count = 0;
    return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo_v3(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                        unsigned long long *id, cudaGraph_t *graph,
                                        const cudaGraphNode_t **dependencies,
                                        const cudaGraphEdgeData **edges, size_t *dependency_count)
{
    if (edges != NULL)
        *edges = NULL;
    return cudaStreamGetCaptureInfo_v2(stream, status, id, graph, dependencies, dependency_count);
}

/* With CUDA 12 it has only the first three arguments. */
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *graph,
                                     const cudaGraphNode_t **dependencies,
                                     const cudaGraphEdgeData **edges, size_t *dependency_count)
{
    if (sim_cuda_version() < CUDA_13) {
        capture_info(stream, status, id);
        return cudaSuccess;
    }
    return cudaStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, edges,
                                       dependency_count);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                          unsigned long long flags)
{
    (void)flags;
    *exec = calloc(1, sizeof **exec);
    if (*exec == NULL)
        return sim_result(cudaErrorMemoryAllocation);
    (*exec)->node_count = graph->node_count;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    return cudaGraphInstantiateWithFlags(exec, graph, flags);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    (void)exec;
    sim_stream_work(stream);
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    free(exec);
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    free(graph);
    return cudaSuccess;
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned flags)
{
    (void)graph, (void)path, (void)flags;
    return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    size_t room = nodes != NULL ? *count : 0;
    for (size_t i = 0; i < room && i < graph->node_count; i++)
        nodes[i] = (cudaGraphNode_t)((uintptr_t)graph + i + 1);
    *count = nodes != NULL && room < graph->node_count ? room : graph->node_count;
    return cudaSuccess;
}

/* With CUDA 12 there are no edges, and the count is the third argument. */
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *dependencies,
                                         void *edges, size_t *count)
{
    (void)node, (void)dependencies;
    if (sim_cuda_version() < CUDA_13)
        count = edges;
    *count = 0;
    return cudaSuccess;
}
