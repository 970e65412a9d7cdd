/* Classifies heaps by name. Names are part of the trace format by convention
 * (docs/internals/trace-format.md, 5.3): "driver" and "driver:KIND" are the driver's, "user" and
 * "user:KIND" are parts of other allocations that a library reported, and any other name is an
 * allocator above the driver. */
#ifndef MT_TRACE_HEAPS_H
#define MT_TRACE_HEAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "symbols.h"

struct mt_symbols;

enum mt_heap_level {
    MT_HEAP_DRIVER,    /* allocations that the driver serves */
    MT_HEAP_FRAMEWORK, /* an allocator that subdivides such allocations */
    MT_HEAP_USER       /* parts of allocations of either, as reported by the program */
};

struct mt_heap_class {
    enum mt_heap_level level;
    /* A driver's heap whose bytes are memory of a device that this process owns. All such heaps
     * together are the memory that the process took. */
    bool is_device_memory;
    const char *what; /* "linear device memory"; "" for an unknown name */
};

/* `name` may be NULL (a lost definition), which counts as a framework's. */
struct mt_heap_class mt_heap_class_of(const char *name);

/* The same by the heap's number in a trace. */
struct mt_heap_class mt_heap_class_at(const struct mt_symbols *symbols, uint16_t heap);

/* "driver:async"; "?" if its definition is lost. */
const char *mt_heap_name(const struct mt_symbols *symbols, uint16_t heap);

/* Describes the contents for a sentence: "linear device memory"; the name if unknown. */
const char *mt_heap_meaning(const struct mt_symbols *symbols, uint16_t heap);

/* "driver", "framework", "user" */
const char *mt_heap_level_name(enum mt_heap_level level);

#endif
