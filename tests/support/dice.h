/* Random numbers from a seed: the same sequence on every machine. */
#ifndef MT_TESTS_DICE_H
#define MT_TESTS_DICE_H

#include <stdbool.h>
#include <stdint.h>

/* Marsaglia's xorshift64; *state is never 0. */
static inline uint64_t dice_xorshift(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

/* Knuth's linear congruential generator: take the high bits. */
static inline uint64_t dice_linear(uint64_t *state)
{
    return *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
}

/* The state of a file that needs one sequence: 0 unless the file sets or initializes it. */
static uint64_t random_state;

static inline uint64_t xorshift_below(uint64_t end)
{
    return dice_xorshift(&random_state) % end;
}

static inline uint32_t linear_below(uint64_t end)
{
    return (uint32_t)((dice_linear(&random_state) >> 33) % end);
}

static inline uint64_t high_below(uint64_t end)
{
    return (dice_linear(&random_state) >> 20) % end;
}

struct dice {
    uint64_t state;
};

static inline uint64_t dice_any(struct dice *dice)
{
    uint64_t z = dice->state += UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static inline uint64_t dice_below(struct dice *dice, uint64_t end)
{
    return dice_any(dice) % end;
}

static inline uint64_t dice_between(struct dice *dice, uint64_t least, uint64_t most)
{
    return least + dice_below(dice, most - least + 1);
}

static inline bool dice_one_in(struct dice *dice, uint64_t n)
{
    return dice_below(dice, n) == 0;
}

#endif
