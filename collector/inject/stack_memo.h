/* A cache of stacks that a thread has walked. The result of a walk depends only on the initial
 * registers and the words that it reads: if they are unchanged, so is the result. Comparing them is
 * much cheaper than a walk, because it needs no search for rules and no dependent reads. It also
 * saves the lookup of the stack's id. */
#ifndef MT_INJECT_STACK_MEMO_H
#define MT_INJECT_STACK_MEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MT_MEMO_READS = 128, MT_MEMO_SETS = 64, MT_MEMO_WAYS = 8 };

struct mt_memo_key {
    uint64_t generation; /* counts changes of the unwind rules (code loaded or unloaded) */
    uintptr_t pc, sp, fp;
    unsigned skip;
};

struct mt_stack_memo {
    struct mt_memo_key key;
    uint32_t id;    /* the result, 0 = none yet */
    uint32_t count; /* number of reads; a walk with more than MT_MEMO_READS is not kept */
    uint16_t offsets[MT_MEMO_READS]; /* from the stack pointer, in words */
    uint64_t values[MT_MEMO_READS];
};

/* The cache of one thread. Zeroed memory is empty. */
struct mt_stack_memos {
    struct mt_stack_memo memos[MT_MEMO_SETS][MT_MEMO_WAYS];
    uint8_t next[MT_MEMO_SETS]; /* the next way to replace */
};

/* Returns the result of an equal earlier walk, or 0. Reads the words that the earlier walk read. */
uint32_t mt_stack_memo_find(const struct mt_stack_memos *memos, const struct mt_memo_key *key);

/* Begins the entry of a new walk. Add its reads with mt_stack_memo_read, then its result with
 * mt_stack_memo_end. */
struct mt_stack_memo *mt_stack_memo_begin(struct mt_stack_memos *memos,
                                          const struct mt_memo_key *key);

static inline void mt_stack_memo_read(struct mt_stack_memo *memo, uintptr_t address, uint64_t word)
{
    uintptr_t offset = (address - memo->key.sp) / sizeof word;

    if (memo->count >= MT_MEMO_READS || offset > UINT16_MAX) {
        memo->count = MT_MEMO_READS + 1;
        return;
    }
    memo->offsets[memo->count] = (uint16_t)offset;
    memo->values[memo->count++] = word;
}

static inline void mt_stack_memo_end(struct mt_stack_memo *memo, uint32_t id)
{
    memo->id = memo->count <= MT_MEMO_READS ? id : 0;
}

#endif
