/* See collect.h. The hot path: a load of the generation (zeroed in a forked child), a flag of the
 * thread, an atomic addition for the number, and a cache line. Slots are taken and filled without
 * locks. */
#include "collect.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core.h"
#include "intern.h"
#include "settings.h"
#include "stacks.h"

enum { WAIT_STEP_NS = 200000, MAX_WAIT_NS = 200000000, PAGE_EVENTS = 64 /* of 4 KiB */ };

/* The distinct stacks of this number of events fill at most a quarter of the tape's log, those of
 * an idle recorder another quarter. */
enum { MAX_DRIVER_STACKS = 16384 };

static _Atomic bool has_native;           /* an event of this process has a native stack */
static _Atomic bool has_requested_native; /* an event has a native stack that --stacks requested */
/* number of native stacks that --stacks did not request: of the recording, while it was idle */
static _Atomic uint32_t driver_stacks[2];

static void close_slot(struct mt_thread *thread)
{
    if (thread->slot)
        atomic_store_explicit(&thread->slot->state, MT_SLOT_FULL, memory_order_release);
    thread->slot = NULL;
}

/* Takes the free slot after the last one taken, or the first one after each pass of the writer:
 * the memory of emptied slots is more likely to be mapped and in a cache. */
static struct mt_slot *take_free_slot(struct mt_tape *tape)
{
    uint32_t start = atomic_load_explicit(&mt_core.next_slot, memory_order_relaxed);

    for (uint32_t i = 0; i < tape->slot_count; i++) {
        uint32_t index = (start + i) % tape->slot_count;
        struct mt_slot *slot = mt_tape_slot(tape, index);
        uint32_t wanted = MT_SLOT_FREE;
        if (atomic_load_explicit(&slot->state, memory_order_relaxed) == MT_SLOT_FREE &&
            atomic_compare_exchange_strong(&slot->state, &wanted, MT_SLOT_OPEN)) {
            atomic_store_explicit(&mt_core.next_slot, index + 1, memory_order_relaxed);
            return slot;
        }
    }
    return NULL;
}

/* If so, slots are no longer emptied and events are only counted. */
static bool writer_failed(void)
{
    return atomic_load_explicit(&mt_core.state, memory_order_relaxed) == MT_CORE_FAILED;
}

/* If so, slots are not emptied soon, and waiting for one is pointless. */
static bool writer_is_stuck(void)
{
    return writer_failed() ||
           atomic_load_explicit(&mt_core.state, memory_order_relaxed) == MT_CORE_STOPPED ||
           atomic_load_explicit(&mt_core.disk_full, memory_order_relaxed);
}

/* Waits for the writer for a bounded time. The bound is reached only if the disk does not
 * respond. */
static struct mt_slot *wait_for_slot(struct mt_tape *tape, const struct mt_thread *thread)
{
    uint64_t start_ns = mt_now_ns(), waited_ns = 0;
    struct mt_slot *slot = NULL;

    while (!slot && !thread->never_waits && !writer_is_stuck() && waited_ns < MAX_WAIT_NS) {
        const struct timespec step = {0, WAIT_STEP_NS};
        mt_core_wake_writer();
        nanosleep(&step, NULL);
        waited_ns = mt_now_ns() - start_ns;
        slot = take_free_slot(tape);
    }
    return slot;
}

/* Finds a slot with room for the thread's next event. Returns false if there is none. */
static bool next_slot(struct mt_thread *thread)
{
    struct mt_tape *tape = mt_core.tape;
    int saved = errno;

    close_slot(thread);
    if (writer_failed())
        return false;
    thread->slot = take_free_slot(tape);
    if (!thread->slot)
        thread->slot = wait_for_slot(tape, thread);
    if (thread->slot) {
        thread->slot->thread = thread->number;
        thread->used = 0;
    }
    if (atomic_fetch_add(&mt_core.full_slots, 1) + 1 >= tape->slot_count / 8)
        mt_core_wake_writer();
    errno = saved;
    return thread->slot != NULL;
}

static void count_dropped(void)
{
    atomic_fetch_add_explicit(&mt_core.tape->dropped_events, 1, memory_order_relaxed);
}

static void define_thread(const struct mt_thread *thread)
{
    struct {
        uint64_t number, os_id;
        char name[16];
    } facts = {thread->number, (uint64_t)syscall(SYS_gettid), {0}};

    if (prctl(PR_GET_NAME, facts.name, 0, 0, 0))
        facts.name[0] = '\0';
    (void)mt_define(MT_DEFINE_THREAD, &facts, 16 + strnlen(facts.name, sizeof facts.name));
}

/* Runs at the end of a thread. Other destructors of the thread may still emit events and start
 * again. */
static void thread_ends(void *value)
{
    struct mt_thread *thread = value;

    mt_self = NULL;
    if (thread->generation == atomic_load(mt_core.generation))
        close_slot(thread);
    (void)munmap(thread, sizeof *thread);
}

