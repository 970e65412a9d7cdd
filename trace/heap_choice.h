/* Which heaps of a source a reader is shown (heap_view.h). */
#ifndef MT_TRACE_HEAP_CHOICE_H
#define MT_TRACE_HEAP_CHOICE_H

#include "source.h"
#include "status.h"

/* Chooses the level of a source that stands at its start, once: reads until it
 * is known (the first event of an allocator above the driver; without one, all);
 * then the source is at its start again. Nothing happens if it was chosen before. */
enum mt_status mt_heap_view_choose(struct mt_source *source, struct mt_error *error) MT_MUST_USE;

/* Chooses the heap of that name and nothing else, whatever it holds. MT_ERR_USAGE,
 * and what there is, if the trace has no such heap. */
enum mt_status mt_heap_view_choose_heap(struct mt_source *source, const char *name,
                                        struct mt_error *error) MT_MUST_USE;

#endif
