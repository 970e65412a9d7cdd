/* The x axis of charts over a whole run. It shows either time, with idle gaps folded, or events at
 * equal widths. It also draws the ticks, the folds, and the rows of steps and phases below the
 * plot. */
#ifndef MT_RENDER_TIME_AXIS_H
#define MT_RENDER_TIME_AXIS_H

#include "chart_frame.h"
#include "timeline_model.h"

#define MT_FOLD_WIDTH 34.0
#define MT_ROW_HEIGHT 16.0

#define MT_AXIS_NAMES 24

/* A name in the row of phases. */
struct mt_axis_name {
    const char *text;
    enum mt_color color;
    bool drawn, shortened; /* drawn: a cell has this color; shortened: a cell has the short name */
};

struct mt_time_axis {
    const struct mt_report *report;
    const struct mt_timeline *timeline;
    double left, width; /* set by the caller */
    bool by_event;
    const char *rest;   /* what is not drawn behind its end (mt_chart_frame_teardown), or NULL */
    const char *name;   /* name of a time axis; NULL = "since first event" */
    uint32_t row_count; /* number of phases that the row of phases shows */
    struct mt_axis_name names[MT_AXIS_NAMES]; /* in order of first use */
    uint32_t name_count;
};

/* A part of a run. mt_time_axis_window makes an axis of it: one span, or if is_whole is set, the
 * spans of the whole run with idle gaps folded. *axis has no bins and is valid as long as the
 * drawing. */
struct mt_axis_window {
    uint64_t begin_t_ns, end_t_ns, begin_event, end_event;
    bool is_whole;
};
void mt_time_axis_window(struct mt_drawing *drawing, const struct mt_device_report *device,
                         const struct mt_axis_window *window, struct mt_timeline *axis);

/* The caller sets left and width afterwards, and `rest`. */
void mt_time_axis_init(struct mt_time_axis *axis, const struct mt_report *report,
                       const struct mt_timeline *timeline, bool by_event);

/* Returns the x of an instant. Instants outside of the axis are moved to its ends. */
double mt_time_axis_x(const struct mt_time_axis *axis, uint64_t t_ns, uint64_t event);

/* Return the number of spans, and the x at which a span begins and ends. An axis by event has one
 * span. */
uint32_t mt_time_axis_spans(const struct mt_time_axis *axis);
double mt_time_axis_span_left(const struct mt_time_axis *axis, uint32_t span);
double mt_time_axis_span_right(const struct mt_time_axis *axis, uint32_t span);

/* Draws the folds over the plot, from y to y + height. */
void mt_time_axis_draw_folds(struct mt_drawing *drawing, const struct mt_time_axis *axis, double y,
                             double height);

/* Draws ticks from y downwards, and labels on the baseline y + 18. */
void mt_time_axis_draw_ticks(struct mt_drawing *drawing, const struct mt_time_axis *axis, double y);

/* Draw tinted backgrounds for every other step, and dotted lines at the starts of steps. Call the
 * first function before the data is drawn, and the second afterwards. */
void mt_time_axis_draw_step_tints(struct mt_drawing *drawing, const struct mt_time_axis *axis,
                                  const struct mt_device_report *device, const struct mt_box *plot);
void mt_time_axis_draw_step_starts(struct mt_drawing *drawing, const struct mt_time_axis *axis,
                                   const struct mt_device_report *device,
                                   const struct mt_box *plot);

/* Draw the rows of steps and of phases at y. Adjacent steps or phases that are too narrow to be
 * distinguished become one cell that shows their number. */
void mt_time_axis_draw_steps(struct mt_drawing *drawing, const struct mt_time_axis *axis,
                             const struct mt_device_report *device, double y);
void mt_time_axis_draw_phases(struct mt_drawing *drawing, struct mt_time_axis *axis, double y);

/* Draws both rows below each other, without those that are empty. Returns the y below them. */
double mt_time_axis_draw_rows(struct mt_drawing *drawing, struct mt_time_axis *axis,
                              const struct mt_device_report *device, double y);

/* Returns the height of the rows and the ticks below a plot. */
double mt_time_axis_height(const struct mt_time_axis *axis, bool has_steps);

/* Returns the entry of a name in the row of phases. Adds the entry at the first use of the name.
 * Returns NULL if there are too many names. */
struct mt_axis_name *mt_time_axis_name(struct mt_time_axis *axis, const char *text);

/* Begin groups of a chart that a page can enlarge; mt_draw_group_end ends them. The script enlarges
 * what is in a `box` in both directions ("xy") or in one of them ("x", "y"), and moves what is at a
 * point ("point"; "mark": only sideways). It draws the ticks of bytes, and those of the axis on the
 * baseline y, again for the part that is visible. */
void mt_zoom_begin(struct mt_drawing *drawing, const char *kind, const struct mt_box *box);
void mt_zoom_begin_point(struct mt_drawing *drawing, const char *kind, double x, double y);
void mt_zoom_begin_bytes(struct mt_drawing *drawing, uint64_t top);
void mt_zoom_begin_ticks(struct mt_drawing *drawing, const struct mt_time_axis *axis, double y);

/* Draws a legend on baseline y: the name of the axis, and the colors and short names of the phases
 * that were drawn. */
void mt_time_axis_draw_legend(struct mt_drawing *drawing, const struct mt_time_axis *axis, double y,
                              double max_x);

#endif
