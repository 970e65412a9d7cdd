/* Stacks of the calling thread. Call mt_python_stack and mt_native_stack between mt_collect_enter
 * and leave; they are safe inside any lock. Ids are those of the tape (0 = none). */
#ifndef MT_INJECT_STACKS_H
#define MT_INJECT_STACKS_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the Python frames, read without the GIL; 0 if the thread runs no Python, or if the
 * self-check has failed (python_stack.c). About 3 ns per frame, 7 ns before Python 3.12. */
uint32_t mt_python_stack(void) __attribute__((weak));

/* Returns true if no interpreter was found in this process (yet). If Python stacks are requested,
 * the search runs when the library is loaded, and then on the writer thread. */
bool mt_python_is_absent(void) __attribute__((weak));

/* Returns the return addresses (native_stack.c; 0 on unsupported machines). With `skip` 0, the
 * innermost is the return address of the call of mt_native_stack; exported hooks pass a larger
 * `skip` to omit their own frames. About 5 ns per frame. */
uint32_t mt_native_stack(unsigned skip) __attribute__((weak));

/* Discards the caches. Call it if code was unloaded, or if ids are no longer valid (in a forked
 * child). */
void mt_native_stack_forget(void);

#endif
