/* What structure-aware mutators share: dice, telling numbers, and changes of a
 * text within its bounds. */
#ifndef MT_TESTS_MUTATE_H
#define MT_TESTS_MUTATE_H

#include "fuzz.h"

/* libFuzzer's: changes bytes in place, returns the new size. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

struct mutate_dice {
    uint64_t state;
};

static inline uint64_t mutate_throw(struct mutate_dice *dice)
{
    uint64_t z = (dice->state += UINT64_C(0x9E3779B97F4A7C15));

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* 0 .. end - 1; 0 if end is 0. */
static inline unsigned mutate_below(struct mutate_dice *dice, unsigned end)
{
    return end ? (unsigned)(mutate_throw(dice) % end) : 0;
}

/* Small ones, powers of two and their neighbors, ends of ranges. */
static inline uint64_t mutate_number(struct mutate_dice *dice)
{
    uint64_t power = (uint64_t)1 << mutate_below(dice, 64);

    switch (mutate_below(dice, 5)) {
    case 0: return mutate_below(dice, 16);
    case 1: return power;
    case 2: return power - 1;
    case 3: return UINT64_MAX - mutate_below(dice, 2);
    default: return mutate_throw(dice) >> mutate_below(dice, 64);
    }
}

struct mutate_text {
    uint8_t *data;
    size_t size, room;
};

/* `length` bytes at `at` become `count` other ones; returns the new size, which is
 * the old one if there is no room. `bytes` must not lie within the text. */
static inline size_t mutate_replace(struct mutate_text *text, size_t at, size_t length,
                                    const uint8_t *bytes, size_t count)
{
    if (at + length > text->size || text->size - length + count > text->room)
        return text->size;
    memmove(text->data + at + count, text->data + at + length, text->size - at - length);
    if (count)
        memcpy(text->data + at, bytes, count);
    return text->size - length + count;
}

/* The same with bytes of the text itself, starting at `from`. */
static inline size_t mutate_copy(struct mutate_text *text, size_t at, size_t length, size_t from,
                                 size_t count)
{
    uint8_t *copy = malloc(count ? count : 1);
    size_t size = text->size;

    if (copy) {
        memcpy(copy, text->data + from, count);
        size = mutate_replace(text, at, length, copy, count);
    }
    free(copy);
    return size;
}

#endif
