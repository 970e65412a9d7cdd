/* Calls of the driver that take and free memory, as CUPTI reports them, and what a program may do
 * in between. */
#include "imitated_cupti.h"

TEST_WITH(test_alloc_and_free, set_up, NULL)
{
    alloc(0x1000, 100);
    release(0x1000, 0);
    assert_int_equal(recorded.events[0].device, 3);
    assert_int_equal(recorded.events[0].native_stack, 72);
    assert_int_equal(recorded.events[1].native_stack, 72); /* or not: collect.c decides */
    assert_story("alloc 1000 100|free_requested 1000 100|free_completed 1000 100");
    release(0, 0);
    release(0x1000, 1);
    assert_story("");
}

/* A free is told before the driver can hand the address out again. */
TEST_WITH(test_free_is_told_at_once, set_up, NULL)
{
    struct mt_cu_handle params = {0x1000};
    alloc(0x1000, 100);
    recorded_clear();
    call_at("cuMemFree_v2", MT_CUPTI_ENTER, &params, 0, &context_a);
    assert_int_equal(recorded.count, 2);
    alloc(0x1000, 200); /* another thread's */
    recorded_clear();
    call_at("cuMemFree_v2", MT_CUPTI_EXIT, &params, 0, &context_a);
    assert_int_equal(recorded.count, 0);
    release(0x1000, 0);
    assert_story("free_requested 1000 200|free_completed 1000 200");
}

TEST_WITH(test_free_that_fails_is_taken_back, set_up, NULL)
{
    alloc(0x1000, 100);
    release(0x1000, 1);
    assert_story("alloc 1000 100|free_requested 1000 100|free_completed 1000 100|alloc 1000 100");
    release(0x1000, 0);
    assert_story("free_requested 1000 100|free_completed 1000 100");
}

TEST_WITH(test_broken_context, set_up, NULL)
{
    alloc(0x1000, 100);
    alloc(0x2000, 200);
    recorded_clear();
    release(0x1000, 700);
    assert_story("free_requested 1000 100|free_completed 1000 100|"
                 "mark CUDA error 700: the context is broken|alloc 1000 100");
    release(0x1000, 700); /* nothing more about it */
    assert_story("");
    release(0x2000, 0);
    assert_story("free_requested 2000 200|free_completed 2000 200");
    resource(MT_CUPTI_CONTEXT_DESTROY_STARTING, &context_a, NULL);
    assert_story("free_requested 1000 100|free_completed 1000 100|mark CUDA context destroyed");
}

TEST_WITH(test_end_that_was_missed, set_up, NULL)
{
    alloc(0x1000, 100);
    alloc(0x1000, 300);
    assert_story("alloc 1000 100|free_requested 1000 100|free_completed 1000 100|alloc 1000 300");
}

TEST_WITH(test_failures, set_up, NULL)
{
    uint64_t addr = 0;
    size_t pitch = 0;
    struct mt_cu_pitch params = {&addr, &pitch, (size_t)1 << 40, (size_t)1 << 40, 4};
    struct mt_cu_alloc lacking = {&addr, 12345};
    call("cuMemAlloc_v2", &lacking, 2);
    call("cuMemAllocPitch_v2", &params, 1);
    assert_story("alloc_failed 0 12345|alloc_failed 0 18446744073709551615");
}

TEST_WITH(test_context_takes_all_with_it, set_up, NULL)
{
    uint64_t addr = 0x5000, handle = 0x77, array = 0x88;
    struct mt_cu_alloc other = {&addr, 500};
    struct mt_cu_create create = {&handle, 2 << 20, NULL};
    struct mt_cu_array_descriptor flat = {10, 10, 0x20, 1};
    struct mt_cu_array_create shape = {&array, &flat};
    create_context(&context_b, 1);
    recorded_clear();
    alloc(0x1000, 100);
    call_in(&context_b, "cuMemAlloc_v2", &other, 0);
    assert_int_equal(recorded.events[1].device, 1);
    call("cuMemCreate", &create, 0); /* belongs to no context */
    call("cuArrayCreate_v2", &shape, 0);
    recorded_clear();
    resource(MT_CUPTI_CONTEXT_DESTROY_STARTING, &context_b, NULL);
    assert_story("free_requested 5000 500|free_completed 5000 500|mark CUDA context destroyed");
    resource(MT_CUPTI_CONTEXT_DESTROY_STARTING, &context_a, NULL);
    assert_int_equal(recorded.count, 5);
    recorded_clear();
    struct mt_cu_handle released = {handle};
    call("cuMemRelease", &released, 0);
    assert_story("free_requested 77 2097152|free_completed 77 2097152");
}

TEST_WITH(test_nothing_is_there, set_up, NULL)
{
    static const uint64_t zeros[64];
    for (size_t i = 0; i < mt_cupti_entry_count; i++)
        for (uint32_t result = 0; result < 3; result++)
            call(mt_cupti_entries[i].name, zeros, result);
    call_at("cuMemAlloc_v2", MT_CUPTI_ENTER, NULL, 0, NULL);
    cupti.callback(NULL, MT_CUPTI_DRIVER, 100000, NULL);
    cupti.callback(NULL, 9, 1, zeros);
    resource(100000, NULL, NULL);
}

TEST_WITH(test_errno_stays, set_up, NULL)
{
    errno = 77;
    alloc(0x1000, 100);
    assert_int_equal(errno, 77);
}

TEST_WITH(test_frees_of_unknown_memory_are_counted, set_up, NULL)
{
    release(0xbad000, 0);
    release(0xbad000, 1);
    recorded_clear();
    mt_cupti_source.stop();
    assert_non_null(strstr(recorded.facts, " 1 frees of memory that was not known\n"));
}

TEST_WITH(test_gives_up, set_up, NULL)
{
    struct mt_cupti_state_data data = {1, "out of luck"};
    cupti.callback(NULL, MT_CUPTI_STATE, MT_CUPTI_FATAL_ERROR, &data);
    assert_non_null(strstr(recorded.said, "out of luck"));
    assert_story("mark CUPTI stopped: driver events end here");
}

TEST_WITH(test_forked_child_is_silent, set_up, NULL)
{
    alloc(0x1000, 100);
    mt_cupti_source.forked();
    recorded_clear();
    release(0x1000, 0);
    assert_story("");
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
