/* A picture is a job for a thread. It is drawn once, then written in each file format. Threads take
 * the next job from a counter. */
#include "gallery.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "device_choice.h"
#include "process_memory.h"
#include "report_query.h"

#define MAX_THREADS 8

struct work {
    const struct mt_report *report;
    const struct mt_gallery_options *options;
    struct mt_gallery *gallery;
    struct picture {
        const struct mt_chart *chart;
        const struct mt_device_report *device;
    } * pictures;
    pthread_mutex_t mutex;
    size_t picture_count, next; /* next: the next picture to draw */
};

enum mt_status mt_drawing_write(const struct mt_drawing *drawing, enum mt_theme theme, bool is_png,
                                struct mt_buf *out, struct mt_error *error)
{
    if (is_png)
        return mt_png_write(drawing, theme, MT_PNG_SCALE, out, error);
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
    const struct picture *picture = &work->pictures[index];
    size_t files = work->gallery->no_png.status ? 1 : 2;
    struct mt_gallery_file *file = &work->gallery->files[index * files];
    struct mt_drawing drawing = {0};
    struct mt_error error = {.offset = MT_NO_OFFSET};
    struct mt_chart_options options = work->options->chart;

    options.event_axis |= mt_is_shown_by_event(work->report, picture->device);
    picture->chart->draw(work->report, picture->device, &options, &drawing);
    for (; files; files--, file++) {
        file->status = MT_OK;
        file->error = error;
        write_file(work, &drawing, file);
    }
    mt_drawing_release(&drawing);
}

/* Returns picture_count if all pictures were taken. */
static size_t take_picture(struct work *work)
{
    size_t index;

    pthread_mutex_lock(&work->mutex);
    index = work->next < work->picture_count ? work->next++ : work->picture_count;
    pthread_mutex_unlock(&work->mutex);
    return index;
}

static void *run_jobs(void *context)
{
    struct work *work = context;
    size_t index;

    while ((index = take_picture(work)) < work->picture_count)
        write_picture(work, index);
    return NULL;
}

static void run_own_jobs(struct work *work)
{
    const struct mt_gallery_options *options = work->options;
    size_t index;

    while ((index = take_picture(work)) < work->picture_count) {
        if (options->progress)
            options->progress(options->context, (double)index / (double)work->picture_count);
        write_picture(work, index);
    }
}

static void run_threads(struct work *work, unsigned wanted)
{
    pthread_t threads[MAX_THREADS];
    unsigned started = 0, i;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    if (!wanted)
        wanted = processors > 0 ? (unsigned)processors : 1;
    if (wanted > MAX_THREADS)
        wanted = MAX_THREADS;
    if (wanted > work->picture_count)
        wanted = (unsigned)work->picture_count;
    pthread_mutex_init(&work->mutex, NULL);
    /* This thread also takes jobs, so they are done even if no thread can be started. */
    while (started + 1 < wanted && !pthread_create(&threads[started], NULL, run_jobs, work))
        started++;
    run_own_jobs(work);
    for (i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&work->mutex);
}

static const char *file_path(struct work *work, const struct mt_chart *chart,
                             const struct mt_device_report *device, const char *extension)
{
    const char *directory = work->options->directory;
    size_t length = directory ? strlen(directory) : 0;
    const char *slash = length && directory[length - 1] != '/' ? "/" : "";
    struct mt_arena *arena = &work->gallery->arena;

    if (device && work->report->device_count > 1)
        return mt_arena_printf(arena, "%s%s%s.device%u.%s", length ? directory : "", slash,
                               chart->name, (unsigned)device->device, extension);
    return mt_arena_printf(arena, "%s%s%s.%s", length ? directory : "", slash, chart->name,
                           extension);
}

static void add_files(struct work *work, const struct mt_chart *chart,
                      const struct mt_device_report *device)
{
    struct mt_gallery *gallery = work->gallery;
    int is_png;

    if (chart->called_for && !chart->called_for(work->report, device))
        return;
    for (is_png = 0; is_png <= !gallery->no_png.status; is_png++) {
        struct mt_gallery_file *file = &gallery->files[gallery->count];

        file->path = file_path(work, chart, device, is_png ? "png" : "svg");
        file->chart = chart->name;
        file->device = device ? device->device : 0;
        file->is_png = is_png;
        gallery->count++;
    }
    work->pictures[work->picture_count++] = (struct picture){chart, device};
}

static void list_files(struct work *work)
{
    const struct mt_report *report = work->report;
    struct mt_gallery *gallery = work->gallery;
    const struct mt_device_choice choice = mt_devices_in_order(report);
    size_t devices = choice.count ? choice.count : 1, charts = 0, i, c;

    while (mt_charts[charts])
        charts++;
    gallery->devices = choice.count;
    gallery->devices_omitted = choice.omitted;
    gallery->files = mt_arena_array(&gallery->arena, 2 * devices * charts, sizeof *gallery->files);
    work->pictures = mt_arena_array(&gallery->arena, devices * charts, sizeof *work->pictures);
    for (i = 0; i < devices; i++)
        for (c = 0; c < charts; c++)
            add_files(work, mt_charts[c], choice.devices[i]);
}

static void begin(struct work *work)
{
    memset(work->gallery, 0, sizeof *work->gallery);
    (void)mt_png_available(&work->gallery->no_png);
    list_files(work);
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

enum mt_status mt_gallery_check(const struct mt_report *report,
                                const struct mt_gallery_options *options,
                                struct mt_gallery *gallery, struct mt_error *error)
{
    struct work work = {.report = report, .options = options, .gallery = gallery};

    begin(&work);
    for (size_t i = 0; i < gallery->count; i++) {
        struct mt_gallery_file *file = &gallery->files[i];

        file->status = mt_output_check(file->path, &options->rules[file->is_png], &file->error);
    }
    return first_failure(gallery, error);
}

enum mt_status mt_gallery_write(const struct mt_report *report,
                                const struct mt_gallery_options *options,
                                struct mt_gallery *gallery, struct mt_error *error)
{
    struct work work = {.report = report, .options = options, .gallery = gallery};

    begin(&work);
    run_threads(&work, options->threads);
    return first_failure(gallery, error);
}

void mt_gallery_release(struct mt_gallery *gallery)
{
    if (gallery)
        mt_arena_release(&gallery->arena);
}
