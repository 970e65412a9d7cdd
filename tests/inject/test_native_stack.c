/* Native stacks against the C library's own backtrace(), in every shape of
 * function that compilers make; and that nothing makes them crash. */
#include <execinfo.h>
#include <pthread.h>
#include "cmocka_all.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "intern.h"
#include "stacks.h"

enum { MAX_FRAMES = 512 };

struct seen {
    size_t count, reference_count;
    uint64_t words[MAX_FRAMES]; /* outermost first */
    void *reference[MAX_FRAMES + 8];
};

static _Thread_local struct seen *seen;

/* Instead of the collector's: equal stacks have equal ids. */
enum { MAX_STACKS = 4096 };

static struct {
    pthread_mutex_t lock;
    uint64_t words[MAX_STACKS][MAX_FRAMES]; /* a signal handler interns, where malloc is unsafe */
    size_t counts[MAX_STACKS], count;
} interned = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint32_t find_or_add(const uint64_t *words, size_t count)
{
    size_t i;

    for (i = 0; i < interned.count; i++)
        if (interned.counts[i] == count && !memcmp(interned.words[i], words, count * sizeof *words))
            return (uint32_t)i + 1;
    if (i == MAX_STACKS)
        return 0;
    memcpy(interned.words[i], words, count * sizeof *words);
    interned.counts[i] = count;
    return (uint32_t)++interned.count;
}

static unsigned interned_calls;

uint32_t mt_intern_stack(enum mt_definition_kind kind, const uint64_t *words, size_t count)
{
    uint32_t id = 0;

    pthread_mutex_lock(&interned.lock);
    interned_calls++;
    if (kind == MT_DEFINE_NATIVE_STACK && count > 0 && count <= MAX_FRAMES)
        id = find_or_add(words, count);
    pthread_mutex_unlock(&interned.lock);
    return id;
}

/* What the id of a stack stands for; nothing for 0. */
static void take(struct seen *into, uint32_t id)
{
    into->count = 0;
    pthread_mutex_lock(&interned.lock);
    if (id && id <= interned.count) {
        into->count = interned.counts[id - 1];
        memcpy(into->words, interned.words[id - 1], into->count * sizeof *into->words);
    }
    pthread_mutex_unlock(&interned.lock);
}

/* Both stacks of one place. */
__attribute__((noinline)) static void look(struct seen *into)
{
    into->reference_count = (size_t)backtrace(into->reference, MAX_FRAMES + 8);
    take(into, mt_native_stack(0));
}

/* The innermost `count` frames outside of look(), in which the two were asked at
 * different instructions (and a sanitizer adds frames of its own). */
static void expect_equal_inner(const struct seen *both, size_t count)
{
    size_t extra = 0, i;

    assert_true(both->count > count);
    while (extra < 3 && (uintptr_t)both->reference[extra + 1] != both->words[both->count - 2])
        extra++;
    assert_true(both->reference_count > extra + count);
    for (i = 1; i <= count; i++)
        assert_int_equal(both->words[both->count - 1 - i], (uintptr_t)both->reference[extra + i]);
}

static void expect_equal(const struct seen *both)
{
    assert_true(both->count > 1);
    assert_in_range(both->reference_count, both->count, both->count + 3);
    expect_equal_inner(both, both->count - 1);
}

/* ---- functions of all shapes; each does something behind its call, so that it
 * keeps a frame ---- */

#if defined(__clang__) /* as it likes */
#define WITHOUT_FRAME_POINTER __attribute__((noinline))
#define WITH_FRAME_POINTER    __attribute__((noinline))
#else
#define WITHOUT_FRAME_POINTER __attribute__((noinline, optimize("O2", "omit-frame-pointer")))
#define WITH_FRAME_POINTER    __attribute__((noinline, optimize("O2", "no-omit-frame-pointer")))
#endif

typedef void (*inner)(struct seen *);
static _Thread_local volatile int sink;

WITHOUT_FRAME_POINTER static void plain(struct seen *into)
{
    look(into);
    sink++;
}

WITHOUT_FRAME_POINTER static void with_variable_frame(struct seen *into)
{
    volatile char *room = __builtin_alloca((size_t)sink % 7 * 100 + 16);

    room[0] = 1;
    plain(into);
    sink += room[0];
}

