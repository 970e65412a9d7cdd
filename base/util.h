/* Small arithmetic that every layer needs. Depends on nothing. */
#ifndef MT_BASE_UTIL_H
#define MT_BASE_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MT_ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

#define MT_KIB ((uint64_t)1 << 10)
#define MT_MIB ((uint64_t)1 << 20)
#define MT_GIB ((uint64_t)1 << 30)

static inline uint64_t mt_min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}
static inline uint64_t mt_max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* a - b, and 0 where that would be negative. */
static inline uint64_t mt_sub_or_0_u64(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* Distance of a value from 0; defined for INT64_MIN. */
static inline uint64_t mt_magnitude(int64_t value)
{
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

/* `step` is any positive number; the caller knows that value + step does not
 * overflow (use mt_add_ok on sizes from a file). */
static inline uint64_t mt_round_up(uint64_t value, uint64_t step)
{
    return (value + step - 1) / step * step;
}

static inline uint64_t mt_round_down(uint64_t value, uint64_t step)
{
    return value / step * step;
}

/* Spreads numbers over 64 bits, identically in every run: for colors and other choices that are
 * part of a result. Tables use mt_hash_u64 (hash.h). */
static inline uint64_t mt_mix_u64(uint64_t value)
{
    value ^= value >> 32;
    value *= UINT64_C(0x9E3779B97F4A7C15);
    return value ^ (value >> 29);
}

/* The greatest common divisor of 0 and b is b. */
static inline uint64_t mt_greatest_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* floor(log2(value)); value > 0. */
static inline unsigned mt_log2_floor(uint64_t value)
{
    return 63u - (unsigned)__builtin_clzll(value);
}

/* Checked arithmetic for sizes that come from a file: false on overflow. */
static inline bool mt_add_ok(uint64_t a, uint64_t b, uint64_t *sum)
{
    return !__builtin_add_overflow(a, b, sum);
}

static inline bool mt_mul_ok(uint64_t a, uint64_t b, uint64_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}

/* Returns a + b, saturated: for estimates of hostile sizes. */
static inline uint64_t mt_add_most_u64(uint64_t a, uint64_t b)
{
    uint64_t sum;

    return mt_add_ok(a, b, &sum) ? sum : UINT64_MAX;
}

static inline uint64_t mt_mul_most_u64(uint64_t a, uint64_t b)
{
    uint64_t product;

    return mt_mul_ok(a, b, &product) ? product : UINT64_MAX;
}

#endif
