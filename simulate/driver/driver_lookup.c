/* cuGetProcAddress: the newest entry point of a name, and error texts. */
#define _GNU_SOURCE
#include "simulated_driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* The version of dlsym before glibc 2.34: the first one of glibc on this machine. */
#if defined(__aarch64__)
#define OLD_DLSYM "GLIBC_2.17"
#else
#define OLD_DLSYM "GLIBC_2.2.5"
#endif

/* Uses libc's dlsym, because the real driver looks its functions up in its own table, where no tool
 * intervenes. */
static void *own_dlsym(void *library, const char *name)
{
    void *found = dlvsym(RTLD_DEFAULT, "dlsym", "GLIBC_2.34");
    if (!found)
        found = dlvsym(RTLD_DEFAULT, "dlsym", OLD_DLSYM);
    return found ? ((void *(*)(void *, const char *))found)(library, name) : NULL;
}

/* Searches the name among the exports of this library: first with the suffix of per-thread default
 * streams if that is requested, then from the newest version to the oldest. */
static void *find_entry(const char *name, cuuint64_t flags)
{
    static const char *const versions[] = {"_v4", "_v2", ""};
    Dl_info here;
    if (!dladdr((void *)(uintptr_t)&find_entry, &here))
        return NULL;
    void *library = dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD), *found = NULL;
    char full[128];
    if (library && flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) {
        snprintf(full, sizeof full, "%s_ptsz", name);
        found = own_dlsym(library, full);
    }
    for (unsigned i = 0; library && !found && i < sizeof versions / sizeof *versions; i++) {
        snprintf(full, sizeof full, "%s%s", name, versions[i]);
        found = own_dlsym(library, full);
    }
    return found;
}

/* cuCtxCreate has its current arguments since 13.0. */
static const char *name_for(const char *name, int version)
{
    return strcmp(name, "cuCtxCreate") == 0 && version < 13000 ? "cuCtxCreate_v2" : name;
}

SD_EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion,
                                       cuuint64_t flags,
                                       CUdriverProcAddressQueryResult *symbolStatus)
{
    *pfn = find_entry(name_for(symbol, cudaVersion), flags);
    if (symbolStatus)
        *symbolStatus = *pfn ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *pfn ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

SD_EXPORT CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion,
                                    cuuint64_t flags)
{
    return cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, NULL);
}

SD_EXPORT CUresult cuGetErrorName(CUresult error, const char **pStr)
{
    *pStr = error == CUDA_SUCCESS               ? "CUDA_SUCCESS"
            : error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
                                                : "CUDA_ERROR_OTHER";
    return CUDA_SUCCESS;
}

SD_EXPORT CUresult cuGetErrorString(CUresult error, const char **pStr)
{
    return cuGetErrorName(error, pStr);
}
