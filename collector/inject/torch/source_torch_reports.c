/* Reports of PyTorch's allocator: functions of c10 that this library replaces, and entries of the
 * tracker as events, in the same way as in the importer of snapshots (torch_events.c). Which of the
 * functions are called depends on the version. Each one calls the original, because the profiler
 * depends on these reports. */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "collect.h"
#include "originals.h"
#include "torch_parts.h"

enum {
    MAX_HELD = 64,
    OPERATION_CLONE = 2 /* of std::_Manager_operation */
};

/* The first fields of c10's TraceEntry; see source_torch_versions.c. */
struct entry {
    int32_t action;
    int8_t device;
    uint64_t addr; /* for OUT_OF_MEMORY: free bytes of the device */
    void *context[2];
    uint64_t stream;
    uint64_t size_bytes;
    uint64_t pool[2];
};

/* Action of an entry -> kind of event; 0: none. */
static const uint8_t kinds[] = {
    MT_EVENT_ALLOC,         MT_EVENT_FREE_REQUESTED, MT_EVENT_FREE_COMPLETED,
    MT_EVENT_SEGMENT_ALLOC, MT_EVENT_SEGMENT_FREE,   MT_EVENT_SEGMENT_MAP,
    MT_EVENT_SEGMENT_UNMAP, 0 /* snapshot */,        MT_EVENT_OOM,
};

static bool entries_tell_pool;
static atomic_bool refused; /* or memory was returned to the driver */

/* Events before the check, in order, and a lock for them. */
static struct {
    atomic_flag lock;
    unsigned count;
    struct mt_raw_event events[MAX_HELD];
} held = {.lock = ATOMIC_FLAG_INIT};

/* The last allocation or OOM that an entry reported on this thread, while CHECKING. */
static _Thread_local struct {
    uint64_t addr, size_bytes;
    int device;
} last;

/* Whether this thread is inside empty_cache(), and one bit for each device whose emptied cache was
 * recorded. */
static _Thread_local struct {
    bool inside;
    uint64_t said;
} empty_cache;

/* The free that this thread requested with its last entry; addr 0: none. */
static _Thread_local struct {
    uint64_t addr;
    uint32_t python_stack, native_stack;
} requested;

static void lock_held(void)
{
    while (atomic_flag_test_and_set_explicit(&held.lock, memory_order_acquire))
        continue;
}

static void unlock_held(void)
{
    atomic_flag_clear_explicit(&held.lock, memory_order_release);
}

/* Call it with the lock held. */
static void decide(enum mt_torch_mode verdict)
{
    for (unsigned i = 0; i < held.count && verdict == MT_TORCH_TRACKED; i++)
        mt_collect_emit(&held.events[i]);
    held.count = 0;
    mt_torch_set_mode(verdict);
}

/* If no reports arrive, entries cannot be compared with them and are accepted. */
static __attribute__((noinline)) void hold(const struct mt_raw_event *event)
{
    lock_held();
    if (mt_torch_mode() == MT_TORCH_CHECKING && held.count == MAX_HELD)
        decide(MT_TORCH_TRACKED);
    if (mt_torch_mode() == MT_TORCH_CHECKING)
        held.events[held.count++] = *event;
    else if (mt_torch_mode() == MT_TORCH_TRACKED)
        mt_collect_emit(event);
    unlock_held();
    mt_torch_record_source();
}

/* `mode` may be older than the event. TRACKED is final, and hold reads the mode again. */
static void emit(const struct mt_raw_event *event, enum mt_torch_mode mode)
{
    if (mode != MT_TORCH_TRACKED) {
        hold(event);
        return;
    }
    mt_torch_record_source();
    mt_collect_emit(event);
}

static void conclude(bool agrees)
{
    static bool said;

    lock_held();
    if (mt_torch_mode() == MT_TORCH_CHECKING)
        decide(agrees ? MT_TORCH_TRACKED : MT_TORCH_REPORTS);
    unlock_held();
    mt_torch_record_source();
    if (!agrees)
        mt_collect_message(&said, "PyTorch: the allocator's tracker and its reports do not agree; "
                                  "sizes are those of blocks, not requests");
}

