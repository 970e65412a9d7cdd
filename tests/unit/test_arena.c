#include "cmocka_all.h"

#include <string.h>

#include "arena.h"
#include "process_memory.h"

TEST(memory_is_zeroed_aligned_and_stays)
{
    struct mt_arena arena = {0};
    unsigned char *blocks[400];

    for (size_t i = 0; i < 400; i++) {
        blocks[i] = mt_arena_alloc(&arena, i * 7);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % 16, 0);
        for (size_t j = 0; j < i * 7; j++)
            assert_int_equal(blocks[i][j], 0);
        memset(blocks[i], (int)(i & 0xff), i * 7);
    }
    for (size_t i = 0; i < 400; i++)
        for (size_t j = 0; j < i * 7; j++)
            assert_int_equal(blocks[i][j], i & 0xff);
    mt_arena_release(&arena);
}

TEST(larger_than_a_chunk)
{
    struct mt_arena arena = {0};
    char *large = mt_arena_alloc(&arena, 1 << 20), *small = mt_arena_alloc(&arena, 8);

    assert_non_null(large);
    assert_non_null(small);
    memset(large, 1, 1 << 20);
    assert_int_equal(small[0], 0);
    assert_true(arena.total_bytes >= (1 << 20) + 8);
    mt_arena_release(&arena);
    assert_int_equal(arena.total_bytes, 0);
    assert_non_null(mt_arena_alloc(&arena, 1)); /* usable again */
    mt_arena_release(&arena);
}

TEST(joined_arenas_keep_what_both_had)
{
    for (int filled = 0; filled < 4; filled++) { /* bit 0: the first has chunks; bit 1: the other */
        struct mt_arena arena = {0}, other = {0};
        char *old = filled & 1 ? mt_arena_text(&arena, "old", 3) : NULL;
        char *moved = filled & 2 ? mt_arena_text(&other, "moved", 5) : NULL, *later;

        if (moved)
            assert_non_null(mt_arena_alloc(&other, 1 << 20)); /* a second chunk */
        size_t bytes = arena.total_bytes + other.total_bytes;
        mt_arena_join(&arena, &other);
        assert_int_equal(arena.total_bytes, bytes);
        assert_null(other.chunks);
        later = mt_arena_text(&arena, "later", 5);
        assert_string_equal(later, "later");
        assert_string_equal(old ? old : "old", "old");
        assert_string_equal(moved ? moved : "moved", "moved");
        mt_arena_release(&other);
        mt_arena_release(&arena); /* of both: the sanitizer looks for leaks */
    }
}

TEST(sizes_that_overflow_are_refused)
{
    struct mt_arena arena = {0};

    mt_memory_return_failures(true);
    assert_null(mt_arena_alloc(&arena, SIZE_MAX));
    assert_null(mt_arena_alloc(&arena, SIZE_MAX - 15));
    assert_null(mt_arena_array(&arena, SIZE_MAX / 2, 3));
    assert_null(mt_arena_text(&arena, "", SIZE_MAX));
    mt_memory_return_failures(false);
    assert_non_null(mt_arena_array(&arena, 0, 3));
    mt_arena_release(&arena);
}

TEST(texts)
{
    struct mt_arena arena = {0};
    char *copy = mt_arena_text(&arena, "abcdef", 3);

    assert_string_equal(copy, "abc");
    assert_string_equal(mt_arena_printf(&arena, "%s-%d", copy, 7), "abc-7");
    assert_int_equal(strlen(mt_arena_printf(&arena, "%070000d", 1)), 70000);
    mt_arena_release(&arena);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
