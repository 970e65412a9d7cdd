/* Functions of c10 that this library replaces. The variants depend on the version; those of other
 * versions are never called. Each one calls the original, because the profiler depends on these
 * reports. */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>

#include "collect.h"
#include "originals.h"
#include "settings.h"
#include "torch_parts.h"

enum { DEVICE_CUDA = 1 };

/* c10::Device */
struct device {
    int8_t type, index;
};

typedef void (*usage_function)(void *, int64_t, uint64_t, uint64_t, struct device);
typedef void (*old_usage_function)(void *, int64_t, struct device);
typedef void (*oom_function)(int64_t, uint64_t, uint64_t, struct device);
typedef int8_t (*count_function)(void);

enum interposed { USAGE_OLD, USAGE_LLL, USAGE_LMM, OOM_LLL, OOM_LMM, OOM_MMM, DEVICE_COUNT, COUNT };

static const char *const names[COUNT] = {
    [USAGE_OLD] = "_ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE",
    [USAGE_LLL] = "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE",
    [USAGE_LMM] = "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE",
    [OOM_LLL] = "_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE",
    [OOM_LMM] = "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE",
    [OOM_MMM] = "_ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE",
    [DEVICE_COUNT] = "_ZN3c104cuda28device_count_ensure_non_zeroEv",
};

/* NULL = not searched yet, &absent = there is none */
static _Atomic(void *) originals[COUNT];
static char absent;
static void *original(enum interposed which, const void *caller)
{
    void *function = atomic_load_explicit(&originals[which], memory_order_acquire);

    if (!function) {
        int saved = errno;
        function = mt_original_for(caller, names[which]);
        function = function ? function : &absent;
        atomic_store_explicit(&originals[which], function, memory_order_release);
        errno = saved;
    }
    return function == &absent ? NULL : function;
}

void mt_torch_reports_resolve(void *library)
{
    int i;

    for (i = 0; i < COUNT; i++) {
        void *function = mt_original_symbol(library, names[i]);
        if (function)
            atomic_store_explicit(&originals[i], function, memory_order_release);
    }
}

static void emit_usage(uint64_t addr, int64_t bytes, int device)
{
    struct mt_raw_event event = {.kind = bytes > 0 ? MT_EVENT_ALLOC : MT_EVENT_FREE_REQUESTED,
                                 .heap = MT_RAW_PYTORCH,
                                 .device = (uint8_t)device,
                                 .addr = addr,
                                 .size_bytes = bytes > 0 ? (uint64_t)bytes : 0 - (uint64_t)bytes};

    mt_collect_stacks(&event);
    mt_collect_emit(&event);
    if (bytes < 0) {
        event.kind = MT_EVENT_FREE_COMPLETED;
        mt_collect_emit(&event);
    }
    if (!mt_torch_reports_seen()) {
        mt_torch_note_report();
        mt_torch_tell();
    }
}

static void on_usage(uint64_t addr, int64_t bytes, struct device device)
{
    int saved = errno;

    mt_torch_tracker_call_ended();
    if (mt_torch_mode() >= MT_TORCH_TRACKED || device.type != DEVICE_CUDA || device.index < 0 ||
        !bytes || !mt_collect_enter())
        return;
    if (mt_torch_mode() == MT_TORCH_CHECKING && bytes > 0)
        mt_torch_tracker_check(addr, (uint64_t)bytes, device.index);
    if (mt_torch_mode() == MT_TORCH_REPORTS)
        emit_usage(addr, bytes, device.index);
    mt_collect_leave();
    errno = saved;
}

static void on_oom(uint64_t bytes, struct device device)
{
    int saved = errno;

    if (mt_torch_mode() >= MT_TORCH_TRACKED || device.type != DEVICE_CUDA || device.index < 0 ||
        !mt_collect_enter())
        return;
    if (mt_torch_mode() == MT_TORCH_CHECKING)
        mt_torch_tracker_check_oom(bytes, device.index);
    if (mt_torch_mode() == MT_TORCH_REPORTS) {
        struct mt_raw_event event = {.kind = MT_EVENT_OOM,
                                     .heap = MT_RAW_PYTORCH,
                                     .device = (uint8_t)device.index,
                                     .size_bytes = bytes};
        mt_collect_stacks(&event);
        mt_collect_emit(&event);
    }
    mt_collect_leave();
    errno = saved;
}

#define EXPORT(symbol) __asm__(symbol) __attribute__((visibility("default")))

void mt_torch_usage_old(void *addr, int64_t bytes, struct device device)
    EXPORT("_ZN3c1027reportMemoryUsageToProfilerEPvlNS_6DeviceE");
void mt_torch_usage_lll(void *addr, int64_t bytes, uint64_t allocated, uint64_t reserved,
                        struct device device)
    EXPORT("_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE");
void mt_torch_usage_lmm(void *addr, int64_t bytes, uint64_t allocated, uint64_t reserved,
                        struct device device)
    EXPORT("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
void mt_torch_oom_lll(int64_t bytes, uint64_t allocated, uint64_t reserved, struct device device)
    EXPORT("_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE");
void mt_torch_oom_lmm(int64_t bytes, uint64_t allocated, uint64_t reserved, struct device device)
    EXPORT("_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE");
void mt_torch_oom_mmm(int64_t bytes, uint64_t allocated, uint64_t reserved, struct device device)
    EXPORT("_ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE");
int8_t mt_torch_device_count(void) EXPORT("_ZN3c104cuda28device_count_ensure_non_zeroEv");

void mt_torch_usage_old(void *addr, int64_t bytes, struct device device)
{
    old_usage_function next = (old_usage_function)original(USAGE_OLD, __builtin_return_address(0));

    on_usage((uintptr_t)addr, bytes, device);
    if (next)
        next(addr, bytes, device);
}

#define USAGE(function, which)                                                                     \
    void function(void *addr, int64_t bytes, uint64_t allocated, uint64_t reserved,                \
                  struct device device)                                                            \
    {                                                                                              \
        usage_function next = (usage_function)original(which, __builtin_return_address(0));        \
                                                                                                   \
        on_usage((uintptr_t)addr, bytes, device);                                                  \
        if (next)                                                                                  \
            next(addr, bytes, allocated, reserved, device);                                        \
    }

USAGE(mt_torch_usage_lll, USAGE_LLL)
USAGE(mt_torch_usage_lmm, USAGE_LMM)

#define OUT_OF_MEMORY(function, which)                                                             \
    void function(int64_t bytes, uint64_t allocated, uint64_t reserved, struct device device)      \
    {                                                                                              \
        oom_function next = (oom_function)original(which, __builtin_return_address(0));            \
                                                                                                   \
        on_oom((uint64_t)bytes, device);                                                           \
        if (next)                                                                                  \
            next(bytes, allocated, reserved, device);                                              \
    }

OUT_OF_MEMORY(mt_torch_oom_lll, OOM_LLL)
OUT_OF_MEMORY(mt_torch_oom_lmm, OOM_LMM)
OUT_OF_MEMORY(mt_torch_oom_mmm, OOM_MMM)

/* PyTorch requests the number of devices when it initializes CUDA, and passes it to the allocator's
 * init. Throws if there is none. */
int8_t mt_torch_device_count(void)
{
    static atomic_bool met;
    const void *caller = __builtin_return_address(0);
    count_function next = (count_function)original(DEVICE_COUNT, caller);

    if (!atomic_exchange(&met, true)) {
        int saved = errno;
        void *library = mt_original_library(caller);
        (void)mt_torch_allocator_meet(library, true);
        if (library)
            dlclose(library);
        errno = saved;
    }
    return next ? next() : 0;
}
