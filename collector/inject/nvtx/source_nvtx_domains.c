/* Texts are stored in chunks that are never moved or freed, so events read them without a lock.
 * Only registration takes one. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lock.h"
#include "map.h"
#include "nvtx_parts.h"

/* Maps handles to numbers of the collector. A handle that the collector made contains its number,
 * so that an invalid handle is detected without dereferencing it. Handles of the previous tool are
 * looked up in a table. Readers take no lock; entries are never removed. */

struct entry {
    _Atomic(const void *) key; /* NULL = free; written last */
    _Atomic uint32_t number;
};

struct handle_table {
    struct handle_table *older;
    size_t mask;
    struct entry entries[];
};

struct handle_table;

/* Zeroed memory is empty. */
struct handles {
    _Atomic(struct handle_table *) table;
    uint32_t count;
};

/* Handles that the collector makes. They differ from every address of a program. */
enum handle_kind { HANDLE_DOMAIN = 0x6d64, HANDLE_STRING = 0x6d73 };

static struct entry *find(struct handle_table *table, const void *key)
{
    size_t at = (size_t)mt_hash_u64((uintptr_t)key) & table->mask;

    for (;; at = (at + 1) & table->mask) {
        const void *there = atomic_load_explicit(&table->entries[at].key, memory_order_acquire);
        if (!there || there == key)
            return &table->entries[at];
    }
}

static void put(struct handle_table *table, const void *key, uint32_t number)
{
    struct entry *entry = find(table, key);

    atomic_store_explicit(&entry->number, number, memory_order_relaxed);
    atomic_store_explicit(&entry->key, key, memory_order_release);
}

/* Readers may still use the old table, so it is kept. All old tables together are as large as the
 * new one. */
static bool grow(struct handles *handles, struct handle_table *old)
{
    size_t count = old ? 2 * (old->mask + 1) : 64;
    struct handle_table *table = calloc(1, sizeof *table + count * sizeof table->entries[0]);

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

/* Returns 0 if the key is not known. */
static uint32_t handles_get(struct handles *handles, const void *key)
{
    struct handle_table *table = atomic_load_explicit(&handles->table, memory_order_acquire);

    if (!table || !key)
        return 0;
    struct entry *entry = find(table, key);
    if (!atomic_load_explicit(&entry->key, memory_order_acquire))
        return 0;
    return atomic_load_explicit(&entry->number, memory_order_relaxed);
}

/* Assigns `number` to `key`, and replaces an earlier number. The caller holds a lock that excludes
 * other writers. If memory runs out, a new key stays unknown. */
static void handles_set(struct handles *handles, const void *key, uint32_t number)
{
    struct handle_table *table = atomic_load_explicit(&handles->table, memory_order_relaxed);

    if (!key)
        return;
    if (!table || 2 * (size_t)handles->count >= table->mask + 1) {
        if (!grow(handles, table))
            return;
        table = atomic_load_explicit(&handles->table, memory_order_relaxed);
    }
    if (!handles_get(handles, key))
        handles->count++;
    put(table, key, number);
}

static void *handle_make(enum handle_kind kind, uint32_t number)
{
    return (void *)((uintptr_t)kind << 48 | number);
}

/* Returns 0 if the collector did not make the handle, or if it is of another kind. */
static uint32_t handle_number(enum handle_kind kind, const void *handle)
{
    uintptr_t value = (uintptr_t)handle;

    return value >> 32 == (uintptr_t)kind << 16 ? (uint32_t)value : 0;
}

enum {
    MAX_DOMAIN_NAME_BYTES = 256, /* bytes; leaves room for messages */
    MAX_DOMAINS = 4096,
    CHUNK = 1024,
    MAX_CHUNKS = 1024 /* 1 Mi strings of each kind */
};

/* An append-only list of texts. Numbers start at 1. */
struct texts {
    struct mt_nvtx_text *_Atomic chunks[MAX_CHUNKS];
    _Atomic uint32_t count;
    uint32_t limit;
    struct mt_map known; /* hash of text -> number */
};

static struct {
    pthread_mutex_t lock;
    struct texts domains, strings, categories;
    struct handles domain_handles, string_handles;
    struct mt_map category_names; /* domain, category -> number in categories */
} nvtx = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .domains.limit = MAX_DOMAINS,
          .strings.limit = CHUNK * MAX_CHUNKS,
          .categories.limit = CHUNK * MAX_CHUNKS};

