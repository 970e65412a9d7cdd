/* Draws the charts that a job needs as SVG and PNG files in a directory. Like gallery.h, it never
 * prints. The result lists the files that were written and those that failed. */
#ifndef MT_RENDER_JOB_GALLERY_H
#define MT_RENDER_JOB_GALLERY_H

#include "gallery.h"
#include "job_chart.h"

struct mt_job_gallery_options {
    const char *directory;
    enum mt_theme theme;
    struct mt_job_chart_options chart;
    /* which existing files may be replaced: [0] by SVGs, [1] by PNGs */
    struct mt_output_rules rules[2];
};

/* Checks whether every file may be written. Call it before the work begins. Fills *gallery and
 * returns a status like mt_job_gallery_write, but draws and writes nothing. Release *gallery in any
 * case. */
enum mt_status mt_job_gallery_check(const struct mt_job_report *report,
                                    const struct mt_job_gallery_options *options,
                                    struct mt_gallery *gallery, struct mt_error *error) MT_MUST_USE;

/* Draws and writes all files. If a file fails, continues with the others, and returns the status of
 * the first failure. Release *gallery in any case. */
enum mt_status mt_job_gallery_write(const struct mt_job_report *report,
                                    const struct mt_job_gallery_options *options,
                                    struct mt_gallery *gallery, struct mt_error *error) MT_MUST_USE;

#endif
