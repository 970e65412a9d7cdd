/* Memory: each function of the runtime calls the driver as the real runtime does. */
#include <pthread.h>
#include <string.h>

#include "simulated_runtime.h"

/* Data of small copies to the device, as words of 8 bytes. Words are never removed from the table.
 * When it is full, it accepts no new ones. */

/* Results of small copies to the host that code outside of the runtime sets: the Python part of a
 * dry run sets the number of elements that a mask selects before PyTorch reads it. */

enum { MAX_ANSWER_BYTES = 8 };

static _Thread_local struct {
    unsigned char bytes[MAX_ANSWER_BYTES];
    size_t size_bytes; /* 0: there is none */
} next_answer;

/* After this call, copies to the host of at most 8 bytes on this thread return the first bytes of
 * BYTES, until a call with a SIZE_BYTES of 0. A SIZE_BYTES above 8 is the same as 0. */
void memtrace_simulated_answer(const void *bytes, size_t size_bytes);

void memtrace_simulated_answer(const void *bytes, size_t size_bytes)
{
    next_answer.size_bytes = bytes != NULL && size_bytes <= MAX_ANSWER_BYTES ? size_bytes : 0;
    if (next_answer.size_bytes > 0)
        memcpy(next_answer.bytes, bytes, size_bytes);
}

/* Fills `host`, the target of a small copy to the host, with the answer of
 * memtrace_simulated_answer(). Returns false if there is none. */
static bool sim_answer_read(void *host, size_t bytes)
{
    if (next_answer.size_bytes == 0 || bytes > next_answer.size_bytes)
        return false;
    memcpy(host, next_answer.bytes, bytes);
    return true;
}

enum {
    SLOT_COUNT = 1 << 16,
    WORD_BYTES = 8,
    MAX_BYTES = 64 << 10,
    MAX_STEPS = 64,
    MIN_CLEARED_BYTES = 64 << 10 /* writing less costs less than asking whether it is pinned */
};

struct word {
    uint64_t address; /* 0: free */
    uint64_t value;
};

static struct word slots[SLOT_COUNT];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool asked(void)
{
    static int answer = -1;
    if (answer < 0)
        answer = sim_option("MEMTRACE_SIMULATED_CONTENTS") != 0;
    return answer > 0;
}

/* Returns the slot of an address, a free one, or NULL. The caller holds the lock. */
static struct word *slot_of(uint64_t address)
{
    uint64_t at = (address >> 3) * UINT64_C(0x9E3779B97F4A7C15) >> 48;
    for (int step = 0; step < MAX_STEPS; step++) {
        struct word *slot = &slots[(at + (uint64_t)step) % SLOT_COUNT];
        if (slot->address == address || slot->address == 0)
            return slot;
    }
    return NULL;
}

static uint64_t read_word(uint64_t address)
{
    const struct word *slot = slot_of(address);
    return slot != NULL && slot->address == address ? slot->value : 0;
}

static void write_word(uint64_t address, uint64_t value)
{
    struct word *slot = slot_of(address);
    if (slot != NULL)
        *slot = (struct word){address, value};
}

/* Write, read and move the contents of device memory, if they are kept
 * (MEMTRACE_SIMULATED_CONTENTS). */
static void sim_contents_write(uint64_t device, const void *host, size_t bytes)
{
    if (!asked() || bytes > MAX_BYTES || device % WORD_BYTES != 0)
        return;
    pthread_mutex_lock(&lock);
    for (size_t at = 0; at < bytes; at += WORD_BYTES) {
        uint64_t value = 0;
        memcpy(&value, (const char *)host + at, bytes - at < WORD_BYTES ? bytes - at : WORD_BYTES);
        write_word(device + at, value);
    }
    pthread_mutex_unlock(&lock);
}

static void sim_contents_read(uint64_t device, void *host, size_t bytes)
{
    if (sim_answer_read(host, bytes))
        return;
    if (bytes < MIN_CLEARED_BYTES || !sd_clear_host(host, bytes))
        memset(host, 0, bytes);
    if (!asked() || bytes > MAX_BYTES || device % WORD_BYTES != 0)
        return;
    pthread_mutex_lock(&lock);
    for (size_t at = 0; at < bytes; at += WORD_BYTES) {
        uint64_t value = read_word(device + at);
        memcpy((char *)host + at, &value, bytes - at < WORD_BYTES ? bytes - at : WORD_BYTES);
    }
    pthread_mutex_unlock(&lock);
}

