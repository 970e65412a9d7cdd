/* The parts around the data of every chart: title, facts, tiles, axes, legends, footnote. Functions
 * that place parts from top to bottom return the y below the part. Texts that functions return are
 * in the arena of the drawing. */
#ifndef MT_RENDER_FRAME_H
#define MT_RENDER_FRAME_H

#include "draw.h"
#include "place.h"
#include "report.h"
#include "scale.h"

#define MT_MARGIN       24.0 /* on the left and right of the picture */
#define MT_SIZE_TITLE   22.0
#define MT_SIZE_BODY    13.5
#define MT_SIZE_AXIS    13.0
#define MT_SIZE_SMALL   12.0
#define MT_SIZE_CELL    11.5   /* the smallest size of text */
#define MT_NARROW_WIDTH 1000.0 /* in narrower pictures, side columns are below the plot */

/* Returns the width or height to draw: the requested one, or the default for 0, within the
 * limits of a picture. */
double mt_chart_frame_width(double wanted);
double mt_chart_frame_height(double wanted, double standard);

/* Draws text without halo or rotation. Returns the width of the text. */
double mt_chart_frame_text(struct mt_drawing *drawing, double x, double y, const char *text,
                           double size, enum mt_weight weight, enum mt_color color,
                           enum mt_anchor anchor, const char *role);
/* Dims everything behind a label: layers, stripes, lines of the axis, the line of reserved memory.
 */
void mt_chart_frame_plate(struct mt_drawing *drawing, double x, double y, double width,
                          double height);

/* Returns "<name> — <chart>", followed by ", device 1" if the report has several devices. */
const char *mt_chart_frame_title(struct mt_drawing *drawing, const struct mt_report *report,
                                 const struct mt_device_report *device, const char *chart);
/* Returns facts about the run, including warnings about an incomplete trace: "NVIDIA H200 · PyTorch
 * 2.11 · max_split_size_mb:64 · 8 steps · ...". `device` may be NULL. */
const char *mt_chart_frame_facts(struct mt_drawing *drawing, const struct mt_report *report,
                                 const struct mt_device_report *device);

/* Draws a line with the title, and the facts in at most two lines, which break at " · ". */
double mt_chart_frame_header(struct mt_drawing *drawing, const char *title, const char *facts);

/* A box with a number. mt_chart_frame_tiles draws a row of tiles of equal width. */
struct mt_tile {
    const char *label, *value, *note;
    enum mt_color edge;
    const char *short_label; /* replaces a label that does not fit; NULL = none */
};
double mt_chart_frame_tiles(struct mt_drawing *drawing, double y, const struct mt_tile *tiles,
                            size_t count);

/* Draws grid lines, and labels on the left of the plot. `top` is the value at the upper edge of the
 * plot. */
void mt_chart_frame_byte_axis(struct mt_drawing *drawing, const struct mt_box *plot,
                              const struct mt_ticks *ticks, uint64_t top);

/* Returns the left edge of a plot that leaves room for these labels, and for another one. */
double mt_chart_frame_plot_x(const struct mt_ticks *ticks, const char *other);

struct mt_swatch {
    const char *text;
    enum mt_color color;
};
/* Returns the number of swatches that fit into a row of `width`. */
size_t mt_chart_frame_swatches_fit(const struct mt_swatch *swatches, size_t count, double width);
/* Draws a row of swatches with their names on baseline y. If some do not fit before max_x, draws
 * their number instead: "+ 3 more". Returns the x at which the row continues. */
double mt_chart_frame_swatches(struct mt_drawing *drawing, double x, double y, double max_x,
                               const struct mt_swatch *swatches, size_t count);

/* Draws small print at the bottom edge of the picture, in at most two lines, which break at " · ".
 * Returns the y above the lines. */
double mt_chart_frame_footnote(struct mt_drawing *drawing, const char *text);

/* Fills the picture below y with a panel that explains why there is no data. */
void mt_chart_frame_nothing(struct mt_drawing *drawing, double y, const char *text,
                            const char *reason);

/* Draws a complete picture without data: the header and the panel of mt_chart_frame_nothing.
 * Reduces the height of the picture to the minimum. */
void mt_chart_frame_empty(struct mt_drawing *drawing, const struct mt_report *report,
                          const struct mt_device_report *device, const char *title,
                          const char *text, const char *reason);

/* Return the color of a role and its name in legends: "Optimizer state". */
enum mt_color mt_role_color(enum mt_role role);
const char *mt_role_title(enum mt_role role);

/* Returns the color of a phase. All names that mean forward share a color; the same holds for
 * backward, optimizer, loss and zero_grad. Any other name gets one of the remaining colors, which
 * `ordinal` selects. */
enum mt_color mt_phase_color(const char *name, unsigned ordinal);
/* Returns the usual short form of a name, as in "fwd" for "forward". NULL if there is none. */
const char *mt_phase_short_name(const char *name);

/* Appends "12 rows further in are not drawn" to the footnote. Appends nothing if `rows` is 0. */
void mt_chart_frame_add_rows_cut(struct mt_buf *footnote, uint32_t rows);

/* Cuts text of a trace after `most` bytes and adds an ellipsis. Use it for text that is not
 * shortened to a width, so that a long name cannot make a picture huge. */
const char *mt_chart_frame_short(struct mt_drawing *drawing, const char *text, size_t most);

/* Returns a site that fits into `width`. Omits the user's place after the site if both do not fit.
 * If the site alone does not fit, shortens it: in the middle if it ends with a line number, as in
 * "forward linear.py:134", otherwise at the end. */
const char *mt_chart_frame_fit_site(struct mt_drawing *drawing, const char *site, double size,
                                    double width);

/* Returns a phase and a step as text: "backward, step 1". Returns "" if there is neither. */
const char *mt_chart_frame_where(struct mt_drawing *drawing, const struct mt_report *report,
                                 int32_t phase, int64_t step);
/* Returns the time since the first event of the report with a resolution of 1 ms: "3.760 s". If the
 * report is shorter than a second, the unit and the resolution are finer. */
const char *mt_chart_frame_when(struct mt_drawing *drawing, const struct mt_report *report,
                                uint64_t t_ns);
/* Like mt_chart_frame_when, but adds the event: "3.760 s (event 1,234)". Returns "event 1,234" if
 * the report has no times. */
const char *mt_chart_frame_at(struct mt_drawing *drawing, const struct mt_report *report,
                              uint64_t t_ns, uint64_t event);
/* Returns a duration: "3.76 s", or "120 events" if the report has no times. */
const char *mt_chart_frame_length(struct mt_drawing *drawing, const struct mt_report *report,
                                  uint64_t length_ns, uint64_t events);

/* Returns "1.2 s of teardown not drawn" if pictures of the device end with an error
 * (mt_shown_end), otherwise "". */
const char *mt_chart_frame_teardown(struct mt_drawing *drawing, const struct mt_report *report,
                                    const struct mt_device_report *device);

/* Sets the accessible text and the PNG metadata that all charts have. */
void mt_chart_frame_describe(struct mt_drawing *drawing, const struct mt_report *report,
                             const struct mt_device_report *device, const char *title);

#endif
