/* Finds out from names which libraries and functions belong to CUDA. */
#ifndef MT_TOOLKIT_H
#define MT_TOOLKIT_H

#include <stdbool.h>
#include <stddef.h>

#include "elf_writer.h"

/* Returns true if `soname` is a library of CUDA, such as "libcublas.so.13" or
 * "libcusparseLt-f80c68d1.so.0". */
bool mt_toolkit_has(const char *soname);

/* Returns the library among `needed` to which a function without a version belongs. NULL: the
 * function is not part of CUDA. */
const char *mt_toolkit_library_of(const char *function, const char *const *needed, size_t count);

/* Returns true if `function` belongs to the library `soname`, according to its name. For the
 * functions of the simulated library, which have the vendor's names. */
bool mt_toolkit_is_of(const char *function, const char *soname);

/* Returns the stub for a function without an implementation. The stub returns a constant, or
 * consecutive numbers as handles. */
struct mt_stub mt_toolkit_stub(const char *function, const char *version);

#endif
