/* Allocates through the CUDA runtime in every way that the machine supports, and
 * says on stdout, one JSON line a call, what a trace must hold: the same lines as
 * fixtures/standin/program, which does so through the driver. Run by
 * check_cupti.py --gpu.
 *
 *   nvcc -o runtime_allocations runtime_allocations.cu
 */
#include <cuda_runtime.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>
#include <vector>

namespace {

struct line {
    const char *op, *call, *heap;
    uint64_t addr, size, stream, pool;
};

void say(const line &line, int result = 0)
{
    printf("{\"op\": \"%s\", \"call\": \"%s\", \"heap\": \"%s\", \"addr\": %llu, \"size\": %llu, "
           "\"aux\": %d, \"stream\": %llu, \"pool\": %llu, \"process\": %d, \"thread\": %ld}\n",
           line.op, line.call, line.heap, (unsigned long long)line.addr,
           (unsigned long long)line.size, result, (unsigned long long)line.stream,
           (unsigned long long)line.pool, getpid(), (long)syscall(SYS_gettid));
}

/* True if it worked; else it is said that the machine cannot. */
bool works(const char *call, cudaError_t error)
{
    if (error != cudaSuccess) {
        (void)cudaGetLastError();
        say({"skipped", call, "", 0, 0, 0, 0}, (int)error);
    }
    return error == cudaSuccess;
}

uint64_t number(const void *pointer) { return (uint64_t)(uintptr_t)pointer; }

void allocated(const char *call, const char *heap, const void *addr, size_t size)
{
    say({"alloc", call, heap, number(addr), size, 0, 0});
}

void freed(const char *call, const char *heap, const void *addr, size_t size)
{
    say({"free", call, heap, number(addr), size, 0, 0});
}

void release(const char *heap, void *addr, size_t size)
{
    freed("cudaFree", heap, addr, size);
    works("cudaFree", cudaFree(addr));
}

void linear()
{
    void *addr;
    for (size_t size : {(size_t)1, (size_t)1000, (size_t)3 << 20, (size_t)100 << 20})
        if (works("cudaMalloc", cudaMalloc(&addr, size))) {
            allocated("cudaMalloc", "driver", addr, size);
            release("driver", addr, size);
        }
    size_t pitch;
    if (works("cudaMallocPitch", cudaMallocPitch(&addr, &pitch, 1000, 33))) {
        allocated("cudaMallocPitch", "driver", addr, pitch * 33);
        release("driver", addr, pitch * 33);
    }
    cudaPitchedPtr box;
    if (works("cudaMalloc3D", cudaMalloc3D(&box, make_cudaExtent(500, 20, 3)))) {
        allocated("cudaMalloc3D", "driver", box.ptr, box.pitch * 20 * 3);
        release("driver", box.ptr, box.pitch * 20 * 3);
    }
    if (works("cudaMallocManaged", cudaMallocManaged(&addr, 5 << 20))) {
        allocated("cudaMallocManaged", "driver:managed", addr, 5 << 20);
        release("driver:managed", addr, 5 << 20);
    }
    (void)cudaFree(nullptr);
}

void host()
{
    void *addr;
    if (works("cudaMallocHost", cudaMallocHost(&addr, 12345))) {
        allocated("cudaMallocHost", "driver:host", addr, 12345);
        freed("cudaFreeHost", "driver:host", addr, 12345);
        works("cudaFreeHost", cudaFreeHost(addr));
    }
    if (works("cudaHostAlloc", cudaHostAlloc(&addr, 23456, cudaHostAllocMapped))) {
        allocated("cudaHostAlloc", "driver:host", addr, 23456);
        freed("cudaFreeHost", "driver:host", addr, 23456);
        works("cudaFreeHost", cudaFreeHost(addr));
    }
    addr = aligned_alloc(4096, 8192);
    if (works("cudaHostRegister", cudaHostRegister(addr, 8192, cudaHostRegisterDefault))) {
        allocated("cudaHostRegister", "driver:host", addr, 8192);
        freed("cudaHostUnregister", "driver:host", addr, 8192);
        works("cudaHostUnregister", cudaHostUnregister(addr));
    }
    free(addr);
}

void arrays()
{
    cudaChannelFormatDesc desc = cudaCreateChannelDesc<float4>();
    cudaArray_t array;
    size_t flat = (size_t)100 * 50 * 16, deep = (size_t)64 * 32 * 16 * 16;
    if (works("cudaMallocArray", cudaMallocArray(&array, &desc, 100, 50))) {
        allocated("cudaMallocArray", "driver:array", array, flat);
        freed("cudaFreeArray", "driver:array", array, flat);
        works("cudaFreeArray", cudaFreeArray(array));
    }
    if (works("cudaMalloc3DArray",
              cudaMalloc3DArray(&array, &desc, make_cudaExtent(64, 32, 16)))) {
        allocated("cudaMalloc3DArray", "driver:array", array, deep);
        freed("cudaFreeArray", "driver:array", array, deep);
        works("cudaFreeArray", cudaFreeArray(array));
    }
    cudaMipmappedArray_t pyramid;
    size_t levels = deep + deep / 8 + deep / 64;
    if (works("cudaMallocMipmappedArray",
              cudaMallocMipmappedArray(&pyramid, &desc, make_cudaExtent(64, 32, 16), 3))) {
        allocated("cudaMallocMipmappedArray", "driver:array", pyramid, levels);
        freed("cudaFreeMipmappedArray", "driver:array", pyramid, levels);
        works("cudaFreeMipmappedArray", cudaFreeMipmappedArray(pyramid));
    }
}

void failures()
{
    size_t idle, total;
    void *addr;
    if (!works("cudaMemGetInfo", cudaMemGetInfo(&idle, &total)))
        return;
    size_t too_much = total + ((size_t)1 << 30);
    if (cudaMalloc(&addr, too_much) != cudaSuccess)
        say({"alloc_failed", "cudaMalloc", "driver", 0, too_much, 0, 0});
    if (cudaMallocAsync(&addr, too_much, nullptr) != cudaSuccess)
        say({"alloc_failed", "cudaMallocAsync", "driver:async", 0, too_much, 0, 0});
    (void)cudaGetLastError();
}

void from_pool(cudaMemPool_t pool, cudaStream_t stream)
{
    void *addr;
    if (!works("cudaMallocFromPoolAsync", cudaMallocFromPoolAsync(&addr, 1 << 20, pool, stream)))
        return;
    say({"alloc", "cudaMallocFromPoolAsync", "driver:async", number(addr), 1 << 20, number(stream),
         number(pool)});
    say({"free", "cudaFreeAsync", "driver:async", number(addr), 1 << 20, number(stream),
         number(pool)});
    works("cudaFreeAsync", cudaFreeAsync(addr, stream));
}

void in_stream_order()
{
    cudaStream_t stream;
    void *addr;
    if (!works("cudaStreamCreate", cudaStreamCreate(&stream)))
        return;
    if (works("cudaMallocAsync", cudaMallocAsync(&addr, 4000, stream))) {
        say({"alloc", "cudaMallocAsync", "driver:async", number(addr), 4000, number(stream), 0});
        say({"free", "cudaFreeAsync", "driver:async", number(addr), 4000, number(stream), 0});
        works("cudaFreeAsync", cudaFreeAsync(addr, stream));
    }
    if (works("cudaMallocAsync", cudaMallocAsync(&addr, 5000, stream))) {
        say({"alloc", "cudaMallocAsync", "driver:async", number(addr), 5000, number(stream), 0});
        works("cudaStreamSynchronize", cudaStreamSynchronize(stream));
        release("driver:async", addr, 5000);
    }
    cudaMemPoolProps props = {};
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    cudaMemPool_t pool;
    if (works("cudaMemPoolCreate", cudaMemPoolCreate(&pool, &props))) {
        from_pool(pool, stream);
        works("cudaStreamSynchronize", cudaStreamSynchronize(stream));
        works("cudaMemPoolDestroy", cudaMemPoolDestroy(pool));
    }
    works("cudaStreamDestroy", cudaStreamDestroy(stream));
}

void run(cudaGraph_t graph)
{
    cudaGraphExec_t exec;
    if (works("cudaGraphInstantiate", cudaGraphInstantiate(&exec, graph, 0))) {
        works("cudaGraphLaunch", cudaGraphLaunch(exec, nullptr));
        works("cudaDeviceSynchronize", cudaDeviceSynchronize());
        works("cudaGraphExecDestroy", cudaGraphExecDestroy(exec));
    }
    works("cudaGraphDestroy", cudaGraphDestroy(graph));
}

void graphs()
{
    cudaMemAllocNodeParams params = {};
    params.poolProps.allocType = cudaMemAllocationTypePinned;
    params.poolProps.location.type = cudaMemLocationTypeDevice;
    params.bytesize = 2 << 20;
    cudaGraph_t graph;
    cudaGraphNode_t first, second;
    if (!works("cudaGraphCreate", cudaGraphCreate(&graph, 0)))
        return;
    if (works("cudaGraphAddMemAllocNode",
              cudaGraphAddMemAllocNode(&first, graph, nullptr, 0, &params))) {
        allocated("cudaGraphAddMemAllocNode", "driver:graph", params.dptr, 2 << 20);
        freed("cudaGraphAddMemFreeNode", "driver:graph", params.dptr, 2 << 20);
        works("cudaGraphAddMemFreeNode",
              cudaGraphAddMemFreeNode(&second, graph, &first, 1, params.dptr));
    }
    run(graph);
}

void capture()
{
    cudaStream_t stream;
    cudaGraph_t graph;
    void *addr;
    if (!works("cudaStreamCreate", cudaStreamCreate(&stream)))
        return;
    if (works("cudaStreamBeginCapture",
              cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal))) {
        if (works("cudaMallocAsync", cudaMallocAsync(&addr, 7777, stream))) {
            say({"alloc", "cudaMallocAsync", "driver:graph", number(addr), 7777, number(stream),
                 0});
            say({"free", "cudaFreeAsync", "driver:graph", number(addr), 7777, number(stream), 0});
            works("cudaFreeAsync", cudaFreeAsync(addr, stream));
        }
        if (works("cudaStreamEndCapture", cudaStreamEndCapture(stream, &graph)))
            run(graph);
    }
    works("cudaStreamDestroy", cudaStreamDestroy(stream));
}

