/* Stacks of the calling thread. Both are called between mt_collect_enter and
 * leave, inside anybody's locks; ids are those of the tape (0 = none). */
#ifndef MT_INJECT_STACKS_H
#define MT_INJECT_STACKS_H

#include <stdbool.h>
#include <stdint.h>

/* Python frames, read without the GIL; 0 if the thread runs no Python, or if
 * the self-check has failed (python_stack.c). About 3 ns a frame, 7 ns before Python 3.12. */
uint32_t mt_python_stack(void) __attribute__((weak));

/* Is there no interpreter in this process (yet)? It is looked for when the library is loaded, and
 * then by the writer thread, if Python stacks are asked for. */
bool mt_python_is_absent(void) __attribute__((weak));

/* Return addresses (native_stack.c; 0 on machines that it does not know). With
 * `skip` 0 the innermost is that of this call; more are the collector's own:
 * callers that are exported hooks skip themselves. About 5 ns a frame. */
uint32_t mt_native_stack(unsigned skip) __attribute__((weak));

/* Code was unloaded, or ids are void (a forked child): forget what was seen. */
void mt_native_stack_forget(void);

#endif
