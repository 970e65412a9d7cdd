/* Draws charts as files in a directory, on several processors: those that the report of a run
 * needs, for the devices that device_choice.h chooses, or a list of pictures of something else.
 * Never prints: the result lists the files that were written and those that failed. */
#ifndef MT_RENDER_GALLERY_H
#define MT_RENDER_GALLERY_H

#include "arena.h"
#include "backends.h"
#include "chart.h"
#include "output_file.h"

struct mt_gallery_options {
    const char *directory; /* created if it is missing; "" or "." = the current one */
    enum mt_theme theme;   /* theme of SVGs; PNGs are light unless it is MT_THEME_DARK */
    /* which existing files may be replaced: [0] by SVGs, [1] by PNGs */
    struct mt_output_rules rules[2];
    unsigned threads; /* 0 = as many as there are processors, at most 8 */
    /* Called in the calling thread, with the share of pictures that were begun. May be NULL. */
    void (*progress)(void *context, double share);
    /* Called in the calling thread while others draw, before it draws itself. May be NULL. */
    void (*meanwhile)(void *context);
    void *context;
};

struct mt_gallery_file {
    const char *path; /* "DIR/timeline.svg", "DIR/timeline.device1.png" */
    const char *chart;
    uint16_t device;
    bool is_png;
    uint64_t bytes;
    enum mt_status status; /* MT_OK = written */
    struct mt_error error; /* why the file was not written */
};

struct mt_gallery {
    struct mt_arena arena;
    struct mt_gallery_file *files; /* sorted by device and chart, SVG before PNG */
    size_t count;
    uint32_t devices, devices_omitted; /* number of devices that are drawn, and that are not */
    struct mt_error no_png;            /* if not MT_OK, why only SVGs are tried */
};

/* Checks whether every file may be written. Call it before the work begins. Fills *gallery and
 * returns a status like mt_gallery_write, but draws and writes nothing. Release *gallery in any
 * case. */
enum mt_status mt_gallery_check(const struct mt_report *report,
                                const struct mt_gallery_options *options,
                                struct mt_gallery *gallery, struct mt_error *error) MT_MUST_USE;

/* Draws and writes all files. If a file fails, continues with the others, and returns the status of
 * the first failure. Release *gallery in any case. */
enum mt_status mt_gallery_write(const struct mt_report *report,
                                const struct mt_gallery_options *options,
                                struct mt_gallery *gallery, struct mt_error *error) MT_MUST_USE;
void mt_gallery_release(struct mt_gallery *gallery);

/* A picture that is to be drawn. */
struct mt_picture_plan {
    const char *name;                      /* of the file: "timeline", "timeline.device1" */
    const char *chart_name;                /* "timeline" */
    const void *chart;                     /* what `draw` draws: a struct mt_chart for a run */
    const struct mt_device_report *device; /* NULL: the picture does not show a device */
};

struct mt_pictures {
    const void *report;
    struct mt_picture_plan *list;
    size_t count;
    /* Initializes *drawing. Several threads call it at the same time. */
    void (*draw)(const void *report, const struct mt_picture_plan *plan,
                 struct mt_drawing *drawing);
};

/* Like mt_gallery_check and mt_gallery_write, for pictures that are not those of a run. *gallery is
 * zeroed, except for the arena, which may hold the list. */
enum mt_status mt_pictures_check(const struct mt_pictures *pictures,
                                 const struct mt_gallery_options *options,
                                 struct mt_gallery *gallery, struct mt_error *error) MT_MUST_USE;
enum mt_status mt_pictures_write(const struct mt_pictures *pictures,
                                 const struct mt_gallery_options *options,
                                 struct mt_gallery *gallery, struct mt_error *error) MT_MUST_USE;

/* Appends the drawing as PNG or SVG. */
enum mt_status mt_drawing_write(const struct mt_drawing *drawing, enum mt_theme theme, bool is_png,
                                struct mt_buf *out, struct mt_error *error) MT_MUST_USE;

/* Device pixels in PNGs for each logical pixel. */
#define MT_PNG_SCALE 2.0

#endif
