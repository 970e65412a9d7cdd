#include "lost_events.h"

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
