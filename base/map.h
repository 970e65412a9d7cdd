/* Open-addressing hash map from u64 to u32, and a string interner on top of
 * the same idea. Keys are any u64; values any u32 but MT_MAP_NONE. */
#ifndef MT_BASE_MAP_H
#define MT_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "status.h"

#define MT_MAP_NONE UINT32_MAX

struct mt_map_slot {
    uint64_t key;
    uint32_t value; /* MT_MAP_NONE = empty slot */
    uint32_t padding;
};

/* Zeroed memory is an empty map. Load factor <= 1/2, <= 1/4 while it is small (wrong
 * guesses of the processor cost more than memory then), linear probing, deletion by
 * moving the followers back (no tombstones: churn does not slow it). */
struct mt_map {
    struct mt_map_slot *slots;
    size_t count, mask;
    /* PRIVATE: where the key is, or would be, that was looked for last */
    uint64_t last_key;
    size_t last_slot;
    bool last_is_known;
};

/* Value of key, or MT_MAP_NONE. O(1). */
uint32_t mt_map_get(const struct mt_map *map, uint64_t key);

/* The same; what is done with this key next, set or take, is not looked for again. */
uint32_t mt_map_find(struct mt_map *map, uint64_t key);

/* Sets key to value (!= MT_MAP_NONE), replacing what was there. */
enum mt_status mt_map_set(struct mt_map *map, uint64_t key, uint32_t value) MT_MUST_USE;

/* Removes key and returns its value, or MT_MAP_NONE if it was not there. */
uint32_t mt_map_take(struct mt_map *map, uint64_t key);

void mt_map_release(struct mt_map *map);

/* Strings become dense ids 0, 1, 2, ... in order of first sight. */
struct mt_strings {
    struct mt_arena arena;
    const char **texts; /* NUL-terminated; may hold inner NULs, see lengths */
    uint32_t *lengths;
    uint32_t count, capacity;
    uint32_t *slots; /* hash table of ids + 1 */
    size_t mask;
};

enum mt_status mt_strings_intern(struct mt_strings *strings, const char *text, size_t length,
                                 uint32_t *id) MT_MUST_USE;
void mt_strings_release(struct mt_strings *strings);

/* 64-bit mixing of an integer, and of bytes: for hash tables, not security. */
static inline uint64_t mt_hash_u64(uint64_t value)
{
    /* Fibonacci hashing with a fold: one multiplication, good high bits */
    value ^= value >> 32;
    value *= UINT64_C(0x9E3779B97F4A7C15);
    return value ^ (value >> 29);
}
uint64_t mt_hash_bytes(const void *bytes, size_t length);

#endif
