#include "overlay.h"

#include "check.h"
#include "grow.h"

#include <stdlib.h>
#include <string.h>

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

enum mt_status mt_overlay_apply(struct mt_overlay *overlay, struct mt_event_batch *batch)
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

enum mt_status mt_overlay_end(struct mt_overlay *overlay, struct mt_event_batch *batch)
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

void mt_overlay_rewind(struct mt_overlay *overlay)
{
    overlay->next = 0;
}

void mt_overlay_release(struct mt_overlay *overlay)
{
    free(overlay->events);
    free(overlay->merged);
    memset(overlay, 0, sizeof *overlay);
}