WITHOUT_FRAME_POINTER static void with_aligned_frame(struct seen *into)
{
    _Alignas(64) volatile char room[256];

    room[0] = 1;
    with_variable_frame(into);
    sink += room[0] + (int)((uintptr_t)room % 64);
}

WITHOUT_FRAME_POINTER static void with_aligned_variable_frame(struct seen *into)
{
    _Alignas(64) volatile char room[64];
    volatile char *more = __builtin_alloca((size_t)sink % 5 * 64 + 32);

    room[0] = more[0] = 1;
    with_aligned_frame(into);
    sink += room[0] + more[0];
}

WITH_FRAME_POINTER static void with_frame_pointer(struct seen *into)
{
    with_aligned_variable_frame(into);
    sink++;
}

WITHOUT_FRAME_POINTER static void with_arguments_on_the_stack(struct seen *into, int a, int b,
                                                              int c, int d, int e, int f, int g)
{
    if (a > 0)
        with_arguments_on_the_stack(into, a - 1, g, b, c, d, e, f);
    else
        with_frame_pointer(into);
    sink += g;
}

static int through_the_library(const void *left, const void *right)
{
    struct seen *const *into = left;

    (void)right;
    if ((*into)->count == 0)
        with_arguments_on_the_stack(*into, 3, 1, 2, 3, 4, 5, 6);
    return 0;
}

TEST(test_all_shapes_of_frames)
{
    struct seen *both = calloc(1, sizeof *both);
    struct seen *pair[2] = {both, both};

    for (int round = 0; round < 3; round++) { /* the second time from the cache */
        sink = round * 3;
        both->count = 0;
        qsort(pair, 2, sizeof *pair, through_the_library);
        expect_equal(both);
        assert_true(both->count > 10);
        if (round == 1)
            mt_native_stack_forget();
    }
    free(both);
}

static jmp_buf back;

__attribute__((noinline, noreturn)) static void leaves(struct seen *into)
{
    look(into);
    longjmp(back, 1);
}

/* The return address lies behind the last instruction, in the next function:
 * sanitizers would add some there. */
WITHOUT_FRAME_POINTER __attribute__((no_sanitize("address", "undefined"))) static void
ends_in_a_call(struct seen *into)
{
    volatile char room[100];

    room[0] = 1;
    sink += room[0];
    leaves(into);
}

TEST(test_a_call_may_be_the_last_instruction)
{
    struct seen *both = calloc(1, sizeof *both);

    if (setjmp(back) == 0)
        ends_in_a_call(both);
    expect_equal(both);
    free(both);
}

__attribute__((noinline)) static void deep(struct seen *into, unsigned depth)
{
    if (depth)
        deep(into, depth - 1);
    else
        look(into);
    sink++;
}

TEST(test_deep_stacks_keep_their_inner_end)
{
    struct seen *both = calloc(1, sizeof *both);

    deep(both, 100);
    expect_equal(both);
    deep(both, 2000);
    assert_int_equal(both->count, MAX_FRAMES);
    expect_equal_inner(both, MAX_FRAMES - 1);
    free(both);
}

__attribute__((noinline)) static uint32_t skipping(struct seen *into, unsigned skip)
{
    uint32_t id = mt_native_stack(skip);

    take(into, id);
    sink++;
    return id;
}

TEST(test_skipped_frames_are_the_innermost)
{
    struct seen *stacks = calloc(3, sizeof *stacks);
    volatile unsigned skip;

    for (skip = 0; skip < 3; skip++)
        assert_int_not_equal(skipping(&stacks[skip], skip), 0);
    for (skip = 1; skip < 3; skip++) {
        assert_int_equal(stacks[skip].count, stacks[0].count - skip);
        assert_memory_equal(stacks[skip].words, stacks[0].words,
                            stacks[skip].count * sizeof *stacks->words);
    }
    assert_int_equal(skipping(stacks, 10000), 0);
    free(stacks);
}

/* Two ways to one place, which differ only far out: the stack pointers, and all
 * return addresses but one, are equal. */
WITHOUT_FRAME_POINTER static void one_way(struct seen *into, unsigned depth)
{
    deep(into, depth);
    sink++;
    deep(into + 1, depth);
    sink++;
}

