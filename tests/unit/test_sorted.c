/* Searches in sorted arrays, against counting one by one; orders by keys. */
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"

#include "dice.h"
#include "sorted.h"

enum { MAX_NUMBERS = 12, ROUNDS = 2000 };

TEST(counts_are_those_of_a_loop)
{
    uint64_t seed = 1;

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

struct row {
    uint32_t bytes;
    const char *name;
    struct {
        int64_t line;
    } site;
};

MT_DEFINE_ORDER(by_site, struct row, MT_BY_TEXT(name) || MT_ASCENDING(site.line))
MT_DEFINE_ORDER(by_size, struct row, MT_DESCENDING(bytes) || MT_THEN(by_site))
MT_DEFINE_POINTER_ORDER(by_name, struct row, MT_BY_TEXT(name) || MT_BY_PLACE)

TEST(the_first_key_that_differs_decides)
{
    const struct row rows[] = {
        {1, "b", {-2}}, {2, "a", {0}}, {UINT32_MAX, "z", {9}}, {1, "b", {-3}}, {1, "a", {5}}};
    const struct row *places[] = {&rows[3], &rows[4], &rows[0], &rows[1]};
    struct row sorted[5];

    memcpy(sorted, rows, sizeof sorted);
    qsort(sorted, 5, sizeof *sorted, by_size);
    assert_int_equal(sorted[0].bytes, UINT32_MAX);
    assert_int_equal(sorted[1].bytes, 2);
    assert_int_equal(sorted[2].site.line, 5);
    assert_int_equal(sorted[3].site.line, -3);
    assert_int_equal(sorted[4].site.line, -2);
    assert_int_equal(by_size(&rows[0], &rows[0]), 0);
    qsort(places, 4, sizeof *places, by_name);
    assert_ptr_equal(places[0], &rows[1]);
    assert_ptr_equal(places[1], &rows[4]);
    assert_ptr_equal(places[2], &rows[0]);
    assert_ptr_equal(places[3], &rows[3]);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
