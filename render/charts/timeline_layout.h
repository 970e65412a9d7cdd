/* Shared by the parts of the timeline chart: the layers, limits, marks, labels, and the legend at
 * the side. */
#ifndef MT_RENDER_TIMELINE_LAYOUT_H
#define MT_RENDER_TIMELINE_LAYOUT_H

#include "chart.h"
#include "layers_model.h"
#include "time_axis.h"

/* A vertical strip of the plot. It shows the instant within the strip at which the most memory is
 * allocated. */
struct mt_column {
    double x;
    const struct mt_bin *bin;
    uint64_t reserved; /* maximum within the strip */
    uint64_t lowest;   /* minimum of allocated bytes within the strip */
};

/* A layer of the plot. */
struct mt_timeline_layer {
    const char *name, *tag; /* name: "Parameters"; tag: identifies the layer for tests */
    struct mt_paint paint;
    uint64_t peak_bytes; /* bytes of the layer at the allocated peak */
};

struct mt_timeline_layout {
    const struct mt_report *report;
    const struct mt_device_report *device;
    struct mt_time_axis axis;
    struct mt_box plot;
    struct mt_ticks ticks;                          /* of the byte axis */
    uint64_t top;                                   /* bytes at the upper edge of the plot */
    struct mt_timeline_layer layers[MT_ROLE_COUNT]; /* the lowest layer first */
    int layer_count;
    struct mt_column *columns;
    uint32_t column_count;
    double column_width;
    bool has_lowest; /* the columns hide many changes, so the chart also draws the minimum of each
                        column */
    /* position of the legend; width 0 = no legend */
    double side_left, side_width, side_top, side_bottom;
    bool has_legend_row;  /* a legend of phases is below the ticks */
    bool has_role_row;    /* a row of names below the plot replaces the legend */
    bool narrow;          /* the legend is below the plot, in two columns */
    uint64_t limit_bytes; /* limit that is drawn as a line; 0 = none */
};

/* The order of the roles from the base line up. Long-lived roles are at the bottom, so that changes
 * of other roles do not move their layers. */
extern const enum mt_role mt_timeline_stack[MT_ROLE_COUNT];

/* Fills layout->layers. The report, device and axis of the layout must be set. */
void mt_timeline_make_layers(struct mt_timeline_layout *layout);

/* Returns the bytes of a layer in a bin of the timeline. */
uint64_t mt_timeline_layer_bytes(const struct mt_timeline_layout *layout, const struct mt_bin *bin,
                                 int layer);

/* Returns a remark about the layers, such as "roles are inferred"; NULL = none. */
const char *mt_timeline_layers_text(struct mt_drawing *drawing,
                                    const struct mt_timeline_layout *layout);

/* Initializes the drawing, computes the positions of all parts of the chart, and draws the header,
 * the tiles and the footnote. If there is no data, draws a message and returns false. */
bool mt_timeline_lay_out(const struct mt_report *report, const struct mt_device_report *device,
                         const struct mt_chart_options *options, struct mt_drawing *drawing,
                         struct mt_timeline_layout *layout);

/* Returns the right edge of the plot. */
static inline double mt_timeline_right(const struct mt_timeline_layout *layout)
{
    return layout->plot.x + layout->plot.width;
}

/* Returns the y of a number of bytes, rounded to half a pixel. */
double mt_timeline_y(const struct mt_timeline_layout *layout, uint64_t bytes);

/* Returns the limit of the allocator, or the memory of the device if no limit is known. 0 = both
 * are unknown. */
uint64_t mt_timeline_limit(const struct mt_device_report *device);

/* Writes the bytes of mt_timeline_limit to `text` and returns it: "1.66 GiB", or "between 1.65 GiB
 * and 1.67 GiB, inferred" if the trace gives only a range for the limit. */
#define MT_LIMIT_TEXT 120
const char *mt_timeline_limit_text(char text[MT_LIMIT_TEXT], const struct mt_device_report *device);

/* Fills layout->columns. The axis and plot of the layout must be set. */
void mt_timeline_make_columns(struct mt_drawing *drawing, struct mt_timeline_layout *layout);

/* Draws unused memory, the layers, and the line of reserved memory. */
void mt_timeline_draw_layers(struct mt_drawing *drawing, const struct mt_timeline_layout *layout);

/* Draws the legend of the marks of retries on baseline y, so that it ends at `right`. Draws nothing
 * if there are no retries. Returns the right edge of the remaining room. */
double mt_timeline_draw_retries_legend(struct mt_drawing *drawing,
                                       const struct mt_timeline_layout *layout, double right,
                                       double y);

/* Draws the limit, OOM flags, marks of retries, rings and labels at the peaks, and the label of
 * unused memory. */
void mt_timeline_draw_labels(struct mt_drawing *drawing, const struct mt_timeline_layout *layout);

#endif
