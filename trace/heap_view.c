#include "heap_view.h"

#include "heaps.h"

/* Heaps beyond this number share the high bits of their addresses. */
#define ADDRESS_HEAPS 128
#define ADDRESS_SHIFT 57

static inline bool is_of_heap(const struct mt_event *event)
{
    return mt_event_kind_has_heap(event->kind);
}

static bool is_device_memory(struct mt_heap_view *view, const struct mt_symbols *symbols,
                             uint16_t heap)
{
    bool is;

    if (heap < MT_VIEW_KNOWN_HEAPS && view->known[heap] != MT_VIEW_NOT_LOOKED_AT)
        return view->known[heap] == MT_VIEW_IN;
    is = mt_heap_class_at(symbols, heap).is_device_memory;
    if (heap < MT_VIEW_KNOWN_HEAPS)
        view->known[heap] = is ? MT_VIEW_IN : MT_VIEW_OUT;
    return is;
}

static inline bool is_in_view(struct mt_heap_view *view, const struct mt_symbols *symbols,
                              const struct mt_event *event)
{
    if (!is_of_heap(event))
        return true;
    if (view->level == MT_VIEW_FRAMEWORK || view->one_heap)
        return event->heap == view->heap;
    return is_device_memory(view, symbols, event->heap);
}

static inline void tell_heaps_apart(const struct mt_heap_view *view, struct mt_event *event)
{
    if (view->level == MT_VIEW_DRIVER && !view->one_heap && event->heap && is_of_heap(event))
        event->addr ^= (uint64_t)(event->heap % ADDRESS_HEAPS) << ADDRESS_SHIFT;
}

/* Returns how many events at the start of a batch belong to a framework and need no change: all of
 * them in a snapshot. */
static size_t plain_events(const struct mt_heap_view *view, const struct mt_event_batch *batch)
{
    size_t i = 0;

    if (view->level != MT_VIEW_FRAMEWORK)
        return 0;
    if (batch->only_heap == view->heap + 1u)
        return batch->count;
    while (i < batch->count) {
        const struct mt_event *event = &batch->events[i];

        if (is_of_heap(event) ? event->heap != view->heap : event->kind == MT_EVENT_MEMORY_SAMPLE)
            break;
        i++;
    }
    return i;
}

void mt_heap_view_apply(struct mt_heap_view *view, const struct mt_symbols *symbols,
                        struct mt_event_batch *batch)
{
    struct mt_event *events = batch->events;
    size_t i, kept;

    if (view->level == MT_VIEW_EVERYTHING)
        return;
    kept = plain_events(view, batch);
    view->has_more |= kept < batch->count;
    for (i = kept; i < batch->count; i++) {
        if (!is_in_view(view, symbols, &events[i]))
            continue;
        if (kept != i)
            events[kept] = events[i];
        tell_heaps_apart(view, &events[kept++]);
    }
    batch->count = kept;
}
