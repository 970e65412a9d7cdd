#include "source.h"

#include <string.h>

#include "util.h"

/* The times of a simulated device show the speed of the simulation. Readers treat such a trace like
 * a snapshot without times. */
static void forget_times(struct mt_event_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        batch->events[i].t_ns = 0;
}

/* All events are decoded here, so every pass is counted. */
static enum mt_status decode(struct mt_source *source, struct mt_event_batch *batch,
                             struct mt_error *error)
{
    enum mt_status status = source->ops->next(source, batch, error);

    source->readings += !source->reading_begun;
    source->reading_begun = true;
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
            return mt_overlay_end(&source->overlay, batch);
        if (status == MT_OK)
            mt_heap_view_apply(&source->view, &source->symbols, batch);
        if (status == MT_OK && mt_overlay_apply(&source->overlay, batch))
            return mt_fail(error, MT_ERR_MEMORY, MT_NO_OFFSET, "%s", mt_status_text(MT_ERR_MEMORY));
    } while (status == MT_OK && batch->count == 0);
    return status;
}

enum mt_status mt_source_rewind(struct mt_source *source, struct mt_error *error)
{
    source->unread.count = 0;
    source->reading_begun = false;
    mt_overlay_rewind(&source->overlay);
    return source->ops->rewind(source, error);
}

double mt_source_share(const struct mt_source *source)
{
    if (!source->input_bytes)
        return 0;
    return (double)mt_min_u64(source->progress_bytes, source->input_bytes) /
           (double)source->input_bytes;
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
    mt_overlay_release(&source->overlay);
    source->ops->close(source);
}

bool mt_header_names_operations(const struct mt_trace_header *header)
{
    return header->has_stacks && header->sources && !strcmp(header->sources, MT_SOURCES_XPLANE);
}
