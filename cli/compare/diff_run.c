#include "diff_run.h"

#include "diff_chart.h"
#include "memory_limit.h"

#include <string.h>

static bool lacks_device(const struct mt_question_report *asked, uint64_t device)
{
    return device != MT_EVERY_DEVICE && !mt_question_device(asked->report, device);
}

static int compare(const struct mt_diff_request *request, struct mt_diff_run *run)
{
    bool are_single = run->a.report->device_count == 1 && run->b.report->device_count == 1;
    uint64_t device_of_b = are_single ? MT_EVERY_DEVICE : request->device;
    int code = mt_question_check(&run->a, request->question, request->device);

    run->lacks_device = lacks_device(&run->a, request->device);
    if (code < 0) {
        code = mt_question_check(&run->b, request->question, device_of_b);
        run->lacks_device = lacks_device(&run->b, device_of_b);
    }
    if (code < 0)
        mt_diff_reports(&run->arena, run->a.report, run->b.report, request->device, &run->diff);
    return code;
}

int mt_diff_run_open(const struct mt_diff_request *request, const struct mt_common *common,
                     struct mt_diff_run *run)
{
    int code;

    memset(run, 0, sizeof *run);
    code = mt_question_run(request->a, common, request->question, &run->a);
    if (code < 0)
        code = mt_question_run(request->b, common, request->question, &run->b);
    mt_memory_input_set("");
    return code < 0 ? compare(request, run) : code;
}

int mt_diff_run_verdict(const struct mt_diff_run *run, const struct mt_common *common, int code)
{
    code = mt_answer_verdict(code, run->a.source, run->a.path, common);
    return mt_answer_verdict(code, run->b.source, run->b.path, common);
}

void mt_diff_run_close(struct mt_diff_run *run)
{
    mt_arena_release(&run->arena);
    mt_question_close(&run->a);
    mt_question_close(&run->b);
}

static const struct mt_device_diff *choose(const struct mt_diff *diff)
{
    const struct mt_device_diff *best = NULL;
    uint32_t i;

    for (i = 0; i < diff->device_count; i++)
        if (!best || diff->devices[i].b->reserved_peak.bytes > best->b->reserved_peak.bytes)
            best = &diff->devices[i];
    return best;
}

void mt_diff_run_draw(const struct mt_diff_run *run, const struct mt_question *question,
                      const struct mt_picture *picture, struct mt_drawing *drawing)
{
    const struct mt_chart_options options = {.width = picture ? picture->width : 0,
                                             .height = picture ? picture->height : 0};
    const struct mt_diff_view view = {&run->diff, choose(&run->diff), question};

    mt_diff_draw(&view, &options, drawing);
}

int mt_diff_picture(const struct mt_diff_run *run, const struct mt_question *question,
                    const struct mt_picture *picture, const struct mt_common *common)
{
    const struct mt_device_diff *device = choose(&run->diff);
    struct mt_drawing drawing;
    size_t bytes;
    int code;

    mt_diff_run_draw(run, question, picture, &drawing);
    code = mt_picture_write(picture, &drawing, &bytes);
    if (code == MT_EXIT_OK && common->json)
        code = mt_picture_print_json(picture, "diff", device ? device->b->device : -1, bytes);
    mt_drawing_release(&drawing);
    return code;
}

int mt_diff_render(const struct mt_diff_request *request, const struct mt_picture *picture,
                   const struct mt_common *common)
{
    struct mt_diff_run run;
    int code = mt_diff_run_open(request, common, &run);

    if (code < 0) {
        code = mt_diff_picture(&run, request->question, picture, common);
        code = mt_diff_run_verdict(&run, common, code);
    } else if (run.lacks_device) {
        code = MT_EXIT_INPUT; /* as for every other chart */
    }
    mt_diff_run_close(&run);
    return code;
}
