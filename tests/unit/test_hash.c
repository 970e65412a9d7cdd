/* Hashes of tables: no set of values that an attacker can write into a file maps to few slots,
 * whatever the key of this process is. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "util.h"

enum { KEYS = 1 << 14, SLOTS = 1 << 15 };

/* The value that mt_mix_u64 maps to `mixed`. Tables used this mixer without a key, and a file of
 * such values kept a program busy for minutes. */
static uint64_t unmixed(uint64_t mixed)
{
    uint64_t inverse = UINT64_C(0x9E3779B97F4A7C15), value = mixed;

    for (int i = 0; i < 6; i++) /* Newton's method: the inverse of an odd number modulo 2^64 */
        inverse *= 2 - UINT64_C(0x9E3779B97F4A7C15) * inverse;
    for (int i = 0; i < 3; i++)
        value = mixed ^ (value >> 29);
    value *= inverse;
    return value ^ (value >> 32);
}

static uint64_t old_flood(uint64_t i)
{
    return unmixed((i + 1) << 26);
}

/* Half as many random values as slots occupy 1 - exp(-1/2) of the slots: 12,893. */
static void assert_spread(uint64_t (*key)(uint64_t, unsigned), unsigned shift, const char *what)
{
    static unsigned char used[SLOTS];
    unsigned count = 0;

    memset(used, 0, sizeof used);
    for (uint64_t i = 0; i < KEYS; i++) {
        unsigned char *slot = &used[mt_hash_u64(key(i, shift)) % SLOTS];

        count += !*slot;
        *slot = 1;
    }
    if (count < KEYS / 2)
        fail_msg("%s, shift %u: %d values fall into %u slots", what, shift, KEYS, count);
}

static uint64_t of_flood(uint64_t i, unsigned shift)
{
    (void)shift;
    return old_flood(i);
}

static uint64_t of_progression(uint64_t i, unsigned shift)
{
    return i << shift;
}

static uint64_t of_pairs(uint64_t i, unsigned shift)
{
    return (i >> 7) << 32 | (i & 127) << shift;
}

TEST(chosen_values_do_not_collide)
{
    for (uint64_t i = 0; i < 100; i++)
        assert_int_equal(mt_mix_u64(old_flood(i)), (i + 1) << 26);
    assert_spread(of_flood, 0, "values chosen against the old mixer");
    for (unsigned shift = 0; shift <= 50; shift++)
        assert_spread(of_progression, shift, "multiples of a power of two");
    for (unsigned shift = 0; shift <= 24; shift++)
        assert_spread(of_pairs, shift, "pairs of small numbers");
}

TEST(chosen_texts_do_not_collide)
{
    static unsigned char used[SLOTS];
    unsigned count = 0;

    for (uint64_t i = 0; i < KEYS; i++) {
        uint64_t text[2] = {0, old_flood(i)};
        unsigned char *slot = &used[mt_hash_bytes(text, sizeof text) % SLOTS];

        count += !*slot;
        *slot = 1;
    }
    assert_true(count > KEYS / 2);
}

TEST(equal_bytes_have_equal_hashes)
{
    char text[40] = "0123456789abcdef0123456789abcdef", copy[41];

    memcpy(copy + 1, text, sizeof text); /* at another alignment */
    for (size_t length = 0; length < sizeof text; length++) {
        assert_int_equal(mt_hash_bytes(text, length), mt_hash_bytes(copy + 1, length));
        if (length)
            assert_int_not_equal(mt_hash_bytes(text, length), mt_hash_bytes(text, length - 1));
    }
    assert_int_equal(mt_hash_make_key(), mt_hash_make_key());
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
