/* The CUDA runtime on paper: libcudart.so.13 for a machine without a GPU. Memory
 * goes to the driver API of whatever libcuda.so.1 is there (the stand-in), with
 * the calls that the real runtime nests; kernels and copies do nothing.
 *
 * Environment, read once:
 *   PAPER_GPU_EVENT_QUERIES=N  an event that was recorded answers "not ready" to
 *                              the first N queries (default 0), or until somebody
 *                              synchronizes: what record_stream() waits for
 *   PAPER_GPU_CONTENTS=1       copies to the host bring what small copies took to
 *                              the device (default: zeros). Stale where a kernel
 *                              would have written: for programs that send numbers
 *                              to themselves, such as DistributedDataParallel */
#ifndef MT_PAPER_RUNTIME_H
#define MT_PAPER_RUNTIME_H

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#define PAPER_DRIVER_CALLS(X)                                                                      \
    X(cuInit)                                                                                      \
    X(cuDriverGetVersion)                                                                          \
    X(cuDeviceGetCount)                                                                            \
    X(cuDeviceGet)                                                                                 \
    X(cuDeviceGetName)                                                                             \
    X(cuDeviceTotalMem)                                                                            \
    X(cuDevicePrimaryCtxRetain)                                                                    \
    X(cuCtxSetCurrent)                                                                             \
    X(cuCtxSynchronize)                                                                            \
    X(cuMemGetInfo)                                                                                \
    X(cuMemAlloc)                                                                                  \
    X(cuMemFree)                                                                                   \
    X(cuMemHostAlloc)                                                                              \
    X(cuMemFreeHost)                                                                               \
    X(cuMemHostRegister)                                                                           \
    X(cuMemHostUnregister)                                                                         \
    X(cuMemAllocAsync)                                                                             \
    X(cuMemFreeAsync)                                                                              \
    X(cuDeviceGetDefaultMemPool)                                                                   \
    X(cuMemPoolGetAttribute)                                                                       \
    X(cuMemPoolSetAttribute)                                                                       \
    X(cuMemPoolSetAccess)                                                                          \
    X(cuMemPoolTrimTo)                                                                             \
    X(cuPointerGetAttribute)                                                                       \
    X(cuStreamCreateWithPriority)                                                                  \
    X(cuStreamDestroy)

/* The driver's functions; NULL where it lacks one. cuda.h's macros make each
 * name the version that a program of this toolkit calls (cuMemAlloc_v2). */
struct paper_driver {
#define PAPER_MEMBER(name) __typeof__(name) *name;
    PAPER_DRIVER_CALLS(PAPER_MEMBER)
#undef PAPER_MEMBER
};

/* Opened and initialised at the first call; NULL if there is no driver. */
const struct paper_driver *paper_driver(void);
void *paper_driver_symbol(const char *name);

/* The driver, with the primary context of this thread's device current, as every
 * runtime call that needs one does; NULL and the error set if that fails. */
const struct paper_driver *paper_enter(void);
int paper_device(void);

/* Remembers an error for cudaGetLastError() and returns it. */
cudaError_t paper_result(int error);

unsigned paper_option(const char *name);

/* Streams: capturing or not, and which capture. Work on a capturing stream is a
 * node of its graph. */
bool paper_stream_capturing(cudaStream_t stream);
uint64_t paper_stream_capture(cudaStream_t stream);
void paper_stream_join_capture(cudaStream_t stream, uint64_t capture);
void paper_stream_work(cudaStream_t stream);

/* Every event recorded before now is done. */
void paper_complete_all(void);

/* The contents of device memory, as far as they are kept (PAPER_GPU_CONTENTS). */
void paper_contents_write(uint64_t device, const void *host, size_t bytes);
void paper_contents_read(uint64_t device, void *host, size_t bytes);
void paper_contents_move(uint64_t to, uint64_t from, size_t bytes);

#endif
