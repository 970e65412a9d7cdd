/* Shared by the parts of the chart of shared devices. A panel shows one device: a stack of the
 * memory of its processes over time, and a table of the processes. */
#ifndef MT_RENDER_DEVICES_VIEW_H
#define MT_RENDER_DEVICES_VIEW_H

#include "draw.h"
#include "job_report.h"
#include "place.h"

/* Maximum number of processes with a layer of their own. The other processes share one layer. */
enum { MT_DEVICES_LAYERS = 7 };

struct mt_devices_layer {
    const struct mt_job_tenant *tenant; /* NULL: the processes without a layer of their own */
    uint32_t index;                     /* index of the tenant */
    struct mt_paint paint;
    uint64_t *tops; /* by column: bytes below the upper edge of the layer */
    uint64_t held_bytes;
};

struct mt_devices_panel {
    struct mt_drawing *drawing;
    const struct mt_job_report *report;
    const struct mt_job_device *device;
    struct mt_devices_layer layers[MT_DEVICES_LAYERS + 1]; /* the lowest first */
    uint32_t layer_count, others_count; /* others_count: processes that share a layer */
    uint32_t peak_column;
    struct mt_box plot;
    double height; /* height of the plot, set before `plot` */
    uint64_t top;  /* bytes at the upper edge of the plot */
    bool has_total_line;
};

/* Makes the layers of a device. The processes with the largest peaks have layers of their own, in
 * the order of their peaks, so that memory that a process did not release is below the next
 * process. All others share the lowest layer. */
void mt_devices_make_layers(struct mt_devices_panel *panel);

double mt_devices_x(const struct mt_devices_panel *panel, uint64_t t_ns);
double mt_devices_y(const struct mt_devices_panel *panel, uint64_t bytes);

/* Returns the name of a process: "rank 3", "serve.trace.zst of slurm:78". */
const char *mt_devices_process(const struct mt_devices_panel *panel,
                               const struct mt_job_tenant *tenant);

/* Returns the number of distinct devices in the report. The report has a device several times if it
 * was used in several periods. */
uint32_t mt_devices_count(const struct mt_job_report *report);

/* Returns the name of a device: "GPU-8f2c on node00". */
const char *mt_devices_name(struct mt_drawing *drawing, const struct mt_job_report *report,
                            const struct mt_job_device *device);

/* Returns the time since the first process of the device began: "4.63 s". */
const char *mt_devices_when(const struct mt_devices_panel *panel, uint64_t t_ns);

/* Draws labels at the peaks in the plot, and a bar with the memory that other processes still held
 * at the last peak. */
void mt_devices_draw_labels(const struct mt_devices_panel *panel);

#define MT_DEVICES_ROW 22.0 /* height of a row of the table */

/* Draws the table. y is the baseline of the heading. Returns the baseline of the last row. */
double mt_devices_draw_table(const struct mt_devices_panel *panel, double y);

#endif
