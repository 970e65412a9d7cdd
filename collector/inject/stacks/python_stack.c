/* Python stacks of the calling thread: see stacks.h, and docs/internals/recorder.md for why frames
 * may be read without the interpreter's lock.
 *
 * The frames that are read are compared with those that Python reports, in a thread that has the
 * lock: at its first event, or in a pending call of the main thread, whichever comes first. Until
 * then every read is guarded and every code object is verified, so early events also have stacks.
 * After that the walk takes a few loads per frame. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "collect.h"
#include "python_check.h"
#include "python_stack.h"
#include "settings.h"
#include "stacks.h"

enum state { ABSENT, UNCHECKED, CHECKED, OFF };

/* Number of failed comparisons before the layout counts as wrong; fewer may come from a debugger or
 * a half-built frame. MIN_SHALLOW: number of comparisons of a single frame after which no deeper
 * stack is awaited. Each poll of the writer allows one comparison. */
enum { MIN_DIFFERENT = 16, MIN_SHALLOW = 16 };

static struct {
    _Atomic int state;
    struct mt_python_view view; /* constant once the state is UNCHECKED */
    struct mt_python_api api;
    pthread_key_t key; /* its destructor frees a thread's memory */
    bool has_key;
    _Atomic bool may_check; /* an event may check; set again by each poll */
    _Atomic bool pending;   /* a pending call is queued */
    _Atomic bool gave;      /* an event has received a stack */
    _Atomic unsigned different, shallow;
    const char *reason; /* why OFF, for the user */
    bool told;          /* the header states that there are stacks */
    bool told_off;      /* the header states that there are none, and why */
} python;

static _Thread_local struct mt_python_thread *own_memory;

static void release_memory(void *memory)
{
    own_memory = NULL;
    munmap(memory, sizeof(struct mt_python_thread));
}

static struct mt_python_thread *new_memory(void)
{
    int kept = errno;
    void *memory = mmap(NULL, sizeof(struct mt_python_thread), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory != MAP_FAILED && pthread_setspecific(python.key, memory) == 0)
        own_memory = memory;
    else if (memory != MAP_FAILED)
        munmap(memory, sizeof(struct mt_python_thread));
    errno = kept;
    return own_memory;
}

static inline struct mt_python_thread *thread_memory(void)
{
    return own_memory ? own_memory : new_memory();
}

/* Finds the version of Python and its layout, if it is known. */
static void look_for_python(void)
{
    char runtime[MT_PYTHON_RUNTIME_BYTES];
    const bool is_complete = mt_python_api_find(&python.api);

    if (!is_complete && !python.api.version)
        return;
    bool has_runtime =
        is_complete && mt_python_copy(runtime, (uintptr_t)python.api.runtime, sizeof runtime);
    python.view.code_type = python.api.code_type;
    python.view.text_type = python.api.text_type;
    python.view.bytes_type = python.api.bytes_type;
    if (!is_complete ||
        !mt_python_layout(python.api.version, has_runtime ? runtime : NULL, &python.view.layout))
        python.reason = "this version of Python is not known";
    else if (!mt_python_memory_works() || !python.has_key)
        python.reason = "the system does not permit it";
    atomic_store(&python.may_check, true);
    atomic_store_explicit(&python.state, python.reason ? OFF : UNCHECKED, memory_order_release);
}

/* Runs before main, when no thread holds a lock of the loader: the first event may occur while the
 * program holds any lock. A library that is loaded later is found by poll. */
__attribute__((constructor)) static void begin(void)
{
    if (!mt_recorder_settings->asked || !mt_recorder_settings->python_stacks)
        return;
    python.has_key = pthread_key_create(&python.key, release_memory) == 0;
    look_for_python();
}

