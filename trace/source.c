/* A source of events: the heaps that a reader sees, ranges that are inserted between its events,
 * and what was lost. */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "event.h"
#include "grow.h"
#include "heaps.h"
#include "source.h"
#include "status.h"
#include "symbols.h"
#include "util.h"

/* What is known about a heap. */
enum { VIEW_NOT_LOOKED_AT, VIEW_IN, VIEW_OUT };

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
    if (heap < MT_VIEW_KNOWN_HEAPS && view->known[heap] != VIEW_NOT_LOOKED_AT)
        return view->known[heap] == VIEW_IN;
    bool is = mt_heap_class_at(symbols, heap).is_device_memory;
    if (heap < MT_VIEW_KNOWN_HEAPS)
        view->known[heap] = is ? VIEW_IN : VIEW_OUT;
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

uint64_t mt_heap_view_address(const struct mt_heap_view *view, uint16_t heap, uint64_t addr)
{
    if (view->level == MT_VIEW_DRIVER && !view->one_heap)
        addr ^= (uint64_t)(heap % ADDRESS_HEAPS) << ADDRESS_SHIFT;
    return addr;
}

static inline void tell_heaps_apart(const struct mt_heap_view *view, struct mt_event *event)
{
    if (event->heap && is_of_heap(event))
        event->addr = mt_heap_view_address(view, event->heap, event->addr);
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

/* Removes events from a batch that are not in view. Keeps the order. O(events). */
static void heap_view_apply(struct mt_heap_view *view, const struct mt_symbols *symbols,
                            struct mt_event_batch *batch)
{
    struct mt_event *events = batch->events;

    if (view->level == MT_VIEW_EVERYTHING)
        return;
    size_t kept = plain_events(view, batch);
    view->has_more |= kept < batch->count;
    for (size_t i = kept; i < batch->count; i++) {
        if (!is_in_view(view, symbols, &events[i]))
            continue;
        if (kept != i)
            events[kept] = events[i];
        tell_heaps_apart(view, &events[kept++]);
    }
    batch->count = kept;
}

enum mt_status mt_overlay_add(struct mt_overlay *overlay, uint64_t before,
                              const struct mt_event *event)
{
    if (mt_grow(&overlay->events, &overlay->capacity, overlay->count + 1, sizeof *overlay->events))
        return MT_ERR_MEMORY;
    /* ranges inferred from a damaged trace may overlap: move late events after the others */
    if (overlay->count && overlay->events[overlay->count - 1].before > before)
        before = overlay->events[overlay->count - 1].before;
    overlay->events[overlay->count++] = (struct mt_overlay_event){before, *event};
    return MT_OK;
}

static void hide_ranges(struct mt_event_batch *batch)
{
    size_t kept = 0;

    for (size_t i = 0; i < batch->count; i++) {
        uint8_t kind = batch->events[i].kind;

        if (kind == MT_EVENT_PHASE_PUSH || kind == MT_EVENT_PHASE_POP)
            continue;
        if (kept != i)
            batch->events[kept] = batch->events[i];
        kept++;
    }
    batch->count = kept;
}

static bool is_due(const struct mt_overlay *overlay, uint64_t seq)
{
    return overlay->next < overlay->count && overlay->events[overlay->next].before <= seq;
}

/* Removes recorded ranges from a batch if they are hidden, and inserts the events that belong
 * between its events. */
static enum mt_status overlay_apply(struct mt_overlay *overlay, struct mt_event_batch *batch)
{
    size_t from = 0, count = 0;

    if (overlay->hides_ranges)
        hide_ranges(batch);
    if (!batch->count || !is_due(overlay, batch->events[batch->count - 1].seq))
        return MT_OK;
    if (mt_grow(&overlay->merged, &overlay->merged_capacity,
                batch->count + overlay->count - overlay->next, sizeof *overlay->merged))
        return MT_ERR_MEMORY;
    for (size_t i = 0; i < batch->count; i++) {
        if (!is_due(overlay, batch->events[i].seq))
            continue;
        memcpy(overlay->merged + count, batch->events + from, (i - from) * sizeof *batch->events);
        count += i - from;
        from = i;
        while (is_due(overlay, batch->events[i].seq))
            overlay->merged[count++] = overlay->events[overlay->next++].event;
    }
    memcpy(overlay->merged + count, batch->events + from,
           (batch->count - from) * sizeof *batch->events);
    MT_ASSERT(count >= from && count + batch->count - from <= overlay->merged_capacity);
    batch->count += count - from;
    batch->events = overlay->merged;
    return MT_OK;
}

/* Returns the events after the last one of the trace; MT_END = none. */
static enum mt_status overlay_end(struct mt_overlay *overlay, struct mt_event_batch *batch)
{
    size_t left = overlay->count - overlay->next;

    if (!left)
        return MT_END;
    if (mt_grow(&overlay->merged, &overlay->merged_capacity, left, sizeof *overlay->merged))
        return MT_ERR_MEMORY;
    for (size_t i = 0; i < left; i++)
        overlay->merged[i] = overlay->events[overlay->next + i].event;
    batch->events = overlay->merged;
    batch->count = left;
    overlay->next = overlay->count;
    return MT_OK;
}

static void overlay_rewind(struct mt_overlay *overlay)
{
    overlay->next = 0;
}

void mt_overlay_release(struct mt_overlay *overlay)
{
    free(overlay->events);
    free(overlay->merged);
    memset(overlay, 0, sizeof *overlay);
}

/* Facts about heaps, each determined once. */
struct choice {
    const struct mt_source *source;
    struct mt_heap_view view;
    uint8_t known[MT_VIEW_KNOWN_HEAPS];
};

static bool is_framework_heap(struct choice *choice, uint16_t heap)
{
    if (heap < MT_VIEW_KNOWN_HEAPS && choice->known[heap] != VIEW_NOT_LOOKED_AT)
        return choice->known[heap] == VIEW_IN;
    bool is = mt_heap_class_at(&choice->source->symbols, heap).level == MT_HEAP_FRAMEWORK;
    if (heap < MT_VIEW_KNOWN_HEAPS)
        choice->known[heap] = is ? VIEW_IN : VIEW_OUT;
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
    for (size_t i = 0; i < batch->count; i++) {
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
    bool is_first = true;

    if (source->view.chosen)
        return MT_OK;
    enum mt_status status = mt_source_next(source, &batch, error);
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
    for (uint32_t i = 0; i < symbols->heap_count; i++) {
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

    for (uint32_t i = 0; i < symbols->heap_count && length < sizeof names; i++) {
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

void mt_lost_events_add(struct mt_lost_events *lost, const struct mt_event *event)
{
    size_t i = 0;

    if (event->kind != MT_EVENT_DROPPED)
        return;
    while (i < lost->count && lost->reasons[i].name != event->name)
        i++;
    if (i == MT_LOST_REASONS) {
        i--;
        lost->has_others = true;
    }
    if (i == lost->count)
        lost->reasons[lost->count++] = (struct mt_lost_reason){event->name, 0};
    lost->reasons[i].events += event->size_bytes;
}

const char *mt_lost_events_why(const struct mt_lost_events *lost, size_t entry,
                               const struct mt_symbols *symbols)
{
    uint32_t name = lost->reasons[entry].name;

    if (lost->has_others && entry + 1 == lost->count)
        return "other reasons";
    return name == MT_NO_ID ? NULL : mt_symbols_text(symbols, name);
}

/* The times of a simulated device show the speed of the simulation. Readers treat such a trace like
 * a snapshot without times. */
static void forget_times(struct mt_event_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        batch->events[i].t_ns = 0;
}

/* An undamaged source has defined everything at the end of a reading. */
static bool defined_all(const struct mt_integrity *integrity)
{
    return !integrity->frames_damaged && !integrity->events_invalid && !integrity->records_damaged;
}

/* A reading that a second thread decodes ahead of the reader. What the reader can see of the source
 * depends only on the batches that it took. */

enum { AHEAD_BATCHES = 3, MIN_AHEAD_EVENTS = 32768, MIN_LONG_BYTES = 1 << 20 };

/* A copy of a batch, and the source after it was decoded. */
struct ahead_batch {
    struct mt_event_batch batch;
    size_t capacity;
    uint64_t progress_bytes;
    struct mt_integrity integrity;
};

struct mt_ahead {
    pthread_t thread;
    pthread_mutex_t lock;   /* protects made, done, waits, status, stops */
    pthread_cond_t changed; /* one of them did */
    struct ahead_batch batches[AHEAD_BATCHES];
    uint64_t made, done; /* batches */
    enum mt_status status;
    bool stops;
    bool waits; /* the reader needs a batch that is not made */
    struct mt_error error;
    uint64_t taken; /* batches, by the reader */
};

static enum mt_status make_ahead(struct mt_source *source, struct ahead_batch *made)
{
    struct mt_event *events = made->batch.events;
    struct mt_event_batch batch;
    enum mt_status status = source->ops->next(source, &batch, &source->ahead->error);

    if (status != MT_OK)
        return status;
    if (mt_grow(&events, &made->capacity, batch.count, sizeof *events) != MT_OK)
        return mt_fail(&source->ahead->error, MT_ERR_MEMORY, MT_NO_OFFSET, "%s",
                       mt_status_text(MT_ERR_MEMORY));
    memcpy(events, batch.events, batch.count * sizeof *events);
    made->batch = (struct mt_event_batch){events, batch.count, batch.only_heap};
    made->progress_bytes = source->progress_bytes;
    made->integrity = source->integrity;
    return MT_OK;
}

static void *read_ahead(void *context)
{
    struct mt_source *source = context;
    struct mt_ahead *ahead = source->ahead;
    enum mt_status status = MT_OK;

    pthread_mutex_lock(&ahead->lock);
    while (status == MT_OK) {
        while (ahead->made - ahead->done == AHEAD_BATCHES && !ahead->stops)
            pthread_cond_wait(&ahead->changed, &ahead->lock);
        if (ahead->stops)
            break;
        pthread_mutex_unlock(&ahead->lock);
        status = make_ahead(source, &ahead->batches[ahead->made % AHEAD_BATCHES]);
        pthread_mutex_lock(&ahead->lock);
        ahead->made += status == MT_OK;
        ahead->status = status;
        ahead->waits = false;
        pthread_cond_signal(&ahead->changed);
    }
    pthread_mutex_unlock(&ahead->lock);
    return NULL;
}

enum mt_status mt_source_change_symbols(struct mt_source *source)
{
    struct mt_ahead *ahead = source ? source->ahead : NULL;

    if (!ahead)
        return MT_OK;
    pthread_mutex_lock(&ahead->lock);
    while (!ahead->waits && !ahead->stops)
        pthread_cond_wait(&ahead->changed, &ahead->lock);
    enum mt_status status = ahead->waits ? MT_OK : MT_END;
    pthread_mutex_unlock(&ahead->lock);
    return status;
}

static const struct ahead_batch *last_taken(const struct mt_ahead *ahead)
{
    return &ahead->batches[(ahead->taken - 1) % AHEAD_BATCHES];
}

static void free_ahead(struct mt_source *source)
{
    for (size_t i = 0; i < AHEAD_BATCHES; i++)
        free(source->ahead->batches[i].batch.events);
    free(source->ahead);
    source->ahead = NULL;
}

/* Before the end of the reading, the batches that the reader did not take do not count. */
static void stop_ahead(struct mt_source *source, bool at_end)
{
    if (!source->ahead)
        return;
    pthread_mutex_lock(&source->ahead->lock);
    source->ahead->stops = true;
    pthread_cond_signal(&source->ahead->changed);
    pthread_mutex_unlock(&source->ahead->lock);
    pthread_join(source->ahead->thread, NULL);
    if (!at_end) {
        source->integrity = last_taken(source->ahead)->integrity;
        source->progress_bytes = last_taken(source->ahead)->progress_bytes;
    }
    free_ahead(source);
}

/* Without a second thread, this one goes on alone. */
static void start_ahead(struct mt_source *source)
{
    source->ahead = calloc(1, sizeof *source->ahead);
    if (!source->ahead)
        return;
    source->ahead->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    source->ahead->changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    source->reads_ahead = !pthread_create(&source->ahead->thread, NULL, read_ahead, source);
    if (!source->reads_ahead)
        free_ahead(source);
}

static enum mt_status take_ahead(struct mt_source *source, struct mt_event_batch *batch,
                                 struct mt_error *error)
{
    struct mt_ahead *ahead = source->ahead;
    enum mt_status status = MT_OK;

    pthread_mutex_lock(&ahead->lock);
    ahead->done = ahead->taken;
    pthread_cond_signal(&ahead->changed);
    ahead->waits = ahead->made == ahead->taken && ahead->status == MT_OK;
    while (ahead->waits)
        pthread_cond_wait(&ahead->changed, &ahead->lock);
    if (ahead->made == ahead->taken)
        status = ahead->status;
    pthread_mutex_unlock(&ahead->lock);
    if (status == MT_OK) {
        *batch = ahead->batches[ahead->taken++ % AHEAD_BATCHES].batch;
        return MT_OK;
    }
    if (status != MT_END && error)
        *error = ahead->error;
    stop_ahead(source, true);
    return status;
}

void mt_source_read_ahead(struct mt_source *source, bool ahead)
{
    stop_ahead(source, false);
    source->reads_ahead = ahead;
}

void mt_source_leave(struct mt_source *source)
{
    stop_ahead(source, false);
    source->integrity = source->whole_integrity;
}

/* All events are decoded here, so every pass is counted. */
static enum mt_status decode(struct mt_source *source, struct mt_event_batch *batch,
                             struct mt_error *error)
{
    enum mt_status status;

    if (source->reads_ahead && (source->symbols_complete || source->announces_changes) &&
        !source->ahead && source->events_read - source->events_read_before >= MIN_AHEAD_EVENTS)
        start_ahead(source);
    status =
        source->ahead ? take_ahead(source, batch, error) : source->ops->next(source, batch, error);
    source->readings += !source->reading_begun;
    source->reading_begun = true;
    source->symbols_complete |= status == MT_END && defined_all(&source->integrity);
    if (status == MT_END)
        source->whole_integrity = source->integrity;
    if (status != MT_OK)
        return status;
    source->events_read += batch->count;
    if (source->header.dry_run)
        forget_times(batch);
    if (source->watch.was_read)
        source->watch.was_read(source->watch.context, source);
    return status;
}

static enum mt_status take(struct mt_source *source, struct mt_event_batch *batch,
                           struct mt_error *error)
{
    *batch = source->unread;
    source->unread = (struct mt_event_batch){0};
    return batch->count ? MT_OK : decode(source, batch, error);
}

enum mt_status mt_source_next(struct mt_source *source, struct mt_event_batch *batch,
                              struct mt_error *error)
{
    enum mt_status status;

    do {
        status = take(source, batch, error);
        if (status == MT_END)
            return overlay_end(&source->overlay, batch);
        if (status == MT_OK)
            heap_view_apply(&source->view, &source->symbols, batch);
        if (status == MT_OK && overlay_apply(&source->overlay, batch))
            return mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "%s", mt_status_text(MT_ERR_MEMORY));
    } while (status == MT_OK && batch->count == 0);
    return status;
}

enum mt_status mt_source_rewind(struct mt_source *source, struct mt_error *error)
{
    stop_ahead(source, false);
    source->unread.count = 0;
    source->reading_begun = false;
    source->events_read_before = source->events_read;
    overlay_rewind(&source->overlay);
    return source->ops->rewind(source, error);
}

static enum mt_status skip_all(struct mt_source *source, struct mt_error *error)
{
    struct mt_event_batch batch;
    enum mt_status status;

    while ((status = mt_source_next(source, &batch, error)) == MT_OK)
        ;
    return status == MT_END ? MT_OK : status;
}

enum mt_status mt_source_complete_symbols(struct mt_source *source, struct mt_error *error)
{
    if (source->symbols_complete || source->input_bytes < MIN_LONG_BYTES)
        return MT_OK;
    stop_ahead(source, false);
    enum mt_status status = source->ops->complete_symbols
                                ? source->ops->complete_symbols(source, error)
                                : skip_all(source, error);
    return status == MT_OK ? mt_source_rewind(source, error) : status;
}

double mt_source_share(const struct mt_source *source)
{
    const uint64_t bytes =
        source->ahead ? last_taken(source->ahead)->progress_bytes : source->progress_bytes;

    if (!source->input_bytes)
        return 0;
    return (double)mt_min_u64(bytes, source->input_bytes) / (double)source->input_bytes;
}

enum mt_status mt_source_each(struct mt_source *source,
                              enum mt_status (*on_event)(void *self, struct mt_event *event),
                              void *self, struct mt_error *error)
{
    struct mt_event_batch batch;
    enum mt_status status;

    while ((status = mt_source_next(source, &batch, error)) == MT_OK) {
        for (size_t i = 0; i < batch.count; i++) {
            status = on_event(self, &batch.events[i]);
            if (status != MT_OK)
                return status;
        }
    }
    return status == MT_END ? MT_OK : status;
}

void mt_source_close(struct mt_source *source)
{
    if (!source)
        return;
    stop_ahead(source, false);
    mt_overlay_release(&source->overlay);
    source->ops->close(source);
}

bool mt_header_names_operations(const struct mt_trace_header *header)
{
    return header->has_stacks && header->sources && !strcmp(header->sources, MT_SOURCES_XPLANE);
}
