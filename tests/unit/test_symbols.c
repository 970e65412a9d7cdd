#include "cmocka_all.h"

#include <string.h>

#include "symbols.h"

static int setup(void **state)
{
    static struct mt_symbols symbols;

    *state = &symbols;
    return mt_symbols_init(&symbols) == MT_OK ? 0 : -1;
}

static int teardown(void **state)
{
    mt_symbols_release(*state);
    return 0;
}

TEST_WITH(fixed_ids, setup, teardown)
{
    struct mt_symbols *symbols = *state;
    uint32_t id;

    assert_string_equal(mt_symbols_text(symbols, 0), "");
    assert_string_equal(mt_symbols_text(symbols, symbols->heaps[0].name), "driver");
    assert_int_equal(mt_symbols_stream(symbols, 0, &id), MT_OK);
    assert_int_equal(id, 0);
    assert_int_equal(mt_symbols_pool(symbols, 0, 0, &id), MT_OK);
    assert_int_equal(id, 0);
    assert_int_equal(symbols->thread_count, 1);
    assert_int_equal(symbols->device_count, 0);
    assert_string_equal(mt_symbols_text(symbols, 12345), "?");
    assert_string_equal(mt_symbols_text(symbols, MT_NO_ID), "?");
}

TEST_WITH(equal_things_share_an_id, setup, teardown)
{
    struct mt_symbols *symbols = *state;
    uint32_t a, b, c, outer, inner, again;

    assert_int_equal(mt_symbols_frame(symbols, 1, 2, 3, &a), MT_OK);
    assert_int_equal(mt_symbols_frame(symbols, 2, 1, 3, &b), MT_OK);
    assert_int_equal(mt_symbols_frame(symbols, 1, 2, 3, &c), MT_OK);
    assert_int_equal(a, c);
    assert_int_not_equal(a, b);
    assert_int_equal(mt_symbols_stack(symbols, MT_NO_ID, a, &outer), MT_OK);
    assert_int_equal(mt_symbols_stack(symbols, outer, b, &inner), MT_OK);
    assert_int_equal(mt_symbols_stack(symbols, outer, b, &again), MT_OK);
    assert_int_equal(inner, again);
    assert_int_equal(symbols->stacks[outer].depth, 1);
    assert_int_equal(symbols->stacks[inner].depth, 2);
    assert_int_equal(symbols->stacks[inner].parent, outer);
}

TEST_WITH(stacks_are_cut_at_a_depth, setup, teardown)
{
    struct mt_symbols *symbols = *state;
    uint32_t frame, stack = MT_NO_ID, cut, i;

    assert_int_equal(mt_symbols_frame(symbols, 7, 7, 7, &frame), MT_OK);
    for (i = 0; i < MT_MAX_STACK_DEPTH; i++)
        assert_int_equal(mt_symbols_stack(symbols, stack, frame, &stack), MT_OK);
    assert_int_equal(symbols->stacks[stack].depth, MT_MAX_STACK_DEPTH);
    assert_int_equal(symbols->frames_cut, 0);
    for (i = 0; i < 10; i++) {
        assert_int_equal(mt_symbols_stack(symbols, stack, frame, &cut), MT_OK);
        assert_int_equal(cut, stack);
    }
    assert_int_equal(symbols->frames_cut, 10);
}

TEST_WITH(thousands_of_frames_and_streams, setup, teardown)
{
    struct mt_symbols *symbols = *state;
    uint32_t id;

    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 5000; i++) {
            assert_int_equal(mt_symbols_frame(symbols, i % 7, i % 11, i, &id), MT_OK);
            assert_int_equal(id, i);
            assert_int_equal(mt_symbols_stream(symbols, (uint64_t)i << 40, &id), MT_OK);
            assert_int_equal(id, i);
        }
    }
    assert_int_equal(symbols->frame_count, 5000);
    assert_int_equal(symbols->frames[4999].line, 4999);
}

TEST_WITH(devices_fill_up_to_an_index, setup, teardown)
{
    struct mt_symbols *symbols = *state;
    uint32_t name;

    assert_int_equal(mt_symbols_string(symbols, "H200", 4, &name), MT_OK);
    assert_int_equal(mt_symbols_device(symbols, 3, name, 7), MT_OK);
    assert_int_equal(symbols->device_count, 4);
    assert_int_equal(symbols->devices[0].name, MT_NO_ID);
    assert_int_equal(symbols->devices[3].total_memory_bytes, 7);
    /* missing values do not erase earlier ones */
    assert_int_equal(mt_symbols_device(symbols, 3, MT_NO_ID, 0), MT_OK);
    assert_int_equal(symbols->devices[3].name, name);
    assert_int_equal(symbols->devices[3].total_memory_bytes, 7);
    assert_int_equal(mt_symbols_device(symbols, 1024, name, 7), MT_ERR_UNSUPPORTED);
}

TEST_WITH(small_ids_do_not_overflow, setup, teardown)
{
    struct mt_symbols *symbols = *state;
    enum mt_status status = MT_OK;
    uint32_t id = 0, i;

    for (i = 0; i <= UINT16_MAX && status == MT_OK; i++)
        status = mt_symbols_thread(symbols, MT_NO_ID, i, &id);
    assert_int_equal(status, MT_ERR_UNSUPPORTED);
    assert_int_equal(id, UINT16_MAX - 1);
}

/* If redaction makes names of heaps equal, they stay two heaps, and the count of cut stacks is
 * kept. */
TEST_WITH(copies_keep_heaps_apart, setup, teardown)
{
    static const char *const names[] = {"/home/a/site-packages/x", "/home/b/site-packages/x"};
    static const struct mt_redaction redaction;
    struct mt_symbols *from = *state, to;
    const struct mt_symbols_copy copy = {from, &to, &redaction};
    uint32_t name, heap;

    assert_int_equal(mt_symbols_init(&to), MT_OK);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(mt_symbols_string(from, names[i], strlen(names[i]), &name), MT_OK);
        assert_int_equal(mt_symbols_heap(from, name, &heap), MT_OK);
        assert_int_equal(heap, i + 1);
    }
    from->frames_cut = 7;
    assert_int_equal(mt_symbols_copy_tables(&copy), MT_OK);
    assert_int_equal(to.heap_count, 3);
    assert_string_equal(mt_symbols_text(&to, to.heaps[1].name), "/redacted/site-packages/x");
    assert_string_equal(mt_symbols_text(&to, to.heaps[2].name), "/redacted/site-packages/x#2");
    assert_int_equal(to.frames_cut, 7);
    mt_symbols_release(&to);
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
