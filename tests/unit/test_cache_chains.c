/* Key-value caches that a program manages itself, and what looks like one. */
#include "cmocka_all.h"

#include <string.h>

#include "cache_chains.h"

enum { LAYERS = 4, TOKENS = 6, STEP = 64, PROMPT = 4096, CAT = 0, PROJECTION = 1, OTHER = 2 };

/* Each layer of a program keeps one block. */
struct program {
    struct mt_cache_chains chains;
    uint64_t allocations;
    uint64_t cache[LAYERS];
};

static uint64_t born(struct program *p, uint32_t stack, uint64_t size_bytes)
{
    mt_cache_chains_birth(&p->chains, p->allocations, stack, size_bytes);
    return p->allocations++;
}

static void freed(struct program *p, uint64_t allocation)
{
    mt_cache_chains_end(&p->chains, allocation);
}

/* The projection computes the keys of the prompt. */
static void read_prompt(struct program *p)
{
    for (int layer = 0; layer < LAYERS; layer++)
        p->cache[layer] = born(p, PROJECTION, PROMPT);
}

/* torch.cat for each layer; a temporary between them. */
static void next_token(struct program *p, uint64_t size_bytes)
{
    for (int layer = 0; layer < LAYERS; layer++) {
        uint64_t longer = born(p, CAT, size_bytes);

        freed(p, p->cache[layer]);
        p->cache[layer] = longer;
        freed(p, born(p, OTHER, 512));
    }
}

static void end_request(struct program *p)
{
    for (int layer = 0; layer < LAYERS; layer++)
        freed(p, p->cache[layer]);
}

static bool is_replaced(const struct program *p, uint64_t allocation)
{
    for (size_t i = 0; i < p->chains.replaced_count; i++)
        if (p->chains.replaced[i].allocation == allocation)
            return true;
    return false;
}

TEST(each_token_is_added)
{
    struct program p = {0};

    for (int request = 0; request < 2; request++) {
        read_prompt(&p);
        uint64_t prompt = p.cache[0];
        for (int token = 1; token < TOKENS; token++)
            next_token(&p, PROMPT + (uint64_t)token * STEP);
        end_request(&p);
        assert_true(mt_cache_chains_has(&p.chains, CAT));
        for (uint64_t i = prompt; i < prompt + LAYERS; i++)
            assert_true(is_replaced(&p, i));
    }
    assert_int_equal(p.chains.replaced_count, 2 * LAYERS);
    assert_int_equal(p.chains.replaced[0].least_bytes, PROMPT);
    assert_false(mt_cache_chains_has(&p.chains, PROJECTION));
    assert_false(mt_cache_chains_has(&p.chains, OTHER));
    assert_false(mt_cache_chains_has(&p.chains, 1000));
    assert_int_equal(p.chains.live.count, 0);
    mt_cache_chains_release(&p.chains);
}

/* One line makes two blocks, keys and values. Then both old ones are freed. */
TEST(keys_and_values_are_made_together)
{
    struct program p = {0};
    uint64_t cache[LAYERS][2];

    for (int token = 0; token < TOKENS; token++)
        for (int layer = 0; layer < LAYERS; layer++) {
            uint64_t size_bytes = PROMPT + (uint64_t)token * STEP;
            uint64_t keys = born(&p, CAT, size_bytes), values = born(&p, CAT, size_bytes);

            if (token) {
                freed(&p, cache[layer][0]);
                freed(&p, cache[layer][1]);
            }
            cache[layer][0] = keys;
            cache[layer][1] = values;
            freed(&p, born(&p, OTHER, 512));
        }
    assert_true(mt_cache_chains_has(&p.chains, CAT));
    mt_cache_chains_release(&p.chains);
}

/* The trace begins between two layers. Layers that it does not show existed before. */
TEST(begins_within_a_token)
{
    struct program p = {0};
    uint64_t old[LAYERS];

    for (int layer = 0; layer < LAYERS; layer++)
        old[layer] = p.allocations++;
    p.cache[LAYERS - 1] = born(&p, CAT, PROMPT);
    freed(&p, old[LAYERS - 1]);
    for (int layer = 0; layer < LAYERS - 1; layer++)
        p.cache[layer] = old[layer];
    for (int token = 1; token < TOKENS; token++)
        next_token(&p, PROMPT + (uint64_t)token * STEP);
    assert_true(mt_cache_chains_has(&p.chains, CAT));
    for (int layer = 0; layer < LAYERS; layer++)
        assert_true(is_replaced(&p, old[layer]));
    mt_cache_chains_release(&p.chains);
}

/* A model without a cache makes ever longer blocks and frees each before the next one begins, */
TEST(computed_again)
{
    struct program p = {0};

    for (int token = 0; token < TOKENS; token++) {
        for (int layer = 0; layer < LAYERS; layer++)
            p.cache[layer] = born(&p, CAT, PROMPT + (uint64_t)token * STEP);
        end_request(&p);
    }
    assert_false(mt_cache_chains_has(&p.chains, CAT));
    mt_cache_chains_release(&p.chains);
}

