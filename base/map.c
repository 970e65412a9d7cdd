#include "map.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "grow.h"
#include "process_memory.h"

enum { SMALL_SLOTS = 1 << 14 };

static inline size_t slot_of(const struct mt_map *map, uint64_t key)
{
    size_t i = (size_t)mt_hash_u64(key) & map->mask;

    while (map->slots[i].value != MT_MAP_NONE && map->slots[i].key != key)
        i = (i + 1) & map->mask;
    return i;
}

/* The same for the key of the last lookup, without a search. */
static inline size_t slot_of_last(const struct mt_map *map, uint64_t key)
{
    return map->last_is_known && map->last_key == key ? map->last_slot : slot_of(map, key);
}

static enum mt_status no_memory(void)
{
    mt_memory_failed();
    return MT_ERR_MEMORY;
}

static enum mt_status grow(struct mt_map *map)
{
    size_t capacity = map->slots ? (map->mask + 1) * 2 : 64;
    struct mt_map bigger = {.count = map->count, .mask = capacity - 1};

    if (capacity > SIZE_MAX / sizeof *bigger.slots)
        return MT_ERR_MEMORY;
    bigger.slots = malloc(capacity * sizeof *bigger.slots);
    if (!bigger.slots)
        return no_memory();
    for (size_t i = 0; i < capacity; i++)
        bigger.slots[i].value = MT_MAP_NONE;
    for (size_t i = 0; map->slots && i <= map->mask; i++)
        if (map->slots[i].value != MT_MAP_NONE)
            bigger.slots[slot_of(&bigger, map->slots[i].key)] = map->slots[i];
    free(map->slots);
    *map = bigger;
    return MT_OK;
}

static inline bool is_full(const struct mt_map *map)
{
    return map->count * (map->mask < SMALL_SLOTS ? 4 : 2) > map->mask;
}

uint32_t mt_map_get(const struct mt_map *map, uint64_t key)
{
    return map->slots ? map->slots[slot_of(map, key)].value : MT_MAP_NONE;
}

uint32_t mt_map_find(struct mt_map *map, uint64_t key)
{
    if (!map->slots)
        return MT_MAP_NONE;
    map->last_slot = slot_of_last(map, key);
    map->last_key = key;
    map->last_is_known = true;
    return map->slots[map->last_slot].value;
}

enum mt_status mt_map_set(struct mt_map *map, uint64_t key, uint32_t value)
{
    MT_ASSERT(value != MT_MAP_NONE);
    if (!map->slots || is_full(map)) {
        enum mt_status status = grow(map);
        if (status != MT_OK)
            return status;
    }
    struct mt_map_slot *slot = &map->slots[slot_of_last(map, key)];
    MT_ASSERT(slot->value == MT_MAP_NONE || slot->key == key);
    map->count += slot->value == MT_MAP_NONE;
    map->last_is_known = false;
    slot->key = key;
    slot->value = value;
    return MT_OK;
}

uint32_t mt_map_take(struct mt_map *map, uint64_t key)
{
    if (!map->slots)
        return MT_MAP_NONE;
    size_t hole = slot_of_last(map, key);
    uint32_t value = map->slots[hole].value;
    if (value == MT_MAP_NONE)
        return MT_MAP_NONE;
    MT_ASSERT(map->count > 0 && map->slots[hole].key == key);
    map->count--;
    map->last_is_known = false;
    for (size_t i = (hole + 1) & map->mask; map->slots[i].value != MT_MAP_NONE;
         i = (i + 1) & map->mask) {
        size_t home = (size_t)mt_hash_u64(map->slots[i].key) & map->mask;
        if (((i - home) & map->mask) >= ((i - hole) & map->mask)) {
            map->slots[hole] = map->slots[i];
            hole = i;
        }
    }
    map->slots[hole].value = MT_MAP_NONE;
    return value;
}

bool mt_map_is_sound(const struct mt_map *map, const char **why)
{
    size_t count = 0;

    MT_SOUND(why, (map->mask & (map->mask + 1)) == 0);
    for (size_t i = 0; map->slots && i <= map->mask; i++) {
        if (map->slots[i].value == MT_MAP_NONE)
            continue;
        MT_SOUND(why, slot_of(map, map->slots[i].key) == i);
        count++;
    }
    MT_SOUND(why, count == map->count);
    MT_SOUND(why, !map->slots || count <= map->mask);
    MT_SOUND(why, !map->last_is_known || map->last_slot == slot_of(map, map->last_key));
    return true;
}