/* Handles a report in mode CHECKING. The mode becomes TRACKED if the report agrees with the last
 * entry of the tracker, otherwise REPORTS. Call it between mt_collect_enter and leave. */
static void torch_tracker_check(uint64_t addr, uint64_t block_bytes, int device)
{
    conclude(last.addr == addr && last.device == device && last.size_bytes &&
             last.size_bytes <= block_bytes);
}

static void torch_tracker_check_oom(uint64_t bytes, int device)
{
    conclude(last.size_bytes == bytes && last.device == device);
}

static bool is_plausible(const struct entry *entry)
{
    return entry->action >= 0 && (size_t)entry->action < sizeof kinds && kinds[entry->action] &&
           entry->device >= 0;
}

/* Pools are counted from 1. A large number is not a pool. */
static bool has_plausible_pool(const struct entry *entry)
{
    return !((entry->pool[0] | entry->pool[1]) >> 32);
}

void mt_torch_tracker_empty_cache(bool enters)
{
    empty_cache.inside = enters;
    empty_cache.said = 0;
}

/* Records once per call of empty_cache and device why the following segments are freed. If the call
 * ended with an exception, only an event that cannot occur inside it shows that. */
static __attribute__((noinline)) void follow_empty_cache(const struct mt_raw_event *event)
{
    uint64_t bit = (uint64_t)1 << (event->device & 63);

    if (event->kind == MT_EVENT_SEGMENT_FREE || event->kind == MT_EVENT_SEGMENT_UNMAP) {
        struct mt_raw_event mark = {.kind = MT_EVENT_EMPTY_CACHE,
                                    .heap = MT_RAW_PYTORCH,
                                    .device = event->device,
                                    .python_stack = event->python_stack,
                                    .native_stack = event->native_stack};
        if (!(empty_cache.said & bit))
            emit(&mark, mt_torch_mode());
        empty_cache.said |= bit;
    } else if (event->kind != MT_EVENT_FREE_COMPLETED) {
        empty_cache.inside = false;
    }
}

/* Facts that the header states at the end. */
static __attribute__((noinline)) void follow_facts(const struct mt_raw_event *event)
{
    bool gives_back = event->kind == MT_EVENT_SEGMENT_FREE || event->kind == MT_EVENT_SEGMENT_UNMAP;

    if (event->kind >= MT_EVENT_SEGMENT_ALLOC && event->kind <= MT_EVENT_SEGMENT_UNMAP)
        mt_torch_limit_reserve(event->device, event->size_bytes, gives_back);
    if (gives_back || event->kind == MT_EVENT_OOM)
        atomic_store_explicit(&refused, true, memory_order_relaxed);
}

bool mt_torch_tracker_never_refused(void)
{
    return !atomic_load(&refused);
}

/* A free that completes immediately has two entries from one call. The call ends with a report. */
static void take_stacks(struct mt_raw_event *event)
{
    if (event->kind == MT_EVENT_FREE_COMPLETED && requested.addr == event->addr) {
        event->python_stack = requested.python_stack;
        event->native_stack = requested.native_stack;
        requested.addr = 0;
        return;
    }
    mt_collect_stacks(event);
    requested.addr = event->kind == MT_EVENT_FREE_REQUESTED ? event->addr : 0;
    requested.python_stack = event->python_stack;
    requested.native_stack = event->native_stack;
}

/* Call it when a request of this thread to the allocator has ended. */
static void torch_tracker_call_ended(void)
{
    requested.addr = 0;
}

