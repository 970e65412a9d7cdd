/* See lost_events.h. */
#include "lost_events.h"

void mt_lost_events_add(struct mt_lost_events *lost, const struct mt_event *event)
{
    size_t i = 0;

    if (event->kind != MT_EVENT_DROPPED)
        return;
    while (i < lost->count && lost->reasons[i].name != event->name)
        i++;
    if (i == MT_LOST_REASONS)
        i--;
    if (i == lost->count)
        lost->reasons[lost->count++] = (struct mt_lost_reason){event->name, 0};
    lost->reasons[i].events += event->size_bytes;
}
