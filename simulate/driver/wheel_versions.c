#define _GNU_SOURCE
#include "wheel_versions.h"

#include <dlfcn.h>
#include <stdatomic.h>

enum { ITS_CUDNN = 91900, ITS_NCCL = 22809 };

static int version_of(atomic_int *known, const char *name, int otherwise)
{
    int version = atomic_load_explicit(known, memory_order_relaxed);
    int (*ask)(void) = 0;

    if (version)
        return version;
    *(void **)&ask = dlsym(RTLD_DEFAULT, name);
    version = ask ? ask() : 0;
    if (version <= 0)
        version = otherwise;
    atomic_store_explicit(known, version, memory_order_relaxed);
    return version;
}

int sim_cuda_version(void)
{
    static atomic_int known;

    return version_of(&known, SIM_WHEEL_CUDA, CUDA_13);
}

int sim_cudnn_version(void)
{
    static atomic_int known;

    return version_of(&known, SIM_WHEEL_CUDNN, ITS_CUDNN);
}

int sim_nccl_version(void)
{
    static atomic_int known;

    return version_of(&known, SIM_WHEEL_NCCL, ITS_NCCL);
}