TEST(test_a_repeated_walk_gives_the_same)
{
    struct seen *two = calloc(2, sizeof *two);

    for (unsigned round = 0; round < 4; round++) {
        unsigned calls = interned_calls;
        one_way(two, 30);
        expect_equal(&two[0]);
        expect_equal(&two[1]);
        assert_memory_not_equal(two[0].words, two[1].words, two[0].count * sizeof *two->words);
        assert_int_equal(interned_calls - calls, round == 0 || round == 2 ? 2 : 0);
        if (round == 1)
            mt_native_stack_forget();
    }
    free(two);
}

/* More ways than are remembered, and one that reads more than is kept. */
TEST(test_much_is_walked_anew)
{
    struct seen *both = calloc(1, sizeof *both);

    for (unsigned round = 0; round < 2; round++)
        for (unsigned depth = 1; depth < 300; depth++) {
            deep(both, depth);
            expect_equal(both);
        }
    free(both);
}

static bool is_equal(const struct seen *both)
{
    size_t i, extra = both->reference_count - both->count;

    if (both->count < 2 || both->reference_count < both->count || extra > 3)
        return false;
    for (i = 1; i < both->count; i++)
        if (both->words[both->count - 1 - i] != (uintptr_t)both->reference[extra + i])
            return false;
    return true;
}

/* The number of wrong stacks. */
static void *in_thread(void *unused)
{
    struct seen *both = calloc(1, sizeof *both);
    uintptr_t wrong = 0;

    (void)unused;
    for (int round = 0; round < 200; round++) {
        with_arguments_on_the_stack(both, round % 5, 1, 2, 3, 4, 5, 6);
        wrong += !is_equal(both);
        if (round % 50 == 49)
            mt_native_stack_forget();
    }
    free(both);
    return (void *)wrong;
}

TEST(test_threads_share_what_is_known)
{
    pthread_t threads[4];
    void *wrong;

    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, in_thread, NULL), 0);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
}

/* Runs a function on a stack below a page that cannot be read. */
static void in_coroutine(void (*function)(void))
{
    static ucontext_t outside, inside;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = 16 * page;
    char *stack =
        mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(stack != MAP_FAILED);
    assert_int_equal(mprotect(stack + bytes, page, PROT_NONE), 0);
    assert_int_equal(getcontext(&inside), 0);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = bytes;
    inside.uc_link = &outside;
    makecontext(&inside, function, 0);
    assert_int_equal(swapcontext(&outside, &inside), 0);
    munmap(stack, bytes + page);
}

static struct seen *coroutine_seen;

static void coroutine(void)
{
    look(coroutine_seen);
    sink++;
}

TEST(test_a_coroutine_has_a_stack_of_its_own)
{
    coroutine_seen = calloc(1, sizeof *coroutine_seen);
    in_coroutine(coroutine);
    expect_equal_inner(coroutine_seen, 1);
    free(coroutine_seen);
}

static struct seen *handler_seen;

static void handler(int signal)
{
    (void)signal;
    look(handler_seen);
    sink++;
}

TEST(test_in_a_signal_handler_the_stack_ends_at_it)
{
    struct sigaction action = {.sa_handler = handler}, old;

    handler_seen = calloc(1, sizeof *handler_seen);
    assert_int_equal(sigaction(SIGUSR1, &action, &old), 0);
    assert_int_equal(raise(SIGUSR1), 0);
    assert_int_equal(sigaction(SIGUSR1, &old, NULL), 0);
    expect_equal_inner(handler_seen, handler_seen->count - 1);
    assert_true(handler_seen->reference_count > handler_seen->count);
    free(handler_seen);
}

/* Code without unwind information, as a compiler at run time makes it: calls
 * its first argument with the second, in a frame of 40 bytes. */
