/* Allocations that fail on command, for tests of one module. The linker sends
 * the calls of the static libraries through failing_alloc.c (--wrap), so this
 * works under the sanitizers, which bring their own malloc. Calls from inside
 * shared libraries are not seen; sweep_memory.py fails those as well. */
#ifndef MT_TESTS_FAILING_ALLOC_H
#define MT_TESTS_FAILING_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* Starts to count: allocation number `n`, counted from 1, fails; with `from_there_on`
 * also all that follow. 0 fails none. */
void fail_allocation(size_t n, bool from_there_on);

/* Ends it; how many allocations there were since fail_allocation. */
size_t stop_failing(void);

#endif
