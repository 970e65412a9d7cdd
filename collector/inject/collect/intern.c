/* See intern.h. Definitions are appended to a log in the tape under a lock. A hash table of them is
 * read without the lock: an entry is published by storing its hash last, and a grown table replaces
 * the old one in one store (readers may still use the old one, so it is kept). Entries with equal
 * hashes are compared byte by byte. */
#include "intern.h"

#include <string.h>
#include <sys/mman.h>

#include "core.h"
#include "lock.h"
#include "map.h"
#include "util.h"

enum { FIRST_CAPACITY = 4096, MAX_PAYLOAD = 1 << 20 };

struct entry {
    _Atomic uint64_t hash; /* 0 = empty */
    uint32_t id, payload_offset;
};

struct table {
    size_t mask, count;
    struct entry entries[];
};

static struct {
    pthread_mutex_t lock;
    struct table *_Atomic table;
    uint32_t last_ids[MT_DEFINE_KIND_COUNT];
} interned = {.lock = PTHREAD_MUTEX_INITIALIZER};

void mt_intern_forget(void)
{
    pthread_mutex_init(&interned.lock, NULL);
    atomic_store(&interned.table, NULL); /* the parent's memory: not worth a system call */
    memset(interned.last_ids, 0, sizeof interned.last_ids);
}

static const void *payload_at(uint32_t offset)
{
    return (const char *)mt_core.tape + mt_core.tape->definitions_offset + (uint64_t)offset * 8;
}

/* Appends a definition; the lock must be held. Returns the id (0 = no room) and the offset of the
 * payload. */
static uint32_t append(enum mt_definition_kind kind, const void *payload, size_t payload_bytes,
                       uint32_t *payload_offset)
{
    struct mt_tape *tape = mt_core.tape;
    uint64_t at = atomic_load_explicit(&tape->definitions_bytes, memory_order_relaxed);
    uint64_t end = mt_round_up(at + sizeof(struct mt_definition) + payload_bytes, 8);
    char *log = (char *)tape + tape->definitions_offset;
    struct mt_definition definition = {(uint32_t)payload_bytes, (uint32_t)kind, 0, 0};

    if (payload_bytes > MAX_PAYLOAD ||
        end > atomic_load_explicit(&tape->definitions_reserved, memory_order_acquire)) {
        atomic_fetch_add_explicit(&tape->dropped_definitions, 1, memory_order_relaxed);
        return 0;
    }
    definition.id = ++interned.last_ids[kind];
    memcpy(log + at, &definition, sizeof definition);
    memcpy(log + at + sizeof definition, payload, payload_bytes);
    *payload_offset = (uint32_t)((at + sizeof definition) / 8);
    atomic_store_explicit(&tape->definitions_bytes, end, memory_order_release);
    return definition.id;
}

uint32_t mt_define(enum mt_definition_kind kind, const void *payload, size_t payload_bytes)
{
    struct mt_signals before = mt_lock(&interned.lock);
    uint32_t offset, id = append(kind, payload, payload_bytes, &offset);

    mt_unlock(&interned.lock, before);
    return id;
}

static size_t table_bytes(size_t capacity)
{
    return sizeof(struct table) + capacity * sizeof(struct entry);
}

static struct table *new_table(size_t capacity)
{
    struct table *table = mmap(NULL, table_bytes(capacity), PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (table == MAP_FAILED)
        return NULL;
    table->mask = capacity - 1;
    return table;
}

static void insert(struct table *table, uint64_t hash, uint32_t id, uint32_t payload_offset)
{
    size_t i = (size_t)hash & table->mask;

    while (atomic_load_explicit(&table->entries[i].hash, memory_order_relaxed))
        i = (i + 1) & table->mask;
    table->entries[i].id = id;
    table->entries[i].payload_offset = payload_offset;
    atomic_store_explicit(&table->entries[i].hash, hash, memory_order_release);
    table->count++;
}

/* Returns a table with room for one more; the lock must be held. NULL: no memory. */
static struct table *table_with_room(void)
{
    struct table *old = atomic_load_explicit(&interned.table, memory_order_relaxed);

