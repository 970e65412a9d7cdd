/* Filters a source to the events of one level of allocators. A recorded trace has the same bytes at
 * two levels: a segment of PyTorch is also an allocation of the driver. Code that simulates or sums
 * reads one level:
 *
 * framework: memory events of one allocator above the driver, the first one
 *            of the trace. A recorded trace then reads like a snapshot.
 * driver: for programs without such an allocator: all that the process took
 *            from the driver, its heaps (heaps.h) together. So that they do not
 *            share addresses, an address has the heap's number in its high bits.
 *
 * Events that do not concern memory blocks (phases, marks, samples) pass at both levels. */
#ifndef MT_TRACE_HEAP_VIEW_H
#define MT_TRACE_HEAP_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event.h"
#include "symbols.h"

enum mt_view_level {
    MT_VIEW_EVERYTHING, /* unfiltered */
    MT_VIEW_FRAMEWORK,
    MT_VIEW_DRIVER
};

#define MT_VIEW_KNOWN_HEAPS 64
/* What is known about a heap. */
enum { MT_VIEW_NOT_LOOKED_AT, MT_VIEW_IN, MT_VIEW_OUT };

/* Part of a source; zeroed memory passes everything on. A reader that wants all events sets `level`
 * to MT_VIEW_EVERYTHING while it reads. */
struct mt_heap_view {
    enum mt_view_level level;
    bool chosen;
    bool has_more;                      /* memory events were filtered out, or samples passed */
    bool one_heap;                      /* DRIVER: only `heap`, whatever it holds */
    uint16_t heap;                      /* FRAMEWORK, one_heap: the heap whose events pass */
    uint8_t known[MT_VIEW_KNOWN_HEAPS]; /* DRIVER: by heap, 0 = not looked at yet */
};

/* Removes events from a batch that are not in view. Keeps the order. O(events). */
void mt_heap_view_apply(struct mt_heap_view *view, const struct mt_symbols *symbols,
                        struct mt_event_batch *batch);

#endif
