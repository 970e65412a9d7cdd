/* Which allocator's events a reader of a source is handed. The same bytes stand
 * in a recorded trace at two levels: a segment of PyTorch is an allocation of
 * the driver, too. So whoever simulates or sums looks at one level:
 *
 * framework: memory events of one allocator above the driver, the first that the
 *            trace tells of. A recorded trace then reads like a snapshot.
 * driver:    for programs without such an allocator: all that the process took
 *            from the driver, its heaps (heaps.h) together. So that they do not
 *            share addresses, an address has the heap's number in its high bits.
 *
 * Events that are not of memory (phases, marks, samples) pass at both. */
#ifndef MT_TRACE_HEAP_VIEW_H
#define MT_TRACE_HEAP_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

struct mt_source;
struct mt_event_batch;

enum mt_view_level {
    MT_VIEW_EVERYTHING, /* as it stands in the trace */
    MT_VIEW_FRAMEWORK,
    MT_VIEW_DRIVER
};

#define MT_VIEW_KNOWN_HEAPS 64

/* Part of a source; zeroed memory hands on everything. A reader that wants all
 * sets `level` to MT_VIEW_EVERYTHING for as long as it reads. */
struct mt_heap_view {
    enum mt_view_level level;
    bool chosen;
    bool has_more;                      /* memory events were left out, or samples passed */
    bool one_heap;                      /* DRIVER: `heap` alone, whatever it holds */
    uint16_t heap;                      /* FRAMEWORK, one_heap: whose events */
    uint8_t known[MT_VIEW_KNOWN_HEAPS]; /* DRIVER: by heap, 0 = not looked at yet */
};

/* Chooses the level of a source that stands at its start, once: reads until it
 * is known (the first event of an allocator above the driver; without one, all);
 * then the source is at its start again. Nothing happens if it was chosen before. */
enum mt_status mt_heap_view_choose(struct mt_source *source, struct mt_error *error) MT_MUST_USE;

/* Chooses the heap of that name and nothing else, whatever it holds. MT_ERR_USAGE,
 * and what there is, if the trace tells of no such heap. */
enum mt_status mt_heap_view_choose_heap(struct mt_source *source, const char *name,
                                        struct mt_error *error) MT_MUST_USE;

/* Takes out of a batch what is not in view. Order stays. O(events). */
void mt_heap_view_apply(struct mt_source *source, struct mt_event_batch *batch);

#endif
