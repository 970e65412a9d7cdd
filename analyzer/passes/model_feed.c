#include "model_feed.h"

void mt_model_feeds_release(struct mt_model_feeds *feeds)
{
    for (uint32_t i = 0; i < feeds->count; i++)
        if (feeds->feeds[i].release)
            feeds->feeds[i].release(feeds->feeds[i].builder);
    feeds->count = 0;
}
