/* Open-addressing hash map from u64 to u32, and a string interner on top of the same idea. Keys are
 * any u64; values are any u32 except MT_MAP_NONE. */
#ifndef MT_BASE_MAP_H
#define MT_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "hash.h"
#include "process_memory.h"
#include "status.h"

#define MT_MAP_NONE UINT32_MAX

struct mt_map_slot {
    uint64_t key;
    uint32_t value; /* MT_MAP_NONE = empty slot */
    uint32_t padding;
};

/* Zeroed memory is an empty map. Load factor <= 1/2, <= 1/4 while it is small (branch
 * mispredictions cost more than memory then), linear probing. Deletion moves later entries back
 * instead of leaving tombstones, so churn does not slow the map down. */
struct mt_map {
    struct mt_map_slot *slots;
    size_t count, mask;
    /* PRIVATE: slot of the last key looked up, or where it would be */
    uint64_t last_key;
    size_t last_slot;
    bool last_is_known;
};

/* Value of key, or MT_MAP_NONE. O(1). */
uint32_t mt_map_get(const struct mt_map *map, uint64_t key);

/* The same. A following set or take of this key needs no second search. */
uint32_t mt_map_find(struct mt_map *map, uint64_t key);

/* Sets key to value (!= MT_MAP_NONE); replaces an existing value. */
enum mt_status mt_map_set(struct mt_map *map, uint64_t key, uint32_t value) MT_MUST_USE;

/* The same where lack of memory ends the process. */
static inline void mt_map_put(struct mt_map *map, uint64_t key, uint32_t value)
{
    if (mt_map_set(map, key, value) != MT_OK)
        mt_memory_end();
}

/* Removes key and returns its value, or MT_MAP_NONE if it is missing. */
uint32_t mt_map_take(struct mt_map *map, uint64_t key);

/* Checks that probing finds every key, and that the count is right. O(n). */
bool mt_map_is_sound(const struct mt_map *map, const char **why);

/* Bytes of memory that the map uses. */
static inline uint64_t mt_map_bytes(const struct mt_map *map)
{
    return map->slots ? (map->mask + 1) * sizeof *map->slots : 0;
}

void mt_map_release(struct mt_map *map);

/* Strings get dense ids 0, 1, 2, ... in order of first appearance. */
struct mt_strings {
    struct mt_arena arena;
    const char **texts; /* NUL-terminated; may hold inner NULs, see lengths */
    uint32_t *lengths;
    uint32_t count;
    size_t capacity;
    uint32_t *slots; /* hash table of ids + 1 */
    size_t mask;
};

enum mt_status mt_strings_intern(struct mt_strings *strings, const char *text, size_t length,
                                 uint32_t *id) MT_MUST_USE;

/* The same where lack of memory ends the process. */
static inline void mt_strings_put(struct mt_strings *strings, const char *text, size_t length,
                                  uint32_t *id)
{
    if (mt_strings_intern(strings, text, length, id) != MT_OK)
        mt_memory_end();
}

/* Returns the id of a text, or MT_MAP_NONE. */
uint32_t mt_strings_find(const struct mt_strings *strings, const char *text, size_t length);

/* Checks that each text is found under its own id. O(bytes of all texts). */
bool mt_strings_is_sound(const struct mt_strings *strings, const char **why);

void mt_strings_release(struct mt_strings *strings);

#endif