    if (old && old->count * 2 <= old->mask)
        return old;
    struct table *table = new_table(old ? (old->mask + 1) * 2 : FIRST_CAPACITY);
    if (!table)
        return NULL;
    for (size_t i = 0; old && i <= old->mask; i++) {
        const struct entry *entry = &old->entries[i];
        uint64_t hash = atomic_load_explicit(&entry->hash, memory_order_relaxed);
        if (hash)
            insert(table, hash, entry->id, entry->payload_offset);
    }
    atomic_store_explicit(&interned.table, table, memory_order_release);
    return table;
}

/* Returns whether the log has exactly this payload at the offset. Its header precedes it. */
static bool is_equal(uint32_t payload_offset, enum mt_definition_kind kind, const void *payload,
                     size_t payload_bytes)
{
    const char *there = payload_at(payload_offset);
    struct mt_definition definition;

    memcpy(&definition, there - sizeof definition, sizeof definition);
    return definition.kind == (uint32_t)kind && definition.payload_bytes == payload_bytes &&
           !memcmp(there, payload, payload_bytes);
}

static const struct entry *find(uint64_t hash, enum mt_definition_kind kind, const void *payload,
                                size_t payload_bytes)
{
    const struct table *table = atomic_load_explicit(&interned.table, memory_order_acquire);

    if (!table)
        return NULL;
    for (size_t i = (size_t)hash & table->mask;; i = (i + 1) & table->mask) {
        const struct entry *entry = &table->entries[i];
        uint64_t there = atomic_load_explicit(&entry->hash, memory_order_acquire);
        if (!there)
            return NULL;
        if (there == hash && is_equal(entry->payload_offset, kind, payload, payload_bytes))
            return entry;
    }
}

/* Call it with the lock held: another thread may have added the payload meanwhile. */
static uint32_t find_or_add(uint64_t hash, enum mt_definition_kind kind, const void *payload,
                            size_t payload_bytes, uint32_t *payload_offset)
{
    const struct entry *entry = find(hash, kind, payload, payload_bytes);

    if (entry) {
        *payload_offset = entry->payload_offset;
        return entry->id;
    }
    struct table *table = table_with_room();
    if (!table)
        return 0;
    uint32_t id = append(kind, payload, payload_bytes, payload_offset);
    if (id)
        insert(table, hash, id, *payload_offset);
    return id;
}

uint32_t mt_intern(enum mt_definition_kind kind, const void *payload, size_t payload_bytes)
{
    uint64_t hash = mt_hash_u64(mt_hash_bytes(payload, payload_bytes) + (uint64_t)kind) | 1u;
    struct mt_cached_id *cached = &mt_self->cache[(hash >> 20) % MT_THREAD_CACHE];
    uint32_t id, payload_offset = 0;

    if (cached->hash == hash && is_equal(cached->payload_offset, kind, payload, payload_bytes))
        return cached->id;
    const struct entry *entry = find(hash, kind, payload, payload_bytes);
    if (entry) {
        id = entry->id;
        payload_offset = entry->payload_offset;
    } else {
        struct mt_signals before = mt_lock(&interned.lock);
        id = find_or_add(hash, kind, payload, payload_bytes, &payload_offset);
        mt_unlock(&interned.lock, before);
    }
    if (id)
        *cached = (struct mt_cached_id){hash, id, payload_offset};
    return id;
}

uint32_t mt_intern_stack(enum mt_definition_kind kind, const uint64_t *words, size_t count)
{
    if (count > MT_MAX_STACK_FRAMES) {
        words += count - MT_MAX_STACK_FRAMES;
        count = MT_MAX_STACK_FRAMES;
    }
    return count ? mt_intern(kind, words, count * sizeof *words) : 0;
}
