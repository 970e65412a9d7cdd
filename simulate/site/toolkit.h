/* What is known of the libraries of CUDA by their names. */
#ifndef MT_TOOLKIT_H
#define MT_TOOLKIT_H

#include <stdbool.h>
#include <stddef.h>

#include "elf_writer.h"

/* Is `soname` a library of CUDA: "libcublas.so.13", "libcusparseLt-f80c68d1.so.0"? */
bool mt_toolkit_has(const char *soname);

/* Which of the `needed` libraries a function without version belongs to; NULL: to none of CUDA. */
const char *mt_toolkit_library_of(const char *function, const char *const *needed, size_t count);

/* Is `function` one of the library `soname`, as far as its name says? For the functions that the
 * simulated library has, whose names are those of the vendor. */
bool mt_toolkit_is_of(const char *function, const char *soname);

/* What a function does that nobody wrote: a constant, or it numbers what it makes. */
struct mt_stub mt_toolkit_stub(const char *function, const char *version);

#endif