static void sim_contents_move(uint64_t to, uint64_t from, size_t bytes)
{
    char buffer[4096];
    for (size_t at = 0; asked() && bytes <= MAX_BYTES && at < bytes; at += sizeof buffer) {
        size_t part = bytes - at < sizeof buffer ? bytes - at : sizeof buffer;
        sim_contents_read(from + at, buffer, part);
        sim_contents_write(to + at, buffer, part);
    }
}

static CUdeviceptr device_pointer(const void *pointer)
{
    return (CUdeviceptr)(uintptr_t)pointer;
}

static cudaError_t lacking(void)
{
    return sim_result(cudaErrorNotSupported);
}

cudaError_t cudaMalloc(void **pointer, size_t size)
{
    bool ready = sim_enter();
    CUdeviceptr got = 0;
    if (!ready)
        return cudaPeekAtLastError();
    CUresult result = size > 0 ? cuMemAlloc_v2(&got, size) : CUDA_SUCCESS;
    *pointer = result == CUDA_SUCCESS ? (void *)(uintptr_t)got : NULL;
    return sim_result((int)result);
}

cudaError_t cudaFree(void *pointer)
{
    bool ready = sim_enter(); /* cudaFree(NULL) also makes a context */
    if (!ready)
        return cudaPeekAtLastError();
    sim_finish_device();
    return pointer == NULL ? cudaSuccess : sim_result((int)cuMemFree_v2(device_pointer(pointer)));
}

cudaError_t cudaMallocAsync(void **pointer, size_t size, cudaStream_t stream)
{
    bool ready = sim_enter();
    CUdeviceptr got = 0;
    if (!ready)
        return lacking();
    CUresult result = cuMemAllocAsync(&got, size, stream);
    *pointer = result == CUDA_SUCCESS ? (void *)(uintptr_t)got : NULL;
    return sim_result((int)result);
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream)
{
    return sim_enter() ? sim_result((int)cuMemFreeAsync(device_pointer(pointer), stream))
                       : lacking();
}

cudaError_t cudaHostAlloc(void **pointer, size_t size, unsigned flags)
{
    return sim_enter() ? sim_result((int)cuMemHostAlloc(pointer, size, flags))
                       : cudaPeekAtLastError();
}

cudaError_t cudaMallocHost(void **pointer, size_t size)
{
    return cudaHostAlloc(pointer, size, 0);
}

/* The host may access it, as with the real runtime. */
cudaError_t cudaMallocManaged(void **pointer, size_t size, unsigned flags)
{
    CUdeviceptr got = 0;
    if (!sim_enter())
        return cudaPeekAtLastError();
    CUresult result = cuMemAllocManaged(&got, size, flags);
    *pointer = result == CUDA_SUCCESS ? (void *)(uintptr_t)got : NULL;
    return sim_result((int)result);
}

cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height)
{
    enum { ELEMENT_BYTES = 4 };
    CUdeviceptr got = 0;
    if (!sim_enter())
        return cudaPeekAtLastError();
    CUresult result = cuMemAllocPitch_v2(&got, pitch, width, height, ELEMENT_BYTES);
    *pointer = result == CUDA_SUCCESS ? (void *)(uintptr_t)got : NULL;
    return sim_result((int)result);
}

cudaError_t cudaFreeHost(void *pointer)
{
    bool ready = sim_enter();
    if (!ready || pointer == NULL)
        return cudaSuccess;
    return sim_result((int)cuMemFreeHost(pointer));
}

cudaError_t cudaHostRegister(void *pointer, size_t size, unsigned flags)
{
    return sim_enter() ? sim_result((int)cuMemHostRegister_v2(pointer, size, flags)) : lacking();
}

cudaError_t cudaHostUnregister(void *pointer)
{
    return sim_enter() ? sim_result((int)cuMemHostUnregister(pointer)) : lacking();
}

cudaError_t cudaHostGetDevicePointer(void **device, void *pointer, unsigned flags)
{
    (void)flags;
    *device = pointer;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    return sim_enter() ? sim_result((int)cuMemGetInfo_v2(free_bytes, total_bytes))
                       : cudaPeekAtLastError();
}

static unsigned memory_type(const void *pointer)
{
    bool ready = sim_enter();
    unsigned type = 0;
    if (!ready || cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                        device_pointer(pointer)) != CUDA_SUCCESS)
        return 0;
    return type;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer)
{
    bool has_reserved = sim_cuda_version() >= CUDA_13;
    memset(attributes, 0,
           has_reserved ? sizeof *attributes : offsetof(struct cudaPointerAttributes, reserved));
    attributes->device = cudaInvalidDeviceId;
    unsigned type = memory_type(pointer);
    if (type == CU_MEMORYTYPE_DEVICE) {
        int ordinal = sim_device();
        cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                              device_pointer(pointer));
        attributes->type = cudaMemoryTypeDevice;
        attributes->device = ordinal;
        attributes->devicePointer = (void *)(uintptr_t)pointer;
    } else if (type == CU_MEMORYTYPE_HOST) {
        attributes->type = cudaMemoryTypeHost;
        attributes->device = sim_device();
        attributes->devicePointer = attributes->hostPointer = (void *)(uintptr_t)pointer;
    }
    return cudaSuccess;
}

