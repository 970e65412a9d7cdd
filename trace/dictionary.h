/* Values of one block -> dense indexes 0, 1, 2, ... in order of first appearance. Fixed capacity; a
 * new stamp empties it in O(1). Private to the encoder. */
#ifndef MT_TRACE_DICTIONARY_H
#define MT_TRACE_DICTIONARY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "check.h"
#include "map.h"

struct mt_dictionary_slot {
    uint64_t value;
    uint32_t stamp; /* != the dictionary's: empty */
    uint16_t index;
    uint16_t note; /* for the caller, e.g. the newest place at an address */
};

struct mt_dictionary {
    struct mt_dictionary_slot *slots;
    uint64_t *values; /* by index */
    uint32_t count, stamp, mask;
};

/* For at most `capacity` distinct values (a power of two <= 65,536). */
static inline bool mt_dictionary_init(struct mt_dictionary *dictionary, uint32_t capacity)
{
    dictionary->mask = capacity * 2 - 1;
    dictionary->slots = calloc((size_t)capacity * 2, sizeof *dictionary->slots);
    dictionary->values = malloc((size_t)capacity * sizeof *dictionary->values);
    dictionary->count = 0;
    dictionary->stamp = 1;
    return dictionary->slots && dictionary->values;
}

static inline void mt_dictionary_release(struct mt_dictionary *dictionary)
{
    free(dictionary->slots);
    free(dictionary->values);
}

static inline void mt_dictionary_clear(struct mt_dictionary *dictionary)
{
    uint32_t i;

    dictionary->count = 0;
    if (++dictionary->stamp)
        return;
    for (i = 0; i <= dictionary->mask; i++) /* the stamp wraps once in 2^32 blocks */
        dictionary->slots[i].stamp = 0;
    dictionary->stamp = 1;
}

/* Returns the slot of value, or an empty one (its stamp differs) for it. */
static inline struct mt_dictionary_slot *mt_dictionary_find(const struct mt_dictionary *dictionary,
                                                            uint64_t value)
{
    uint32_t i = (uint32_t)mt_hash_u64(value) & dictionary->mask;

    while (dictionary->slots[i].stamp == dictionary->stamp && dictionary->slots[i].value != value)
        i = (i + 1) & dictionary->mask;
    return &dictionary->slots[i];
}

/* Returns the slot of value; adds value if it is missing. */
static inline struct mt_dictionary_slot *mt_dictionary_add(struct mt_dictionary *dictionary,
                                                           uint64_t value)
{
    struct mt_dictionary_slot *slot = mt_dictionary_find(dictionary, value);

    if (slot->stamp != dictionary->stamp) {
        MT_ASSERT(dictionary->count <= dictionary->mask / 2);
        slot->value = value;
        slot->stamp = dictionary->stamp;
        slot->index = (uint16_t)dictionary->count;
        slot->note = 0;
        dictionary->values[dictionary->count++] = value;
    }
    MT_ASSERT(slot->index < dictionary->count && dictionary->values[slot->index] == value);
    return slot;
}

/* Checks that each value is found under its own index. */
static inline bool mt_dictionary_is_sound(const struct mt_dictionary *dictionary, const char **why)
{
    uint32_t i, filled = 0;

    MT_SOUND(why, dictionary->count <= dictionary->mask / 2 + 1);
    for (i = 0; i < dictionary->count; i++) {
        const struct mt_dictionary_slot *slot =
            mt_dictionary_find(dictionary, dictionary->values[i]);
        MT_SOUND(why, slot->stamp == dictionary->stamp);
        MT_SOUND(why, slot->index == i);
    }
    for (i = 0; i <= dictionary->mask; i++)
        filled += dictionary->slots[i].stamp == dictionary->stamp;
    MT_SOUND(why, filled == dictionary->count);
    return true;
}

#endif
