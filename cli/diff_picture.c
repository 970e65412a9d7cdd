#include "diff_picture.h"

#include "diff_chart.h"

static const struct mt_device_diff *choose(const struct mt_diff *diff)
{
    const struct mt_device_diff *best = NULL;
    uint32_t i;

    for (i = 0; i < diff->device_count; i++)
        if (!best || diff->devices[i].b->reserved_peak.bytes > best->b->reserved_peak.bytes)
            best = &diff->devices[i];
    return best;
}

int mt_diff_picture(const struct mt_diff_run *run, const struct mt_question *question,
                    const struct mt_picture *picture, const struct mt_common *common)
{
    const struct mt_chart_options options = {.width = picture->width, .height = picture->height};
    const struct mt_diff_view view = {&run->diff, choose(&run->diff), question};
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct mt_drawing drawing;
    size_t bytes;
    int code;

    if (mt_diff_draw(&view, &options, &drawing, &error) != MT_OK) {
        mt_say("cannot draw '%s': %s", picture->output, error.text);
        code = MT_EXIT_OUTPUT;
    } else {
        code = mt_picture_write(picture, &drawing, &bytes);
        if (code == MT_EXIT_OK && common->json)
            code =
                mt_picture_tell(picture, "diff", view.device ? view.device->b->device : -1, bytes);
    }
    mt_drawing_release(&drawing);
    return code;
}

int mt_diff_render(const struct mt_diff_wish *wish, const struct mt_picture *picture,
                   const struct mt_common *common)
{
    struct mt_diff_run run;
    int code = mt_diff_run_open(wish, common, &run);

    if (code < 0) {
        code = mt_diff_picture(&run, wish->question, picture, common);
        code = mt_diff_run_verdict(&run, common, code);
    }
    mt_diff_run_close(&run);
    return code;
}
