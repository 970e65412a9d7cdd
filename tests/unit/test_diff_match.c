/* Matches code locations of two versions of a program. */
#include "cmocka_all.h"

#include "diff.h"

enum { MOST = 8 };

/* A program: locations in order. The array ends with one that has no key. */
struct version {
    struct mt_diff_place items[MOST];
};

static size_t count_of(const struct version *version)
{
    size_t count = 0;

    while (count < MOST && version->items[count].key)
        count++;
    return count;
}

/* `partners` has indices of the items of `a`. */
static void check(struct version a, struct version b, const size_t *partners)
{
    size_t a_count = count_of(&a), b_count = count_of(&b);

    mt_diff_match_places(a.items, a_count, b.items, b_count);
    for (size_t i = 0; i < a_count; i++) {
        assert_int_equal(a.items[i].partner, partners[i]);
        if (partners[i] != MT_NO_PARTNER)
            assert_int_equal(b.items[partners[i]].partner, i);
    }
    for (size_t j = 0; j < b_count; j++)
        if (b.items[j].partner != MT_NO_PARTNER)
            assert_int_equal(a.items[b.items[j].partner].partner, j);
}

/* clang-format off */
static const struct version before = {{{"f", {56, 56}, 490, 36, 0},
                                       {"f", {57, 57}, 115, 48, 0},
                                       {"f", {58, 58}, 890, 36, 0},
                                       {"g", {9, 9}, 7, 1, 0}}};
/* clang-format on */

TEST(equal_locations_match)
{
    check(before, before, (const size_t[]){0, 1, 2, 3});
}

/* Lines 57 and 58 exist on both sides, but are different statements. */
TEST(moved_lines_match)
{
    struct version after = before;

    for (size_t i = 0; i < 3; i++)
        after.items[i].lines[0] = after.items[i].lines[1] = (uint32_t)(57 + i);
    check(before, after, (const size_t[]){0, 1, 2, 3});
    for (size_t i = 0; i < 3; i++) /* the batch size also doubled */
        after.items[i].bytes *= 2;
    check(before, after, (const size_t[]){0, 1, 2, 3});
}

TEST(a_new_line_between)
{
    static const struct version after = {{{"f", {56, 56}, 490, 36, 0},
                                          {"f", {57, 57}, 33, 2, 0},
                                          {"f", {58, 58}, 115, 48, 0},
                                          {"f", {59, 59}, 890, 36, 0}}};

    check(before, after, (const size_t[]){0, 2, 3, MT_NO_PARTNER});
}

TEST(a_removed_line_has_no_partner)
{
    static const struct version after = {
        {{"f", {57, 57}, 115, 48, 0}, {"f", {58, 58}, 890, 36, 0}, {"h", {9, 9}, 7, 1, 0}}};

    check(before, after, (const size_t[]){MT_NO_PARTNER, 0, 1, MT_NO_PARTNER});
}

/* If there are too many pairings, only equal lines match. */
TEST(very_many_lines)
{
    enum { MANY = 5000 };
    static struct mt_diff_place a[MANY], b[MANY];

    for (uint32_t i = 0; i < MANY; i++) {
        a[i] = (struct mt_diff_place){.key = "f", .lines = {2 * i, 0}};
        b[i] = (struct mt_diff_place){.key = "f", .lines = {3 * i, 0}};
    }
    mt_diff_match_places(a, MANY, b, MANY);
    for (uint32_t i = 0; i < MANY; i++) {
        bool has = 2 * i % 3 == 0 && 2 * i / 3 < MANY;

        assert_int_equal(a[i].partner, has ? 2 * i / 3 : MT_NO_PARTNER);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
