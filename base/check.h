/* Checks of the program itself. There are three kinds of errors, with three answers:
 *   wrong input          a status with a place and a reason (status.h)
 *   wrong program        MT_ASSERT, in development and CI builds
 *   wrong state that would become a wrong answer in the field
 *                        MT_CHECK, in every build
 * No input, however hostile, may make an MT_ASSERT or MT_CHECK fail. Depends on status.h. */
#ifndef MT_BASE_CHECK_H
#define MT_BASE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

/* File names are unique in the tree, so the name without its folder identifies the file. */
#ifdef __FILE_NAME__
#define MT_CHECK_FILE __FILE_NAME__
#else
#define MT_CHECK_FILE __FILE__
#endif

/* MT_ASSERT(expression): the program is wrong if the expression is false. Builds with the CMake
 * option MEMTRACE_ASSERT then print one line with expression, file, line and function to standard
 * error, and abort. Other builds compile the expression but never evaluate it, so it must have no
 * side effects.
 * The library in traced processes is compiled without it (MEMTRACE_ASSERT_INJECT turns it on, for
 * tests of the recorder itself).
 *
 * MT_ASSERT_SOUND(expression, why): the same for a whole-structure check that leaves the reason of
 * a failure in `const char *why`. The message includes the reason and the seed. */
#ifdef MEMTRACE_ASSERT
#define MT_ASSERT(expression)                                                                      \
    ((expression) ? (void)0                                                                        \
                  : mt_assert_failed(#expression, NULL, MT_CHECK_FILE, __LINE__, __func__))
#define MT_ASSERT_SOUND(expression, why)                                                           \
    ((expression) ? (void)0 : mt_assert_failed(#expression, why, MT_CHECK_FILE, __LINE__, __func__))
#else
#define MT_ASSERT(expression)            ((void)(0 && (expression)))
#define MT_ASSERT_SOUND(expression, why) ((void)(0 && ((expression) || (why))))
#endif

/* MT_CHECK(error, expression): for functions that return enum mt_status. If the expression is
 * false, the function returns MT_ERR_INTERNAL, and *error (may be NULL) has expression and place.
 * This happens in every build, and never stops the process. Nothing is cleaned up on the way, so
 * all resources of the function must already belong to something that its caller releases. */
#define MT_CHECK(error, expression)                                                                \
    do {                                                                                           \
        if (MT_CHECK_UNLIKELY(!(expression)))                                                      \
            return mt_check_failed(error, #expression, MT_CHECK_FILE, __LINE__);                   \
    } while (0)

#if defined(__GNUC__)
#define MT_CHECK_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define MT_CHECK_COLD                __attribute__((cold, noinline))
#else
#define MT_CHECK_UNLIKELY(condition) (condition)
#define MT_CHECK_COLD
#endif

/* Implements MT_CHECK: fills *error (may be NULL) and returns MT_ERR_INTERNAL. */
MT_CHECK_COLD enum mt_status mt_check_failed(struct mt_error *error, const char *expression,
                                             const char *file, int line);

#ifdef MEMTRACE_ASSERT
/* Prints the failure to standard error and aborts. `why` may be NULL. */
MT_CHECK_COLD _Noreturn void mt_assert_failed(const char *expression, const char *why,
                                              const char *file, int line, const char *function);
#endif

/* Decides when a structure is checked as a whole: at random moments, rare enough that the checks
 * cost a fixed share of the work on the structure, whatever its size. Each structure has its own
 * pace. Zeroed memory is a new pace. The same seed gives the same moments in every run and
 * thread. */
struct mt_check_pace {
    uint64_t state; /* state of the generator; 0 = not seeded */
    uint64_t left;  /* operations until the next check */
};

/* Returns true when a check is due. Call it once per operation, where the structure must be sound,
 * with the cost of a check in steps (about the number of items). Always false without
 * MEMTRACE_ASSERT. */
#ifdef MEMTRACE_ASSERT
bool mt_check_is_due(struct mt_check_pace *pace, uint64_t cost);
#else
static inline bool mt_check_is_due(struct mt_check_pace *pace, uint64_t cost)
{
    (void)pace;
    (void)cost;
    return false;
}
#endif

/* For whole-structure checks `bool mt_X_is_sound(const struct mt_X *, const char **why)`: returns
 * false from the function and sets *why to the violated rule. */
#define MT_SOUND(why, expression)                                                                  \
    do {                                                                                           \
        if (!(expression)) {                                                                       \
            *(why) = MT_CHECK_TEXT_(expression, __LINE__);                                         \
            return false;                                                                          \
        }                                                                                          \
    } while (0)
#define MT_CHECK_TEXT_(expression, line)  MT_CHECK_TEXT2_(expression, line)
#define MT_CHECK_TEXT2_(expression, line) #expression " (line " #line ")"

#endif
