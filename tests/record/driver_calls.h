/* For programs that the tests record: calls of the driver, loaded as PyTorch loads them. */
#ifndef MT_TESTS_DRIVER_CALLS_H
#define MT_TESTS_DRIVER_CALLS_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int (*cuMemAlloc)(unsigned long long *addr, size_t bytes);
static int (*cuMemFree)(unsigned long long addr);
static int (*cuCtxSetCurrent)(void *context);
static void *context;

static void give_up(const char *what)
{
    fprintf(stderr, "%s: does not work\n", what);
    _exit(90);
}

static void start_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    int (*init)(unsigned), (*retain)(void **, int);

    if (!library)
        give_up("libcuda.so.1");
    *(void **)&init = dlsym(library, "cuInit");
    *(void **)&retain = dlsym(library, "cuDevicePrimaryCtxRetain");
    *(void **)&cuCtxSetCurrent = dlsym(library, "cuCtxSetCurrent");
    *(void **)&cuMemAlloc = dlsym(library, "cuMemAlloc_v2");
    *(void **)&cuMemFree = dlsym(library, "cuMemFree_v2");
    if (!init || !retain || !cuCtxSetCurrent || !cuMemAlloc || !cuMemFree || init(0) ||
        retain(&context, 0) || cuCtxSetCurrent(context))
        give_up("no GPU");
}

static inline uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
