/* What blocks without a stack are tied to, on constructed blocks. */
#include "cmocka_all.h"

#include <string.h>

#include "ties.h"

static void anchor(struct mt_ties *ties, uint32_t block, uint64_t bytes, uint32_t stack,
                   enum mt_role role)
{
    const struct mt_tie_facts facts = {.requested_bytes = bytes, .stack = stack, .role = role};

    mt_ties_anchor(ties, block, &facts);
}

static void anchor_moved(struct mt_ties *ties, uint32_t block, uint64_t bytes, uint32_t stack)
{
    const struct mt_tie_facts facts = {
        .requested_bytes = bytes, .stack = stack, .role = MT_ROLE_PARAMETERS, .moved = true};

    mt_ties_anchor(ties, block, &facts);
}

static void expect_on(struct mt_ties *ties, uint16_t device, uint32_t block, uint64_t bytes,
                      enum mt_role role, enum mt_tie tie, uint32_t stack)
{
    const struct mt_tie_facts facts = {
        .requested_bytes = bytes, .stack = MT_NO_ID, .device = device, .role = role};
    enum mt_tie got_tie;
    uint32_t got_stack;

    mt_ties_find(ties, block, &facts, &got_tie, &got_stack);
    assert_int_equal(got_tie, tie);
    assert_int_equal(got_stack, stack);
}

static void expect(struct mt_ties *ties, uint32_t block, uint64_t bytes, enum mt_role role,
                   enum mt_tie tie, uint32_t stack)
{
    expect_on(ties, 0, block, bytes, role, tie, stack);
}

/* Backward reaches the last parameter first. Each has one gradient. */
TEST(gradients)
{
    struct mt_ties ties = {0};

    anchor(&ties, 0, 4096, 10, MT_ROLE_PARAMETERS);
    anchor(&ties, 1, 4096, 11, MT_ROLE_PARAMETERS);
    anchor(&ties, 2, 8192, 12, MT_ROLE_PARAMETERS);
    expect(&ties, 3, 4096, MT_ROLE_GRADIENTS, MT_TIE_PARAMETER, 11);
    expect(&ties, 4, 8192, MT_ROLE_GRADIENTS, MT_TIE_PARAMETER, 12);
    expect(&ties, 5, 4096, MT_ROLE_GRADIENTS, MT_TIE_PARAMETER, 10);
    expect(&ties, 6, 4096, MT_ROLE_GRADIENTS, MT_TIE_PARAMETER, 11); /* accumulated */
    mt_ties_free(&ties, 6);
    mt_ties_free(&ties, 5);
    expect(&ties, 5, 4096, MT_ROLE_GRADIENTS, MT_TIE_PARAMETER, 10);
    mt_ties_free(&ties, 1); /* the parameter is freed first */
    mt_ties_free(&ties, 3);
    expect(&ties, 7, 4096, MT_ROLE_GRADIENTS, MT_TIE_PARAMETER, 10);
    expect(&ties, 8, 12288, MT_ROLE_GRADIENTS, MT_TIE_PHASE, MT_NO_ID);
    mt_ties_release(&ties);
}

/* A copy is newer than the model and has no gradients. A plain tensor may have one. */
TEST(a_copy_of_the_model)
{
    struct mt_ties ties = {0};

    anchor_moved(&ties, 0, 4096, 10);
    anchor_moved(&ties, 1, 4096, 11);
    anchor(&ties, 2, 4096, 12, MT_ROLE_PARAMETERS);
    anchor(&ties, 3, 4096, 13, MT_ROLE_PARAMETERS);
    anchor(&ties, 4, 8192, 14, MT_ROLE_PARAMETERS);
    expect(&ties, 5, 4096, MT_ROLE_GRADIENTS, MT_TIE_PARAMETER, 11);
    expect(&ties, 6, 4096, MT_ROLE_GRADIENTS, MT_TIE_PARAMETER, 10);
    expect(&ties, 7, 4096, MT_ROLE_GRADIENTS, MT_TIE_PARAMETER, 13);
    expect(&ties, 8, 8192, MT_ROLE_GRADIENTS, MT_TIE_PARAMETER, 14);
    mt_ties_release(&ties);
}

TEST(results_of_forward)
{
    struct mt_ties ties = {0};

    anchor(&ties, 0, 4096, 10, MT_ROLE_PARAMETERS);
    anchor(&ties, 1, 4096, 20, MT_ROLE_ACTIVATIONS);
    anchor(&ties, 2, 4096, 21, MT_ROLE_ACTIVATIONS);
    anchor(&ties, 3, 4096, 30, MT_ROLE_OPTIMIZER_STATE); /* without an owner */
    expect(&ties, 4, 4096, MT_ROLE_TEMPORARIES, MT_TIE_FORWARD, 21);
    expect(&ties, 5, 4096, MT_ROLE_TEMPORARIES, MT_TIE_FORWARD, 21);
    mt_ties_free(&ties, 4);
    mt_ties_free(&ties, 2);
    expect(&ties, 6, 4096, MT_ROLE_TEMPORARIES, MT_TIE_FORWARD, 20);
    expect_on(&ties, 1, 7, 4096, MT_ROLE_TEMPORARIES, MT_TIE_PHASE, MT_NO_ID);
    mt_ties_free(&ties, 1);
    expect(&ties, 8, 4096, MT_ROLE_TEMPORARIES, MT_TIE_PARAMETER, 10);
    expect(&ties, 9, 33554432, MT_ROLE_WORKSPACE, MT_TIE_LIBRARY, MT_NO_ID);
    mt_ties_release(&ties);
}

/* Removes one from the middle of a list of equals, and reuses slots. */
TEST(places_used_again)
{
    struct mt_ties ties = {0};

    for (uint32_t i = 0; i < 2000; i++)
        anchor(&ties, i, 512, 100 + i, MT_ROLE_ACTIVATIONS);
    mt_ties_free(&ties, 1000);
    mt_ties_free(&ties, 0);
    mt_ties_free(&ties, 5000); /* never seen */
    anchor(&ties, 1000, 1024, 7, MT_ROLE_INPUTS);
    for (uint32_t i = 1999; i > 1000; i--)
        mt_ties_free(&ties, i);
    expect(&ties, 3000, 512, MT_ROLE_TEMPORARIES, MT_TIE_FORWARD, 1099);
    expect(&ties, 3001, 1024, MT_ROLE_TEMPORARIES, MT_TIE_FORWARD, 7);
    for (uint32_t i = 999; i > 0; i--)
        mt_ties_free(&ties, i);
    expect(&ties, 3000, 512, MT_ROLE_TEMPORARIES, MT_TIE_PHASE, MT_NO_ID);
    mt_ties_release(&ties);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