static void settle(enum mt_python_verdict verdict)
{
    int unchecked = UNCHECKED;
    bool good = verdict == MT_PYTHON_EQUAL;
    bool bad = false;

    if (verdict == MT_PYTHON_SHALLOW)
        good = atomic_fetch_add(&python.shallow, 1) + 1 >= MIN_SHALLOW;
    if (verdict == MT_PYTHON_DIFFERENT)
        bad = atomic_fetch_add(&python.different, 1) + 1 >= MIN_DIFFERENT;
    if (good)
        atomic_compare_exchange_strong(&python.state, &unchecked, CHECKED);
    else if (bad)
        atomic_compare_exchange_strong(&python.state, &unchecked, OFF);
}

/* Compares if the caller has the lock and a comparison is due. */
static void check_here(const char *state, struct mt_python_thread *thread)
{
    if (python.api.current_thread() != state || !atomic_exchange(&python.may_check, false))
        return;
    settle(mt_python_check(&python.view, &python.api, thread));
}

/* Python calls it in its main thread, between two instructions. */
static int pending_check(void *argument)
{
    struct mt_python_thread *thread = thread_memory();
    int kept = errno;

    (void)argument;
    if (thread && atomic_load(&python.state) == UNCHECKED)
        settle(mt_python_check(&python.view, &python.api, thread));
    atomic_store(&python.pending, false);
    errno = kept;
    return 0;
}

static size_t read_guarded(const char *state, struct mt_python_thread *thread)
{
    size_t free_words = MT_MAX_STACK_FRAMES, count;

    if (!mt_python_walk(&python.view, state, thread, &count))
        return 0;
    for (size_t i = 0; i < count; i++) {
        const struct mt_python_frame *frame = &thread->frames[i];
        uint64_t word = mt_python_define(&python.view, thread, frame, 0);

        if (!word)
            return 0;
        thread->words[--free_words] = word;
    }
    return count;
}

static __attribute__((noinline)) size_t read_unchecked(const char *state,
                                                       struct mt_python_thread *thread)
{
    int kept = errno;
    size_t count = 0;

    check_here(state, thread);
    if (atomic_load(&python.state) != OFF)
        count = read_guarded(state, thread);
    errno = kept;
    return count;
}

/* Puts the words of the stack at the end of thread->words and returns their number. */
static __attribute__((noinline)) size_t read_checked(const char *state,
                                                     struct mt_python_thread *thread)
{
    const struct mt_python_layout *l = &python.view.layout;
    struct mt_python_frame frame;
    size_t free_words = MT_MAX_STACK_FRAMES;
    uintptr_t at;

    if (!mt_python_top(l, state, false, &at))
        return 0;
    for (unsigned steps = 0; at && free_words; steps++) {
        enum mt_python_step step = mt_python_step(l, false, &at, &frame);

        if (step == MT_PYTHON_BROKEN || steps == MT_PYTHON_MAX_STEPS)
            return 0;
        if (step == MT_PYTHON_SKIP)
            continue;
        uint64_t word = mt_python_word(&python.view, thread, &frame);
        thread->words[free_words - 1] = word;
        free_words -= word != 0;
    }
    return MT_MAX_STACK_FRAMES - free_words;
}

/* Hashes the code objects of the frames and the positions in them, before anything is looked up.
 * Returns false if there are no frames or they cannot be read. `l` is a copy, so that the compiler
 * keeps it in registers. `numbered` is a constant: see has_numbers. */
static inline __attribute__((always_inline)) bool hash_frames(struct mt_python_layout l,
                                                              bool numbered, const char *state,
                                                              struct mt_python_stack *stack)
{
    __extension__ typedef unsigned __int128 wide;
    uint64_t a = UINT64_C(0x9e3779b97f4a7c15), b = 0;
    unsigned left = MT_MAX_STACK_FRAMES, skipped = 0;
    struct mt_python_frame frame;
    uintptr_t at;

