/* Searches in sorted arrays, against counting one by one. */
#include "cmocka_all.h"

#include "dice.h"
#include "sorted.h"

enum { MAX_NUMBERS = 12, ROUNDS = 2000 };

static void counts_are_those_of_a_loop(void **state)
{
    uint64_t seed = 1;

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        size_t count = (dice_linear(&seed) >> 20) % (MAX_NUMBERS + 1), below = 0, to = 0;
        uint32_t narrow[MAX_NUMBERS], now = 0;
        uint64_t wide[MAX_NUMBERS];
        uint32_t key = (uint32_t)(dice_linear(&seed) >> 20) % 20;

        for (size_t i = 0; i < count; i++) {
            now += (uint32_t)(dice_linear(&seed) >> 20) % 3; /* some are equal */
            narrow[i] = now;
            wide[i] = now;
            below += now < key;
            to += now <= key;
        }
        assert_int_equal(mt_sorted_count_below_u32(narrow, count, key), below);
        assert_int_equal(mt_sorted_count_to(wide, count, sizeof *wide, key), to);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts_are_those_of_a_loop)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
