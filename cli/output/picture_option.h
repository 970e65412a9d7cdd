/* Options of commands that draw a picture: its file, size, and colors. */
#ifndef MT_CLI_PICTURE_OPTION_H
#define MT_CLI_PICTURE_OPTION_H

#include "chart.h"
#include "gallery.h"
#include "outputs.h"

struct mt_picture {
    const char *output, *size, *theme; /* texts of the options; NULL = not given */
    const struct mt_outputs *outputs;  /* which files may be replaced */
    /* the parsed values */
    double width, height;
    enum mt_theme theme_kind;
    bool is_png, is_page; /* page: .html */
    bool allows_page;     /* set by the caller */
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

/* Parses the options. `output` must be set. Prints an error and returns false if an option is
 * invalid. */
bool mt_picture_read(struct mt_picture *picture, const struct mt_common *common);

/* Adds the line of a report that was written without PNG pictures, unless `why` is MT_OK. */
void mt_picture_add_no_png(struct mt_buf *out, const struct mt_error *why);

/* Adds the names of the pictures that were written: "report/timeline.svg and .png". */
void mt_add_picture_names(struct mt_buf *out, const struct mt_gallery *gallery);

/* Prints an error for each picture that could not be written, or `error` if it prevented all of
 * them. Returns enum mt_exit. */
int mt_report_picture_errors(const struct mt_gallery *gallery, const char *directory,
                             const struct mt_error *error);

/* Calls mt_output_precheck for the file of the picture. */
int mt_picture_precheck(const struct mt_picture *picture);

/* Writes the drawing to the file. Sets *bytes to the size of the file. Prints errors; returns enum
 * mt_exit. */
int mt_picture_write(const struct mt_picture *picture, const struct mt_drawing *drawing,
                     size_t *bytes);

/* Writes a page instead of a drawing. Prints errors; returns enum mt_exit. */
int mt_picture_write_page(const struct mt_picture *picture, const struct mt_buf *page);

/* Prints a description of the picture as JSON, "memtrace.render/1". `device` is negative if the
 * picture does not show a device. Returns enum mt_exit. */
int mt_picture_print_json(const struct mt_picture *picture, const char *chart, long device,
                          size_t bytes);

#endif
