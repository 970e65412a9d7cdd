/* A fake cuDNN for tests of the child process that queries it: the five functions that the child
 * calls. The batch size of a query selects the behavior. By default it proposes two configurations,
 * whose workspaces are the sum of the sizes of x and twice that sum. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_cudnn.h"

enum { FAILED = 1, TENSOR = 17 };

struct fake {
    int type;
    int64_t id, sizes[8], count; /* of tensors; those of x for what contains one */
    int64_t number;
};

static int64_t open_descriptors;

int cudnnBackendCreateDescriptor(int type, void **made);
int cudnnBackendDestroyDescriptor(void *made);
int cudnnBackendSetAttribute(void *to, int attribute, int type, int64_t count, const void *values);
int cudnnBackendGetAttribute(void *from, int attribute, int type, int64_t room, int64_t *count,
                             void *values);
int cudnnBackendFinalize(void *made);

int cudnnBackendCreateDescriptor(int type, void **made)
{
    struct fake *fake = calloc(1, sizeof *fake);

    fake->type = type;
    *made = fake;
    open_descriptors++;
    return 0;
}

int cudnnBackendDestroyDescriptor(void *made)
{
    free(made);
    open_descriptors--;
    return 0;
}

static void take_x(struct fake *to, const struct fake *from)
{
    if (from->type == TENSOR ? from->id == 'x' : from->count > 0) {
        memcpy(to->sizes, from->sizes, sizeof to->sizes);
        to->count = from->count;
    }
}

int cudnnBackendSetAttribute(void *to, int attribute, int type, int64_t count, const void *values)
{
    struct fake *fake = to;
    enum { JSON = 2702, SIZES = 902, ID = 906, DESCRIPTOR = 15 };

    if (attribute == JSON)
        return count == (int64_t)strlen(FAKE_OLD_DEVICE) &&
                       !memcmp(values, FAKE_OLD_DEVICE, (size_t)count)
                   ? FAILED
                   : 0;
    if (attribute == SIZES) {
        memcpy(fake->sizes, values, (size_t)count * sizeof(int64_t));
        fake->count = count;
    } else if (attribute == ID) {
        fake->id = *(const int64_t *)values;
    } else if (type == DESCRIPTOR) {
        take_x(fake, *(struct fake *const *)values);
    }
    return 0;
}

/* What CUDA's functions report that cuDNN finds in its process. */
static int64_t absent_cuda(void)
{
    int (*init)(unsigned) = NULL, (*create)(void **) = NULL;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW),
         *product = dlopen("libcublasLt.so.13", RTLD_NOW);
    void *handle = NULL, *found = driver ? dlsym(driver, "cuInit") : NULL;

    memcpy(&init, &found, sizeof init);
    found = product ? dlsym(product, "cublasLtCreate") : NULL;
    memcpy(&create, &found, sizeof create);
    if (!init || !create || create(&handle) != 0 || !handle)
        return -1;
    free(handle);
    return init(0);
}

static int64_t what_came_along(void)
{
    const char *devices = getenv("CUDA_VISIBLE_DEVICES");
    int64_t bits = getenv("LD_PRELOAD") != NULL;

    bits |= getenv("HOME") ? 2 : 0;
    bits |= access("/proc/self/fd/9", F_OK) == 0 ? 4 : 0;
    return bits | (!devices || *devices ? 8 : 0);
}

static int64_t workspace(const struct fake *fake)
{
    int64_t sum = 0;

    if (fake->sizes[0] == FAKE_CRASH)
        raise(SIGSEGV);
    if (fake->sizes[0] == FAKE_HANG)
        for (;;)
            pause();
    if (fake->sizes[0] == FAKE_DRIVER)
        return absent_cuda();
    if (fake->sizes[0] == FAKE_LEAKS)
        return open_descriptors;
    if (fake->sizes[0] == FAKE_ENVIRONMENT)
        return what_came_along();
    for (int64_t i = 0; i < fake->count; i++)
        sum += fake->sizes[i];
    return sum * (fake->number + 1);
}

static int64_t list(const struct fake *fake, int64_t room, void *values)
{
    struct fake **brought = values;

    for (int64_t i = 0; i < room && i < 2; i++) {
        take_x(brought[i], fake);
        brought[i]->number = i;
    }
    return 2;
}

/* The first knob is that of other kernels. The rest are those of a stream-K kernel: a tile of 128
 * by 128, one block per cluster. */
static const struct {
    int type;
    int64_t value;
} knobs[] = {{25, 7}, {2, 0}, {25, 0}, {27, 1}, {28, 1}};

static int64_t list_knobs(const struct fake *fake, void *values)
{
    struct fake **brought = values;
    int64_t count = fake->sizes[0] == FAKE_STREAM_K ? 4 : 1;

    for (int64_t i = 0; i < count; i++)
        brought[i]->number = count == 1 ? 0 : i + 1;
    return count;
}

int cudnnBackendGetAttribute(void *from, int attribute, int type, int64_t room, int64_t *count,
                             void *values)
{
    const struct fake *fake = from;
    enum {
        RESULTS = 202,
        THE_ENGINE = 300,
        KNOBS = 302,
        BYTES = 303,
        KNOB_TYPE = 600,
        KNOB_VALUE,
        INDEX = 1301,
        NOTES = 1303
    };

    (void)type;
    *count = 1;
    switch (attribute) {
    case RESULTS: *count = fake->sizes[0] == FAKE_NOTHING ? 0 : list(fake, room, values); break;
    case THE_ENGINE: (*(struct fake **)values)->number = fake->number; break;
    case KNOBS: *count = list_knobs(fake, values); break;
    case KNOB_TYPE: *(int *)values = knobs[fake->number].type; break;
    case KNOB_VALUE: *(int64_t *)values = knobs[fake->number].value; break;
    case BYTES: *(int64_t *)values = workspace(fake); break;
    case INDEX: *(int64_t *)values = 60 + fake->number; break;
    case NOTES: *(int *)values = fake->number ? 4 : 0; break;
    default: return FAILED;
    }
    return 0;
}

int cudnnBackendFinalize(void *made)
{
    (void)made;
    return 0;
}
