#include "job_gallery.h"

#include <string.h>

#include "backends.h"

static const char *path_of(struct mt_arena *arena, const char *directory, const char *name,
                           const char *ending)
{
    size_t length = strlen(directory);
    const char *slash = length && directory[length - 1] != '/' ? "/" : "";

    return mt_arena_printf(arena, "%s%s%s.%s", directory, slash, name, ending);
}

/* Lists the files in the order of the charts, SVG before PNG. */
static void list_files(const struct mt_job_report *report, const char *directory,
                       struct mt_gallery *gallery)
{
    size_t charts = 0;

    while (mt_job_charts[charts])
        charts++;
    gallery->files = mt_arena_array(&gallery->arena, 2 * charts + 1, sizeof *gallery->files);
    for (size_t i = 0; i < charts; i++) {
        const struct mt_job_chart *chart = mt_job_charts[i];

        if (chart->called_for && !chart->called_for(report))
            continue;
        for (int is_png = 0; is_png <= !gallery->no_png.status; is_png++) {
            struct mt_gallery_file *file = &gallery->files[gallery->count];

            file->path = path_of(&gallery->arena, directory, chart->name, is_png ? "png" : "svg");
            file->chart = chart->name;
            file->is_png = is_png;
            gallery->count++;
        }
    }
}

static void begin(const struct mt_job_report *report, const char *directory,
                  struct mt_gallery *gallery)
{
    memset(gallery, 0, sizeof *gallery);
    (void)mt_png_available(&gallery->no_png);
    list_files(report, directory, gallery);
}

static enum mt_status first_failure(const struct mt_gallery *gallery, struct mt_error *error)
{
    for (size_t i = 0; i < gallery->count; i++) {
        if (gallery->files[i].status == MT_OK)
            continue;
        *error = gallery->files[i].error;
        return gallery->files[i].status;
    }
    return MT_OK;
}

enum mt_status mt_job_gallery_check(const struct mt_job_report *report,
                                    const struct mt_job_gallery_options *options,
                                    struct mt_gallery *gallery, struct mt_error *error)
{
    begin(report, options->directory, gallery);
    for (size_t i = 0; i < gallery->count; i++) {
        struct mt_gallery_file *file = &gallery->files[i];

        file->status = mt_output_check(file->path, &options->rules[file->is_png], &file->error);
    }
    return first_failure(gallery, error);
}

static void write_file(const struct mt_job_gallery_options *options,
                       const struct mt_drawing *drawing, struct mt_gallery_file *file)
{
    struct mt_buf bytes = {0};

    file->status = mt_drawing_write(drawing, options->theme, file->is_png, &bytes, &file->error);
    if (file->status == MT_OK)
        file->status = mt_output_write(file->path, &options->rules[file->is_png], bytes.data,
                                       bytes.length, &file->error);
    file->bytes = bytes.length;
    mt_buf_release(&bytes);
}

/* Makes one drawing and writes it in each file format. */
static void write_chart(const struct mt_job_report *report,
                        const struct mt_job_gallery_options *options, struct mt_gallery_file *files,
                        size_t count)
{
    const struct mt_job_chart *chart = mt_job_chart_find(files->chart);
    struct mt_drawing drawing;
    struct mt_error error = {.offset = MT_NO_OFFSET};

    memset(&drawing, 0, sizeof drawing);
    chart->draw(report, &options->chart, &drawing);
    for (size_t i = 0; i < count; i++) {
        files[i].status = MT_OK;
        files[i].error = error;
        write_file(options, &drawing, &files[i]);
    }
    mt_drawing_release(&drawing);
}

enum mt_status mt_job_gallery_write(const struct mt_job_report *report,
                                    const struct mt_job_gallery_options *options,
                                    struct mt_gallery *gallery, struct mt_error *error)
{
    size_t kinds;

    begin(report, options->directory, gallery);
    kinds = gallery->no_png.status ? 1 : 2;
    for (size_t i = 0; i < gallery->count; i += kinds)
        write_chart(report, options, &gallery->files[i], kinds);
    return first_failure(gallery, error);
}