static struct mt_nvtx_text texts_get(struct texts *texts, uint32_t number)
{
    struct mt_nvtx_text none = {"", 0};

    if (number == 0 || number > atomic_load_explicit(&texts->count, memory_order_acquire))
        return none;
    number--;
    return atomic_load_explicit(&texts->chunks[number / CHUNK],
                                memory_order_relaxed)[number % CHUNK];
}

static bool equal(struct mt_nvtx_text text, struct mt_nvtx_text head, struct mt_nvtx_text tail)
{
    return text.length == head.length + tail.length &&
           !memcmp(text.bytes, head.bytes, head.length) &&
           !memcmp(text.bytes + head.length, tail.bytes, tail.length);
}

static bool append(struct texts *texts, struct mt_nvtx_text text)
{
    uint32_t number = atomic_load_explicit(&texts->count, memory_order_relaxed);

    if (number >= texts->limit)
        return false;
    struct mt_nvtx_text *chunk =
        atomic_load_explicit(&texts->chunks[number / CHUNK], memory_order_relaxed);
    if (!chunk) {
        chunk = calloc(CHUNK, sizeof *chunk);
        if (!chunk)
            return false;
        atomic_store_explicit(&texts->chunks[number / CHUNK], chunk, memory_order_relaxed);
    }
    chunk[number % CHUNK] = text;
    atomic_store_explicit(&texts->count, number + 1, memory_order_release);
    return true;
}

/* Number of head + tail, 0 if there is no room. The lock must be held. */
static uint32_t texts_add(struct texts *texts, struct mt_nvtx_text head, struct mt_nvtx_text tail)
{
    uint64_t hash =
        mt_hash_bytes(head.bytes, head.length) * 31 + mt_hash_bytes(tail.bytes, tail.length);
    uint32_t number = mt_map_get(&texts->known, hash);
    size_t length = head.length + tail.length;

    if (number != MT_MAP_NONE && equal(texts_get(texts, number), head, tail))
        return number;
    char *copy = malloc(length + 1);
    if (!copy)
        return 0;
    memcpy(copy, head.bytes, head.length);
    memcpy(copy + head.length, tail.bytes, tail.length);
    copy[length] = 0;
    if (!append(texts, (struct mt_nvtx_text){copy, length})) {
        free(copy);
        return 0;
    }
    number = atomic_load_explicit(&texts->count, memory_order_relaxed);
    if (mt_map_set(&texts->known, hash, number) != MT_OK)
        texts->limit = number; /* no memory: accept no more */
    return number;
}

/* The handle of a number for the program, as in mt_nvtx_domain_create. */
static void *hand_out(struct handles *handles, enum handle_kind kind, uint32_t number, void *next)
{
    if (!next)
        return number ? handle_make(kind, number) : NULL;
    if (number)
        handles_set(handles, next, number);
    return next;
}

static struct mt_nvtx_text shorten(struct mt_nvtx_text text, size_t room)
{
    if (text.length > room)
        text.length = mt_nvtx_length(text.bytes, room);
    return text;
}

uint32_t mt_nvtx_domain(void *handle)
{
    if (!handle)
        return 0;
    uint32_t number = handle_number(HANDLE_DOMAIN, handle);
    if (!number)
        return handles_get(&nvtx.domain_handles, handle);
    return number <= atomic_load_explicit(&nvtx.domains.count, memory_order_relaxed) ? number : 0;
}

