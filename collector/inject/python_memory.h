/* Guarded reads: a wrong address is an error, not a crash. About 0.1 us each. */
#ifndef MT_INJECT_PYTHON_MEMORY_H
#define MT_INJECT_PYTHON_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies `bytes` from `address`; false if some of them cannot be read. Keeps
 * errno. */
bool mt_python_copy(void *to, uintptr_t address, size_t bytes);

/* Returns true if the system behaves as mt_python_copy() expects. If not, mt_python_copy() can
 * read nothing. */
bool mt_python_memory_works(void);

#endif
