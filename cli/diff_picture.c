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

int mt_diff_run_draw(const struct mt_diff_run *run, const struct mt_question *question,
                     const struct mt_picture *picture, struct mt_drawing *drawing)
{
    const struct mt_chart_options options = {.width = picture ? picture->width : 0,
                                             .height = picture ? picture->height : 0};
    const struct mt_diff_view view = {&run->diff, choose(&run->diff), question};
    struct mt_error error = {.offset = MT_NO_OFFSET};

    if (mt_diff_draw(&view, &options, drawing, &error) == MT_OK)
        return MT_EXIT_OK;
    return mt_report_drawing_error("diff", &error);
}

int mt_diff_picture(const struct mt_diff_run *run, const struct mt_question *question,
                    const struct mt_picture *picture, const struct mt_common *common)
{
    const struct mt_device_diff *device = choose(&run->diff);
    struct mt_drawing drawing;
    size_t bytes;
    int code = mt_diff_run_draw(run, question, picture, &drawing);

    if (code == MT_EXIT_OK)
        code = mt_picture_write(picture, &drawing, &bytes);
    if (code == MT_EXIT_OK && common->json)
        code = mt_picture_tell(picture, "diff", device ? device->b->device : -1, bytes);
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
