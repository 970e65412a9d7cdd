#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "dice.h"
#include "map.h"

TEST(empty_map)
{
    struct mt_map map = {0};

    assert_int_equal(mt_map_get(&map, 0), MT_MAP_NONE);
    assert_int_equal(mt_map_find(&map, 0), MT_MAP_NONE);
    assert_int_equal(mt_map_take(&map, 7), MT_MAP_NONE);
    mt_map_release(&map);
}

TEST(extreme_keys_and_values)
{
    static const uint64_t keys[] = {0, 1, UINT64_MAX, UINT64_C(1) << 63, 0x7f0000000000};
    struct mt_map map = {0};

    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(mt_map_set(&map, keys[i], MT_MAP_NONE - 1 - i), MT_OK);
    assert_int_equal(map.count, 5);
    assert_int_equal(mt_map_set(&map, 0, 0), MT_OK); /* replaces */
    assert_int_equal(map.count, 5);
    assert_int_equal(mt_map_get(&map, 0), 0);
    for (uint32_t i = 1; i < 5; i++)
        assert_int_equal(mt_map_take(&map, keys[i]), MT_MAP_NONE - 1 - i);
    assert_int_equal(map.count, 1);
    mt_map_release(&map);
}

/* A direct-indexed table of all possible keys, as the oracle. */
enum { KEY_COUNT = 700 };

struct oracle {
    uint64_t key[KEY_COUNT];
    uint32_t value[KEY_COUNT];
    size_t count;
};

static uint64_t next_random(uint64_t *seed)
{
    return dice_xorshift(seed);
}

/* Addresses as allocators return them (dense multiples of 512), small numbers, and keys that agree
 * in their low 32 bits: each kind clusters differently. */
static void choose_keys(struct oracle *oracle)
{
    for (size_t i = 0; i < KEY_COUNT; i++) {
        oracle->key[i] = i % 3 == 0   ? UINT64_C(0x7f2000000000) + i * 512
                         : i % 3 == 1 ? i
                                      : (uint64_t)i << 32;
        oracle->value[i] = MT_MAP_NONE;
    }
    oracle->count = 0;
}

static void compare_all(const struct mt_map *map, const struct oracle *oracle, uint64_t seed)
{
    for (size_t i = 0; i < KEY_COUNT; i++) {
        if (mt_map_get(map, oracle->key[i]) != oracle->value[i])
            fail_msg("key %zu differs, seed %llu", i, (unsigned long long)seed);
    }
    assert_int_equal(map->count, oracle->count);
}

static void one_operation(struct mt_map *map, struct oracle *oracle, uint64_t random)
{
    size_t i = (size_t)(random >> 8) % KEY_COUNT;
    uint32_t value = (uint32_t)(random >> 32) & 0xffffff;

    if (random % 7 < 3) /* the next operation may use the same key or another */
        assert_int_equal(mt_map_find(map, oracle->key[i]), oracle->value[i]);
    if (random % 11 == 0)
        i = (i + 1) % KEY_COUNT;
    if (random % 5 < 3) {
        oracle->count += oracle->value[i] == MT_MAP_NONE;
        oracle->value[i] = value;
        assert_int_equal(mt_map_set(map, oracle->key[i], value), MT_OK);
    } else {
        assert_int_equal(mt_map_take(map, oracle->key[i]), oracle->value[i]);
        oracle->count -= oracle->value[i] != MT_MAP_NONE;
        oracle->value[i] = MT_MAP_NONE;
    }
}

TEST(agrees_with_an_oracle)
{
    for (uint64_t run = 1; run <= 8; run++) {
        uint64_t seed = run * UINT64_C(0x9E3779B97F4A7C15);
        struct mt_map map = {0};
        struct oracle oracle;

        choose_keys(&oracle);
        for (int i = 0; i < 20000; i++) {
            one_operation(&map, &oracle, next_random(&seed));
            if (i % 500 == 0)
                compare_all(&map, &oracle, run);
        }
        compare_all(&map, &oracle, run);
        mt_map_release(&map);
    }
}

TEST(strings_get_dense_ids)
{
    struct mt_strings strings = {0};
    char text[32];
    uint32_t id;

    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 3000; i++) {
            int length = snprintf(text, sizeof text, "name %u", i);
            assert_int_equal(mt_strings_intern(&strings, text, (size_t)length, &id), MT_OK);
            assert_int_equal(id, i);
        }
    }
    assert_int_equal(strings.count, 3000);
    assert_string_equal(strings.texts[2999], "name 2999");
    mt_strings_release(&strings);
}

TEST(strings_with_zero_bytes_differ)
{
    struct mt_strings strings = {0};
    uint32_t a, b, c, d;

    assert_int_equal(mt_strings_intern(&strings, "x\0y", 3, &a), MT_OK);
    assert_int_equal(mt_strings_intern(&strings, "x\0z", 3, &b), MT_OK);
    assert_int_equal(mt_strings_intern(&strings, "x", 1, &c), MT_OK);
    assert_int_equal(mt_strings_intern(&strings, "x\0", 2, &d), MT_OK);
    assert_int_equal(strings.count, 4);
    assert_int_equal(strings.lengths[d], 2);
    assert_memory_equal(strings.texts[b], "x\0z", 4);
    mt_strings_release(&strings);
}

TEST(hashes_use_all_bytes)
{
    char text[40] = {0};
    uint64_t plain = mt_hash_bytes(text, sizeof text);

    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = 1;
        assert_true(mt_hash_bytes(text, sizeof text) != plain);
        assert_true(mt_hash_bytes(text, i) != mt_hash_bytes(text, i + 1));
        text[i] = 0;
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
