#include "process_memory.h"

#include <stdatomic.h>

/* Blocks that libc allocates, as in strdup, are not counted, but our code frees them. The sum may
 * therefore be slightly too low, and must not wrap. */
static _Atomic int64_t in_use;
static _Atomic uint64_t budget, refused;

void mt_memory_budget_set(uint64_t bytes)
{
    atomic_store_explicit(&refused, 0, memory_order_relaxed);
    atomic_store_explicit(&budget, bytes, memory_order_relaxed);
}

uint64_t mt_memory_budget(void)
{
    return atomic_load_explicit(&budget, memory_order_relaxed);
}

uint64_t mt_memory_in_use(void)
{
    int64_t now = atomic_load_explicit(&in_use, memory_order_relaxed);

    return now > 0 ? (uint64_t)now : 0;
}

bool mt_memory_allows(uint64_t size_bytes)
{
    uint64_t most = mt_memory_budget(), none = 0;

    if (!most)
        return true;
    uint64_t now = mt_memory_in_use();
    if (size_bytes <= most && now <= most - size_bytes)
        return true;
    uint64_t sum = size_bytes > UINT64_MAX - now ? UINT64_MAX : now + size_bytes;
    atomic_compare_exchange_strong(&refused, &none, sum);
    return false;
}

void mt_memory_taken(uint64_t size_bytes)
{
    atomic_fetch_add_explicit(&in_use, (int64_t)size_bytes, memory_order_relaxed);
}

void mt_memory_given_back(uint64_t size_bytes)
{
    atomic_fetch_sub_explicit(&in_use, (int64_t)size_bytes, memory_order_relaxed);
}

uint64_t mt_memory_refused(void)
{
    return atomic_load_explicit(&refused, memory_order_relaxed);
}
