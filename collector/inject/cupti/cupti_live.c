/* See cupti_live.h. A hash table with open addressing and linear probing, split into parts that
 * have one lock each. Tables are mapped, not malloc'ed, because this code runs while the program
 * may hold any lock. Removal moves later entries of a run back, so there are no tombstones. */
#include "cupti_live.h"

#include "hash.h"

#include <pthread.h>
#include <sys/mman.h>

enum { PART_BITS = 4, PARTS = 1 << PART_BITS, FIRST_CAPACITY = 1024 };

struct part {
    pthread_mutex_t lock;
    struct mt_cupti_live_block *slots; /* space NONE: empty */
    uint32_t capacity, count;
};

static struct part parts[PARTS] = {
#define PART                                                                                       \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER                                                          \
    }
    PART, PART, PART, PART, PART, PART, PART, PART, PART, PART, PART, PART, PART, PART, PART, PART,
#undef PART
};

static uint64_t hash_of(unsigned space, uint64_t addr)
{
    return mt_hash_u64(addr ^ (uint64_t)space << 56);
}

static struct part *part_of(uint64_t hash)
{
    return &parts[hash >> (64 - PART_BITS)];
}

static uint32_t home_of(const struct part *part, uint64_t hash)
{
    return (uint32_t)(hash >> 24) & (part->capacity - 1);
}

/* Returns the slot of the block, or the empty slot for it. The part must have room. */
static struct mt_cupti_live_block *slot_of(struct part *part, unsigned space, uint64_t addr)
{
    uint32_t at = home_of(part, hash_of(space, addr));
    while (part->slots[at].space &&
           (part->slots[at].addr != addr || part->slots[at].space != space))
        at = (at + 1) & (part->capacity - 1);
    return &part->slots[at];
}

static struct mt_cupti_live_block *map_slots(uint32_t capacity)
{
    void *memory = mmap(NULL, capacity * sizeof(struct mt_cupti_live_block), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Makes room for one more block; the load is at most one half. */
static bool make_room(struct part *part)
{
    if (part->count < part->capacity / 2)
        return true;
    struct part grown = {.capacity = part->capacity ? 2 * part->capacity : FIRST_CAPACITY};
    if (!grown.capacity || !(grown.slots = map_slots(grown.capacity)))
        return false;
    for (uint32_t i = 0; i < part->capacity; i++)
        if (part->slots[i].space)
            *slot_of(&grown, part->slots[i].space, part->slots[i].addr) = part->slots[i];
    if (part->slots)
        munmap(part->slots, part->capacity * sizeof *part->slots);
    part->slots = grown.slots;
    part->capacity = grown.capacity;
    return true;
}

static struct mt_cupti_live_block *known(struct part *part, unsigned space, uint64_t addr)
{
    struct mt_cupti_live_block *slot = part->count ? slot_of(part, space, addr) : NULL;
    return slot && slot->space ? slot : NULL;
}

static void empty_slot(struct part *part, struct mt_cupti_live_block *slot)
{
    uint32_t mask = part->capacity - 1, hole = (uint32_t)(slot - part->slots);
    for (uint32_t at = (hole + 1) & mask; part->slots[at].space; at = (at + 1) & mask) {
        const struct mt_cupti_live_block *block = &part->slots[at];
        uint32_t home = home_of(part, hash_of(block->space, block->addr));
        if (((at - home) & mask) < ((at - hole) & mask))
            continue;
        part->slots[hole] = *block;
        hole = at;
    }
    part->slots[hole].space = MT_LIVE_NONE;
    part->count--;
}

bool mt_cupti_live_put(const struct mt_cupti_live_block *block,
                       struct mt_cupti_live_block *replaced)
{
    struct part *part = part_of(hash_of(block->space, block->addr));
    replaced->space = MT_LIVE_NONE;
    pthread_mutex_lock(&part->lock);
    bool room = make_room(part);
    if (room) {
        struct mt_cupti_live_block *slot = slot_of(part, block->space, block->addr);
        if (slot->space)
            *replaced = *slot;
        else
            part->count++;
        *slot = *block;
    }
    pthread_mutex_unlock(&part->lock);
    return room;
}

bool mt_cupti_live_find(enum mt_cupti_live_space space, uint64_t addr,
                        struct mt_cupti_live_block *found)
{
    struct part *part = part_of(hash_of(space, addr));
    pthread_mutex_lock(&part->lock);
    const struct mt_cupti_live_block *slot = known(part, space, addr);
    if (slot)
        *found = *slot;
    pthread_mutex_unlock(&part->lock);
    return slot != NULL;
}

bool mt_cupti_live_take(enum mt_cupti_live_space space, uint64_t addr,
                        struct mt_cupti_live_block *taken)
{
    struct part *part = part_of(hash_of(space, addr));
    pthread_mutex_lock(&part->lock);
    struct mt_cupti_live_block *slot = known(part, space, addr);
    if (slot) {
        *taken = *slot;
        empty_slot(part, slot);
    }
    pthread_mutex_unlock(&part->lock);
    return slot != NULL;
}

static void add(uint32_t *count, int change)
{
    *count = change < 0 && *count < (uint32_t)-change ? 0 : *count + (uint32_t)change;
}

enum mt_cupti_live_outcome mt_cupti_live_count(enum mt_cupti_live_space space, uint64_t addr,
                                               int references, int mappings,
                                               struct mt_cupti_live_block *block)
{
    struct part *part = part_of(hash_of(space, addr));
    enum mt_cupti_live_outcome outcome = MT_LIVE_UNKNOWN;
    pthread_mutex_lock(&part->lock);
    struct mt_cupti_live_block *slot = known(part, space, addr);
    if (slot) {
        add(&slot->references, references);
        add(&slot->mappings, mappings);
        *block = *slot;
        outcome = slot->references || slot->mappings ? MT_LIVE_STAYS : MT_LIVE_GONE;
        if (outcome == MT_LIVE_GONE)
            empty_slot(part, slot);
    }
    pthread_mutex_unlock(&part->lock);
    return outcome;
}

/* Removing a slot moves another block into it, so the slot is visited again. A block that moves
 * from the start of the table to its end was visited before. */
static void take_from(struct part *part, uint64_t context, mt_cupti_live_visit *visit, void *user)
{
    for (uint32_t at = 0; at < part->capacity; at++)
        while (part->slots[at].space && part->slots[at].context == context) {
            struct mt_cupti_live_block taken = part->slots[at];
            empty_slot(part, &part->slots[at]);
            visit(user, &taken);
        }
}

void mt_cupti_live_take_of_context(uint64_t context, mt_cupti_live_visit *visit, void *user)
{
    for (int i = 0; i < PARTS; i++) {
        pthread_mutex_lock(&parts[i].lock);
        take_from(&parts[i], context, visit, user);
        pthread_mutex_unlock(&parts[i].lock);
    }
}

void mt_cupti_live_forget(void)
{
    for (int i = 0; i < PARTS; i++) {
        pthread_mutex_init(&parts[i].lock, NULL);
        parts[i].slots = NULL;
        parts[i].capacity = parts[i].count = 0;
    }
}
