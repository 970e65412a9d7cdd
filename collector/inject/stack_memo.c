#include "stack_memo.h"

#include <string.h>

static size_t set_of(const struct mt_memo_key *key)
{
    uint64_t mixed = (key->sp ^ key->fp << 7) * UINT64_C(0x9E3779B97F4A7C15);

    return (size_t)(mixed >> 32) % MT_MEMO_SETS;
}

static bool is_same_key(const struct mt_memo_key *a, const struct mt_memo_key *b)
{
    return a->sp == b->sp && a->fp == b->fp && a->pc == b->pc && a->generation == b->generation &&
           a->skip == b->skip;
}

/* May read memory that a sanitizer forbids, like the walk. */
__attribute__((no_sanitize_address)) static bool has_same_words(const struct mt_stack_memo *memo)
{
    const uint64_t *words = (const uint64_t *)memo->key.sp;
    uint32_t i;

    for (i = 0; i < memo->count; i++)
        if (words[memo->offsets[i]] != memo->values[i])
            return false;
    return true;
}

uint32_t mt_stack_memo_find(const struct mt_stack_memos *memos, const struct mt_memo_key *key)
{
    const struct mt_stack_memo *set = memos->memos[set_of(key)];
    size_t way;

    for (way = 0; way < MT_MEMO_WAYS; way++)
        if (set[way].id && is_same_key(&set[way].key, key) && has_same_words(&set[way]))
            return set[way].id;
    return 0;
}

struct mt_stack_memo *mt_stack_memo_begin(struct mt_stack_memos *memos,
                                          const struct mt_memo_key *key)
{
    size_t set = set_of(key);
    struct mt_stack_memo *memo = &memos->memos[set][memos->next[set]];

    memos->next[set] = (uint8_t)((memos->next[set] + 1u) % MT_MEMO_WAYS);
    memo->key = *key;
    memo->id = 0;
    memo->count = 0;
    return memo;
}