struct mt_nvtx_text mt_nvtx_domain_prefix(uint32_t domain)
{
    return texts_get(&nvtx.domains, domain);
}

void *mt_nvtx_domain_create(struct mt_nvtx_text name, void *next)
{
    static const struct mt_nvtx_text colon = {": ", 2};

    name = shorten(name, MAX_DOMAIN_NAME_BYTES);
    struct mt_signals before = mt_lock(&nvtx.lock);
    uint32_t number = name.length ? texts_add(&nvtx.domains, name, colon) : 0;
    void *handle = hand_out(&nvtx.domain_handles, HANDLE_DOMAIN, number, next);
    mt_unlock(&nvtx.lock, before);
    return handle;
}

void *mt_nvtx_string_register(uint32_t domain, struct mt_nvtx_text text, void *next)
{
    struct mt_nvtx_text prefix = mt_nvtx_domain_prefix(domain);

    text = shorten(text, MT_MAX_NVTX_TEXT_BYTES - prefix.length);
    struct mt_signals before = mt_lock(&nvtx.lock);
    uint32_t number = text.length ? texts_add(&nvtx.strings, prefix, text) : 0;
    void *handle = hand_out(&nvtx.string_handles, HANDLE_STRING, number, next);
    mt_unlock(&nvtx.lock, before);
    return handle;
}

struct mt_nvtx_text mt_nvtx_string(void *handle)
{
    uint32_t number = handle_number(HANDLE_STRING, handle);

    return texts_get(&nvtx.strings, number ? number : handles_get(&nvtx.string_handles, handle));
}

void *mt_nvtx_next_handle(void *handle)
{
    return handle_number(HANDLE_DOMAIN, handle) ? NULL : handle;
}

const struct nvtx_attributes *mt_nvtx_next_attributes(const struct nvtx_attributes *attributes,
                                                      struct nvtx_attributes *copy)
{
    if (!attributes || attributes->size < sizeof *attributes ||
        attributes->message_type != NVTX_MESSAGE_IS_REGISTERED ||
        !handle_number(HANDLE_STRING, attributes->message.registered))
        return attributes;
    *copy = *attributes;
    copy->size = sizeof *copy;
    copy->message_type = NVTX_MESSAGE_IS_ASCII;
    copy->message.ascii = mt_nvtx_string(attributes->message.registered).bytes;
    return copy;
}

void mt_nvtx_category_set(uint32_t domain, uint32_t category, struct mt_nvtx_text name)
{
    struct mt_nvtx_text prefix = mt_nvtx_domain_prefix(domain);

    name = shorten(name, MT_MAX_NVTX_TEXT_BYTES - prefix.length);
    struct mt_signals before = mt_lock(&nvtx.lock);
    uint32_t number = name.length ? texts_add(&nvtx.categories, prefix, name) : 0;
    if (number && mt_map_set(&nvtx.category_names, (uint64_t)domain << 32 | category, number))
        number = 0; /* no memory: the category has no name */
    mt_unlock(&nvtx.lock, before);
}

struct mt_nvtx_text mt_nvtx_category(uint32_t domain, uint32_t category)
{
    struct mt_signals before = mt_lock(&nvtx.lock);
    uint32_t number = mt_map_get(&nvtx.category_names, (uint64_t)domain << 32 | category);

    mt_unlock(&nvtx.lock, before);
    return texts_get(&nvtx.categories, number);
}

/* If a thread that no longer exists was changing the maps, they are abandoned: equal texts get new
 * numbers. Texts and handles are consistent at any time. */
void mt_nvtx_domains_forked(void)
{
    static const pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    static const struct mt_map empty;

    if (pthread_mutex_trylock(&nvtx.lock)) {
        nvtx.domains.known = nvtx.strings.known = nvtx.categories.known = empty;
        nvtx.category_names = empty;
        nvtx.lock = unlocked;
        return;
    }
    pthread_mutex_unlock(&nvtx.lock);
}
