#include "extra_pictures.h"

#include <string.h>

#include "backends.h"
#include "diff_chart.h"
#include "diff_run.h"

/* DIR/NAME.svg or DIR/NAME.png. */
static void add_path(struct mt_buf *path, const struct mt_extra_pictures *pictures,
                     const char *name, bool is_png)
{
    mt_add_path_in(path, pictures->directory, name);
    mt_buf_add_text(path, is_png ? ".png" : ".svg");
}

static int precheck_both(const struct mt_extra_pictures *pictures, const char *name)
{
    int code = MT_EXIT_OK, i;

    for (i = 0; i <= mt_png_available(NULL) && !code; i++) {
        struct mt_picture picture = {.is_png = i, .outputs = pictures->outputs};
        struct mt_buf path = {0};

        add_path(&path, pictures, name, i);
        picture.output = path.data;
        code = mt_picture_precheck(&picture);
        mt_buf_release(&path);
    }
    return code;
}

/* Writes both forms, if this program supports PNG. */
static int write_both(const struct mt_extra_pictures *pictures, const char *name,
                      const struct mt_drawing *drawing, struct mt_buf *names)
{
    size_t bytes;
    int code = MT_EXIT_OK, i;

    for (i = 0; i <= mt_png_available(NULL) && !code; i++) {
        struct mt_picture picture = {.is_png = i, .outputs = pictures->outputs};
        struct mt_buf path = {0};

        add_path(&path, pictures, name, i);
        picture.output = path.data ? path.data : "";
        code = mt_picture_write(&picture, drawing, &bytes);
        if (!code && !i) {
            mt_buf_add_text(names, "  ");
            mt_buf_add_printable(names, path.data, path.length);
        }
        mt_buf_release(&path);
    }
    if (!code)
        mt_buf_add_text(names, mt_png_available(NULL) ? " and .png\n" : "\n");
    return code;
}

static int write_diff(const struct mt_extra_pictures *pictures, struct mt_buf *names)
{
    const struct mt_question at_peak = {.at = MT_AT_PEAK};
    const struct mt_diff_request request = {
        .a = pictures->base, .b = pictures->path, .question = &at_peak, .device = MT_EVERY_DEVICE};
    struct mt_drawing drawing;
    struct mt_diff_run run;
    int code = mt_diff_run_open(&request, pictures->common, &run);

    if (code < 0) {
        mt_diff_run_draw(&run, &at_peak, NULL, &drawing);
        code = write_both(pictures, "diff", &drawing, names);
        mt_drawing_release(&drawing);
    }
    mt_diff_run_close(&run);
    return code;
}

int mt_extra_pictures_precheck(const struct mt_extra_pictures *pictures)
{
    if (!pictures->base || !strcmp(pictures->path, "-"))
        return MT_EXIT_OK;
    return precheck_both(pictures, "diff");
}

int mt_extra_pictures_write(const struct mt_extra_pictures *pictures, struct mt_buf *names)
{
    if (!pictures->base)
        return MT_EXIT_OK;
    if (strcmp(pictures->path, "-") != 0)
        return write_diff(pictures, names);
    if (!pictures->common->quiet)
        mt_say("standard input cannot be read a second time: no picture of the difference");
    return MT_EXIT_OK;
}
