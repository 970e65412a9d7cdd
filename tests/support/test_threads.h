/* A machine that has no more threads, for tests that are linked with --wrap=pthread_create.
 * test_feed.c has the definitions. */
#ifndef MT_TESTS_TEST_THREADS_H
#define MT_TESTS_TEST_THREADS_H

#include <stdbool.h>

extern bool test_has_no_threads;
extern unsigned test_threads_made;

#endif