    if (!mt_python_top(&l, state, false, &at))
        return false;
    while (at && left) {
        enum mt_python_step step = mt_python_step(&l, false, &at, &frame);
        const char *code = (const char *)frame.code;

        if (step == MT_PYTHON_BROKEN)
            return false;
        if (step == MT_PYTHON_SKIP ||
            mt_python_pointer(code, l.object_type) != (uintptr_t)python.view.code_type) {
            if (++skipped == MT_PYTHON_MAX_STEPS)
                return false;
            continue;
        }
        uint64_t mark = numbered ? mt_python_u32(code, l.code_number) : 0;
        if (!mark)
            mark = mt_python_fingerprint(&python.view.layout, code);
        a ^= mark * UINT64_C(0xe7037ed1a0b428db) + frame.instruction;
        wide product = (wide)a * (frame.code ^ UINT64_C(0xa0761d6478bd642f));
        b += (uint64_t)(product >> 64);
        a = (uint64_t)product ^ (uint64_t)(product >> 64);
        left--;
    }
    *stack = (struct mt_python_stack){.hash = a, .more_hash = (uint32_t)(b ^ b >> 32)};
    return left < MT_MAX_STACK_FRAMES;
}

/* Returns true if the layout has all fields of 3.12 and later. */
static inline bool has_numbers(const struct mt_python_layout *l)
{
    return l->code_number != MT_PYTHON_ABSENT && l->frame_owner != MT_PYTHON_ABSENT &&
           l->instruction == MT_PYTHON_POINTER;
}

/* Keeps the frames of the thread's stack for is_kept_stack, if there are not too many and all code
 * objects have numbers. Else keeps only its id, and count 0. */
static __attribute__((noinline)) void keep_stack(const char *state, struct mt_python_thread *thread,
                                                 uint32_t id)
{
    const struct mt_python_layout *l = &python.view.layout;
    struct mt_python_frame frame;
    uintptr_t at;
    uint32_t count = 0;

    thread->kept_count = 0;
    thread->kept_id = id;
    if (!has_numbers(l) || !mt_python_top(l, state, false, &at))
        return;
    while (at) {
        struct mt_python_kept *seen = &thread->kept[count++];

        seen->frame = at;
        seen->code = mt_python_pointer((const char *)at, l->frame_code);
        seen->instruction = mt_python_pointer((const char *)at, l->frame_instruction);
        seen->is_python = mt_python_step(l, false, &at, &frame) == MT_PYTHON_FRAME &&
                          mt_python_pointer((const char *)frame.code, l->object_type) ==
                              (uintptr_t)python.view.code_type;
        if (seen->is_python)
            seen->number = mt_python_u32((const char *)frame.code, l->code_number);
        if (count == MT_PYTHON_KEPT || (seen->is_python && !seen->number))
            return;
    }
    thread->kept_count = count;
}

/* Returns true if the thread has the stack that was kept. Compares each frame: a frame whose callee
 * has returned may be at another instruction. */
static inline bool is_kept_stack(const char *state, const struct mt_python_thread *thread)
{
    const struct mt_python_layout l = python.view.layout;
    const struct mt_python_kept *seen = thread->kept, *end = seen + thread->kept_count;
    const uintptr_t code_type = (uintptr_t)python.view.code_type;
    uintptr_t at;

    if (seen == end || !mt_python_top(&l, state, false, &at))
        return false;
    for (; seen < end; seen++) {
        const char *frame = (const char *)at, *code = (const char *)(seen->code & ~(uintptr_t)7);

        if (at != seen->frame || mt_python_pointer(frame, l.frame_code) != seen->code ||
            mt_python_pointer(frame, l.frame_instruction) != seen->instruction)
            return false;
        if (seen->is_python && (mt_python_pointer(code, l.object_type) != code_type ||
                                mt_python_u32(code, l.code_number) != seen->number))
            return false;
        at = mt_python_pointer(frame, l.frame_previous);
    }
    return !at;
}

static uint32_t intern(struct mt_python_thread *thread, size_t count)
{
    return count ? mt_intern_stack(MT_DEFINE_PYTHON_STACK,
                                   thread->words + MT_MAX_STACK_FRAMES - count, count)
                 : 0;
}

/* Returns the id of a stack. Puts a stack that is not in its set in front of it. */
static uint32_t find_stack(const char *state, struct mt_python_thread *thread,
                           struct mt_python_stack stack)
{
    struct mt_python_stack *set = thread->stacks[stack.hash % MT_PYTHON_STACK_SETS];