static void record(const struct entry *entry, enum mt_torch_mode mode)
{
    uint8_t kind = kinds[entry->action];
    bool oom = kind == MT_EVENT_OOM;
    bool maps = kind == MT_EVENT_SEGMENT_MAP || kind == MT_EVENT_SEGMENT_UNMAP;
    struct mt_raw_event event = {.kind = kind,
                                 .heap = MT_RAW_PYTORCH,
                                 .device = (uint8_t)entry->device,
                                 .flags = maps ? MT_EVENT_EXPANDABLE : 0,
                                 .addr = oom ? 0 : entry->addr,
                                 .size_bytes = entry->size_bytes,
                                 .aux_bytes = oom ? entry->addr : 0,
                                 .stream = entry->stream};

    if (entries_tell_pool && (entry->pool[0] || entry->pool[1]) && has_plausible_pool(entry))
        event.id = mt_collect_pool(entry->pool[0], entry->pool[1]);
    take_stacks(&event);
    if (kind > MT_EVENT_FREE_COMPLETED)
        follow_facts(&event);
    if (empty_cache.inside)
        follow_empty_cache(&event);
    if (mode == MT_TORCH_CHECKING && (kind == MT_EVENT_ALLOC || oom)) {
        last.addr = event.addr;
        last.size_bytes = event.size_bytes;
        last.device = entry->device;
    }
    emit(&event, mode);
}

static void on_entry(const void *storage, const void *data)
{
    const enum mt_torch_mode mode = mt_torch_mode();
    const struct entry *entry = data;
    int saved = errno;

    (void)storage;
    if (mode == MT_TORCH_REPORTS || mode == MT_TORCH_OFF || !is_plausible(entry) ||
        !mt_collect_enter())
        return;
    record(entry, mode);
    mt_collect_leave();
    errno = saved;
}

/* The functor has no state, so there is nothing to copy or destroy. Its type is never requested. */
static bool manage(void *to, const void *from, int operation)
{
    if (operation == OPERATION_CLONE)
        memset(to, 0, 2 * sizeof(uint64_t));
    (void)from;
    return false;
}

void mt_torch_tracker_begin(const struct mt_torch_version *version,
                            struct mt_torch_functor *functor)
{
    entries_tell_pool = version->has_pool;
    *functor = (struct mt_torch_functor){.manage = manage, .invoke = on_entry};
    mt_torch_set_mode(MT_TORCH_CHECKING);
}

void mt_torch_tracker_forked(void)
{
    if (mt_torch_mode() == MT_TORCH_REPORTS && !mt_torch_reports_seen())
        return;
    atomic_flag_clear(&held.lock);
    held.count = 0;
    mt_torch_set_mode(MT_TORCH_OFF);
}

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

static __attribute__((noinline)) void *search(enum interposed which, const void *caller)
{
    int saved = errno;
    void *function = mt_original_for(caller, names[which]);

    function = function ? function : &absent;
    atomic_store_explicit(&originals[which], function, memory_order_release);
    errno = saved;
    return function;
}

static void *original(enum interposed which, const void *caller)
{
    void *function = atomic_load_explicit(&originals[which], memory_order_acquire);

    if (!function)
        function = search(which, caller);
    return function == &absent ? NULL : function;
}

void mt_torch_reports_resolve(void *library)
{
    for (int i = 0; i < COUNT; i++) {
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
        mt_torch_record_source();
    }
}

static __attribute__((noinline)) void record_usage(uint64_t addr, int64_t bytes, int device)
{
    int saved = errno;

    if (!mt_collect_enter())
        return;
    if (mt_torch_mode() == MT_TORCH_CHECKING && bytes > 0)
        torch_tracker_check(addr, (uint64_t)bytes, device);
    if (mt_torch_mode() == MT_TORCH_REPORTS)
        emit_usage(addr, bytes, device);
    mt_collect_leave();
    errno = saved;
}

static void on_usage(uint64_t addr, int64_t bytes, struct device device)
{
    torch_tracker_call_ended();
    if (mt_torch_mode() < MT_TORCH_TRACKED && device.type == DEVICE_CUDA && device.index >= 0 &&
        bytes)
        record_usage(addr, bytes, device.index);
}

static void on_oom(uint64_t bytes, struct device device)
{
    int saved = errno;

    if (mt_torch_mode() >= MT_TORCH_TRACKED || device.type != DEVICE_CUDA || device.index < 0 ||
        !mt_collect_enter())
        return;
    if (mt_torch_mode() == MT_TORCH_CHECKING)
        torch_tracker_check_oom(bytes, device.index);
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
