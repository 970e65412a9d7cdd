/* Facts about the libraries of CUDA, derived from names. */
#ifndef MT_TOOLKIT_H
#define MT_TOOLKIT_H

#include <stdbool.h>
#include <stddef.h>

#include "elf_writer.h"

/* Returns whether `soname` is a library of CUDA: "libcublas.so.13",
 * "libcusparseLt-f80c68d1.so.0". */
bool mt_toolkit_has(const char *soname);

/* Returns the library among `needed` to which a function without a version belongs. NULL: the
 * function is not part of CUDA. */
const char *mt_toolkit_library_of(const char *function, const char *const *needed, size_t count);

/* Returns whether `function` belongs to the library `soname`, according to its name. For the
 * functions of the simulated library, which have the vendor's names. */
bool mt_toolkit_is_of(const char *function, const char *soname);

/* The behavior of a function without an implementation: it returns a constant, or consecutive
 * numbers as handles. */
struct mt_stub mt_toolkit_stub(const char *function, const char *version);

#endif
