/* The x axis of charts over a whole run: time with idle gaps folded, or events at equal width;
 * with its ticks, the folds, and the rows of steps and phases below the plot. */
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
    bool drawn, shortened; /* some cell shows its color; its short form */
};

struct mt_time_axis {
    const struct mt_report *report;
    const struct mt_timeline *timeline;
    double left, width; /* set by the caller */
    bool by_event;
    const char *name;                         /* of the axis of time, NULL = since first event */
    uint32_t row_count;                       /* phases that the row of phases shows */
    struct mt_axis_name names[MT_AXIS_NAMES]; /* in order of first sight */
    uint32_t name_count;
};

/* A part of a run as an axis: one span, or the spans of the whole run with its idle gaps folded.
 * `axis` gets no bins; it lives as long as the drawing. */
struct mt_axis_window {
    uint64_t begin_t_ns, end_t_ns, begin_event, end_event;
    bool is_whole;
};
enum mt_status mt_time_axis_window(struct mt_drawing *drawing,
                                   const struct mt_device_report *device,
                                   const struct mt_axis_window *window,
                                   struct mt_timeline *axis) MT_MUST_USE;

/* Left and width are for the caller to set. */
void mt_time_axis_init(struct mt_time_axis *axis, const struct mt_report *report,
                       const struct mt_timeline *timeline, bool by_event);

/* x of an instant, within the axis. */
double mt_time_axis_x(const struct mt_time_axis *axis, uint64_t t_ns, uint64_t event);

/* x where span i begins and ends (by event there is one span: everything). */
uint32_t mt_time_axis_spans(const struct mt_time_axis *axis);
double mt_time_axis_span_left(const struct mt_time_axis *axis, uint32_t span);
double mt_time_axis_span_right(const struct mt_time_axis *axis, uint32_t span);

/* Covers what lies under the folded gaps between y and y + height. */
void mt_time_axis_draw_folds(struct mt_drawing *drawing, const struct mt_time_axis *axis, double y,
                             double height);

/* Ticks from y down, labels on the baseline y + 18. */
void mt_time_axis_draw_ticks(struct mt_drawing *drawing, const struct mt_time_axis *axis, double y);

/* Tinted backgrounds of every other step, to draw before the data, and dotted lines at the starts
 * of steps, to draw after it. */
void mt_time_axis_draw_step_tints(struct mt_drawing *drawing, const struct mt_time_axis *axis,
                                  const struct mt_device_report *device, const struct mt_box *plot);
void mt_time_axis_draw_step_starts(struct mt_drawing *drawing, const struct mt_time_axis *axis,
                                   const struct mt_device_report *device,
                                   const struct mt_box *plot);

/* Draws the rows at y. Adjacent steps or phases that are too narrow to distinguish become one
 * cell with their number. */
void mt_time_axis_draw_steps(struct mt_drawing *drawing, const struct mt_time_axis *axis,
                             const struct mt_device_report *device, double y);
void mt_time_axis_draw_phases(struct mt_drawing *drawing, struct mt_time_axis *axis, double y);

/* The entry of a name in the row of phases, made at its first sight; NULL if there
 * are too many. */
struct mt_axis_name *mt_time_axis_name(struct mt_time_axis *axis, const char *text);

/* What the axis is, and colors and short names of the phases that were drawn,
 * on baseline y. */
void mt_time_axis_draw_legend(struct mt_drawing *drawing, const struct mt_time_axis *axis, double y,
                              double max_x);

#endif
