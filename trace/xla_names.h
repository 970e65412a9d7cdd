/* Parses the names of XLA's own ranges (TraceMe: xla/tsl/profiler, domain "TSL" of NVTX): the
 * module that runs or is compiled, without the numbers that make the name of each call unique. */
#ifndef MT_TRACE_XLA_NAMES_H
#define MT_TRACE_XLA_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mt_xla_range {
    MT_XLA_NONE,    /* not a range of XLA */
    MT_XLA_MODULE,  /* "TSL: XlaModule:#hlo_module=jit_step,program_id=7#": the module runs */
    MT_XLA_COMPILE, /* "TSL: XlaPass:#name=...,module=jit_step,...#": it is compiled */
    MT_XLA_THUNK    /* "TSL: Thunk:#hlo_op=copy.1,...#": one operation of a module that runs */
};

/* The heap that XLA's requests go to with its allocator `cuda_async`, and TensorFlow's with
 * `cuda_malloc_async`. */
#define MT_XLA_HEAP "driver:async"

/* *module: the name within `name`, of *length bytes; "" if it has none. */
enum mt_xla_range mt_xla_range_of(const char *name, const char **module, size_t *length);

/* Returns whether an arena above the driver served the requests of a program that ran modules, so
 * that they are missing in its trace. Nearly every run of a module requests memory; an arena that
 * doubles calls the driver about 20 times. */
bool mt_xla_serves_itself(uint64_t module_runs, uint64_t device_allocations);

#endif
