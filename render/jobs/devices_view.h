/* Parts of the chart of shared devices. A panel is one device: a stack of its processes over time,
 * and a table of them. */
#ifndef MT_RENDER_DEVICES_VIEW_H
#define MT_RENDER_DEVICES_VIEW_H

#include "draw.h"
#include "job_report.h"
#include "place.h"

/* Number of processes with a layer of their own; the others share one layer. */
enum { MT_DEVICES_LAYERS = 7 };

struct mt_devices_layer {
    const struct mt_job_tenant *tenant; /* NULL: the processes without a layer of their own */
    uint32_t index;                     /* of the tenant */
    struct mt_paint paint;
    uint64_t *tops; /* by column: bytes below the upper edge of the layer */
    uint64_t held_bytes;
};

struct mt_devices_panel {
    struct mt_drawing *drawing;
    const struct mt_job_report *report;
    const struct mt_job_device *device;
    struct mt_devices_layer layers[MT_DEVICES_LAYERS + 1]; /* the lowest first */
    uint32_t layer_count, others_count;                    /* processes of the lowest layer */
    uint32_t peak_column;
    struct mt_box plot;
    double height; /* of the plot, before it is placed */
    uint64_t top;  /* bytes at the upper edge of the plot */
    bool has_total_line;
};

/* Layers of a device: the processes with the largest peaks. The process with the earliest peak is
 * at the bottom, so that memory that it did not release is below the next one. */
void mt_devices_make_layers(struct mt_devices_panel *panel);

double mt_devices_x(const struct mt_devices_panel *panel, uint64_t t_ns);
double mt_devices_y(const struct mt_devices_panel *panel, uint64_t bytes);
/* x of the middle of a column. */
double mt_devices_column_x(const struct mt_devices_panel *panel, uint32_t column);

/* "rank 3", "serve.trace.zst of slurm:78" */
const char *mt_devices_process(const struct mt_devices_panel *panel,
                               const struct mt_job_tenant *tenant);
/* Returns the number of distinct devices in the report; a device may have several periods of
 * use. */
uint32_t mt_devices_count(const struct mt_job_report *report);
/* "GPU-8f2c on node00" */
const char *mt_devices_name(struct mt_drawing *drawing, const struct mt_job_report *report,
                            const struct mt_job_device *device);
/* Since the device's first process began: "4.63 s". */
const char *mt_devices_when(const struct mt_devices_panel *panel, uint64_t t_ns);

/* Returns the height of the panel without its plot. */
double mt_devices_panel_height(const struct mt_devices_panel *panel);
/* Returns the y below. */
double mt_devices_draw_panel(struct mt_devices_panel *panel, double y);

/* Draws labels at the peaks in the plot, and what the others held at the last peak. */
void mt_devices_draw_labels(const struct mt_devices_panel *panel);

#define MT_DEVICES_ROW 22.0 /* pitch of the table */
/* y is the baseline of the heading; returns that of the last row. */
double mt_devices_draw_table(const struct mt_devices_panel *panel, double y);

#endif