static enum cudaMemcpyKind direction(const void *to, const void *from, enum cudaMemcpyKind kind)
{
    if (kind != cudaMemcpyDefault)
        return kind;
    bool to_device = memory_type(to) == CU_MEMORYTYPE_DEVICE;
    bool from_device = memory_type(from) == CU_MEMORYTYPE_DEVICE;
    return to_device ? (from_device ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice)
                     : (from_device ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost);
}

static void copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    switch (direction(to, from, kind)) {
    case cudaMemcpyHostToHost: memmove(to, from, bytes); break;
    case cudaMemcpyHostToDevice: sim_contents_write(device_pointer(to), from, bytes); break;
    case cudaMemcpyDeviceToHost: sim_contents_read(device_pointer(from), to, bytes); break;
    default: sim_contents_move(device_pointer(to), device_pointer(from), bytes); break;
    }
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    sim_finish_stream(NULL);
    copy(to, from, bytes, kind);
    return cudaSuccess;
}

/* To memory that is not pinned, a copy returns at its end. */
static void finish_copy(const void *to, const void *from, enum cudaMemcpyKind kind,
                        cudaStream_t stream)
{
    if (direction(to, from, kind) == cudaMemcpyDeviceToHost &&
        memory_type(to) != CU_MEMORYTYPE_HOST)
        sim_finish_stream(stream);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    sim_stream_work(stream);
    copy(to, from, bytes, kind);
    finish_copy(to, from, kind, stream);
    return cudaSuccess;
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind,
                              cudaStream_t stream)
{
    sim_stream_work(stream);
    for (size_t row = 0; row < height; row++)
        copy((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width, kind);
    finish_copy(to, from, kind, stream);
    return cudaSuccess;
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                         size_t width, size_t height, enum cudaMemcpyKind kind)
{
    (void)cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, NULL);
    sim_finish_stream(NULL);
    return cudaSuccess;
}

/* No kernel has written the variable. */
cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset,
                                 enum cudaMemcpyKind kind)
{
    (void)symbol, (void)offset;
    sim_finish_stream(NULL);
    if (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDefault)
        memset(to, 0, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                size_t bytes, cudaStream_t stream)
{
    (void)to, (void)to_device, (void)from, (void)from_device, (void)bytes;
    sim_stream_work(stream);
    return cudaSuccess;
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                               enum cudaMemcpyKind kind)
{
    (void)symbol, (void)from, (void)bytes, (void)offset, (void)kind;
    sim_finish_stream(NULL);
    return cudaSuccess;
}

cudaError_t cudaMemset(void *pointer, int value, size_t bytes)
{
    (void)pointer, (void)value, (void)bytes;
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *pointer, int value, size_t bytes, cudaStream_t stream)
{
    (void)pointer, (void)value, (void)bytes;
    sim_stream_work(stream);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
    return sim_enter() ? sim_result((int)cuDeviceGetDefaultMemPool(pool, device)) : lacking();
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr, void *value)
{
    return sim_enter()
               ? sim_result((int)cuMemPoolGetAttribute(pool, (CUmemPool_attribute)attr, value))
               : lacking();
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr, void *value)
{
    return sim_enter()
               ? sim_result((int)cuMemPoolSetAttribute(pool, (CUmemPool_attribute)attr, value))
               : lacking();
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *list,
                                 size_t count)
{
    return sim_enter() ? sim_result((int)cuMemPoolSetAccess(
                             pool, (const CUmemAccessDesc *)(const void *)list, count))
                       : lacking();
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep_bytes)
{
    return sim_enter() ? sim_result((int)cuMemPoolTrimTo(pool, keep_bytes)) : lacking();
}

/* Memory of another process: not simulated. */
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *pointer)
{
    (void)handle, (void)pointer;
    return lacking();
}

cudaError_t cudaIpcOpenMemHandle(void **pointer, cudaIpcMemHandle_t handle, unsigned flags)
{
    (void)pointer, (void)handle, (void)flags;
    return lacking();
}

cudaError_t cudaIpcCloseMemHandle(void *pointer)
{
    (void)pointer;
    return lacking();
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
    (void)handle, (void)event;
    return lacking();
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
    (void)event, (void)handle;
    return lacking();
}
