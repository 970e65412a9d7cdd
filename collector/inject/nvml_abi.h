/* The part of libnvidia-ml.so.1 that the sampler uses: its stable C interface, declared here so
 * that no NVIDIA header is needed. Functions return 0 on success. */
#ifndef MT_INJECT_NVML_ABI_H
#define MT_INJECT_NVML_ABI_H

#include <stdint.h>

enum { NVML_OK = 0, NVML_INSUFFICIENT_SIZE = 7 };

/* The value of a field that the driver cannot determine. */
#define NVML_NOT_AVAILABLE UINT64_MAX

struct nvml_memory {
    uint64_t total, free, used;
};

struct nvml_memory_v2 {
    uint32_t version; /* NVML_MEMORY_V2 */
    uint64_t total, reserved, free, used;
};
#define NVML_MEMORY_V2 (uint32_t)(sizeof(struct nvml_memory_v2) | 2u << 24)

/* The structure of the second and later versions of the call. */
struct nvml_process {
    uint32_t pid;
    uint64_t used_bytes;
    uint32_t gpu_instance, compute_instance;
};

/* X(member, parameters, name, older name). The first name that the library has is used. */
#define NVML_FUNCTIONS(X)                                                                          \
    X(init, (void), "nvmlInit_v2", "nvmlInit")                                                     \
    X(count, (uint32_t * count), "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount")                    \
    X(by_index, (uint32_t index, void **device), "nvmlDeviceGetHandleByIndex_v2",                  \
      "nvmlDeviceGetHandleByIndex")                                                                \
    X(by_uuid, (const char *uuid, void **device), "nvmlDeviceGetHandleByUUID", "")                 \
    X(uuid, (void *device, char *uuid, uint32_t capacity), "nvmlDeviceGetUUID", "")                \
    X(name, (void *device, char *name, uint32_t capacity), "nvmlDeviceGetName", "")                \
    X(mig_mode, (void *device, uint32_t *current, uint32_t *pending), "nvmlDeviceGetMigMode", "")  \
    X(memory, (void *device, struct nvml_memory *memory), "nvmlDeviceGetMemoryInfo", "")           \
    X(memory_v2, (void *device, struct nvml_memory_v2 *memory), "nvmlDeviceGetMemoryInfo_v2", "")  \
    X(processes, (void *device, uint32_t *count, struct nvml_process *processes),                  \
      "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2")

#define NVML_MEMBER(member, parameters, name, older) int(*member) parameters;
struct nvml_functions {
    NVML_FUNCTIONS(NVML_MEMBER)
};
#undef NVML_MEMBER

#endif