/* ... or, if the result holds all of them, when the next result exists. */
TEST(kept_with_the_result)
{
    struct program p = {0};
    uint64_t result[LAYERS];

    for (int token = 0; token < TOKENS; token++) {
        for (int layer = 0; layer < LAYERS; layer++)
            result[layer] = born(&p, CAT, PROMPT + (uint64_t)token * STEP);
        for (int layer = 0; token && layer < LAYERS; layer++)
            freed(&p, p.cache[layer]);
        for (int layer = 0; layer < LAYERS; layer++)
            p.cache[layer] = result[layer];
    }
    assert_false(mt_cache_chains_has(&p.chains, CAT));
    mt_cache_chains_release(&p.chains);
}

/* Varying batch lengths: each growth has a different number of bytes. */
TEST(steps_that_differ)
{
    struct program p = {0};
    uint64_t size_bytes = PROMPT;

    read_prompt(&p);
    for (uint64_t token = 1; token < TOKENS; token++)
        next_token(&p, size_bytes += token * STEP);
    assert_false(mt_cache_chains_has(&p.chains, CAT));
    assert_int_equal(p.chains.replaced_count, 0);
    mt_cache_chains_release(&p.chains);
}

/* Generations of three, four and five blocks: a growing list is no cache, whose number of layers is
 * fixed. */
TEST(counts_that_differ)
{
    struct program p = {0};
    uint64_t old[TOKENS + 3], next[TOKENS + 3];

    for (uint64_t token = 0; token < TOKENS; token++) {
        for (uint64_t i = 0; i < token + 3; i++) {
            next[i] = born(&p, CAT, PROMPT + token * STEP);
            if (token && i < token + 2)
                freed(&p, old[i]);
        }
        memcpy(old, next, sizeof old);
    }
    assert_false(mt_cache_chains_has(&p.chains, CAT));
    mt_cache_chains_release(&p.chains);
}

/* The program keeps one block of each generation, so it was not replaced. */
TEST(one_is_kept)
{
    struct program p = {0};

    read_prompt(&p);
    for (uint64_t token = 1; token < TOKENS; token++) {
        p.cache[0] = p.allocations++; /* a new block */
        next_token(&p, PROMPT + token * STEP);
    }
    assert_false(mt_cache_chains_has(&p.chains, CAT));
    mt_cache_chains_release(&p.chains);
}

/* A block that is freed while the cache grows, after its first tokens, does not belong to it. */
TEST(freed_later)
{
    struct program p = {0};
    uint64_t weight = born(&p, OTHER, PROMPT);

    read_prompt(&p);
    for (uint64_t token = 1; token < TOKENS; token++)
        next_token(&p, PROMPT + token * STEP);
    (void)born(&p, CAT, PROMPT + TOKENS * STEP);
    freed(&p, weight);
    (void)born(&p, CAT, PROMPT + (TOKENS + 1) * STEP);
    assert_true(mt_cache_chains_has(&p.chains, CAT));
    assert_false(is_replaced(&p, weight));
    mt_cache_chains_release(&p.chains);
}

/* The token ids of one text: two blocks are too few to show that each has its own successor. */
TEST(few_blocks)
{
    struct program p = {0};
    uint64_t ids[2] = {0, 0};

    for (uint64_t token = 0; token < TOKENS; token++)
        for (int i = 0; i < 2; i++) {
            uint64_t longer = born(&p, CAT, PROMPT + token * STEP);

            if (token)
                freed(&p, ids[i]);
            ids[i] = longer;
        }
    assert_false(mt_cache_chains_has(&p.chains, CAT));
    mt_cache_chains_release(&p.chains);
}

/* for name in losses: losses[name] = torch.cat([losses[name], new[name]]): no layer runs between
 * the blocks. */
TEST(appended_in_a_loop)
{
    struct program p = {0};

    read_prompt(&p);
    for (uint64_t step = 1; step < TOKENS; step++) {
        for (int i = 0; i < LAYERS; i++) {
            uint64_t longer = born(&p, CAT, PROMPT + step * STEP);

            freed(&p, p.cache[i]);
            p.cache[i] = longer;
        }
        freed(&p, born(&p, OTHER, 512));
    }
    assert_false(mt_cache_chains_has(&p.chains, CAT));
    assert_int_equal(p.chains.replaced_count, 0);
    mt_cache_chains_release(&p.chains);
}

/* Sizes can have any value: no arithmetic wraps. */
TEST(hostile_sizes)
{
    struct program p = {0};

    for (int layer = 0; layer < LAYERS; layer++)
        p.cache[layer] = born(&p, MT_NO_ID, UINT64_MAX);
    for (uint64_t token = 0; token < TOKENS; token++)
        next_token(&p, token * (UINT64_MAX / TOKENS));
    assert_true(mt_cache_chains_has(&p.chains, CAT));
    for (size_t i = 0; i < p.chains.replaced_count; i++)
        assert_int_equal(p.chains.replaced[i].least_bytes, 0);
    mt_cache_chains_release(&p.chains);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
