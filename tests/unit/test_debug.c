/* Parses the topics of MEMTRACE_DEBUG. Their output is tested by tests/golden/debug_passes.cmd. */
#include "cmocka_all.h"

#include <stdlib.h>

#include "debug.h"

static bool has_passes(const char *list)
{
    assert_int_equal(setenv("MEMTRACE_DEBUG", list, 1), 0);
    return mt_debug_has(MT_DEBUG_PASSES);
}

TEST(topics_match_whole_words)
{
    assert_int_equal(unsetenv("MEMTRACE_DEBUG"), 0);
    assert_false(mt_debug_has(MT_DEBUG_PASSES));
    assert_false(has_passes(""));
    assert_false(has_passes(","));
    assert_false(has_passes("pass"));
    assert_false(has_passes("passes2"));
    assert_false(has_passes("all, passes")); /* a space is part of a word */
    assert_true(has_passes("passes"));
    assert_true(has_passes("other,passes"));
    assert_true(has_passes(",,passes,"));
}

int main(void)
{
    return run_tests_of_file(NULL, NULL);
}
