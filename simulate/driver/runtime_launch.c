/* Kernels are registered, described and launched, but never run. */
#include <stdlib.h>
#include <string.h>

#include "simulated_runtime.h"

struct configuration {
    dim3 grid, block;
    size_t shared_bytes;
    cudaStream_t stream;
};

static _Thread_local struct configuration pushed[16];
static _Thread_local unsigned depth;

/* Compiled programs call these functions. No header for C declares them. */
void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
char __cudaInitModule(void **handle);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
                       size_t size, int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
                              int external, size_t size, int constant, int global);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int limit, void *tid, void *bid, void *block, void *grid, int *size);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared_bytes, cudaStream_t stream);

void **__cudaRegisterFatBinary(void *binary)
{
    void **handle = malloc(sizeof *handle);
    if (handle != NULL)
        *handle = binary;
    return handle;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
    free(handle);
}

char __cudaInitModule(void **handle)
{
    (void)handle;
    return 1;
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
                       size_t size, int constant, int global)
{
    (void)handle, (void)host, (void)device, (void)name;
    (void)external, (void)size, (void)constant, (void)global;
}

void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
                              int external, size_t size, int constant, int global)
{
    (void)handle, (void)host, (void)device, (void)name;
    (void)external, (void)size, (void)constant, (void)global;
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int limit, void *tid, void *bid, void *block, void *grid, int *size)
{
    (void)handle, (void)host, (void)device, (void)name, (void)limit;
    (void)tid, (void)bid, (void)block, (void)grid, (void)size;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     struct CUstream_st *stream)
{
    if (depth == sizeof pushed / sizeof pushed[0])
        return 1;
    pushed[depth++] = (struct configuration){grid, block, shared_bytes, stream};
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream)
{
    if (depth == 0)
        return sim_result(cudaErrorMissingConfiguration);
    const struct configuration *top = &pushed[--depth];
    *grid = top->grid;
    *block = top->block;
    *shared_bytes = top->shared_bytes;
    memcpy(stream, &top->stream, sizeof top->stream);
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function)
{
    *kernel = (cudaKernel_t)(uintptr_t)function;
    return cudaSuccess;
}

static cudaError_t launch(cudaStream_t stream)
{
    if (!sim_enter())
        return cudaPeekAtLastError();
    sim_stream_work(stream);
    return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared_bytes, cudaStream_t stream)
{
    (void)kernel, (void)grid, (void)block, (void)arguments, (void)shared_bytes;
    return launch(stream);
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                             size_t shared_bytes, cudaStream_t stream)
{
    (void)function, (void)grid, (void)block, (void)arguments, (void)shared_bytes;
    return launch(stream);
}

cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block,
                                        void **arguments, size_t shared_bytes, cudaStream_t stream)
{
    (void)function, (void)grid, (void)block, (void)arguments, (void)shared_bytes;
    return launch(stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function,
                                void **arguments)
{
    (void)function, (void)arguments;
    return launch(config->stream);
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function)
{
    (void)function;
    memset(attributes, 0, sizeof *attributes);
    attributes->maxThreadsPerBlock = 1024;
    attributes->numRegs = 32;
    attributes->ptxVersion = attributes->binaryVersion = 90;
    attributes->maxDynamicSharedSizeBytes = 49152;
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attr, int value)
{
    (void)function, (void)attr, (void)value;
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *blocks, const void *function, int block_size, size_t shared_bytes, unsigned flags)
{
    (void)function, (void)shared_bytes, (void)flags;
    *blocks = block_size > 0 && block_size <= 1024 ? 2048 / block_size : 0;
    *blocks = *blocks > 32 ? 32 : *blocks;
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function,
                                                          int block_size, size_t shared_bytes)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size,
                                                                  shared_bytes, 0);
}

/* A variable of the device has the address of its shadow variable in the host. */
cudaError_t cudaGetSymbolAddress(void **address, const void *symbol)
{
    *address = (void *)(uintptr_t)symbol;
    return cudaSuccess;
}

/* The newest version of a function wins, as in cuGetProcAddress. */
cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function,
                                             unsigned cuda_version, unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *status)
{
    bool found = sim_driver_is_ready() && cuGetProcAddress_v2(symbol, function, (int)cuda_version,
                                                              flags, NULL) == CUDA_SUCCESS;
    if (!found)
        *function = NULL;
    if (status != NULL)
        *status = found ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}

/* Of CUDA 12. */
cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *status)
{
    return cudaGetDriverEntryPointByVersion(symbol, function, (unsigned)sim_cuda_version(), flags,
                                            status);
}
