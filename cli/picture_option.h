/* Options of a picture: its file, size, and colors; for the commands that draw one. */
#ifndef MT_CLI_PICTURE_OPTION_H
#define MT_CLI_PICTURE_OPTION_H

#include "chart.h"
#include "outputs.h"

struct mt_picture {
    const char *output, *size, *theme; /* as given; NULL = not given */
    const struct mt_outputs *outputs;  /* what may be replaced */
    /* the parsed values */
    double width, height;
    enum mt_theme theme_kind;
    bool is_png;
};

#define MT_PICTURE_SIZE_OPTIONS(picture)                                                           \
    {"size",                                                                                       \
     0,                                                                                            \
     MT_OPTION_TEXT,                                                                               \
     "WxH",                                                                                        \
     "logical pixels; a PNG has twice as many in each direction",                                  \
     &(picture).size},                                                                             \
    {                                                                                              \
        "theme", 0, MT_OPTION_TEXT, "NAME", "auto (follows the viewer, SVG only), light or dark",  \
            &(picture).theme                                                                       \
    }

/* Parses the options. Prints an error and returns false if one is invalid. An output must be set.
 */
bool mt_picture_read(struct mt_picture *picture, const struct mt_common *common);

/* As mt_output_precheck. */
int mt_picture_precheck(const struct mt_picture *picture);

/* Writes the drawing. Prints errors; returns enum mt_exit. *bytes: size of the file. */
int mt_picture_write(const struct mt_picture *picture, const struct mt_drawing *drawing,
                     size_t *bytes);

/* Prints what was drawn as JSON, "memtrace.render/1". device < 0: the picture is of no device.
 * Returns enum mt_exit. */
int mt_picture_tell(const struct mt_picture *picture, const char *chart, long device, size_t bytes);

#endif
