/* Walks the stack by call frame information, with a cache of rules that all threads share: after
 * the first time, an address costs a probe and two loads, about 6 ns. A stack that the thread has
 * walked before costs less (stack_memo). All reads are between the stack pointer and the end of the
 * stack, so wrong tables (hand-written code, unloaded code) give a short or wrong stack, never a
 * crash. A lock is taken only on a miss (cfi.h). */
#define _GNU_SOURCE 1

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cfi.h"
#include "intern.h"
#include "python_layout.h"
#include "stacks.h"
#include "util.h"

/* What a walk of the stack needs of the processor: x86-64, aarch64. */

#if defined(__aarch64__)

/* The two words that a frame pointer leads to may be anywhere in a frame. */
enum { MT_GUESS_IS_CFA = 0 };

/* A return address in memory may be signed (pointer authentication). Which bits the signature has
 * depends on the configuration of the kernel, so the processor removes it: xpaclri, which older
 * processors ignore. */
static inline uintptr_t mt_without_signature(uintptr_t pc)
{
    register uintptr_t link __asm__("x30") = pc;

    __asm__("hint #7" : "+r"(link));
    return link;
}

/* The registers at one instruction, a constant of the calling function. Its return address is in
 * its frame there, because x30 is overwritten. */
#define MT_READ_REGISTERS(pc, sp, fp)                                                              \
    __asm__ volatile("mov %2, x29\n\t"                                                             \
                     "mov %1, sp\n\t"                                                              \
                     "adr %0, ."                                                                   \
                     : "=&r"(pc), "=&r"(sp), "=&r"(fp)                                             \
                     :                                                                             \
                     : "x30")

#else

/* They are the first two words of a frame. */
enum { MT_GUESS_IS_CFA = 1 };

static inline uintptr_t mt_without_signature(uintptr_t pc)
{
    return pc;
}

#define MT_READ_REGISTERS(pc, sp, fp)                                                              \
    __asm__ volatile("leaq 0(%%rip), %0\n\t"                                                       \
                     "movq %%rsp, %1\n\t"                                                          \
                     "movq %%rbp, %2"                                                              \
                     : "=a"(pc), "=d"(sp), "=c"(fp))

#endif

enum { CACHE_BITS = 14, PROBES = 8, GENERATION_SHIFT = 48, BUSY = 1 };

/* key: address and generation, 0 = empty. A cell of this generation keeps its rule while it keeps
 * its key. */
struct cell {
    _Atomic uint64_t key, rule;
};

static struct cell cache[1 << CACHE_BITS];
static _Atomic uint64_t generation;

/* A rule in one word: its base in bits 0 to 2, fp in 3 and 4, the offset of the CFA in words in 5
 * to 31, the other two in 16 bits each. */
enum { BASE_MASK = 7, SAVED_SHIFT = 3, SAVED_MASK = 3, KIND_BITS = 5, WORD = 8 };

static uint64_t packed(struct mt_cfi_rule rule)
{
    uint32_t cfa = (uint32_t)(rule.cfa_offset / WORD) << KIND_BITS;

    return (uint64_t)(uint16_t)rule.return_words << 48 | (uint64_t)(uint16_t)rule.fp_words << 32 |
           cfa | (uint32_t)rule.fp << SAVED_SHIFT | rule.base;
}

static struct mt_cfi_rule unpacked(uint64_t word)
{
    uint32_t kinds = (1U << KIND_BITS) - 1;
    int32_t cfa = (int32_t)((uint32_t)word & ~kinds);

    return (struct mt_cfi_rule){.cfa_offset = cfa / (1 << KIND_BITS) * WORD,
                                .fp_words = (int16_t)(word >> 32),
                                .return_words = (int16_t)(word >> 48),
                                .base = word & BASE_MASK,
                                .fp = word >> SAVED_SHIFT & SAVED_MASK};
}

static struct cell *cell_at(uint64_t key, unsigned probe)
{
    uint64_t home = (key * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - CACHE_BITS);

    return &cache[(home + probe) & ((1 << CACHE_BITS) - 1)];
}

static void remember(uint64_t key, struct mt_cfi_rule rule)
{
    struct cell *cell = cell_at(key, 0);
    uint64_t old = 0;

    for (unsigned probe = 0; probe < PROBES; probe++) {
        uint64_t found = atomic_load_explicit(&cell_at(key, probe)->key, memory_order_relaxed);
        if (found == 0 || found >> GENERATION_SHIFT != key >> GENERATION_SHIFT) {
            cell = cell_at(key, probe);
            break;
        }
    }
    old = atomic_load_explicit(&cell->key, memory_order_relaxed);
    if (old == BUSY || !atomic_compare_exchange_strong(&cell->key, &old, BUSY))
        return; /* another thread changes the cell: try again next time */
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&cell->rule, packed(rule), memory_order_relaxed);
    atomic_store_explicit(&cell->key, key, memory_order_release);
}

