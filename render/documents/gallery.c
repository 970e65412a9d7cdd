/* A picture is a job for a thread. It is drawn once, then written in each file format. Threads take
 * the next job from a counter. */
#include "gallery.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "device_choice.h"
#include "report_query.h"

#define MAX_THREADS 8

struct work {
    const struct mt_pictures *pictures;
    const struct mt_gallery_options *options;
    struct mt_gallery *gallery;
    pthread_mutex_t mutex;
    size_t next; /* the next picture to draw */
};

static bool append(void *context, const void *bytes, size_t length)
{
    mt_buf_add(context, bytes, length);
    return true;
}

enum mt_status mt_drawing_write(const struct mt_drawing *drawing, enum mt_theme theme, bool is_png,
                                struct mt_buf *out, struct mt_error *error)
{
    const struct mt_png_sink sink = {append, out};

    if (is_png)
        return mt_png_stream(drawing, theme, MT_PNG_SCALE, &sink, error);
    mt_svg_write(drawing, theme, out);
    return MT_OK;
}

static void write_file(const struct work *work, const struct mt_drawing *drawing,
                       struct mt_gallery_file *file)
{
    struct mt_buf bytes = {0};

    file->status =
        mt_drawing_write(drawing, work->options->theme, file->is_png, &bytes, &file->error);
    if (file->status == MT_OK)
        file->status = mt_output_write(file->path, &work->options->rules[file->is_png], bytes.data,
                                       bytes.length, &file->error);
    file->bytes = bytes.length;
    mt_buf_release(&bytes);
}

/* Makes one drawing and writes it as SVG and as PNG. */
static void write_picture(const struct work *work, size_t index)
{
    const struct mt_pictures *pictures = work->pictures;
    size_t files = work->gallery->no_png.status ? 1 : 2;
    struct mt_gallery_file *file = &work->gallery->files[index * files];
    struct mt_drawing drawing = {0};

    pictures->draw(pictures->report, &pictures->list[index], &drawing);
    for (; files; files--, file++) {
        file->status = MT_OK;
        file->error = (struct mt_error){.offset = MT_NO_OFFSET};
        write_file(work, &drawing, file);
    }
    mt_drawing_release(&drawing);
}

/* Returns the number of pictures if all were taken. */
static size_t take_picture(struct work *work)
{
    pthread_mutex_lock(&work->mutex);
    size_t index = work->next < work->pictures->count ? work->next++ : work->pictures->count;
    pthread_mutex_unlock(&work->mutex);
    return index;
}

static void *run_jobs(void *context)
{
    struct work *work = context;
    size_t index;

    while ((index = take_picture(work)) < work->pictures->count)
        write_picture(work, index);
    return NULL;
}

static void run_own_jobs(struct work *work)
{
    const struct mt_gallery_options *options = work->options;
    size_t index;

    while ((index = take_picture(work)) < work->pictures->count) {
        if (options->progress)
            options->progress(options->context, (double)index / (double)work->pictures->count);
        write_picture(work, index);
    }
}

static void run_threads(struct work *work, unsigned wanted)
{
    pthread_t threads[MAX_THREADS];
    unsigned started = 0;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    if (!wanted)
        wanted = processors > 0 ? (unsigned)processors : 1;
    if (wanted > MAX_THREADS)
        wanted = MAX_THREADS;
    if (wanted > work->pictures->count)
        wanted = (unsigned)work->pictures->count;
    pthread_mutex_init(&work->mutex, NULL);
    /* This thread also takes jobs, so they are done even if no thread can be started. */
    while (started + 1 < wanted && !pthread_create(&threads[started], NULL, run_jobs, work))
        started++;
    if (work->options->meanwhile)
        work->options->meanwhile(work->options->context);
    run_own_jobs(work);
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&work->mutex);
}

