/* The table of cards, and the spellings of their names. */
#include "cards.h"

#include "cmocka_all.h"

static void finds(const char *word, const char *name)
{
    const char *near;
    const struct mt_card *card = mt_card_find(word, &near);

    assert_non_null(card);
    assert_string_equal(card->name, name);
    assert_null(near);
}

TEST(common_spellings_of_names_are_found)
{
    finds("H200", "H200 141 GB");
    finds("h200", "H200 141 GB");
    finds("A100-80GB", "A100 80 GB");
    finds("a100 40gb", "A100 40 GB");
    finds("RTX 4090", "RTX 4090 24 GB");
    finds("rtx4090", "RTX 4090 24 GB");
    finds("NVIDIA H100 80GB HBM3", "H100 80 GB");
    finds("l4", "L4 24 GB");
}

TEST(an_ambiguous_name_is_refused)
{
    const char *near;

    assert_null(mt_card_find("A100", &near)); /* there are two */
    assert_string_equal(near, "A100 80 GB");
    assert_null(mt_card_find("H20O", &near));
    assert_string_equal(near, "H200");
    assert_null(mt_card_find("abacus", &near));
    assert_null(near);
    assert_null(mt_card_find("", &near));
}

TEST(table_is_sorted)
{
    const char *near;

    for (const struct mt_card *card = mt_cards; card->name; card++) {
        assert_true(card == mt_cards || card[-1].memory_bytes <= card->memory_bytes);
        assert_in_range(card->capability_major, 7, 12);
        assert_true(card->shared_bytes_per_block <= card->shared_bytes_per_multiprocessor);
        const struct mt_card *found = mt_card_find(card->name, &near);
        assert_ptr_equal(found, card);
        found = mt_card_find(card->driver_name, &near);
        assert_ptr_equal(found, card);
    }
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
