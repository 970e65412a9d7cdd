#include "extra_pictures.h"

#include <string.h>

#include "backends.h"
#include "diff_chart.h"
#include "diff_picture.h"

/* DIR/NAME.svg, and .png if this program can. */
static int write_both(const struct mt_extra_pictures *pictures, const char *name,
                      const struct mt_drawing *drawing, struct mt_buf *names)
{
    size_t length = strlen(pictures->directory), bytes;
    int code = MT_EXIT_OK, i;

    while (length > 1 && pictures->directory[length - 1] == '/')
        length--;
    for (i = 0; i <= mt_png_available() && !code; i++) {
        struct mt_picture picture = {.is_png = i};
        struct mt_buf path = {0};

        mt_buf_printf(&path, "%.*s/%s.%s", (int)length, pictures->directory, name,
                      i ? "png" : "svg");
        picture.output = path.data ? path.data : "";
        code = mt_picture_write(&picture, drawing, &bytes);
        if (!code && !i) {
            mt_buf_add_text(names, "  ");
            mt_buf_add_printable(names, path.data, path.length);
        }
        mt_buf_release(&path);
    }
    if (!code)
        mt_buf_add_text(names, mt_png_available() ? " and .png\n" : "\n");
    return code;
}

static int write_diff(const struct mt_extra_pictures *pictures, struct mt_buf *names)
{
    const struct mt_question at_peak = {.at = MT_AT_PEAK};
    const struct mt_diff_wish wish = {.a = pictures->base,
                                      .b = pictures->path,
                                      .question = &at_peak,
                                      .device = MT_EVERY_DEVICE,
                                      .finds_format_of_a = true};
    struct mt_drawing drawing;
    struct mt_diff_run run;
    int code = mt_diff_run_open(&wish, pictures->common, &run);

    if (code < 0) {
        code = mt_diff_run_draw(&run, &at_peak, NULL, &drawing);
        if (!code)
            code = write_both(pictures, "diff", &drawing, names);
        mt_drawing_release(&drawing);
    }
    mt_diff_run_close(&run);
    return code;
}

int mt_extra_pictures_write(const struct mt_extra_pictures *pictures, struct mt_buf *names)
{
    bool is_read = !strcmp(pictures->path, "-");

    if (is_read && pictures->base && !pictures->common->quiet)
        mt_say("no picture of what changed: standard input cannot be read a second time");
    return pictures->base && !is_read ? write_diff(pictures, names) : MT_EXIT_OK;
}
