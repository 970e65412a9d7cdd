/* State that all parts of the PyTorch source share, facts of the trace's header, and the
 * allocator's limit. */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "collect.h"
#include "torch_parts.h"

/* torch.cuda.set_per_process_memory_fraction(): the allocator's limit is that fraction of the
 * device's memory. The trace has one limit for the whole run. It is recorded if every device in use
 * has it, and if the run would have been the same with the limit from the start: nothing exceeded
 * it before, and no other limit was in force. */

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

    if (device < 0 || device >= MAX_DEVICES || !(fraction >= 0 && fraction <= 1))
        return;
    uint64_t total = total_bytes(device);
    uint64_t limit = fraction < 1 ? (uint64_t)(fraction * (double)total) : 0;
    uint64_t peak = atomic_load(&devices[device].reserved_peak_bytes);
    uint64_t before = atomic_exchange(&devices[device].limit_bytes, limit);
    if (peak && before != limit && (before || peak > limit))
        atomic_store(&devices[device].spoiled, true);
    if (fraction < 1)
        atomic_store(&any_set, true);
    errno = saved;
}

/* Called with the device's lock held. */
void mt_torch_limit_reserve(int device, uint64_t bytes, bool gives_back)
{
    if (device < 0 || device >= MAX_DEVICES)
        return;
    uint64_t reserved = atomic_load_explicit(&devices[device].reserved_bytes, memory_order_relaxed);
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

    for (int i = 0; i < MAX_DEVICES; i++) {
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

void mt_torch_limit_record(void)
{
    uint64_t limit;
    char text[24];

    if (!atomic_load(&any_set) || (limit = common_limit()) == told_bytes)
        return;
    told_bytes = limit;
    snprintf(text, sizeof text, "%" PRIu64, limit);
    mt_collect_fact("memory_limit_bytes", text);
}

_Atomic int mt_torch_current_mode = MT_TORCH_REPORTS;
static atomic_bool seen, told;
static char options[2048], version_text[MT_TORCH_VERSION_BYTES];

void mt_torch_set_mode(enum mt_torch_mode mode)
{
    atomic_store_explicit(&mt_torch_current_mode, mode, memory_order_release);
}

bool mt_torch_reports_seen(void)
{
    return atomic_load_explicit(&seen, memory_order_relaxed);
}

void mt_torch_note_report(void)
{
    atomic_store(&seen, true);
}

void mt_torch_note_version(const char *text)
{
    snprintf(version_text, sizeof version_text, "%s", text);
}

const char *mt_torch_version_text(void)
{
    return version_text;
}

/* PyTorch reads it at the same time on the same thread; later the program may change its
 * environment. The first variable that is set counts. */
void mt_torch_note_options(void)
{
    static const char *const names[] = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF",
                                        "PYTORCH_ALLOC_CONF"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value) {
            snprintf(options, sizeof options, "%s", value);
            return;
        }
    }
}

static void tell_framework(void)
{
    const char *version = mt_torch_version_text();
    char text[96];

    snprintf(text, sizeof text, "PyTorch%s%s", *version ? " " : "", version);
    mt_collect_fact("framework", text);
    if (*options)
        mt_collect_fact("allocator_options", options);
}

static void tell_tracked(void)
{
    mt_collect_fact("sources", "pytorch-tracker");
    mt_collect_fact("has_segments", "1");
    mt_collect_fact("has_free_requested", "1");
    mt_collect_fact("has_free_completed", "1");
}

static void tell_reported(void)
{
    mt_collect_fact("sources", "pytorch-reports");
    mt_collect_fact("sizes_rounded", "1");
    mt_collect_fact("has_free_requested", "1");
}

static __attribute__((noinline)) void record_source(void)
{
    enum mt_torch_mode mode = mt_torch_mode();

    if (!(mode == MT_TORCH_TRACKED || (mode == MT_TORCH_REPORTS && mt_torch_reports_seen())) ||
        atomic_exchange(&told, true))
        return;
    tell_framework();
    if (mode == MT_TORCH_TRACKED)
        tell_tracked();
    else
        tell_reported();
}

void mt_torch_record_source(void)
{
    if (!atomic_load_explicit(&told, memory_order_relaxed))
        record_source();
}

void mt_torch_facts_forked(void)
{
    atomic_store(&told, false);
}
