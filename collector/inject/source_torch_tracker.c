/* Entries of the allocator's tracker as events, in the same way as in the importer of snapshots
 * (collector/import/torch_events.c). */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "collect.h"
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
    unsigned i;

    for (i = 0; i < held.count && verdict == MT_TORCH_TRACKED; i++)
        mt_collect_emit(&held.events[i]);
    held.count = 0;
    mt_torch_set_mode(verdict);
}

/* If no reports arrive, entries cannot be compared with them and are accepted. */
static void hold(const struct mt_raw_event *event)
{
    lock_held();
    if (mt_torch_mode() == MT_TORCH_CHECKING && held.count == MAX_HELD)
        decide(MT_TORCH_TRACKED);
    if (mt_torch_mode() == MT_TORCH_CHECKING)
        held.events[held.count++] = *event;
    else if (mt_torch_mode() == MT_TORCH_TRACKED)
        mt_collect_emit(event);
    unlock_held();
    mt_torch_tell();
}

static void emit(const struct mt_raw_event *event)
{
    if (mt_torch_mode() != MT_TORCH_TRACKED) {
        hold(event);
        return;
    }
    mt_torch_tell();
    mt_collect_emit(event);
}

static void conclude(bool agrees)
{
    static bool said;

    lock_held();
    if (mt_torch_mode() == MT_TORCH_CHECKING)
        decide(agrees ? MT_TORCH_TRACKED : MT_TORCH_REPORTS);
    unlock_held();
    mt_torch_tell();
    if (!agrees)
        mt_collect_say(&said, "PyTorch: the allocator's tracker and its reports do not agree; "
                              "sizes are those of blocks, not requests");
}

void mt_torch_tracker_check(uint64_t addr, uint64_t block_bytes, int device)
{
    conclude(last.addr == addr && last.device == device && last.size_bytes &&
             last.size_bytes <= block_bytes);
}

void mt_torch_tracker_check_oom(uint64_t bytes, int device)
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
static void follow_empty_cache(const struct mt_raw_event *event)
{
    uint64_t bit = (uint64_t)1 << (event->device & 63);

    if (event->kind == MT_EVENT_SEGMENT_FREE || event->kind == MT_EVENT_SEGMENT_UNMAP) {
        struct mt_raw_event mark = {.kind = MT_EVENT_EMPTY_CACHE,
                                    .heap = MT_RAW_PYTORCH,
                                    .device = event->device,
                                    .python_stack = event->python_stack,
                                    .native_stack = event->native_stack};
        if (!(empty_cache.said & bit))
            emit(&mark);
        empty_cache.said |= bit;
    } else if (event->kind != MT_EVENT_FREE_COMPLETED) {
        empty_cache.inside = false;
    }
}

/* Facts that the header states at the end. */
static void follow_facts(const struct mt_raw_event *event)
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
    } else {
        mt_collect_stacks(event);
    }
    requested.addr = event->kind == MT_EVENT_FREE_REQUESTED ? event->addr : 0;
    requested.python_stack = event->python_stack;
    requested.native_stack = event->native_stack;
}

void mt_torch_tracker_call_ended(void)
{
    requested.addr = 0;
}

static void record(const struct entry *entry)
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
    follow_facts(&event);
    if (empty_cache.inside)
        follow_empty_cache(&event);
    if (mt_torch_mode() == MT_TORCH_CHECKING && (kind == MT_EVENT_ALLOC || oom)) {
        last.addr = event.addr;
        last.size_bytes = event.size_bytes;
        last.device = entry->device;
    }
    emit(&event);
}

static void on_entry(const void *storage, const void *data)
{
    const struct entry *entry = data;
    int saved = errno;

    (void)storage;
    if (mt_torch_mode() == MT_TORCH_REPORTS || mt_torch_mode() == MT_TORCH_OFF ||
        !is_plausible(entry) || !mt_collect_enter())
        return;
    record(entry);
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
