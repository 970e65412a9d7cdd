#include "heap_choice.h"

#include <stdio.h>
#include <string.h>

#include "heaps.h"

/* Facts about heaps, each determined once. */
struct choice {
    const struct mt_source *source;
    struct mt_heap_view view;
    uint8_t known[MT_VIEW_KNOWN_HEAPS];
};

static bool is_framework_heap(struct choice *choice, uint16_t heap)
{
    bool is;

    if (heap < MT_VIEW_KNOWN_HEAPS && choice->known[heap] != MT_VIEW_NOT_LOOKED_AT)
        return choice->known[heap] == MT_VIEW_IN;
    is = mt_heap_class_at(&choice->source->symbols, heap).level == MT_HEAP_FRAMEWORK;
    if (heap < MT_VIEW_KNOWN_HEAPS)
        choice->known[heap] = is ? MT_VIEW_IN : MT_VIEW_OUT;
    return is;
}

/* A heap that takes segments is an allocator above the driver, whatever its name. */
static bool is_of_framework(struct choice *choice, const struct mt_event *event)
{
    if (mt_event_is_segment(event))
        return true;
    return (event->kind == MT_EVENT_ALLOC || event->kind == MT_EVENT_OOM) &&
           is_framework_heap(choice, event->heap);
}

static bool decides(struct choice *choice, const struct mt_event_batch *batch)
{
    size_t i;

    for (i = 0; i < batch->count; i++) {
        if (!is_of_framework(choice, &batch->events[i]))
            continue;
        choice->view.level = MT_VIEW_FRAMEWORK;
        choice->view.heap = batch->events[i].heap;
        return true;
    }
    return false;
}

enum mt_status mt_heap_view_choose(struct mt_source *source, struct mt_error *error)
{
    struct choice choice = {source, {.level = MT_VIEW_DRIVER, .chosen = true}, {0}};
    struct mt_event_batch batch;
    enum mt_status status;
    bool is_first = true;

    if (source->view.chosen)
        return MT_OK;
    status = mt_source_next(source, &batch, error);
    while (status == MT_OK && !decides(&choice, &batch)) {
        is_first = false;
        status = mt_source_next(source, &batch, error);
    }
    if (status == MT_OK && is_first)
        source->unread = batch; /* the batch is unchanged: no need to read it again */
    else if (status == MT_OK || status == MT_END)
        status = mt_source_rewind(source, error);
    if (status == MT_OK)
        source->view = choice.view;
    return status;
}

/* Finds the number of the heap of that name; false if it is not defined so far. */
static bool find_heap(const struct mt_symbols *symbols, const char *name, uint16_t *heap)
{
    uint32_t i;

    for (i = 0; i < symbols->heap_count; i++) {
        if (strcmp(mt_heap_name(symbols, (uint16_t)i), name) == 0) {
            *heap = (uint16_t)i;
            return true;
        }
    }
    return false;
}

static enum mt_status fail_without_heap(const struct mt_symbols *symbols, const char *name,
                                        struct mt_error *error)
{
    char names[120] = "";
    size_t length = 0;
    uint32_t i;

    for (i = 0; i < symbols->heap_count && length < sizeof names; i++) {
        int added = snprintf(names + length, sizeof names - length, "%s%s", i ? ", " : "",
                             mt_heap_name(symbols, (uint16_t)i));
        length += added > 0 ? (size_t)added : 0;
    }
    return mt_fail(error, MT_ERR_USAGE, MT_NO_OFFSET, "no heap is named '%s'; this trace has %s",
                   name, names[0] ? names : "none");
}

enum mt_status mt_heap_view_choose_heap(struct mt_source *source, const char *name,
                                        struct mt_error *error)
{
    struct mt_heap_view view = {.level = MT_VIEW_DRIVER, .chosen = true, .one_heap = true};
    struct mt_event_batch batch;
    enum mt_status status = MT_OK;

    while (status == MT_OK && !find_heap(&source->symbols, name, &view.heap))
        status = mt_source_next(source, &batch, error);
    if (status == MT_END)
        return fail_without_heap(&source->symbols, name, error);
    if (status == MT_OK)
        status = mt_source_rewind(source, error);
    if (mt_heap_class_of(name).level == MT_HEAP_FRAMEWORK)
        view.level = MT_VIEW_FRAMEWORK;
    if (status == MT_OK)
        source->view = view;
    return status;
}