TEST(test_unknown_code_ends_the_stack)
{
#if defined(__aarch64__)
    static const uint32_t code[] = {0xD100C3FF,  /* sub sp, sp, #48 */
                                    0xF90017FE,  /* str x30, [sp, #40] */
                                    0xAA0003E8,  /* mov x8, x0 */
                                    0xAA0103E0,  /* mov x0, x1 */
                                    0xD63F0100,  /* blr x8 */
                                    0xF94017FE,  /* ldr x30, [sp, #40] */
                                    0x9100C3FF,  /* add sp, sp, #48 */
                                    0xD65F03C0}; /* ret */
#else
    static const uint8_t code[] = {0x48, 0x83, 0xEC, 0x28, /* sub $40, %rsp */
                                   0x48, 0x89, 0xF8,       /* mov %rdi, %rax */
                                   0x48, 0x89, 0xF7,       /* mov %rsi, %rdi */
                                   0xFF, 0xD0,             /* call *%rax */
                                   0x48, 0x83, 0xC4, 0x28, /* add $40, %rsp */
                                   0xC3};
#endif
    struct seen *into = calloc(1, sizeof *into);
    uint8_t *page =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void (*function)(inner, struct seen *);

    assert_true(page != MAP_FAILED);
    memcpy(page, code, sizeof code);
    __builtin___clear_cache((char *)page, (char *)page + sizeof code);
    memcpy(&function, &page, sizeof function);
    function(plain, into);
    assert_int_equal(into->count, 3); /* plain, the code, nothing that was guessed */
    assert_in_range(into->words[0], (uintptr_t)page, (uintptr_t)page + sizeof code);
    munmap(page, 4096);
    free(into);
}

/* Code of a module without unwind information: calls its first argument with the
 * second, in a frame with a frame pointer. And the same with a frame pointer that
 * leads to words that are no frame: the third argument. */
#if defined(__aarch64__)
__asm__(".text\n"
        ".type with_pointer_only, %function\n"
        "with_pointer_only:\n\t"
        "stp x29, x30, [sp, -48]!\n\t"
        "mov x29, sp\n\t"
        "mov x8, x0\n\t"
        "mov x0, x1\n\t"
        "blr x8\n\t"
        "ldp x29, x30, [sp], 48\n\t"
        "ret\n"
        ".size with_pointer_only, . - with_pointer_only\n"
        ".type with_nothing, %function\n"
        "with_nothing:\n\t"
        "stp x29, x30, [sp, -16]!\n\t"
        "mov x29, x2\n\t"
        "mov x8, x0\n\t"
        "mov x0, x1\n\t"
        "blr x8\n\t"
        "ldp x29, x30, [sp], 16\n\t"
        "ret\n"
        ".size with_nothing, . - with_nothing\n"
        /* what follows the call is the kernel's return from a signal handler */
        ".type with_signal_return, %function\n"
        "with_signal_return:\n\t"
        "stp x29, x30, [sp, -16]!\n\t"
        "mov x29, sp\n\t"
        "mov x8, x0\n\t"
        "mov x0, x1\n\t"
        "blr x8\n\t"
        "mov x8, 139\n\t"
        "svc 0\n"
        ".size with_signal_return, . - with_signal_return\n");

void with_signal_return(inner function, struct seen *into);

/* backtrace() would take what it finds there for registers. */
__attribute__((noinline, noreturn)) static void leaves_without_reference(struct seen *into)
{
    take(into, mt_native_stack(0));
    longjmp(back, 1);
}

TEST(test_the_kernels_return_from_a_signal_ends_the_stack)
{
    struct seen *into = calloc(1, sizeof *into);

    if (setjmp(back) == 0)
        with_signal_return(leaves_without_reference, into);
    assert_int_equal(into->count, 2); /* the function, the code, nothing behind it */
    free(into);
}
#else
__asm__(".text\n"
        ".type with_pointer_only, @function\n"
        "with_pointer_only:\n\t"
        "pushq %rbp\n\t"
        "movq %rsp, %rbp\n\t"
        "movq %rdi, %rax\n\t"
        "movq %rsi, %rdi\n\t"
        "callq *%rax\n\t"
        "popq %rbp\n\t"
        "ret\n"
        ".size with_pointer_only, . - with_pointer_only\n"
        ".type with_nothing, @function\n"
        "with_nothing:\n\t"
        "pushq %rbp\n\t"
        "movq %rdx, %rbp\n\t"
        "movq %rdi, %rax\n\t"
        "movq %rsi, %rdi\n\t"
        "callq *%rax\n\t"
        "popq %rbp\n\t"
        "ret\n"
        ".size with_nothing, . - with_nothing\n");
#endif

void with_pointer_only(inner function, struct seen *into);
void with_nothing(inner function, struct seen *into, const uintptr_t *frame);

