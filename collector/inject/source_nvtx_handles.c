/* See source_nvtx_handles.h. */
#include "source_nvtx_handles.h"

#include <stdbool.h>
#include <stdlib.h>

#include "map.h"

struct entry {
    _Atomic(const void *) key; /* NULL = free; written last */
    _Atomic uint32_t number;
};

struct mt_handle_table {
    struct mt_handle_table *older;
    size_t mask;
    struct entry entries[];
};

static struct entry *find(struct mt_handle_table *table, const void *key)
{
    size_t at = (size_t)mt_hash_u64((uintptr_t)key) & table->mask;

    for (;; at = (at + 1) & table->mask) {
        const void *there = atomic_load_explicit(&table->entries[at].key, memory_order_acquire);
        if (!there || there == key)
            return &table->entries[at];
    }
}

static void put(struct mt_handle_table *table, const void *key, uint32_t number)
{
    struct entry *entry = find(table, key);

    atomic_store_explicit(&entry->number, number, memory_order_relaxed);
    atomic_store_explicit(&entry->key, key, memory_order_release);
}

/* Readers may still use the old table, so it is kept. All old tables together are as large as the
 * new one. */
static bool grow(struct mt_handles *handles, struct mt_handle_table *old)
{
    size_t count = old ? 2 * (old->mask + 1) : 64;
    struct mt_handle_table *table = calloc(1, sizeof *table + count * sizeof table->entries[0]);

    if (!table)
        return false;
    table->older = old;
    table->mask = count - 1;
    for (size_t i = 0; old && i <= old->mask; i++) {
        const void *key = atomic_load_explicit(&old->entries[i].key, memory_order_relaxed);
        if (key)
            put(table, key, atomic_load_explicit(&old->entries[i].number, memory_order_relaxed));
    }
    atomic_store_explicit(&handles->table, table, memory_order_release);
    return true;
}

void mt_handles_set(struct mt_handles *handles, const void *key, uint32_t number)
{
    struct mt_handle_table *table = atomic_load_explicit(&handles->table, memory_order_relaxed);

    if (!key)
        return;
    if (!table || 2 * (size_t)handles->count >= table->mask + 1) {
        if (!grow(handles, table))
            return;
        table = atomic_load_explicit(&handles->table, memory_order_relaxed);
    }
    if (!mt_handles_get(handles, key))
        handles->count++;
    put(table, key, number);
}

uint32_t mt_handles_get(struct mt_handles *handles, const void *key)
{
    struct mt_handle_table *table = atomic_load_explicit(&handles->table, memory_order_acquire);
    struct entry *entry;

    if (!table || !key)
        return 0;
    entry = find(table, key);
    if (!atomic_load_explicit(&entry->key, memory_order_acquire))
        return 0;
    return atomic_load_explicit(&entry->number, memory_order_relaxed);
}

void *mt_handle_make(enum mt_handle_kind kind, uint32_t number)
{
    return (void *)((uintptr_t)kind << 48 | number);
}

uint32_t mt_handle_number(enum mt_handle_kind kind, const void *handle)
{
    uintptr_t value = (uintptr_t)handle;

    return value >> 32 == (uintptr_t)kind << 16 ? (uint32_t)value : 0;
}
