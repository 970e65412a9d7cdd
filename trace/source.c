#include "source.h"

enum mt_status mt_source_next(struct mt_source *source, struct mt_event_batch *batch,
                              struct mt_error *error)
{
    batch->events = NULL;
    batch->count = 0;
    return source->ops->next(source, batch, error);
}

enum mt_status mt_source_rewind(struct mt_source *source, struct mt_error *error)
{
    return source->ops->rewind(source, error);
}

void mt_source_close(struct mt_source *source)
{
    if (source)
        source->ops->close(source);
}
