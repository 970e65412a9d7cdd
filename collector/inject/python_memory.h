/* Guarded reads: a wrong address is an error, not a crash. A read takes about 0.1 us. */
#ifndef MT_INJECT_PYTHON_MEMORY_H
#define MT_INJECT_PYTHON_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies `bytes` bytes from `address`. Returns false if some of them cannot be read. Preserves
 * errno. */
bool mt_python_copy(void *to, uintptr_t address, size_t bytes);

/* Returns true if the word that contains `address` can be read. Changes errno. Use it only if
 * mt_python_memory_works() returns true. */
bool mt_python_readable(uintptr_t address);

/* Returns true if the system behaves as the functions above expect. If not, every mt_python_copy()
 * fails. */
bool mt_python_memory_works(void);

#endif
