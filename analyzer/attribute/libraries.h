/* Which library takes memory from the driver, beside a framework's own segments: told from the
 * native frames of the call, by the file that they lie in. One table of files, one of functions. */
#ifndef MT_ANALYZER_LIBRARIES_H
#define MT_ANALYZER_LIBRARIES_H

#include "symbols.h"

#include <stdbool.h>

/* All texts but `module` and `call` are constants. */
struct mt_stack_owner {
    const char *library; /* "NCCL"; NULL: none of the table */
    uint32_t module;  /* frame of a file that the table does not have, if there is no library; else
                         MT_NO_ID, as for a stack without native frames */
    uint32_t call;    /* outermost frame with a name in that library: the function of it that was
                         called; MT_NO_ID if no name is known */
    const char *what; /* what that function makes: "communicator", "handle"; NULL */
};

/* Walks the native frames, innermost first: the driver, its runtime and the recorder are passed
 * over, the library of the next frame is the owner. O(depth). */
struct mt_stack_owner mt_stack_owner(const struct mt_symbols *symbols, uint32_t stack);

/* What a function of a library makes, by its name: "communicator" of "ncclCommSplit"; NULL. */
const char *mt_library_what(const char *function);

/* Does a range of this name belong to NCCL (NVTX, domain "NCCL")? Then *call is the function that
 * it stands for. */
bool mt_is_nccl_range(const char *range, const char **call);
/* Is that a function that makes as many communicators as its caller says, one a device? */
bool mt_makes_communicators(const char *call);
/* Is that a function that makes one communicator? */
bool mt_makes_communicator(const char *call);

#endif