void threads(unsigned count)
{
    std::vector<std::thread> all;
    for (unsigned i = 0; i < count; i++)
        all.emplace_back([] {
            for (size_t round = 0; round < 100; round++) {
                void *addr;
                size_t size = 512 * (1 + round % 9);
                if (works("cudaMalloc", cudaMalloc(&addr, size))) {
                    allocated("cudaMalloc", "driver", addr, size);
                    release("driver", addr, size);
                }
            }
        });
    for (std::thread &one : all)
        one.join();
}

/* All that is alive goes with the context. */
void reset()
{
    void *addrs[2] = {};
    size_t sizes[2] = {5000, 7 << 20};
    for (int i = 0; i < 2; i++)
        if (works("cudaMalloc", cudaMalloc(&addrs[i], sizes[i])))
            allocated("cudaMalloc", "driver", addrs[i], sizes[i]);
    for (int i = 0; i < 2; i++)
        freed("cuCtxDestroy_v2", "driver", addrs[i], sizes[i]);
    works("cudaDeviceReset", cudaDeviceReset());
}

} // namespace

int main()
{
    setvbuf(stdout, nullptr, _IOLBF, 0);
    linear();
    host();
    arrays();
    failures();
    in_stream_order();
    graphs();
    capture();
    threads(8);
    reset();
    return 0;
}
