/* torch.cuda.set_per_process_memory_fraction(): the allocator's limit is that fraction of the
 * device's memory. The trace has one limit for the whole run. It is recorded if every device in use
 * has it, and if the run would have been the same with the limit from the start: nothing exceeded
 * it before, and no other limit was in force. */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

#include "collect.h"
#include "torch_parts.h"

enum { MAX_DEVICES = 128 };

static struct {
    _Atomic uint64_t limit_bytes;                         /* 0: none */
    _Atomic uint64_t reserved_bytes, reserved_peak_bytes; /* 0: not used */
    atomic_bool spoiled;
} devices[MAX_DEVICES];

static atomic_bool any_set;
static uint64_t told_bytes; /* used only by the writer thread */

/* The allocator multiplies the number that the driver reports. */
static uint64_t total_bytes(int device)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    int (*get)(int *, int) = NULL, (*total)(size_t *, int) = NULL;
    size_t bytes = 0;
    int handle;

    if (!driver)
        return 0;
    *(void **)&get = dlsym(driver, "cuDeviceGet");
    *(void **)&total = dlsym(driver, "cuDeviceTotalMem_v2");
    if (!get || !total || get(&handle, device) != 0 || total(&bytes, handle) != 0)
        bytes = 0;
    dlclose(driver);
    return bytes;
}

void mt_torch_limit_set(double fraction, int device)
{
    int saved = errno;
    uint64_t total, limit, before, peak;

    if (device < 0 || device >= MAX_DEVICES || !(fraction >= 0 && fraction <= 1))
        return;
    total = total_bytes(device);
    limit = fraction < 1 ? (uint64_t)(fraction * (double)total) : 0;
    peak = atomic_load(&devices[device].reserved_peak_bytes);
    before = atomic_exchange(&devices[device].limit_bytes, limit);
    if (peak && before != limit && (before || peak > limit))
        atomic_store(&devices[device].spoiled, true);
    if (fraction < 1)
        atomic_store(&any_set, true);
    errno = saved;
}

/* Called with the device's lock held. */
void mt_torch_limit_reserve(int device, uint64_t bytes, bool gives_back)
{
    uint64_t reserved;

    if (device < 0 || device >= MAX_DEVICES)
        return;
    reserved = atomic_load_explicit(&devices[device].reserved_bytes, memory_order_relaxed);
    reserved = gives_back ? reserved - bytes : reserved + bytes;
    atomic_store_explicit(&devices[device].reserved_bytes, reserved, memory_order_relaxed);
    if (!gives_back && reserved > atomic_load(&devices[device].reserved_peak_bytes))
        atomic_store(&devices[device].reserved_peak_bytes, reserved);
}

/* The common limit of all devices in use; 0 if they differ. */
static uint64_t common_limit(void)
{
    uint64_t limit = 0;
    bool first = true;
    int i;

    for (i = 0; i < MAX_DEVICES; i++) {
        uint64_t own = atomic_load(&devices[i].limit_bytes);
        if (!atomic_load(&devices[i].reserved_peak_bytes))
            continue;
        if (atomic_load(&devices[i].spoiled) || (!first && own != limit))
            return 0;
        limit = own;
        first = false;
    }
    return limit;
}

void mt_torch_limit_tell(void)
{
    uint64_t limit;
    char text[24];

    if (!atomic_load(&any_set) || (limit = common_limit()) == told_bytes)
        return;
    told_bytes = limit;
    snprintf(text, sizeof text, "%" PRIu64, limit);
    mt_collect_fact("memory_limit_bytes", text);
}
