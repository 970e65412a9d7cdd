/* Selects the heaps of a source that a reader sees (heap_view.h). */
#ifndef MT_TRACE_HEAP_CHOICE_H
#define MT_TRACE_HEAP_CHOICE_H

#include "source.h"
#include "status.h"

/* Selects the level of a source at its start, once. Reads until the level is known (at the first
 * event of an allocator above the driver; to the end if there is none), then rewinds. Does nothing
 * if a choice was made before. */
enum mt_status mt_heap_view_choose(struct mt_source *source, struct mt_error *error) MT_MUST_USE;

/* Selects only the heap of that name, whatever it holds. Returns MT_ERR_USAGE, and an error that
 * lists the heaps, if the trace has no such heap. */
enum mt_status mt_heap_view_choose_heap(struct mt_source *source, const char *name,
                                        struct mt_error *error) MT_MUST_USE;

#endif