    for (int way = 0; way < MT_PYTHON_STACK_WAYS; way++)
        if (set[way].hash == stack.hash && set[way].more_hash == stack.more_hash)
            return set[way].id;
    stack.id = intern(thread, read_checked(state, thread));
    if (stack.id) {
        memmove(set + 1, set, (MT_PYTHON_STACK_WAYS - 1) * sizeof *set);
        set[0] = stack;
    }
    return stack.id;
}

/* A stack that occurs twice in succession is likely to occur again, as in a loop. One that could
 * not be kept is not tried again. */
static uint32_t checked_stack(const char *state, struct mt_python_thread *thread)
{
    const struct mt_python_layout *l = &python.view.layout;
    struct mt_python_stack stack;

    if (is_kept_stack(state, thread))
        return thread->previous_id = thread->kept_id;
    bool good = has_numbers(l) ? hash_frames(*l, true, state, &stack)
                               : hash_frames(*l, false, state, &stack);
    if (!good)
        return 0;
    stack.id = find_stack(state, thread, stack);
    if (stack.id && stack.id == thread->previous_id &&
        (thread->kept_count || stack.id != thread->kept_id))
        keep_stack(state, thread, stack.id);
    thread->previous_id = stack.id;
    return stack.id;
}

uint32_t mt_python_stack(void)
{
    int state = atomic_load_explicit(&python.state, memory_order_acquire);

    if ((state != CHECKED && state != UNCHECKED) || python.api.is_finalizing())
        return 0;
    const char *python_thread = python.api.this_thread();
    if (!python_thread)
        return 0;
    struct mt_python_thread *thread = thread_memory();
    if (!thread)
        return 0;
    uint32_t stack = state == CHECKED ? checked_stack(python_thread, thread)
                                      : intern(thread, read_unchecked(python_thread, thread));
    if (stack && !atomic_load_explicit(&python.gave, memory_order_relaxed))
        atomic_store_explicit(&python.gave, true, memory_order_relaxed);
    return stack;
}

bool mt_python_is_absent(void)
{
    return atomic_load_explicit(&python.state, memory_order_relaxed) == ABSENT;
}

static void ask_for_check(void)
{
    atomic_store(&python.may_check, true);
    if (!python.api.is_initialized() || python.api.is_finalizing() ||
        atomic_exchange(&python.pending, true))
        return;
    if (python.api.add_pending(pending_check, NULL) != 0)
        atomic_store(&python.pending, false); /* the queue is full: retry at the next poll */
}

static void tell(void)
{
    static bool told_reason;
    int state = atomic_load(&python.state);

    if (!python.told && atomic_load(&python.gave)) {
        mt_collect_fact("sources", "python");
        mt_collect_fact("has_stacks", "1");
        python.told = true;
    }
    if (state == OFF && !python.told_off && python.api.is_initialized &&
        python.api.is_initialized()) {
        python.told_off = true;
        mt_collect_not_recorded(
            &told_reason, "no Python stacks (Python %u.%u): %s", python.api.version >> 24,
            python.api.version >> 16 & 255,
            python.reason ? python.reason
                          : "the frames that memtrace reads differ from those that Python reports");
    }
}

static void poll(void)
{
    if (!mt_recorder_settings->python_stacks)
        return;
    if (atomic_load(&python.state) == ABSENT)
        look_for_python();
    if (atomic_load(&python.state) == UNCHECKED)
        ask_for_check();
    tell();
}

static void stop(void)
{
    tell();
    atomic_store(&python.state, OFF);
}

/* The ids in the memory of this thread refer to the parent's tape. */
static void forked(void)
{
    if (own_memory) {
        munmap(own_memory, sizeof *own_memory);
        own_memory = NULL;
        pthread_setspecific(python.key, NULL);
    }
    atomic_store(&python.pending, false);
    atomic_store(&python.gave, false);
    python.told = python.told_off = false;
}

const struct mt_inject_source mt_python_source = {
    .name = "python", .start = poll, .poll = poll, .stop = stop, .forked = forked};