bool mt_thread_key_make(void)
{
    if (!mt_core.thread_key_made)
        mt_core.thread_key_made = pthread_key_create(&mt_core.thread_key, thread_ends) == 0;
    return mt_core.thread_key_made;
}

void mt_thread_forget(void)
{
    atomic_store_explicit(&has_native, false, memory_order_relaxed);
    atomic_store_explicit(&has_requested_native, false, memory_order_relaxed);
    atomic_store_explicit(&driver_stacks[false], 0, memory_order_relaxed);
    atomic_store_explicit(&driver_stacks[true], 0, memory_order_relaxed);
    if (mt_self)
        mt_self->generation = 0;
}

static struct mt_thread *new_thread(void)
{
    struct mt_thread *thread =
        mmap(NULL, sizeof *thread, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (thread == MAP_FAILED)
        return NULL;
    if (pthread_setspecific(mt_core.thread_key, thread)) {
        (void)munmap(thread, sizeof *thread);
        return NULL;
    }
    return thread;
}

static bool begin_thread(void)
{
    struct mt_thread *thread = mt_self ? mt_self : new_thread();

    if (!thread)
        return false;
    memset(thread, 0, sizeof *thread);
    thread->number = atomic_fetch_add(&mt_core.tape->thread_count, 1) + 1;
    thread->depth = 1;
    mt_self = thread;
    thread->generation = atomic_load(mt_core.generation);
    define_thread(thread);
    return true;
}

/* In a child whose fork handlers have not run (yet), the page is zeroed. The writer zeroes the page
 * after it has changed the state, so the state is compared again. */
static bool was_forked(int state)
{
    return (state == MT_CORE_RUNNING || state == MT_CORE_FAILED) && mt_core.generation_page &&
           !atomic_load(mt_core.generation_page) && atomic_load(&mt_core.state) == state;
}

/* True if the writer failed while this thread was in an event. */
static bool is_nested(void)
{
    return mt_self && mt_self->generation && mt_self->depth;
}

static bool begin_or_count(void)
{
    int state = atomic_load(&mt_core.state);

    if (state == MT_CORE_STOPPED || state == MT_CORE_OFF || !mt_core.start || !mt_core.sources)
        return false;
    if (was_forked(state)) {
        mt_core.found_forked();
        state = atomic_load(&mt_core.state);
        if (state == MT_CORE_OFF)
            return false;
    }
    if (state != MT_CORE_FAILED && !mt_core.start())
        return false;
    if (!is_nested() && begin_thread())
        return true;
    count_dropped();
    return false;
}

/* Not inlined, like other rare paths here and in the sources, so that the usual path saves no
 * registers. */
static __attribute__((noinline)) bool enter_slowly(void)
{
    int saved = errno;
    bool entered = begin_or_count();

    errno = saved;
    return entered;
}

bool mt_collect_enter(void)
{
    struct mt_thread *thread = mt_self;

    if (!thread || !thread->generation ||
        thread->generation != atomic_load_explicit(mt_core.generation, memory_order_relaxed))
        return enter_slowly();
    if (thread->depth) {
        count_dropped();
        return false;
    }
    thread->depth = 1;
    return true;
}

void mt_collect_leave(void)
{
    mt_self->depth = 0;
}

bool mt_collect_is_running(void)
{
    return atomic_load_explicit(&mt_core.state, memory_order_acquire) == MT_CORE_RUNNING &&
           atomic_load_explicit(mt_core.generation, memory_order_relaxed) != 0;
}

bool mt_collect_is_idle(void)
{
    return atomic_load_explicit(&mt_core.is_idle, memory_order_relaxed);
}

/* The slot must have room. The number is taken before the event is copied: the addition waits until
 * earlier stores are in the cache, and the line of the event usually is not there yet. */
static inline void put(struct mt_thread *thread, const struct mt_raw_event *event, uint64_t ticks)
{
    uint64_t seq = atomic_fetch_add_explicit(&mt_core.tape->next_seq, 1, memory_order_relaxed);
    struct mt_slot *slot = thread->slot;
    struct mt_raw_event *place = &slot->events[thread->used];
    uint32_t committed = thread->used + 1;

    *place = *event;
    place->ticks = ticks;
    place->seq = seq;
    thread->used = committed;
    atomic_store_explicit(&slot->committed, committed, memory_order_release);
}

static bool has_room(const struct mt_thread *thread)
{
    return thread->used < thread->room;
}

/* Gives the thread room in one page, and writes to it: a page fault may wait for a disk, but the
 * writer waits only two seconds for an event that has a number. */
static bool next_page(struct mt_thread *thread)
{
    if ((!thread->slot || thread->used == MT_SLOT_EVENTS) && !next_slot(thread))
        return false;
    *(volatile uint64_t *)&thread->slot->events[thread->used].seq = 0;
    thread->room = (thread->used + 1) | (PAGE_EVENTS - 1);
    return true;
}

static __attribute__((noinline)) void emit_slowly(const struct mt_raw_event *event)
{
    if (has_room(mt_self) || next_page(mt_self))
        put(mt_self, event, mt_clock_ticks(&mt_core.clock));
    else
        count_dropped();
}

void mt_collect_emit(const struct mt_raw_event *event)
{
    if (mt_core.clock.counter && has_room(mt_self))
        put(mt_self, event, mt_counter_ticks());
    else
        emit_slowly(event);
}

bool mt_collect_takes_native(void)
{
    return mt_recorder_settings->native_stacks || (mt_recorder_settings->native_without_python &&
                                                   mt_python_is_absent && mt_python_is_absent());
}

bool mt_collect_has_native(void)
{
    return atomic_load_explicit(&has_native, memory_order_relaxed);
}

bool mt_collect_has_requested_native(void)
{
    return atomic_load_explicit(&has_requested_native, memory_order_relaxed);
}

/* Only native frames show which library requests memory from the driver: the threads of a
 * communicator run no Python. An allocator that calls the driver for each block uses up the limit,
 * and then gets only the stacks that the user requested. An idle recorder has a limit of its
 * own. */
static bool names_a_library(const struct mt_raw_event *event, bool idle)
{
    const unsigned device_memory = 1U << MT_RAW_DRIVER | 1U << MT_RAW_MANAGED | 1U << MT_RAW_ARRAY |
                                   1U << MT_RAW_ASYNC | 1U << MT_RAW_VIRTUAL | 1U << MT_RAW_GRAPH;

    if (!(device_memory >> event->heap & 1) ||
        (event->kind != MT_EVENT_ALLOC && event->kind != MT_EVENT_ALLOC_FAILED) ||
        atomic_load_explicit(&driver_stacks[idle], memory_order_relaxed) >= MAX_DRIVER_STACKS)
        return false;
    /* threads that pass the check at the same time still do not exceed the limit */
    return atomic_fetch_add_explicit(&driver_stacks[idle], 1, memory_order_relaxed) <
           MAX_DRIVER_STACKS;
}

static void set_once(_Atomic bool *flag)
{
    if (!atomic_load_explicit(flag, memory_order_relaxed))
        atomic_store_explicit(flag, true, memory_order_relaxed);
}

static __attribute__((noinline)) void take_stacks(struct mt_raw_event *event)
{
    const bool idle = mt_collect_is_idle();

    if (writer_failed())
        return; /* the event will only be counted */
    if (!idle && mt_recorder_settings->python_stacks && mt_python_stack)
        event->python_stack = mt_python_stack();
    bool asked = !idle && mt_collect_takes_native();
    if (mt_native_stack && (asked || names_a_library(event, idle)))
        event->native_stack = mt_native_stack(1);
    if (!event->native_stack)
        return;
    set_once(&has_native);
    if (asked)
        set_once(&has_requested_native);
}

void mt_collect_stacks(struct mt_raw_event *event)
{
    const bool frees =
        event->kind == MT_EVENT_FREE_REQUESTED || event->kind == MT_EVENT_FREE_COMPLETED;

    if (!frees || mt_recorder_settings->free_stacks)
        take_stacks(event);
}

uint32_t mt_collect_name(const char *text, size_t length)
{
    return mt_intern(MT_DEFINE_NAME, text, length);
}

uint32_t mt_collect_pool(uint64_t a, uint64_t b)
{
    const uint64_t numbers[2] = {a, b};

    return a || b ? mt_intern(MT_DEFINE_POOL, numbers, sizeof numbers) : 0;
}

uint32_t mt_collect_thread(void)
{
    return mt_self->number;
}

void mt_collect_fact(const char *key, const char *value)
{
    char text[4096];
    int length = snprintf(text, sizeof text, "%s=%s", key, value);

    if (length > 0)
        (void)mt_define(MT_DEFINE_FACT, text,
                        (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}

void mt_collect_device(uint32_t index, uint64_t total_bytes, const char *name)
{
    struct {
        uint64_t total_bytes, index;
        char name[256];
    } facts = {total_bytes, index, {0}};
    size_t length = name ? strnlen(name, sizeof facts.name) : 0;

    memcpy(facts.name, name ? name : "", length);
    (void)mt_define(MT_DEFINE_DEVICE, &facts, 16 + length);
}

void mt_collect_not_recorded(bool *once, const char *format, ...)
{
    char text[MT_COLLECT_REASON_BYTES + 1];
    va_list arguments;

    va_start(arguments, format);
    mt_format_cut(text, sizeof text, format, arguments);
    va_end(arguments);
    mt_collect_message(once, "%s", text);
    for (char *at = text; *at; at++)
        if (*at == '\n') /* newlines separate facts */
            *at = ' ';
    mt_collect_fact("not_recorded", text);
}
