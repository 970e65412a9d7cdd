/* cmocka, the headers that it requires, and the list of a file's tests:
 *
 *     TEST(blocks_are_merged)
 *     {
 *         assert_...
 *     }
 *
 *     int main(void)
 *     {
 *         return run_tests_of_file(NULL, NULL);
 *     }
 */
#ifndef MT_TESTS_CMOCKA_ALL_H
#define MT_TESTS_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* cmocka 2 deprecates assert_in_range for functions that cmocka 1 lacks. */
#define CMOCKA_DISABLE_DEPRECATION_WARNINGS
#include <cmocka.h>
/* cmocka 2 has this macro; sources of the recorder have a member of this name. */
#undef stop

/* The name of one of the files of a family (family.c). */
#ifdef main
int main(void);
#endif

/* The tests of a file, by line: compilers may change the order of constructors. */
static struct {
    struct CMUnitTest tests[64];
    int lines[64];
    size_t count;
} tests_of_file;

static inline void add_test(int line, struct CMUnitTest test)
{
    size_t i = tests_of_file.count++;

    if (i == sizeof tests_of_file.tests / sizeof *tests_of_file.tests)
        abort();
    for (; i && tests_of_file.lines[i - 1] > line; i--) {
        tests_of_file.tests[i] = tests_of_file.tests[i - 1];
        tests_of_file.lines[i] = tests_of_file.lines[i - 1];
    }
    tests_of_file.tests[i] = test;
    tests_of_file.lines[i] = line;
}

/* A test that cmocka runs between two other functions, or NULL. `state` is theirs. */
#define TEST_WITH(name, set_up, tear_down)                                                         \
    static void name(void **state);                                                                \
    __attribute__((constructor)) static void add_test_##name(void)                                 \
    {                                                                                              \
        add_test(__LINE__, (struct CMUnitTest){#name, name, set_up, tear_down, NULL});             \
    }                                                                                              \
    static void name(__attribute__((unused)) void **state)

#define TEST(name) TEST_WITH(name, NULL, NULL)

/* Runs the tests of the file between two functions of the whole file, or NULL. Returns how many
 * failed; not 0 if there are none. */
static inline int run_tests_of_file(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    if (!tests_of_file.count)
        return 1;
    return _cmocka_run_group_tests("tests", tests_of_file.tests, tests_of_file.count, set_up,
                                   tear_down);
}

#endif
