/* Memory over time as text: a plot for a terminal, and a line for Markdown. Each column shows its
 * highest instant, so even the shortest peak is visible. */
#ifndef MT_RENDER_TEXT_CHART_H
#define MT_RENDER_TEXT_CHART_H

#include "buf.h"
#include "report.h"

struct mt_text_chart {
    unsigned columns; /* columns of the terminal, at least MT_TEXT_CHART_MIN */
    unsigned rows;    /* rows of the plot, at least 1 */
    bool unicode;     /* false: only ASCII */
    /* Escape sequences of a terminal that start and end a color; "" = no colors. */
    const char *allocated, *reserved, *mark, *reset;
};
#define MT_TEXT_CHART_MIN 40

/* Maximum number of lines of the chart in addition to the rows of the plot. */
#define MT_TEXT_CHART_EXTRA 3

/* Number of bins for a timeline that only the text chart needs. */
#define MT_TEXT_CHART_BINS 1024

/* Appends the plot, an axis with marks at the peak and at out-of-memory errors, the steps, and a
 * legend. The axis shows time without idle gaps, or events (mt_is_shown_by_event). Appends nothing
 * if the device has no timeline. */
void mt_text_chart_add(struct mt_buf *out, const struct mt_report *report,
                       const struct mt_device_report *device, const struct mt_text_chart *chart);

/* Appends allocated memory over time as `columns` characters in UTF-8: "▁▁▃▅". */
void mt_text_chart_add_sparkline(struct mt_buf *out, const struct mt_report *report,
                                 const struct mt_device_report *device, unsigned columns);

#endif
