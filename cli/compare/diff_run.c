#include "diff_run.h"

#include "diff_chart.h"
#include "foreign_text.h"
#include "memory_limit.h"
#include "report_html.h"

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
    struct mt_analyze_options options = {.path = request->a,
                                         .question = request->question,
                                         .by_segment = true,
                                         .models = request->models};

    memset(run, 0, sizeof *run);
    int code = mt_question_run_with(request->a, common, &options, &run->a);
    options.path = request->b;
    if (code < 0)
        code = mt_question_run_with(request->b, common, &options, &run->b);
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

    for (uint32_t i = 0; i < diff->device_count; i++)
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

    mt_diff_run_draw(run, question, picture, &drawing);
    int code = mt_picture_write(picture, &drawing, &bytes);
    if (code == MT_EXIT_OK && common->json)
        code = mt_picture_print_json(picture, "diff", device ? device->b->device : -1, bytes);
    mt_drawing_release(&drawing);
    return code;
}

static void draw_planned(const void *view, const struct mt_picture_plan *plan,
                         struct mt_drawing *drawing)
{
    const struct mt_chart_options options = {.width = 0};

    (void)plan;
    mt_diff_draw(view, &options, drawing);
}

/* The picture as one of a gallery. `view` is NULL if only the names of the files matter. */
static struct mt_pictures pictures_of(struct mt_arena *arena, const struct mt_diff_view *view)
{
    struct mt_pictures pictures = {.report = view, .count = 1, .draw = draw_planned};

    pictures.list = mt_arena_array(arena, 1, sizeof *pictures.list);
    *pictures.list = (struct mt_picture_plan){.name = "diff", .chart_name = "diff"};
    return pictures;
}

static struct mt_gallery_options gallery_options(const struct mt_diff_folder *folder)
{
    return (struct mt_gallery_options){
        .directory = folder->directory,
        .rules = {mt_output_rules_of(folder->outputs, &mt_file_svg),
                  mt_output_rules_of(folder->outputs, &mt_file_png)}};
}

int mt_diff_folder_precheck(const struct mt_diff_folder *folder)
{
    const struct mt_gallery_options options = gallery_options(folder);
    struct mt_gallery gallery = {.count = 0};
    const struct mt_pictures pictures = pictures_of(&gallery.arena, NULL);
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct mt_buf path = {0};

    mt_outputs_add_path(&path, folder->directory, "diff.html");
    int code = mt_output_precheck(path.data, folder->outputs, &mt_file_page);
    if (!code && mt_pictures_check(&pictures, &options, &gallery, &error) != MT_OK)
        code = mt_report_picture_errors(&gallery, folder->directory, &error);
    mt_gallery_release(&gallery);
    mt_buf_release(&path);
    return code;
}

static int write_page(const struct mt_diff_folder *folder, const struct mt_diff_html *page,
                      struct mt_buf *names)
{
    struct mt_buf document = {0}, path = {0};

    mt_diff_html_add(&document, page);
    mt_outputs_add_path(&path, folder->directory, "diff.html");
    int code = mt_outputs_write(path.data, folder->outputs, &mt_file_page, &document);
    mt_buf_add_text(names, "  ");
    mt_buf_add_printable(names, path.data, path.length);
    mt_buf_add_char(names, '\n');
    mt_buf_release(&path);
    mt_buf_release(&document);
    return code;
}

int mt_diff_folder_write(const struct mt_diff_folder *folder, const struct mt_diff_run *run,
                         const struct mt_question *question, const char *answer,
                         struct mt_buf *names)
{
    const struct mt_diff_html page = {&run->diff, choose(&run->diff), question, answer};
    const struct mt_diff_view view = {page.diff, page.device, question};
    const struct mt_gallery_options options = gallery_options(folder);
    struct mt_gallery gallery = {.count = 0};
    const struct mt_pictures pictures = pictures_of(&gallery.arena, &view);
    struct mt_error error = {.offset = MT_NO_OFFSET};
    int code = write_page(folder, &page, names);

    if (!code && mt_pictures_write(&pictures, &options, &gallery, &error) != MT_OK)
        code = mt_report_picture_errors(&gallery, folder->directory, &error);
    if (!code)
        mt_add_picture_names(names, &gallery);
    mt_gallery_release(&gallery);
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