static bool recall(uint64_t key, struct mt_cfi_rule *rule)
{
    for (unsigned probe = 0; probe < PROBES; probe++) {
        struct cell *cell = cell_at(key, probe);
        uint64_t found = atomic_load_explicit(&cell->key, memory_order_acquire);
        if (found == 0)
            return false;
        if (found != key)
            continue;
        uint64_t word = atomic_load_explicit(&cell->rule, memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        *rule = unpacked(word);
        return atomic_load_explicit(&cell->key, memory_order_relaxed) == key;
    }
    return false;
}

static struct mt_cfi_rule find_rule(uintptr_t pc)
{
    struct mt_cfi_rule rule = {0, 0, 0, MT_CFI_NOWHERE, MT_CFI_LOST};

    if (pc <= BUSY || pc >> GENERATION_SHIFT)
        return rule;
    uint64_t key = pc | atomic_load_explicit(&generation, memory_order_relaxed) << GENERATION_SHIFT;
    if (recall(key, &rule))
        return rule;
    rule = mt_cfi_find(pc);
    remember(key, rule);
    return rule;
}

void mt_native_stack_forget(void)
{
    atomic_fetch_add(&generation, 1);
}

/* Pages may be larger; no smaller ones exist. */
enum { COPY_BYTES = 16384, PAGE_BYTES = 4096 };

struct memo_key {
    uint64_t generation; /* counts changes of the unwind rules (code loaded or unloaded) */
    uintptr_t pc, sp, fp;
    unsigned skip;
};

enum { MEMO_READS = 128, MEMO_SETS = 64, MEMO_WAYS = 8 };

struct stack_memo {
    struct memo_key key;
    uint32_t id;    /* the result, 0 = none yet */
    uint32_t count; /* number of reads; a walk with more than MEMO_READS is not kept */
    uint16_t offsets[MEMO_READS]; /* from the stack pointer, in words */
    uint64_t values[MEMO_READS];
};

/* The cache of one thread. Zeroed memory is empty. */
struct stack_memos {
    struct stack_memo memos[MEMO_SETS][MEMO_WAYS];
    uint8_t next[MEMO_SETS]; /* the next way to replace */
};

struct thread_room {
    uintptr_t low, high; /* of the stack on which the thread began */
    uint64_t words[MT_MAX_STACK_FRAMES];
    _Alignas(8) uint8_t copy[COPY_BYTES]; /* of a coroutine's or a signal handler's stack */
    struct stack_memos memos;             /* most of it is never touched */
};

static _Thread_local struct thread_room *thread_room;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t at_thread_end;
static bool have_key;

static void release_room(void *room)
{
    thread_room = NULL;
    munmap(room, sizeof(struct thread_room));
}

static void make_key(void)
{
    have_key = pthread_key_create(&at_thread_end, release_room) == 0;
}

static void find_own_stack(struct thread_room *room)
{
    pthread_attr_t attributes;
    void *low;
    size_t bytes;

    if (pthread_getattr_np(pthread_self(), &attributes))
        return;
    if (!pthread_attr_getstack(&attributes, &low, &bytes)) {
        room->low = (uintptr_t)low;
        room->high = (uintptr_t)low + bytes;
    }
    pthread_attr_destroy(&attributes);
}

static struct thread_room *make_room(void)
{
    int kept_errno = errno;
    struct thread_room *room = NULL;

    pthread_once(&once, make_key);
    if (have_key)
        room = mmap(NULL, sizeof *room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED || (room && pthread_setspecific(at_thread_end, room))) {
        if (room != MAP_FAILED)
            munmap(room, sizeof *room);
        room = NULL;
    }
    if (room)
        find_own_stack(room);
    thread_room = room;
    errno = kept_errno;
    return room;
}

struct walk {
    uintptr_t pc, sp, fp;
    uintptr_t low, high;  /* readable range of addresses */
    const uint8_t *bytes; /* the bytes of this range */
    bool fp_known, sp_known;
    struct stack_memo *memo; /* receives the words that are read; NULL on a copy */
};

static inline void stack_memo_read(struct stack_memo *memo, uintptr_t address, uint64_t word)
{
    uintptr_t offset = (address - memo->key.sp) / sizeof word;

    if (memo->count >= MEMO_READS || offset > UINT16_MAX) {
        memo->count = MEMO_READS + 1;
        return;
    }
    memo->offsets[memo->count] = (uint16_t)offset;
    memo->values[memo->count++] = word;
}

/* May read memory that a sanitizer forbids. A walk with wrong rules may read any word between the
 * stack pointer and the end of the stack. */
__attribute__((no_sanitize_address)) static bool read_word(const struct walk *walk,
                                                           uintptr_t address, uintptr_t *word)
{
    if (address < walk->low || address > walk->high - sizeof *word || address % sizeof *word)
        return false;
    *word = *(const uintptr_t *)(const void *)(walk->bytes + (address - walk->low));
    if (walk->memo)
        stack_memo_read(walk->memo, address, *word);
    return true;
}

static size_t bytes_in_page(uintptr_t at, size_t done)
{
    return mt_min_u64(PAGE_BYTES - at % PAGE_BYTES, COPY_BYTES - done);
}

/* Works where process_vm_readv is not allowed. Nothing unmaps the stack of the running code between
 * the test of a page and its copy. */
__attribute__((no_sanitize_address)) static size_t copy_tested(uintptr_t sp, uint8_t *copy)
{
    size_t done = 0;

    while (done < COPY_BYTES && mt_python_readable(sp + done)) {
        size_t end = done + bytes_in_page(sp + done, done);
        for (; done < end; done++)
            copy[done] = *(const uint8_t *)(sp + done);
    }
    return done;
}

/* Copies the readable bytes above the stack pointer. The kernel copies them page by page and stops
 * at unmapped memory. */
static size_t copy_stack(uintptr_t sp, uint8_t *copy)
{
    struct iovec local = {copy, COPY_BYTES}, remote[COPY_BYTES / PAGE_BYTES + 1];
    int kept_errno = errno;
    size_t parts = 0, done = 0;

    while (done < COPY_BYTES) {
        remote[parts].iov_base = (void *)(sp + done);
        remote[parts].iov_len = bytes_in_page(sp + done, done);
        done += remote[parts++].iov_len;
    }
    ssize_t copied = process_vm_readv(getpid(), &local, 1, remote, parts, 0);
    if (copied < 0 && (errno == ENOSYS || errno == EPERM) && mt_python_memory_works())
        copied = (ssize_t)copy_tested(sp, copy);
    errno = kept_errno;
    return copied > 0 ? (size_t)copied : 0;
}

static bool is_own_stack(const struct walk *walk, const struct thread_room *room)
{
    return walk->sp >= room->low && walk->sp < room->high;
}

static void set_bounds(struct walk *walk, struct thread_room *room)
{
    walk->low = walk->sp;
    if (is_own_stack(walk, room)) {
        walk->high = room->high;
        walk->bytes = (const uint8_t *)walk->sp;
    } else {
        walk->high = walk->sp + copy_stack(walk->sp, room->copy);
        walk->bytes = room->copy;
    }
}

static bool caller_fp(struct walk *walk, struct mt_cfi_rule rule, uintptr_t cfa)
{
    switch (rule.fp) {
    case MT_CFI_SAME: return true;
    case MT_CFI_AT_CFA:
        return read_word(walk, cfa + (uintptr_t)(intptr_t)(rule.fp_words * WORD), &walk->fp);
    case MT_CFI_AT_FP: return walk->fp_known && read_word(walk, walk->fp, &walk->fp);
    default: walk->fp_known = false; return true;
    }
}

static bool find_cfa(const struct walk *walk, struct mt_cfi_rule rule, uintptr_t *cfa)
{
    uintptr_t offset = (uintptr_t)(intptr_t)rule.cfa_offset;

    if (rule.base <= MT_CFI_LAST || (rule.base != MT_CFI_SP && !walk->fp_known))
        return false;
    if (rule.base != MT_CFI_SP)
        *cfa = walk->fp + offset;
    else if (walk->sp_known)
        *cfa = walk->sp + offset;
    else if (walk->fp_known && rule.fp == MT_CFI_AT_CFA) /* its own frame pointer leads there */
        *cfa = walk->fp - (uintptr_t)(intptr_t)(rule.fp_words * WORD);
    else
        return false;
    return rule.base != MT_CFI_FP_CELL || read_word(walk, *cfa, cfa);
}

/* Moves to the caller, whose pc is the return address. */
static bool step(struct walk *walk, struct mt_cfi_rule rule)
{
    uintptr_t cfa, pc;

    if (!find_cfa(walk, rule, &cfa) || cfa <= walk->sp ||
        !read_word(walk, cfa + (uintptr_t)(intptr_t)(rule.return_words * WORD), &pc))
        return false;
    pc = mt_without_signature(pc);
    if (pc <= PAGE_BYTES || !caller_fp(walk, rule, cfa))
        return false;
    walk->sp_known = rule.base != MT_CFI_GUESS || MT_GUESS_IS_CFA;
    walk->sp = cfa;
    walk->pc = pc;
    return true;
}

/* Fills `words` from its end, innermost first, so that they read outermost
 * first; returns their number. */
static size_t walk_stack(struct walk *walk, uint64_t words[MT_MAX_STACK_FRAMES])
{
    struct mt_cfi_rule rule = find_rule(walk->pc);
    size_t count = 0;

    while (count < MT_MAX_STACK_FRAMES) {
        bool guessed = rule.base == MT_CFI_GUESS;
        if (!step(walk, rule))
            break;
        rule = find_rule(walk->pc - 1);
        if (guessed && rule.base == MT_CFI_NOWHERE)
            break;
        words[MT_MAX_STACK_FRAMES - ++count] = walk->pc;
    }
    return count;
}

static uint32_t walk_and_intern(struct walk *walk, struct thread_room *room, unsigned skip)
{
    size_t count = 0;

    set_bounds(walk, room);
    if (walk->high - walk->low >= 2 * sizeof(uintptr_t))
        count = walk_stack(walk, room->words);
    if (count <= skip)
        return 0;
    return mt_intern_stack(MT_DEFINE_NATIVE_STACK, room->words + MT_MAX_STACK_FRAMES - count,
                           count - skip);
}

static size_t set_of(const struct memo_key *key)
{
    uint64_t mixed = (key->sp ^ key->fp << 7) * UINT64_C(0x9E3779B97F4A7C15);

    return (size_t)(mixed >> 32) % MEMO_SETS;
}

static bool is_same_key(const struct memo_key *a, const struct memo_key *b)
{
    return a->sp == b->sp && a->fp == b->fp && a->pc == b->pc && a->generation == b->generation &&
           a->skip == b->skip;
}

/* May read memory that a sanitizer forbids, like the walk. */
__attribute__((no_sanitize_address)) static bool has_same_words(const struct stack_memo *memo)
{
    const uint64_t *words = (const uint64_t *)memo->key.sp;

    for (uint32_t i = 0; i < memo->count; i++)
        if (words[memo->offsets[i]] != memo->values[i])
            return false;
    return true;
}

/* Returns the result of an equal earlier walk, or 0. Reads the words that the earlier walk read. */
static uint32_t stack_memo_find(const struct stack_memos *memos, const struct memo_key *key)
{
    const struct stack_memo *set = memos->memos[set_of(key)];

    for (size_t way = 0; way < MEMO_WAYS; way++)
        if (set[way].id && is_same_key(&set[way].key, key) && has_same_words(&set[way]))
            return set[way].id;
    return 0;
}

/* Begins the entry of a new walk. Add its reads with stack_memo_read, then its result with
 * stack_memo_end. */
static struct stack_memo *stack_memo_begin(struct stack_memos *memos, const struct memo_key *key)
{
    size_t set = set_of(key);
    struct stack_memo *memo = &memos->memos[set][memos->next[set]];

    memos->next[set] = (uint8_t)((memos->next[set] + 1u) % MEMO_WAYS);
    memo->key = *key;
    memo->id = 0;
    memo->count = 0;
    return memo;
}

static inline void stack_memo_end(struct stack_memo *memo, uint32_t id)
{
    memo->id = memo->count <= MEMO_READS ? id : 0;
}

__attribute__((noinline)) uint32_t mt_native_stack(unsigned skip)
{
    struct walk walk = {.fp_known = true, .sp_known = true};
    struct thread_room *room = thread_room ? thread_room : make_room();
    struct memo_key key = {.skip = skip};

    MT_READ_REGISTERS(walk.pc, walk.sp, walk.fp);
    if (!room)
        return 0;
    if (!is_own_stack(&walk, room))
        return walk_and_intern(&walk, room, skip);
    key.generation = atomic_load_explicit(&generation, memory_order_relaxed);
    key.pc = walk.pc;
    key.sp = walk.sp;
    key.fp = walk.fp;
    uint32_t id = stack_memo_find(&room->memos, &key);
    if (id)
        return id;
    walk.memo = stack_memo_begin(&room->memos, &key);
    id = walk_and_intern(&walk, room, skip);
    stack_memo_end(walk.memo, id);
    return id;
}

/* A cache of stacks that a thread has walked. The result of a walk depends only on the initial
 * registers and the words that it reads: if they are unchanged, so is the result. Comparing them is
 * much cheaper than a walk, because it needs no search for rules and no dependent reads. It also
 * saves the lookup of the stack's id. */