TEST(test_without_information_the_frame_pointer_is_tried)
{
    struct seen *here = calloc(1, sizeof *here), *inside = calloc(1, sizeof *inside);
    uintptr_t no_frame[4] = {0, (uintptr_t)no_frame, 0, 0};

    look(here);
    with_pointer_only(plain, inside);
    assert_int_equal(inside->count, here->count + 2);
    assert_memory_equal(inside->words, here->words, (here->count - 2) * sizeof *here->words);
    with_nothing(plain, inside, no_frame);
    assert_int_equal(inside->count, 3); /* nothing behind it */
    free(here);
    free(inside);
}

__attribute__((noinline, used)) static void look_at_nonsense(void)
{
    take(seen, mt_native_stack(0));
    sink++;
}

/* look_at_nonsense() with a wrong frame pointer. */
#if defined(__aarch64__)
#define CALL_WITH_FRAME_POINTER(nonsense)                                                          \
    __asm__ volatile("mov x19, x29\n\t"                                                            \
                     "mov x20, sp\n\t"                                                             \
                     "sub sp, sp, 256\n\t"                                                         \
                     "mov x29, %0\n\t"                                                             \
                     "blr %1\n\t"                                                                  \
                     "mov sp, x20\n\t"                                                             \
                     "mov x29, x19"                                                                \
                     :                                                                             \
                     : "r"(nonsense), "r"(look_at_nonsense)                                        \
                     : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11",   \
                       "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x30",       \
                       "memory", "cc")
#else
#define CALL_WITH_FRAME_POINTER(nonsense)                                                          \
    __asm__ volatile("movq %%rbp, %%rbx\n\t"                                                       \
                     "movq %%rsp, %%r12\n\t"                                                       \
                     "subq $256, %%rsp\n\t"                                                        \
                     "andq $-16, %%rsp\n\t"                                                        \
                     "movq %0, %%rbp\n\t"                                                          \
                     "callq *%1\n\t"                                                               \
                     "movq %%r12, %%rsp\n\t"                                                       \
                     "movq %%rbx, %%rbp"                                                           \
                     :                                                                             \
                     : "r"(nonsense), "r"(look_at_nonsense)                                        \
                     : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12",  \
                       "memory", "cc")
#endif

/* Functions whose frames are found by the frame pointer. */
WITH_FRAME_POINTER static void with_wrong_frame_pointer(uintptr_t nonsense)
{
    volatile char *room = __builtin_alloca((size_t)sink % 3 * 16 + 16);

    room[0] = 1;
    CALL_WITH_FRAME_POINTER(nonsense);
    sink += room[0];
}

WITH_FRAME_POINTER static void with_wrong_aligned_frame(uintptr_t nonsense)
{
    _Alignas(64) volatile char room[64];
    volatile char *more = __builtin_alloca((size_t)sink % 5 * 64 + 32);

    room[0] = more[0] = 1;
    CALL_WITH_FRAME_POINTER(nonsense);
    sink += room[0] + more[0];
}

static void try_wrong_registers(void)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0), page = 4096, i;
    const uintptr_t values[] = {0,
                                1,
                                UINTPTR_MAX,
                                UINTPTR_MAX - 15,
                                UINT64_C(0x800000000000),
                                here - 65536,
                                here - UINT64_C(0x100000000),
                                here + 3,
                                (uintptr_t)look_at_nonsense,
                                (uintptr_t)values};

    for (i = 0; i < sizeof values / sizeof *values; i++) {
        with_wrong_frame_pointer(values[i]);
        assert_true(seen->count >= 1);
        with_wrong_aligned_frame(values[i]);
        assert_true(seen->count >= 1);
    }
    for (i = 0; i < 64; i++) { /* the end of the stack is among them */
        with_wrong_frame_pointer((here & ~(page - 1)) + i * page);
        with_wrong_aligned_frame((here & ~(page - 1)) + i * page);
    }
    with_wrong_frame_pointer(here + 100000 * page);
    with_wrong_aligned_frame(here + 100000 * page);
}

TEST(test_wrong_registers_do_no_harm)
{
    seen = calloc(1, sizeof *seen);
    try_wrong_registers();
    in_coroutine(try_wrong_registers);
    free(seen);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
