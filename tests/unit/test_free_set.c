/* Compares the ordered set of free blocks with an oracle that sorts. */
#include "cmocka_all.h"

#include <stdlib.h>

#include "block_store.h"
#include "dice.h"

enum { KEYS = 700, ROUNDS = 20000 };

/* Keys are small so that equal sizes with different addresses are common. */
struct oracle {
    bool present[KEYS];
};

static uint64_t size_of(size_t key)
{
    return 512 * (1 + key % 23);
}
static uint64_t addr_of(size_t key)
{
    return 4096 * key;
}

/* The age: equal for many keys, and in a different order than the addresses. */
static uint32_t age_of(size_t key)
{
    return (uint32_t)(key * 5 % 7);
}

static struct mt_free_entry entry_of(size_t key)
{
    return (struct mt_free_entry){.size_bytes = size_of(key),
                                  .addr = addr_of(key),
                                  .block = (uint32_t)key,
                                  .age = age_of(key)};
}

static bool is_less(size_t a, size_t b)
{
    if (size_of(a) != size_of(b))
        return size_of(a) < size_of(b);
    return age_of(a) != age_of(b) ? age_of(a) < age_of(b) : a < b;
}

/* Smallest present key with (size, age, addr) >= (size, 0, addr); KEYS if none. */
static size_t oracle_find(const struct oracle *oracle, uint64_t size, uint64_t addr)
{
    size_t best = KEYS, key;

    for (key = 0; key < KEYS; key++) {
        if (!oracle->present[key] || size_of(key) < size ||
            (size_of(key) == size && !age_of(key) && addr_of(key) < addr))
            continue;
        if (best == KEYS || is_less(key, best))
            best = key;
    }
    return best;
}

static void check_order(const struct mt_free_set *set, const struct oracle *oracle)
{
    struct mt_free_cursor at = mt_free_set_find(set, 0, 0), back, end;
    size_t seen = 0, present = 0, key;
    const struct mt_free_entry *last = NULL;

    for (key = 0; key < KEYS; key++)
        present += oracle->present[key];
    for (; at.entry; at = mt_free_set_next(set, at)) {
        if (last)
            assert_true(is_less(last->block, at.entry->block));
        back = mt_free_set_previous(set, at);
        assert_true(last ? back.entry == last : back.entry == NULL);
        last = at.entry;
        seen++;
    }
    end = at;
    back = mt_free_set_previous(set, end);
    assert_true(back.entry == last);
    assert_int_equal(seen, present);
    assert_int_equal(set->count, present);
}

/* Largest present key with the size and age of a present key. */
static size_t oracle_last_like(const struct oracle *oracle, size_t like)
{
    size_t last = like;

    for (size_t key = like; key < KEYS; key++)
        if (oracle->present[key] && size_of(key) == size_of(like) && age_of(key) == age_of(like))
            last = key;
    return last;
}

/* Replaces a present key by an absent one. */
static void move_one(struct mt_free_set *set, struct oracle *oracle, size_t from, size_t to)
{
    struct mt_free_cursor at = mt_free_set_find_entry(set, entry_of(from));

    mt_free_set_move(set, at, entry_of(to));
    oracle->present[from] = false;
    oracle->present[to] = true;
}

TEST(behaves_like_the_oracle)
{
    struct oracle oracle = {{false}};
    struct mt_free_set set = {0};

    random_state = 20260417;
    print_message("seed %llu\n", (unsigned long long)random_state);
    for (size_t round = 0; round < ROUNDS; round++) {
        size_t key = (size_t)(dice_xorshift(&random_state) % KEYS);
        uint64_t size = 512 * (dice_xorshift(&random_state) % 25),
                 addr = 4096 * (dice_xorshift(&random_state) % KEYS);
        size_t wanted = oracle_find(&oracle, size, addr);
        struct mt_free_cursor found = mt_free_set_find(&set, size, addr);
        assert_true(wanted == KEYS ? !found.entry : found.entry && found.entry->block == wanted);
        size_t other = (size_t)(dice_xorshift(&random_state) % KEYS);
        if (oracle.present[key])
            assert_int_equal(mt_free_set_last_like(&set, entry_of(key)).entry->block,
                             oracle_last_like(&oracle, key));
        if (oracle.present[key] && !oracle.present[other]) {
            move_one(&set, &oracle, key, other);
            continue;
        }
        if (oracle.present[key]) {
            assert_true(mt_free_set_remove(&set, entry_of(key)));
            assert_false(mt_free_set_remove(&set, entry_of(key)));
        } else {
            mt_free_set_insert(&set, entry_of(key));
        }
        oracle.present[key] = !oracle.present[key];
        if (round % 500 == 0)
            check_order(&set, &oracle);
    }
    mt_free_set_release(&set);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
