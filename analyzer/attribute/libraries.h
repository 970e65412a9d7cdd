/* Identifies the library that takes memory from the driver, other than a framework's own segments,
 * by the file of the native frames of the call. One table of files, one of functions. */
#ifndef MT_ANALYZER_LIBRARIES_H
#define MT_ANALYZER_LIBRARIES_H

#include "symbols.h"

#include <stdbool.h>

/* All texts except `module` and `call` are constants. */
struct mt_stack_owner {
    const char *library; /* "NCCL"; NULL: not in the table */
    uint32_t module; /* frame of an unknown file, if there is no library; otherwise MT_NO_ID, as for
                        a stack without native frames */
    uint32_t call;   /* outermost frame with a name in that library, which is the called function;
                        MT_NO_ID if no name is known */
    const char *what; /* the product of that function: "communicator", "handle"; NULL */
};

/* Walks the native frames, innermost first: skips the driver, its runtime and the recorder; the
 * library of the next frame is the owner. O(depth). */
struct mt_stack_owner mt_stack_owner(const struct mt_symbols *symbols, uint32_t stack);

/* The product of a library function, by its name: "communicator" for "ncclCommSplit"; NULL. */
const char *mt_library_what(const char *function);

/* Whether a range of this name belongs to NCCL (NVTX, domain "NCCL"). Then *call is the function of
 * the range. */
bool mt_libraries_is_nccl_range(const char *range, const char **call);
/* Whether that function makes as many communicators as its caller requests, one per device. */
bool mt_makes_communicators(const char *call);
/* Whether that function makes one communicator. */
bool mt_makes_communicator(const char *call);

#endif