void mt_map_release(struct mt_map *map)
{
    free(map->slots);
    memset(map, 0, sizeof *map);
}

static enum mt_status grow_slots(struct mt_strings *strings)
{
    size_t capacity = strings->slots ? (strings->mask + 1) * 2 : 256;
    uint32_t *slots = calloc(capacity, sizeof *slots);

    if (!slots)
        return no_memory();
    for (uint32_t id = 0; id < strings->count; id++) {
        size_t i = (size_t)mt_hash_bytes(strings->texts[id], strings->lengths[id]);
        for (i &= capacity - 1; slots[i]; i = (i + 1) & (capacity - 1))
            continue;
        slots[i] = id + 1;
    }
    free(strings->slots);
    strings->slots = slots;
    strings->mask = capacity - 1;
    return MT_OK;
}

static enum mt_status grow_texts(struct mt_strings *strings)
{
    size_t lengths_capacity = strings->capacity;
    enum mt_status status = mt_grow(&strings->lengths, &lengths_capacity,
                                    (size_t)strings->count + 1, sizeof *strings->lengths);

    return status == MT_OK ? mt_grow(&strings->texts, &strings->capacity,
                                     (size_t)strings->count + 1, sizeof *strings->texts)
                           : status;
}

/* Returns the slot of the text, or the empty slot where it belongs. */
static size_t slot_of_text(const struct mt_strings *strings, const char *text, size_t length)
{
    size_t i = (size_t)mt_hash_bytes(text, length) & strings->mask;

    for (; strings->slots[i]; i = (i + 1) & strings->mask) {
        uint32_t candidate = strings->slots[i] - 1;
        if (strings->lengths[candidate] == length &&
            (!length || memcmp(strings->texts[candidate], text, length) == 0))
            break;
    }
    return i;
}

uint32_t mt_strings_find(const struct mt_strings *strings, const char *text, size_t length)
{
    /* an empty slot is 0, so subtracting 1 gives MT_MAP_NONE */
    return strings->slots ? strings->slots[slot_of_text(strings, text, length)] - 1 : MT_MAP_NONE;
}

enum mt_status mt_strings_intern(struct mt_strings *strings, const char *text, size_t length,
                                 uint32_t *id)
{
    if (length >= UINT32_MAX)
        return MT_ERR_UNSUPPORTED;
    if (!strings->slots || (size_t)strings->count * 2 > strings->mask) {
        if (grow_slots(strings) != MT_OK)
            return MT_ERR_MEMORY;
    }
    size_t i = slot_of_text(strings, text, length);
    if (strings->slots[i]) {
        *id = strings->slots[i] - 1;
        return MT_OK;
    }
    if (grow_texts(strings) != MT_OK)
        return MT_ERR_MEMORY;
    strings->texts[strings->count] = mt_arena_text(&strings->arena, text, length);
    if (!strings->texts[strings->count])
        return MT_ERR_MEMORY;
    strings->lengths[strings->count] = (uint32_t)length;
    MT_ASSERT(!strings->slots[i] && strings->count < strings->capacity);
    strings->slots[i] = strings->count + 1;
    *id = strings->count++;
    return MT_OK;
}

bool mt_strings_is_sound(const struct mt_strings *strings, const char **why)
{
    size_t i, filled = 0;

    MT_SOUND(why, strings->count <= strings->capacity);
    for (i = 0; strings->slots && i <= strings->mask; i++) {
        MT_SOUND(why, strings->slots[i] <= strings->count);
        filled += strings->slots[i] != 0;
    }
    MT_SOUND(why, filled == strings->count);
    for (uint32_t id = 0; id < strings->count; id++) {
        i = (size_t)mt_hash_bytes(strings->texts[id], strings->lengths[id]) & strings->mask;
        while (strings->slots[i] && strings->slots[i] != id + 1)
            i = (i + 1) & strings->mask;
        MT_SOUND(why, strings->slots[i] == id + 1);
        MT_SOUND(why, strings->texts[id][strings->lengths[id]] == '\0');
    }
    return true;
}

void mt_strings_release(struct mt_strings *strings)
{
    mt_arena_release(&strings->arena);
    free(strings->texts);
    free(strings->lengths);
    free(strings->slots);
    memset(strings, 0, sizeof *strings);
}
