/* The charts. Each chart has a file and a row in the table of charts.c. A chart turns the report of
 * a device into a display list and reads only the report. */
#ifndef MT_RENDER_CHART_H
#define MT_RENDER_CHART_H

#include "draw.h"
#include "icicle.h"
#include "report.h"

struct mt_chart_options {
    double width, height; /* logical pixels; 0 = the default of the chart */
    bool event_axis;      /* --x=events */
    bool keyed;           /* blocks have keys (mt_block_key), so that a script can find them */
    bool reversed;        /* icicle: innermost frames first */
    enum mt_weigh weigh;  /* icicle: the quantity that the width of a cell shows */
};

struct mt_chart {
    const char *name;    /* "timeline"; also the name of the file */
    const char *summary; /* one line for --help */
    unsigned models;     /* models of the report that the chart reads: enum mt_model_bit */
    bool shows_findings; /* or whether memory grows */
    bool is_enlarged; /* in report.html, a reader can enlarge the chart and click its small parts */
    /* Only `render` draws the chart; `analyze -o` and the page omit it. */
    bool is_on_request;
    /* The chart shows events over time: a file without a history has none. */
    bool needs_history;
    /* Returns why the chart has nothing to draw, for people; NULL if it has. The member is NULL if
     * any device with events will do. */
    const char *(*lacks)(const struct mt_report *report, const struct mt_device_report *device);
    /* Returns true if the chart is useful for the trace; used if the user named no chart. NULL =
     * always. Called only if the chart lacks nothing. */
    bool (*called_for)(const struct mt_report *report, const struct mt_device_report *device);
    /* `device` may be NULL for an empty trace; the chart then shows a message. Always initializes
     * *drawing, which the caller releases. */
    void (*draw)(const struct mt_report *report, const struct mt_device_report *device,
                 const struct mt_chart_options *options, struct mt_drawing *drawing);
};

/* All charts; ends with NULL. */
extern const struct mt_chart *const mt_charts[];

/* Returns NULL if there is no chart of that name. */
const struct mt_chart *mt_chart_find(const char *name);

/* Returns why the chart has nothing to draw ("the trace has no steps"), or NULL. `device` may be
 * NULL. A static text. */
const char *mt_chart_lacks(const struct mt_chart *chart, const struct mt_report *report,
                           const struct mt_device_report *device);

/* Returns true if `analyze -o` and the page show the chart. */
bool mt_chart_is_called_for(const struct mt_chart *chart, const struct mt_report *report,
                            const struct mt_device_report *device);

/* Returns the models that all charts together read: enum mt_model_bit. */
unsigned mt_charts_models(void);

#endif
