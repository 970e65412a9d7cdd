/* The parts of CUDA that cuDNN opens while it plans. The asker must not use a GPU, so no library
 * can open the driver. Without the driver, cuDNN would omit engines of two kinds:
 *
 *  - Engines that are compiled at run time look up functions of the driver, and call none before a
 *    plan is made.
 *  - Engines that are matrix products ask cuBLASLt for an algorithm, and a real cuBLASLt begins
 *    with the driver.
 *
 * So this program contains both: a driver without a device, and a cuBLASLt that always has an
 * algorithm without workspace. cuDNN's list for a described H200 then has the same engines as on an
 * H200, in the same order: the first engine was the same for all 1,499 tested convolutions (cuDNN
 * 9.19). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* cuDNN finds these functions with dlsym; nothing here declares them. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum { SUCCESS = 0, NO_DEVICE = 100, ALLOC_FAILED = 3, NOT_SUPPORTED = 15 };

static int begins_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* Libraries of this process call this function instead of that of libc, because the loader searches
 * the program first. */
void *dlopen(const char *file, int flags)
{
    static void *(*real)(const char *, int);
    const char *slash = file != NULL ? strrchr(file, '/') : NULL;
    const char *name = slash != NULL ? slash + 1 : file;

    if (real == NULL) {
        void *found = dlsym(RTLD_NEXT, "dlopen");
        memcpy(&real, &found, sizeof real);
    }
    if (name != NULL && (begins_with(name, "libcuda.so") || begins_with(name, "libcublasLt.so")))
        return real(NULL, flags);
    return real(file, flags);
}

/* ---- the driver */

#define NO_DRIVER(name)                                                                            \
    int name(void)                                                                                 \
    {                                                                                              \
        return NO_DEVICE;                                                                          \
    }

#include "absent_driver.def"

/* ---- cuBLASLt */

enum { OBJECT_BYTES = 512 };

static int create(void **made)
{
    *made = calloc(1, OBJECT_BYTES);
    return *made != NULL ? SUCCESS : ALLOC_FAILED;
}

int cublasLtCreate(void **handle)
{
    return create(handle);
}

int cublasLtDestroy(void *handle)
{
    free(handle);
    return SUCCESS;
}

/* Major, minor, patch: newer than any version that cuDNN may require. */
enum { MAJOR = 13, MINOR = 1 };

int cublasLtGetProperty(int property, int *value)
{
    *value = property == 0 ? MAJOR : property == 1 ? MINOR : 0;
    return SUCCESS;
}

size_t cublasLtGetVersion(void)
{
    return MAJOR * 10000 + MINOR * 100;
}

int cublasLtMatmul(void)
{
    return NOT_SUPPORTED;
}

int cublasLtMatrixTransform(void)
{
    return NOT_SUPPORTED;
}

/* Objects have no contents, because the answer does not depend on them. */
#define OBJECT(name)                                                                               \
    int name##Create(void **made)                                                                  \
    {                                                                                              \
        return create(made);                                                                       \
    }                                                                                              \
    int name##Destroy(void *made)                                                                  \
    {                                                                                              \
        free(made);                                                                                \
        return SUCCESS;                                                                            \
    }                                                                                              \
    int name##Init_internal(void *made, size_t bytes)                                              \
    {                                                                                              \
        memset(made, 0, bytes);                                                                    \
        return SUCCESS;                                                                            \
    }                                                                                              \
    int name##SetAttribute(void *to, int attribute, const void *value, size_t bytes)               \
    {                                                                                              \
        (void)to, (void)attribute, (void)value, (void)bytes;                                       \
        return SUCCESS;                                                                            \
    }                                                                                              \
    int name##GetAttribute(void *from, int attribute, void *value, size_t bytes, size_t *written)  \
    {                                                                                              \
        (void)from, (void)attribute;                                                               \
        memset(value, 0, bytes);                                                                   \
        if (written != NULL)                                                                       \
            *written = bytes;                                                                      \
        return SUCCESS;                                                                            \
    }

OBJECT(cublasLtMatmulDesc)
OBJECT(cublasLtMatrixLayout)
OBJECT(cublasLtMatrixTransformDesc)
OBJECT(cublasLtMatmulPreference)

/* Layout as in cublasLt.h. */
struct algorithm {
    uint64_t opaque[8];
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
};

int cublasLtMatmulAlgoGetHeuristic(void *handle, void *product, void *a, void *b, void *c, void *d,
                                   void *preference, int wanted, struct algorithm *found,
                                   int *count)
{
    enum { ALGORITHMS = 3 };

    (void)handle, (void)product, (void)a, (void)b, (void)c, (void)d, (void)preference;
    *count = wanted < ALGORITHMS ? wanted : ALGORITHMS;
    for (int i = 0; i < *count; i++)
        found[i] = (struct algorithm){.opaque = {(uint64_t)i + 1}, .waves = 1.0F};
    return SUCCESS;
}