static void list_files(struct work *work)
{
    const char *directory = work->options->directory ? work->options->directory : "";
    size_t length = strlen(directory);
    const char *slash = length && directory[length - 1] != '/' ? "/" : "";
    struct mt_gallery *gallery = work->gallery;

    (void)mt_png_available(&gallery->no_png);
    gallery->files =
        mt_arena_array(&gallery->arena, 2 * work->pictures->count + 1, sizeof *gallery->files);
    for (size_t i = 0; i < work->pictures->count; i++)
        for (int is_png = 0; is_png <= !gallery->no_png.status; is_png++) {
            const struct mt_picture_plan *plan = &work->pictures->list[i];

            gallery->files[gallery->count++] = (struct mt_gallery_file){
                .path = mt_arena_printf(&gallery->arena, "%s%s%s.%s", directory, slash, plan->name,
                                        is_png ? "png" : "svg"),
                .chart = plan->chart_name,
                .device = plan->device ? plan->device->device : 0,
                .is_png = is_png};
        }
}

static enum mt_status first_failure(const struct mt_gallery *gallery, struct mt_error *error)
{
    for (size_t i = 0; i < gallery->count; i++) {
        if (gallery->files[i].status == MT_OK)
            continue;
        if (error)
            *error = gallery->files[i].error;
        return gallery->files[i].status;
    }
    return MT_OK;
}

enum mt_status mt_pictures_check(const struct mt_pictures *pictures,
                                 const struct mt_gallery_options *options,
                                 struct mt_gallery *gallery, struct mt_error *error)
{
    struct work work = {.pictures = pictures, .options = options, .gallery = gallery};

    list_files(&work);
    for (size_t i = 0; i < gallery->count; i++) {
        struct mt_gallery_file *file = &gallery->files[i];

        file->status = mt_output_check(file->path, &options->rules[file->is_png], &file->error);
    }
    return first_failure(gallery, error);
}

enum mt_status mt_pictures_write(const struct mt_pictures *pictures,
                                 const struct mt_gallery_options *options,
                                 struct mt_gallery *gallery, struct mt_error *error)
{
    struct work work = {.pictures = pictures, .options = options, .gallery = gallery};

    list_files(&work);
    run_threads(&work, options->threads);
    return first_failure(gallery, error);
}

static void draw_chart(const void *report, const struct mt_picture_plan *plan,
                       struct mt_drawing *drawing)
{
    const struct mt_chart *chart = plan->chart;
    const struct mt_chart_options options = {.event_axis =
                                                 mt_is_shown_by_event(report, plan->device)};

    chart->draw(report, plan->device, &options, drawing);
}

static struct mt_pictures pictures_of(const struct mt_report *report, struct mt_gallery *gallery)
{
    const struct mt_device_choice choice = mt_devices_in_order(report);
    size_t devices = choice.count ? choice.count : 1, charts = 0;
    struct mt_pictures pictures = {.report = report, .draw = draw_chart};

    while (mt_charts[charts])
        charts++;
    *gallery = (struct mt_gallery){.devices = choice.count, .devices_omitted = choice.omitted};
    pictures.list = mt_arena_array(&gallery->arena, devices * charts, sizeof *pictures.list);
    for (size_t i = 0; i < devices * charts; i++) {
        const struct mt_chart *chart = mt_charts[i % charts];
        const struct mt_device_report *device = choice.devices[i / charts];
        const char *name = chart->name;

        if (!mt_chart_is_called_for(chart, report, device))
            continue;
        if (device && report->device_count > 1)
            name = mt_arena_printf(&gallery->arena, "%s.device%u", chart->name,
                                   (unsigned)device->device);
        pictures.list[pictures.count++] =
            (struct mt_picture_plan){name, chart->name, chart, device};
    }
    return pictures;
}

enum mt_status mt_gallery_check(const struct mt_report *report,
                                const struct mt_gallery_options *options,
                                struct mt_gallery *gallery, struct mt_error *error)
{
    const struct mt_pictures pictures = pictures_of(report, gallery);

    return mt_pictures_check(&pictures, options, gallery, error);
}

enum mt_status mt_gallery_write(const struct mt_report *report,
                                const struct mt_gallery_options *options,
                                struct mt_gallery *gallery, struct mt_error *error)
{
    const struct mt_pictures pictures = pictures_of(report, gallery);

    return mt_pictures_write(&pictures, options, gallery, error);
}

void mt_gallery_release(struct mt_gallery *gallery)
{
    if (gallery)
        mt_arena_release(&gallery->arena);
}
