/* See nvtx_parts.h.
 *
 * Pushed ranges: each thread has one stack for all domains. A pop takes the innermost entry of its
 * domain, nearly always the last one.
 *
 * Started ranges: a fixed table. An id can only be in the few slots that its hash selects, so
 * starting and ending take a short scan without a lock. */
#include "nvtx_parts.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "collect.h"
#include "map.h"

enum { FIRST_DEPTH = 32, MAX_DEPTH = 1 << 16 };

struct pushed {
    uint32_t name; /* 0: not in the trace */
    uint32_t domain, level;
};

struct stack {
    struct pushed *ranges;
    uint32_t count, capacity;
    uint32_t beyond; /* pushed but not kept: too deep, or no memory */
};

static _Thread_local struct stack pushed_ranges;

static pthread_key_t at_thread_end;
static bool have_key;
static pthread_once_t once_key = PTHREAD_ONCE_INIT;

static void forget_thread(void *ranges)
{
    free(ranges);
    memset(&pushed_ranges, 0, sizeof pushed_ranges);
}

static void make_key(void)
{
    have_key = pthread_key_create(&at_thread_end, forget_thread) == 0;
}

static bool grow(struct stack *stack)
{
    uint32_t capacity = stack->capacity ? 2 * stack->capacity : FIRST_DEPTH;
    struct pushed *ranges;

    if (stack->capacity >= MAX_DEPTH)
        return false;
    ranges = realloc(stack->ranges, capacity * sizeof *ranges);
    if (!ranges)
        return false;
    stack->ranges = ranges;
    stack->capacity = capacity;
    pthread_once(&once_key, make_key);
    if (have_key) /* otherwise the stack leaks when its thread ends */
        pthread_setspecific(at_thread_end, ranges);
    return true;
}

/* The innermost range of a domain, NULL if there is none. */
static struct pushed *innermost(const struct stack *stack, uint32_t domain)
{
    for (uint32_t i = stack->count; i-- > 0;)
        if (stack->ranges[i].domain == domain)
            return &stack->ranges[i];
    return NULL;
}

static struct pushed *add(struct stack *stack, uint32_t domain)
{
    if (stack->beyond || (stack->count == stack->capacity && !grow(stack))) {
        stack->beyond++;
        return NULL;
    }
    const struct pushed *outer = innermost(stack, domain);
    struct pushed *range = &stack->ranges[stack->count++];
    *range = (struct pushed){.domain = domain, .level = outer ? outer->level + 1 : 0};
    return range;
}

static bool take(struct stack *stack, uint32_t domain, struct pushed *range)
{
    struct pushed *found = innermost(stack, domain);

    if (!found)
        return false;
    *range = *found;
    stack->count--;
    memmove(found, found + 1, (size_t)(stack->ranges + stack->count - found) * sizeof *found);
    return true;
}

static void emit(uint8_t kind, uint32_t name, uint64_t thread)
{
    struct mt_raw_event event = {
        .kind = kind, .heap = MT_RAW_DRIVER, .device = UINT8_MAX, .id = name, .aux_bytes = thread};

    mt_collect_emit(&event);
}

/* Records the event. Returns the id of its name, 0 if it is not in the trace. */
static uint32_t record(uint8_t kind, uint32_t domain, const struct nvtx_attributes *attributes,
                       uint32_t *thread)
{
    if (!mt_collect_enter())
        return 0;
    uint32_t name = mt_nvtx_name(domain, attributes);
    if (name)
        emit(kind, name, 0);
    if (thread)
        *thread = mt_collect_thread();
    mt_collect_leave();
    return name;
}

/* The thread's number is 0 if it is irrelevant. */
static void record_end(uint32_t name, uint32_t thread)
{
    if (!name || !mt_collect_enter())
        return;
    emit(MT_EVENT_PHASE_POP, name, thread && thread != mt_collect_thread() ? thread : 0);
    mt_collect_leave();
}

int mt_nvtx_push(uint32_t domain, const struct nvtx_attributes *attributes)
{
    struct pushed *range = add(&pushed_ranges, domain);

    if (!range)
        return MAX_DEPTH;
    range->name = record(MT_EVENT_PHASE_PUSH, domain, attributes, NULL);
    return (int)range->level;
}

int mt_nvtx_pop(uint32_t domain)
{
    struct pushed range;

    if (pushed_ranges.beyond) {
        pushed_ranges.beyond--;
        return MAX_DEPTH;
    }
    if (!take(&pushed_ranges, domain, &range))
        return -1;
    record_end(range.name, 0);
    return (int)range.level;
}

uint32_t mt_nvtx_innermost_name(uint32_t domain)
{
    const struct pushed *range = pushed_ranges.beyond ? NULL : innermost(&pushed_ranges, domain);

    return range ? range->name : 0;
}

void mt_nvtx_mark(uint32_t domain, const struct nvtx_attributes *attributes)
{
    record(MT_EVENT_MARK, domain, attributes, NULL);
}

enum { MAX_STARTED = 1 << 15, STARTED_WINDOW = 64 };

#define BUSY UINT64_MAX

struct started {
    uint32_t name, thread;
};

static _Atomic uint64_t started_ids[MAX_STARTED]; /* 0 = free */
static struct started started[MAX_STARTED];
static _Atomic uint64_t last_id;
static _Atomic bool any_started;

static size_t first_slot(uint64_t id)
{
    return (size_t)mt_hash_u64(id) & (MAX_STARTED - STARTED_WINDOW);
}

/* Takes a slot that has the value `holds` for this thread. Returns SIZE_MAX if there is none. */
static size_t claim(uint64_t first_id, uint64_t holds)
{
    size_t first = first_slot(first_id);

    for (size_t at = first; at < first + STARTED_WINDOW; at++) {
        uint64_t there = atomic_load_explicit(&started_ids[at], memory_order_relaxed);
        if (there == holds &&
            atomic_compare_exchange_strong_explicit(&started_ids[at], &there, BUSY,
                                                    memory_order_acquire, memory_order_relaxed))
            return at;
    }
    return SIZE_MAX;
}

static void release(size_t slot, uint64_t holds)
{
    atomic_store_explicit(&started_ids[slot], holds, memory_order_release);
}

uint64_t mt_nvtx_start(uint64_t next, uint32_t domain, const struct nvtx_attributes *attributes)
{
    static bool said;
    uint64_t id = next ? next : atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
    size_t slot = id == BUSY ? SIZE_MAX : claim(id, 0);
    struct started range = {0};

    if (slot == SIZE_MAX) {
        mt_collect_message(&said,
                           "too many NVTX ranges were started and not ended: the trace lacks "
                           "some");
        return id;
    }
    range.name = record(MT_EVENT_PHASE_PUSH, domain, attributes, &range.thread);
    started[slot] = range;
    release(slot, range.name ? id : 0);
    atomic_store_explicit(&any_started, true, memory_order_relaxed);
    return id;
}

void mt_nvtx_end(uint64_t id)
{
    size_t slot = id && id != BUSY ? claim(id, id) : SIZE_MAX;

    if (slot == SIZE_MAX)
        return;
    struct started range = started[slot];
    release(slot, 0);
    record_end(range.name, range.thread);
}

void mt_nvtx_ranges_forked(void)
{
    for (uint32_t i = 0; i < pushed_ranges.count; i++)
        pushed_ranges.ranges[i].name = 0;
    if (!atomic_exchange_explicit(&any_started, false, memory_order_relaxed))
        return;
    for (size_t i = 0; i < MAX_STARTED; i++)
        atomic_store_explicit(&started_ids[i], 0, memory_order_relaxed);
}
