/* Parts of the timeline chart, which share one layout of the picture. */
#ifndef MT_RENDER_TIMELINE_LAYOUT_H
#define MT_RENDER_TIMELINE_LAYOUT_H

#include "chart.h"
#include "layers_model.h"
#include "time_axis.h"

/* One strip of the plot: its fullest instant. */
struct mt_column {
    double x;
    const struct mt_bin *bin;
    uint64_t reserved; /* most in the strip */
    uint64_t lowest;   /* least allocated in the strip */
};

/* A layer of the plot. */
struct mt_timeline_layer {
    const char *name, *tag; /* "Parameters"; marks the layer for tests */
    struct mt_paint paint;
    uint64_t peak_bytes; /* at the allocated peak */
};

struct mt_timeline_layout {
    const struct mt_report *report;
    const struct mt_device_report *device;
    struct mt_time_axis axis;
    struct mt_box plot;
    struct mt_ticks ticks;                          /* of the byte axis */
    uint64_t top;                                   /* bytes at the upper edge of the plot */
    struct mt_timeline_layer layers[MT_ROLE_COUNT]; /* from the base line up */
    int layer_count;
    struct mt_column *columns;
    uint32_t column_count;
    double column_width;
    bool has_lowest; /* columns hide most changes, so their lowest level is also drawn */
    double side_left, side_width, side_top, side_bottom; /* legend; width 0 = none */
    bool has_legend_row;                                 /* phases, below the ticks */
    bool has_role_row;    /* below that row, if there is no other legend */
    bool narrow;          /* legend below the plot, in two columns */
    uint64_t limit_bytes; /* drawn as a line; 0 = none */
};

/* Roles from the base line up. Long-lived roles come first, so that their layers do not move. */
extern const enum mt_role mt_timeline_stack[MT_ROLE_COUNT];

/* Fills layout->layers; its report, device and axis are set. */
void mt_timeline_make_layers(struct mt_timeline_layout *layout);
/* Returns the bytes of a layer in a bin of the axis. */
uint64_t mt_timeline_layer_bytes(const struct mt_timeline_layout *layout, const struct mt_bin *bin,
                                 int layer);
/* Returns a remark about the layers: "roles are inferred". NULL = none. */
const char *mt_timeline_layers_text(struct mt_drawing *drawing,
                                    const struct mt_timeline_layout *layout);

/* Computes the positions of all parts of the chart and draws its header and what is above and
 * below the plot. Returns false if there is nothing to show. */
bool mt_timeline_lay_out(const struct mt_report *report, const struct mt_device_report *device,
                         const struct mt_chart_options *options, struct mt_drawing *drawing,
                         struct mt_timeline_layout *layout);

/* y of a number of bytes, snapped to half a pixel. */
double mt_timeline_y(const struct mt_timeline_layout *layout, uint64_t bytes);

/* Limit of the allocator, or the memory of the device if no limit is known; 0 = neither is. */
uint64_t mt_timeline_limit(const struct mt_device_report *device);

/* "1.66 GiB", or "between 1.65 GiB and 1.67 GiB, inferred" if the trace gives only a range; the
 * same for the memory of the device if no limit is known. Returns `text`. */
#define MT_LIMIT_TEXT 120
const char *mt_timeline_limit_text(char text[MT_LIMIT_TEXT], const struct mt_device_report *device);

/* Fills layout->columns; its axis and plot are set. */
void mt_timeline_make_columns(struct mt_drawing *drawing, struct mt_timeline_layout *layout);
/* Writes the reserved bytes of each column into `line`: those of the column, except that the line
 * stays at the level of the maxima where many narrow drops follow each other. */
void mt_timeline_reserved_line(const struct mt_timeline_layout *layout, uint64_t *line);
/* Unused memory, layers of roles, the reserved line. */
void mt_timeline_draw_layers(struct mt_drawing *drawing, const struct mt_timeline_layout *layout);
/* Draw the limit line and the OOM flags. Their texts avoid the areas in the placer, and are
 * added to it. */
void mt_timeline_draw_limit(struct mt_drawing *drawing, const struct mt_timeline_layout *layout,
                            struct mt_placer *placer);
void mt_timeline_draw_ooms(struct mt_drawing *drawing, const struct mt_timeline_layout *layout,
                           struct mt_placer *placer);
/* Draws marks where the cache was emptied to serve a request. */
void mt_timeline_draw_retries(struct mt_drawing *drawing, const struct mt_timeline_layout *layout,
                              struct mt_placer *placer);
/* Draws the legend of the marks of retries, if there are any, on baseline y, ending at `right`.
 * Returns the right edge of the remaining room. */
double mt_timeline_draw_retries_legend(struct mt_drawing *drawing,
                                       const struct mt_timeline_layout *layout, double right,
                                       double y);
/* Draws limit, OOM flags and retries, rings and labels at the peaks, and the label of unused
 * memory. */
void mt_timeline_draw_labels(struct mt_drawing *drawing, const struct mt_timeline_layout *layout);
/* Draws the parts of the peak and the largest groups of live blocks. */
void mt_timeline_draw_side(struct mt_drawing *drawing, const struct mt_timeline_layout *layout);
/* Returns the height of mt_timeline_draw_side below a narrow plot. */
double mt_timeline_side_height(const struct mt_timeline_layout *layout);
/* Replaces mt_timeline_draw_side if there is no room: names and colors only, on baseline y. */
void mt_timeline_draw_role_row(struct mt_drawing *drawing, const struct mt_timeline_layout *layout,
                               double y);

#endif
