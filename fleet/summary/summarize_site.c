/* Sites as paths of a set: the frame of the site below the user's own frame, if they differ. */
#include "summarize_parts.h"

#include <string.h>

static enum mt_status add_frame(const struct mt_summarizing *work, uint32_t frame, uint32_t *path)
{
    const char *label;

    if (frame == MT_NO_ID)
        return MT_OK;
    label = mt_frame_label(work->arena, work->report->symbols, frame);
    return mt_rank_set_path(work->set, *path, label, strlen(label), path);
}

enum mt_status mt_summarize_site(const struct mt_summarizing *work, struct mt_site site,
                                 uint32_t *path)
{
    enum mt_status status;

    *path = MT_NO_PATH;
    status = add_frame(work, site.own, path);
    return status == MT_OK ? add_frame(work, site.frame, path) : status;
}
