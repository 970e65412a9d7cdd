/* The parts around the data of every chart: title, facts, tiles, axes, legends, footnote.
 * Functions draw into the list at once; those that stack from top to bottom return the y below
 * what they drew. */
#ifndef MT_RENDER_FRAME_H
#define MT_RENDER_FRAME_H

#include "draw.h"
#include "place.h"
#include "report.h"
#include "scale.h"

#define MT_MARGIN       24.0 /* left and right of everything */
#define MT_SIZE_TITLE   22.0
#define MT_SIZE_BODY    13.5
#define MT_SIZE_AXIS    13.0
#define MT_SIZE_SMALL   12.0
#define MT_SIZE_CELL    11.5   /* the smallest size */
#define MT_NARROW_WIDTH 1000.0 /* below it, side columns go under the plot */

/* Returns the width or height to draw: the requested one, or the default for 0, within the
 * limits of a picture. */
double mt_chart_frame_width(double wanted);
double mt_chart_frame_height(double wanted, double standard);

/* Text with the properties that most text has. Returns its width. */
double mt_chart_frame_text(struct mt_drawing *drawing, double x, double y, const char *text,
                           double size, enum mt_weight weight, enum mt_color color,
                           enum mt_anchor anchor, const char *role);

/* "<name> — <chart>" with ", device 1" if the report has several. */
const char *mt_chart_frame_title(struct mt_drawing *drawing, const struct mt_report *report,
                                 const struct mt_device_report *device, const char *chart);
/* "NVIDIA H200 · PyTorch 2.11 · max_split_size_mb:64 · 8 steps · ...", with the warnings about an
 * incomplete trace. `device` may be NULL. */
const char *mt_chart_frame_facts(struct mt_drawing *drawing, const struct mt_report *report,
                                 const struct mt_device_report *device);

/* Title line and facts, wrapped at " · " into at most two lines. */
double mt_chart_frame_header(struct mt_drawing *drawing, const char *title, const char *facts);

/* Tiles of equal width with one number each. */
struct mt_tile {
    const char *label, *value, *note;
    enum mt_color edge;
    const char *short_label; /* used if the label does not fit; NULL = none */
};
double mt_chart_frame_tiles(struct mt_drawing *drawing, double y, const struct mt_tile *tiles,
                            size_t count);

/* Grid lines and labels left of the plot; `top` is the value at its upper edge. */
void mt_chart_frame_byte_axis(struct mt_drawing *drawing, const struct mt_box *plot,
                              const struct mt_ticks *ticks, uint64_t top);

struct mt_swatch {
    const char *text;
    enum mt_color color;
};
/* Returns how many swatches fit into a row of `width`. */
size_t mt_chart_frame_swatches_fit(const struct mt_swatch *swatches, size_t count, double width);
/* Swatches with names in a row. Leaves out those that do not fit before max_x and writes their
 * number. y is the baseline. Returns the x after the last. */
double mt_chart_frame_swatches(struct mt_drawing *drawing, double x, double y, double max_x,
                               const struct mt_swatch *swatches, size_t count);

/* Small print at the bottom edge, wrapped at " · " into at most two lines.
 * Returns the y above it. */
double mt_chart_frame_footnote(struct mt_drawing *drawing, const char *text);

/* The middle of a picture that has nothing to show. */
void mt_chart_frame_nothing(struct mt_drawing *drawing, double y, const char *text,
                            const char *reason);

/* Draws a whole picture without data, with the smallest height. */
void mt_chart_frame_empty(struct mt_drawing *drawing, const struct mt_report *report,
                          const struct mt_device_report *device, const char *title,
                          const char *text, const char *reason);

/* Role colors, and names as legends write them: "Optimizer state". */
enum mt_color mt_role_color(enum mt_role role);
const char *mt_role_title(enum mt_role role);

/* Returns the color of a phase by the meaning of its name; names without a known meaning share
 * the remaining colors by `ordinal`. */
enum mt_color mt_phase_color(const char *name, unsigned ordinal);
/* "fwd" for "forward"; NULL if there is no usual short form. */
const char *mt_phase_short_name(const char *name);

/* Appends "12 rows further in are not drawn" to the footnote; nothing for 0. */
void mt_chart_frame_add_rows_cut(struct mt_buf *footnote, uint32_t rows);

/* Cuts text of a trace after `most` bytes, with an ellipsis. For text that is not cut to a
 * width, so that a long name cannot make a picture huge. */
const char *mt_chart_frame_short(struct mt_drawing *drawing, const char *text, size_t most);

/* A site, without the user's code line if both do not fit: "forward linear.py:134" keeps its end,
 * other text its beginning. */
const char *mt_chart_frame_fit_site(struct mt_drawing *drawing, const char *site, double size,
                                    double width);

/* Where something happened: "backward, step 1"; "" outside of everything. */
const char *mt_chart_frame_where(struct mt_drawing *drawing, const struct mt_report *report,
                                 int32_t phase, int64_t step);
/* "3.760 s" since the first event of the report, to the millisecond; in smaller units if the
 * report is shorter than a second. */
const char *mt_chart_frame_when(struct mt_drawing *drawing, const struct mt_report *report,
                                uint64_t t_ns);
/* Like mt_chart_frame_when, with the event: "3.760 s (event 1,234)", or "event 1,234" if the
 * report has no times. */
const char *mt_chart_frame_at(struct mt_drawing *drawing, const struct mt_report *report,
                              uint64_t t_ns, uint64_t event);
/* A duration: "3.76 s", or "120 events" if the report has no times. */
const char *mt_chart_frame_length(struct mt_drawing *drawing, const struct mt_report *report,
                                  uint64_t length_ns, uint64_t events);

/* Accessible text and PNG metadata common to all charts. */
void mt_chart_frame_describe(struct mt_drawing *drawing, const struct mt_report *report,
                             const struct mt_device_report *device, const char *title);

#endif
